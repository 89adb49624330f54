"""Runs and judgements, or ready scores, in; effectiveness, variance and risk out. No ranker is needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from shaketable.data.scores import read_scores
from shaketable.data.trec import read_qrels, read_run
from shaketable.door.audit import Audit
from shaketable.door.names import split_name, told_apart
from shaketable.errors import BadInput
from shaketable.measure.effectiveness import score_table
from shaketable.task import risk, variance
from shaketable.types import Qrels, Result, Run, ScoreTable


def evaluate(
    qrels: str | Path | Qrels | None = None,
    runs: Iterable[str | Path] | Mapping[str, str | Path | Run] = (),
    *,
    scores: str | Path | ScoreTable | None = None,
    measures: Sequence[str] = (),
    baselines: Sequence[str] = ("mean",),
    alphas: Sequence[float] = risk.ALPHAS,
    seed: int = 0,
) -> Audit:
    """Effectiveness, variance and risk of runs against judgements, or of a table of topics by systems.

    Runs are files, which may be written NAME=FILE, or mappings; a baseline is a run's name or its file, or mean, median
    or max of all of them for each topic.
    """
    spread: Result
    if scores is not None:
        if qrels is not None or runs:
            raise BadInput("a table of scores stands alone: it takes the place of judgements and runs")
        if measures:
            raise BadInput("measures are for runs; a table of scores says what was measured by its own numbers")
        table = scores if isinstance(scores, ScoreTable) else read_scores(Path(scores))
        spread = variance.of_scores(table, seed)
        compared = list(baselines)
    else:
        judgements, lists, files = _read(qrels, runs)
        compared = [files.get(text, text) for text in baselines]
        wanted = list(measures) or ["nDCG@10"]
        table = score_table(wanted[0], judgements, lists)
        initial = compared[0] if compared[0] in lists else next(iter(lists))
        spread = variance.of_runs(wanted, judgements, lists, initial, seed)
    results = (spread, risk.of_scores(table, compared, tuple(alphas), seed))
    facts = {"systems": str(len(table.systems)), "topics": str(len(table.topics)), "measure": table.measure}
    facts["baseline"] = ", ".join(compared)
    return Audit("Effectiveness, variance and risk", facts, results, {"seed": seed, **facts})


def _read(
    qrels: str | Path | Qrels | None, runs: Iterable[str | Path] | Mapping[str, str | Path | Run]
) -> tuple[Qrels, dict[str, Run], dict[str, str]]:
    """Judgements, runs by name, and the names by file."""
    entries = list(runs.items()) if isinstance(runs, Mapping) else [_entry(text) for text in runs]
    if qrels is None or not entries:
        raise BadInput("give judgements (--qrels) and at least one run (--run), or a table of scores (--scores)")
    judgements = qrels if isinstance(qrels, Mapping) else read_qrels(Path(qrels))
    paths = [Path(source) for name, source in entries if not name and not isinstance(source, Mapping)]
    lists: dict[str, Run] = {}
    files: dict[str, str] = {}
    for name, source in entries:
        run = source if isinstance(source, Mapping) else read_run(Path(source))
        name = told_apart(name or short_name(Path(str(source)), paths), lists)
        lists[name] = run
        if not isinstance(source, Mapping):
            files[str(source)] = name
        if not run.keys() & judgements.keys():
            where = f"run {name}" if isinstance(source, Mapping) else source
            raise BadInput("none of its queries is judged; do the query ids match?", where)
    return judgements, lists, files


def _entry(text: str | Path) -> tuple[str, str | Path]:
    return split_name(text) if isinstance(text, str) else ("", text)


def short_name(path: Path, others: Sequence[Path]) -> str:
    """The shortest part of a path that tells it apart from the others.

    >>> short_name(Path("a/bm25.run"), [Path("a/bm25.run"), Path("a/ql.run.gz")])
    'bm25'
    >>> short_name(Path("trec/input.nlpir.gz"), [Path("trec/input.nlpir.gz"), Path("trec/input.ict.gz")])
    'input.nlpir'
    """
    plain = path.name.removesuffix(".gz")
    names = [other.name.removesuffix(".gz") for other in others]
    stems = [name.rpartition(".")[0] or name for name in names]
    stem = plain.rpartition(".")[0] or plain
    if stems.count(stem) == 1:
        return stem
    return plain if names.count(plain) == 1 else str(path)

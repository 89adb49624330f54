"""Runs and judgements, or ready scores, in; effectiveness, variance and risk out. No ranker is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from shaketable.data.scores import read_scores
from shaketable.data.trec import read_qrels, read_run_and_tag
from shaketable.door.audit import Audit
from shaketable.door.names import several, split_name, told_apart
from shaketable.errors import BadInput
from shaketable.measure.effectiveness import score_tables
from shaketable.task import effectiveness, risk, variance
from shaketable.types import Qrels, Run, ScoreTable


def evaluate(
    qrels: str | Path | Qrels | None = None,
    runs: str | Path | Iterable[str | Path] | Mapping[str, str | Path | Run] = (),
    *,
    scores: str | Path | ScoreTable | None = None,
    measures: str | Sequence[str] = (),
    baselines: str | Sequence[str] = ("mean",),
    alphas: Sequence[float] = risk.ALPHAS,
    test: str = "t_test",
    correction: str = "holm",
    seed: int = 0,
) -> Audit:
    """Effectiveness, variance and risk of runs against judgements, or of a table of topics by systems.

    Runs are files, which may be written NAME=FILE, or mappings; a baseline is a run's name or its file, or mean, median
    or max of all of them for each topic.
    """
    effectiveness.check_words(test, correction)
    if scores is not None:
        if qrels is not None or runs:
            raise BadInput("a table of scores stands alone: it takes the place of judgements and runs")
        if measures:
            raise BadInput("measures are for runs; a table of scores says what was measured by its own numbers")
        tables = [scores if isinstance(scores, ScoreTable) else read_scores(Path(scores))]
        compared = several(baselines)
        spread = variance.of_scores(tables[0], seed)
    else:
        judgements, lists, files = _read(qrels, runs)
        compared = [files.get(text, text) for text in several(baselines)]
        wanted = several(measures) or ["nDCG@10"]
        every = score_tables((*wanted, *variance.NEEDED), judgements, lists)
        tables = list(every[: len(wanted)])
        initial = compared[0] if compared[0] in lists else next(iter(lists))
        spread = variance.of_tables(every, judgements, lists, initial, seed)
    table = tables[0]
    base = compared[0] if compared[0] in table.systems else table.systems[0]
    compared_means = effectiveness.of_tables(tables, base, test, correction, seed)
    results = (compared_means, spread, risk.of_scores(table, compared, tuple(alphas), seed))
    facts = {"systems": str(len(table.systems)), "topics": str(len(table.topics)), "measure": table.measure}
    facts["baseline"] = ", ".join(compared)
    return Audit("Effectiveness, variance and risk", facts, results, {"seed": seed, **facts})


def _read(
    qrels: str | Path | Qrels | None, runs: str | Path | Iterable[str | Path] | Mapping[str, str | Path | Run]
) -> tuple[Qrels, dict[str, Run], dict[str, str]]:
    """Judgements, runs by name, and the names by file.

    A run is called as it was told to be, else by its tag where no other has it, else by the part of its path that tells
    it apart.
    """
    entries = list(runs.items()) if isinstance(runs, Mapping) else [_entry(text) for text in several(runs)]
    if qrels is None or not entries:
        raise BadInput("give judgements (--qrels) and at least one run (--run), or a table of scores (--scores)")
    judgements = qrels if isinstance(qrels, Mapping) else read_qrels(Path(qrels))
    read = [(source, "") if isinstance(source, Mapping) else read_run_and_tag(Path(source)) for _, source in entries]
    paths = [Path(source) for name, source in entries if not name and not isinstance(source, Mapping)]
    tags = [tag for (name, _), (_, tag) in zip(entries, read, strict=True) if not name]
    lists: dict[str, Run] = {}
    files: dict[str, str] = {}
    for (given, source), (run, tag) in zip(entries, read, strict=True):
        own = tag if tag and tags.count(tag) == 1 else ""
        name = told_apart(given or own or short_name(Path(str(source)), paths), lists)
        lists[name] = run
        if not isinstance(source, Mapping):
            files[str(source)] = name
        if not run.keys() & judgements.keys():
            where = None if isinstance(source, Mapping) else source
            raise BadInput(f"none of its queries is judged (the run is called {name}); do the query ids match?", where)
    return judgements, lists, files


def _entry(text: str | Path) -> tuple[str, str | Path]:
    return split_name(text) if isinstance(text, str) else ("", text)


def short_name(path: Path, others: Sequence[Path]) -> str:
    """The shortest part of a path that tells it apart from the others: of its name, else of its folders.

    >>> short_name(Path("a/bm25.run"), [Path("a/bm25.run"), Path("a/ql.run.gz")])
    'bm25'
    >>> short_name(Path("trec/input.nlpir.gz"), [Path("trec/input.nlpir.gz"), Path("trec/input.ict.gz")])
    'input.nlpir'
    >>> short_name(Path("x/a/bm25.run"), [Path("x/a/bm25.run"), Path("x/b/bm25.run")])
    'a/bm25'
    """
    rivals = [other for other in others if other != path]
    for folders in range(len(path.parts)):
        for cut in (_stem, _plain):
            name = _tail(path, folders, cut)
            if all(_tail(rival, folders, cut) != name for rival in rivals):
                return name
    return str(path)


def _tail(path: Path, folders: int, cut: Callable[[Path], str]) -> str:
    return "/".join((*path.parts[-1 - folders : -1], cut(path)))


def _plain(path: Path) -> str:
    return path.name.removesuffix(".gz")


def _stem(path: Path) -> str:
    return _plain(path).rpartition(".")[0] or _plain(path)

"""`evaluate`: effectiveness, variance and risk of runs or of a table of scores, without a ranker."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from shaketable.api.audit import Audit
from shaketable.api.ranker_names import as_list, make_unique_name, split_name
from shaketable.core.documents import Qrels, Run
from shaketable.core.errors import BadInput
from shaketable.core.provenance import collect_versions
from shaketable.core.results import ScoreTable, SystemTable
from shaketable.datasets.scores import read_scores
from shaketable.datasets.trec import read_qrels, read_run_and_tag
from shaketable.files.checksums import digest_file
from shaketable.measures.effectiveness import score_tables
from shaketable.measures.measure_names import name_measures
from shaketable.measures.significance import choose_correction
from shaketable.report import format_cell, format_number, join_names
from shaketable.tasks import effectiveness, risk, variance

MEAN_BASELINE = "mean"
MAX_CONCLUSIONS, MAX_NAMES = 3, 5
"""The number of measures and of systems that the conclusions name."""
MAX_RUN_BYTES_IN_MEMORY = 100 << 20
"""The size of run files up to which all runs are kept in memory; larger ones are read again for each step."""

RunSource: TypeAlias = str | Path | Run


@dataclass(frozen=True)
class RunInspection:
    """The facts of a run that need no measure, so that a large run is not read again for them."""

    tag: str
    has_judged_query: bool
    lists: variance.ListSummary


@dataclass(frozen=True)
class RunReader:
    """Reads runs; it keeps them unless they are large."""

    is_large: bool
    kept: dict[Path, tuple[Run, str]] = field(default_factory=dict)

    def read(self, source: RunSource) -> tuple[Run, str]:
        """Return a run and its tag."""
        if isinstance(source, Mapping):
            return source, ""
        path = Path(source)
        if found := self.kept.get(path):
            return found
        read = read_run_and_tag(path)
        if not self.is_large:
            self.kept[path] = read
        return read

    def inspect(self, source: RunSource, qrels: Qrels) -> RunInspection:
        """Read a run and return its tag and what variance reports of its lists."""
        run, tag = self.read(source)
        return RunInspection(tag, bool(run.keys() & qrels.keys()), variance.summarise_lists(run, qrels))


@dataclass(frozen=True)
class EvaluationInputs:
    """Judgements, runs by name with a summary of their lists, and the names of the runs by file."""

    qrels: Qrels
    runs: LazyRuns
    lists: Mapping[str, variance.ListSummary]
    names_by_file: Mapping[str, str]


@dataclass(frozen=True)
class LazyRuns(Mapping[str, Run]):
    """Runs by name, each read when it is used."""

    sources: Mapping[str, RunSource]
    reader: RunReader

    def __getitem__(self, name: str) -> Run:
        return self.reader.read(self.sources[name])[0]

    def __contains__(self, name: object) -> bool:
        return name in self.sources

    def __iter__(self) -> Iterator[str]:
        return iter(self.sources)

    def __len__(self) -> int:
        return len(self.sources)


def _count_bytes(sources: Iterable[RunSource]) -> int:
    """Return the size of all run files, unpacked by the usual ratio of gzip."""
    paths = [Path(source) for source in sources if not isinstance(source, Mapping)]
    return sum(path.stat().st_size * (5 if path.suffix == ".gz" else 1) for path in paths if path.is_file())


def evaluate(
    qrels: str | Path | Qrels | None = None,
    runs: str | Path | Iterable[str | Path] | Mapping[str, str | Path | Run] = (),
    *,
    scores: str | Path | ScoreTable | None = None,
    measures: str | Sequence[str] = (),
    baselines: str | Sequence[str] = (),
    alphas: Sequence[float] = (),
    significance_test: str = "t_test",
    correction: str = "",
    seed: int = 0,
) -> Audit:
    """Compute effectiveness, variance and risk of run files, or of a table of scores.

    Parameters
    ----------
    qrels
        The relevance judgements: a file, or a mapping qid -> docno -> grade.
    runs
        Run files, also written NAME=FILE, or a mapping from names to files or runs.
    scores
        Instead of `qrels` and `runs`: a table of scores by topic and system, as a CSV file or a `ScoreTable`.
    measures
        Effectiveness measures as ir_measures names them; "nDCG@10" by default.
    baselines
        The baselines of the risk measures: the name or the file of a run, or "mean" (the default), "median" or "max" of
        all runs for each topic.
    alphas
        The extra weights of losses in the risk measures: a loss counts 1 + alpha times as much as an equal gain.
    significance_test
        The test that compares systems query by query: "t_test", "wilcoxon", "randomisation" or "tukey_hsd".
    correction
        The correction of p-values for multiple comparisons: "holm" (the default), "bonferroni" or "bh". "tukey_hsd"
        corrects by itself and takes none.
    seed
        The random seed of bootstrap intervals and randomisation tests.

    Returns
    -------
    Audit
        An audit with the results "effectiveness", "variance" and "risk".

    Raises
    ------
    BadInput
        If a file is invalid, or if both `scores` and `runs` are given.

    Examples
    --------
    >>> import shaketable as st
    >>> qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
    >>> runs = {"a": {"q1": {"d1": 2.0}, "q2": {"d1": 1.0}}, "b": {"q1": {"d1": 1.0}, "q2": {"d2": 1.0}}}
    >>> [result.task for result in st.evaluate(qrels, runs).results]
    ['effectiveness', 'variance', 'risk']
    """
    correction = choose_correction(significance_test, correction)
    if scores is not None:
        if qrels is not None or runs:
            raise BadInput("a table of scores replaces judgements and runs; leave out --qrels and --run")
        if measures:
            raise BadInput("measures apply to runs only; a table of scores already has the values")
        tables = [scores if isinstance(scores, ScoreTable) else read_scores(Path(scores))]
        inputs: dict[str, Any] = {"scores": _describe_source(scores)}
        compared = as_list(baselines) or [MEAN_BASELINE]
        spread = variance.build_variance_from_scores(tables[0], seed)
    else:
        given = _read_inputs(qrels, runs)
        found = {name: _describe_source(source) for name, source in given.runs.sources.items()}
        inputs = {"qrels": _describe_source(qrels), "runs": found}
        compared = [given.names_by_file.get(text, text) for text in as_list(baselines) or [MEAN_BASELINE]]
        wanted = name_measures(as_list(measures) or ["nDCG@10"])
        every = score_tables((*wanted, *variance.REQUIRED_MEASURES), given.qrels, given.runs)
        tables = list(every[: len(wanted)])
        initial = compared[0] if compared[0] in given.runs else next(iter(given.runs))
        spread = variance.build_variance_from_tables(every, given.qrels, given.lists, initial, seed)
    table, used_alphas = tables[0], tuple(alphas) or risk.DEFAULT_ALPHAS
    base = compared[0] if compared[0] in table.systems else table.systems[0]
    compared_means = effectiveness.build_effectiveness_from_tables(tables, base, significance_test, correction, seed)
    results = (
        replace(compared_means, conclusions=_conclude(compared_means.system_table)),
        spread,
        risk.build_risk_from_scores(table, compared, used_alphas, seed),
    )
    facts = {"systems": str(len(table.systems)), "topics": str(len(table.topics)), "measure": table.measure}
    if len(table.systems) > 1:
        facts["differences against"] = base if base in compared else f"{base}, the first of the systems"
    facts["risk against"] = ", ".join(name if name in table.systems else f"{name} of all systems" for name in compared)
    provenance = {
        "versions": collect_versions(),
        "command": sys.argv[1:],
        "inputs": inputs,
        "measures": [one.measure for one in tables],
        "test": significance_test,
        "correction": correction,
        "alphas": list(used_alphas),
        "baseline": ", ".join(compared),
        "seed": seed,
    }
    return Audit("Effectiveness, variance and risk", facts, results, provenance | facts)


def _conclude(table: SystemTable | None) -> tuple[str, ...]:
    """Return the system with the highest mean of each measure, and the systems that it significantly beats."""
    if table is None or len(table.systems) < 2:
        return ()
    said = []
    for column, measure in enumerate(table.measures):
        means = [row[column] for row in table.values]
        best = max(range(len(means)), key=lambda row: means[row])
        beaten = [format_cell(table.systems[row]) for row in table.beaten[best][column]]
        others = len(table.systems) - 1
        start = f"{format_cell(table.systems[best])} has the highest {measure}, {format_number(means[best])}"
        if not table.comparison:
            said.append(f"{start}; there are too few queries to test the differences.")
        elif len(beaten) == others:
            said.append(f"{start}, significantly higher than that of every other system.")
        elif beaten:
            named = join_names(beaten, MAX_NAMES)
            said.append(f"{start}, significantly higher than that of {named} ({len(beaten)} of {others}).")
        else:
            said.append(f"{start}, not significantly higher than that of any other system.")
    return tuple(said[:MAX_CONCLUSIONS])


def _describe_source(source: object) -> str | dict[str, str]:
    """Return the path of an input file with the digest of its content, which tells two versions of it apart."""
    if not isinstance(source, str | Path):
        return "in memory"
    path = Path(source)
    return {"path": str(path)} | ({"blake2b": digest_file(path)} if path.is_file() else {})


def _read_inputs(
    qrels: str | Path | Qrels | None, runs: str | Path | Iterable[str | Path] | Mapping[str, str | Path | Run]
) -> EvaluationInputs:
    """Read the judgements, and inspect every run.

    The name of a run is the given name, else its tag if it is unique, else the distinctive part of its path.
    """
    entries = list(runs.items()) if isinstance(runs, Mapping) else [_split_entry(text) for text in as_list(runs)]
    if qrels is None or not entries:
        raise BadInput("give judgements (--qrels) and at least one run (--run), or a table of scores (--scores)")
    judgements = qrels if isinstance(qrels, Mapping) else read_qrels(Path(qrels))
    sources = [source for _, source in entries]
    held = RunReader(is_large=_count_bytes(sources) > MAX_RUN_BYTES_IN_MEMORY)
    inspections = [held.inspect(source, judgements) for source in sources]
    paths = [Path(source) for name, source in entries if not name and not isinstance(source, Mapping)]
    tags = [found.tag for (name, _), found in zip(entries, inspections, strict=True) if not name]
    named: dict[str, RunSource] = {}
    lists: dict[str, variance.ListSummary] = {}
    files: dict[str, str] = {}
    for (given, source), found in zip(entries, inspections, strict=True):
        own = found.tag if found.tag and tags.count(found.tag) == 1 else ""
        name = make_unique_name(given or own or shorten_path(Path(str(source)), paths), named)
        named[name], lists[name] = source, found.lists
        if not isinstance(source, Mapping):
            files[str(source)] = name
        if not found.has_judged_query:
            where = None if isinstance(source, Mapping) else source
            raise BadInput(f"none of its queries is judged (the run is called {name}); do the query ids match?", where)
    return EvaluationInputs(judgements, LazyRuns(named, held), lists, files)


def _split_entry(text: str | Path) -> tuple[str, str | Path]:
    return split_name(text) if isinstance(text, str) else ("", text)


def shorten_path(path: Path, others: Sequence[Path]) -> str:
    """Return the shortest part of a path that distinguishes it from the others: of its name, else of its folders.

    >>> shorten_path(Path("a/bm25.run"), [Path("a/bm25.run"), Path("a/ql.run.gz")])
    'bm25'
    >>> shorten_path(Path("trec/input.nlpir.gz"), [Path("trec/input.nlpir.gz"), Path("trec/input.ict.gz")])
    'input.nlpir'
    >>> shorten_path(Path("x/a/bm25.run"), [Path("x/a/bm25.run"), Path("x/b/bm25.run")])
    'a/bm25'
    """
    rivals = [other for other in others if other != path]
    for folders in range(len(path.parts)):
        for cut in (_strip_suffix, _strip_gz):
            name = _join_tail(path, folders, cut)
            if all(_join_tail(rival, folders, cut) != name for rival in rivals):
                return name
    return str(path)


def _join_tail(path: Path, folders: int, cut: Callable[[Path], str]) -> str:
    return "/".join((*path.parts[-1 - folders : -1], cut(path)))


def _strip_gz(path: Path) -> str:
    return path.name.removesuffix(".gz")


def _strip_suffix(path: Path) -> str:
    return _strip_gz(path).rpartition(".")[0] or _strip_gz(path)

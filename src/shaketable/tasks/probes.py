"""The probes task: which of two texts that differ in one property a ranker prefers.

MacAvaney, Feldman, Goharian, Downey, Cohan. ABNIRML: Analyzing the behavior of neural IR models. TACL 2022.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import MAX_CHANGED_CHARS
from shaketable.core.errors import BadInput, check_ranges
from shaketable.core.protocols import Probe
from shaketable.core.results import Result
from shaketable.experiment.sampling import shuffle_queries
from shaketable.measures.facets import PROBES_FACET
from shaketable.measures.preference import (
    MIN_SAMPLES,
    PROBE_SIGNIFICANCE_LEVEL,
    Preference,
    measure_preference,
)
from shaketable.measures.significance import adjust_p_values
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.parser import open_parser
from shaketable.probes.batch import PairTable, ProbeBatch, draw_batch
from shaketable.probes.context import ProbeContext
from shaketable.probes.suite import find_unbuildable_probes, format_probe_name, format_probe_title, select_probes
from shaketable.tasks._probe_scoring import (
    DeltaThreshold,
    Differences,
    measure_delta,
    measure_pairs_delta,
    score_differences,
)
from shaketable.tasks._probe_tables import (
    ALL_DOCUMENTS,
    BRIEF_TABLES,
    PAPER_TABLES,
    USER_PAIRS_TABLE,
    ProbeRows,
    build_probe_figures,
    build_probe_findings,
    build_probe_tables,
    conclude_probes,
    list_left_out,
    measure_fooled,
    measure_wrong_pairs,
)
from shaketable.transforms.stopwords import load_stopwords

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment

__all__ = ["USER_PAIRS_TABLE", "ProbesTask"]


@dataclass(frozen=True)
class ProbesTask:
    """Preferences of a ranker between two texts that differ in one property: the tests of ABNIRML, and others.

    probes         names or patterns of probes, such as "shuffle-*", or their specs; all if empty
    pairs          a file of your own pairs (JSONL with query, a, b, expect)
    delta          the threshold of score differences for all rankers; by default each ranker has its own (3.3)
    delta_queries  queries on whose lists a ranker's own delta is measured; 0 is all tested queries
    max_documents  judged documents that are manipulated, drawn at random; 0 is all of them
    max_documents_per_query
                   at most so many of them for each query; 0 is all of them
    parser         the parser of texts: light, spacy, or spacy:MODEL
    stopwords      the stop list for word counts: the index's, or a file with one word per line
    correction     correction of p for the number of cells of a table: bonferroni (as in the paper), holm or bh
    high           the lowest grade that counts as high in the breakdown by grade; 0 is the middle of the grades
    """

    probes: tuple[str, ...] = ()
    pairs: str = ""
    delta: float | None = None
    delta_queries: int = 0
    max_documents: int = 300
    max_documents_per_query: int = 0
    parser: str = "light"
    stopwords: str = "english"
    correction: str = "bonferroni"
    high: int = 0

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True

    def __post_init__(self) -> None:
        adjust_p_values([1.0], self.correction)
        check_ranges("probes", self, delta_queries=(0, 100_000_000))
        if self.delta is not None and self.delta < 0:
            raise BadInput(f"probes: delta must be 0 or more, not {self.delta}")
        self._select_probes()

    def _select_probes(self) -> list[Probe]:
        own = [f"pairs({self.pairs!r})"] if self.pairs else []
        return select_probes((*self.probes, *own) if self.probes or not own else own)

    def run(self, experiment: Experiment) -> Result:
        import pandas as pd

        context = self._make_context(experiment)
        probes, skipped = self._find_applicable(context)
        batches, units = _draw_batches(experiment, probes, context)
        parts = {key: self._split_by_grade(experiment, one, probes[key]) for key, one in batches.items()}
        degrading = [
            key for key, probe in probes.items() if getattr(probe, "degrades_text", False) and len(batches[key])
        ]
        crossed = [key for key, probe in probes.items() if getattr(probe, "crossed", False) and len(batches[key])]
        rows = ProbeRows()
        thresholds: dict[str, dict[str, DeltaThreshold]] = {}
        for ranker in experiment.scoring_rankers:
            thresholds[ranker] = self._measure_deltas(experiment, ranker, probes, batches)
            deltas = {key: threshold.delta for key, threshold in thresholds[ranker].items()}
            differences = score_differences(experiment, ranker, batches, units)
            rows.panel += measure_fooled(ranker, degrading, batches, differences, deltas)
            rows.panel += measure_wrong_pairs(ranker, crossed, batches, differences)
            for key, probe in probes.items():
                for part, mask in parts[key].items():
                    cell = self._measure_cell(experiment, batches[key], differences[key], mask, probe, deltas[key])
                    rows.add_cell(probe, part, ranker, cell)
                rows.add_probe(experiment, ranker, probe, batches[key], differences[key], deltas[key])
        details = self._correct_p_values(pd.DataFrame(rows.cells)) if rows.cells else pd.DataFrame()
        tables = build_probe_tables(details, rows)
        tables |= {
            "details": details.drop(columns=["values", "better"], errors="ignore"),
            "left out": list_left_out(batches, skipped, probes),
        }
        return Result(
            "probes",
            "Which of two texts that differ in one property does a ranker prefer?",
            {key: table for key, table in tables.items() if len(table)},
            tuple(build_probe_figures(tables)),
            tuple(self._build_notes(thresholds, context, probes, skipped)),
            (*build_probe_findings(details, rows.directions), *rows.panel),
            tuple(sorted(rows.examples, key=lambda one: one.change not in degrading or one.value_after <= 0)),
            brief=tuple(key for key in BRIEF_TABLES if key in tables),
            conclusions=tuple(conclude_probes(tables, has_panel=bool(rows.panel))),
            sources={name: f"MacAvaney et al. 2022, Table {number}" for number, name in enumerate(PAPER_TABLES, 1)},
        )

    def _measure_deltas(
        self, experiment: Experiment, ranker: str, probes: Mapping[str, Probe], batches: Mapping[str, ProbeBatch]
    ) -> dict[str, DeltaThreshold]:
        """Return the threshold of each probe: of your own pairs on their texts, of other probes on the lists."""
        if self.delta is not None:
            return dict.fromkeys(probes, DeltaThreshold(self.delta, "given"))
        usual: DeltaThreshold | None = None
        found: dict[str, DeltaThreshold] = {}
        for key, probe in probes.items():
            own = measure_pairs_delta(experiment, ranker, batches[key]) if probe.strategy == "own" else None
            if own is None and usual is None:
                usual = measure_delta(experiment, ranker, self.delta_queries)
            found[key] = own or cast(DeltaThreshold, usual)
        return found

    def _find_applicable(self, context: ProbeContext) -> tuple[dict[str, Probe], dict[str, str]]:
        """Return the probes that can run here, by name, and the reasons for those that cannot."""
        probes: dict[str, Probe] = {}
        skipped = find_unbuildable_probes(self.probes) if self.probes or not self.pairs else {}
        for probe in self._select_probes():
            name = format_probe_name(probe)
            if reason := probe.unavailable_reason(context):
                if getattr(probe, "path", ""):  # a missing user file must not look like a pass
                    raise BadInput(reason)
                skipped[name] = reason
            else:
                probes[name] = probe
        if not probes:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
            raise BadInput(f"none of these probes can run here ({reasons})")
        return probes, skipped

    def _make_context(self, experiment: Experiment) -> ProbeContext:
        return ProbeContext(
            experiment.collection,
            tuple(experiment.queries),
            open_parser(self.parser),
            Analyzer(),
            experiment.seed,
            first_stage_lists=experiment.candidates,
            stopwords=None if self.stopwords == "english" else load_stopwords(self.stopwords),
            max_documents=self.max_documents,
            max_documents_per_query=self.max_documents_per_query,
        )

    def _split_by_grade(self, experiment: Experiment, drawn: ProbeBatch, probe: Probe) -> dict[str, NDArray[np.bool_]]:
        """Return the masks of the pairs in each part: all of them, and by the grade of the original.

        User pairs that expect no preference have no direction, and do not count in s.
        """
        parts = {ALL_DOCUMENTS: np.ones(len(drawn), dtype=bool)}
        if hasattr(probe, "expectations"):
            parts[ALL_DOCUMENTS] = np.array([one.expect != "same" for one in probe.expectations()], dtype=bool)
        if drawn.docnos and (cut := self._find_high_grade(experiment)) is not None:
            parts[f"grade below {cut}"] = drawn.grades < cut
            parts[f"grade {cut} and above"] = drawn.grades >= cut
        return parts

    def _find_high_grade(self, experiment: Experiment) -> int | None:
        """Return the lowest high grade: 2 for grades 0 to 3, as in the paper."""
        grades = sorted({grade for of in experiment.qrels.values() for grade in of.values()})
        if self.high:
            return self.high
        return (grades[0] + grades[-1] + 1) // 2 if len(grades) > 1 else None

    def _measure_cell(
        self,
        experiment: Experiment,
        drawn: ProbeBatch,
        d: Differences,
        at: NDArray[np.bool_],
        probe: Probe,
        delta: float,
    ) -> dict[str, Any]:
        known = at & ~np.isnan(d)
        qids = [drawn.qids[i] for i in drawn.query_indices[known].tolist()]
        one: Preference = measure_preference(d[known], qids, delta, symmetric=probe.symmetric, seed=experiment.seed)
        shares = {"positive": one.positive, "neutral": one.neutral, "negative": one.negative}
        return (
            {"s": one.s, "low": one.low, "high": one.high, "p": one.p if one.has_enough_samples else np.nan}
            | shares
            | {"mean": one.mean, "median": one.median, "delta": delta, "samples": one.n, "queries": one.queries}
            | {"symmetric": probe.symmetric, "failed": int((at & np.isnan(d)).sum()), "hash": drawn.fingerprint}
            | {"values": one.values}
        )

    def _correct_p_values(self, details: pd.DataFrame) -> pd.DataFrame:
        """Correct p for the number of cells of its table (3.4)."""
        key = f"p ({self.correction})"
        details[key] = np.nan
        for _, rows in details.groupby("strategy", sort=False).groups.items():
            details.loc[rows, key] = adjust_p_values(details.loc[rows, "p"].to_numpy(float), self.correction)
        details["significant"] = details[key] < PROBE_SIGNIFICANCE_LEVEL
        return details

    def _build_notes(
        self,
        thresholds: Mapping[str, Mapping[str, DeltaThreshold]],
        context: ProbeContext,
        probes: Mapping[str, Probe],
        skipped: Mapping[str, str],
    ) -> Iterator[str]:
        yield (
            "Each number is s, from -1 to +1: the share of pairs of texts in which the ranker prefers the text with "
            "more of what the row names (or the changed text), minus the share in which it prefers the other. For "
            "example, +1 for Prepend query means that it always prefers a text that has the query put before it."
        )
        yield (
            "'samples' are pairs of texts. A row such as TF | Length compares texts that differ in the first (how "
            "often the query's words occur) and agree in the second; 'low' and 'high' are the ends of a 95 % "
            "interval. 'both right' is the share of pairs in which the ranker prefers the right text for each of two "
            "queries, and 'one right' the share of single decisions that are right; 'chance' is the value of random "
            "preferences. In the table 'details', 'positive', 'neutral' and 'negative' count the pairs in which it "
            "prefers the one text, neither, or the other, and 'hash' is a digest of the texts: two audits with the "
            "same hash used the same texts."
        )
        yield (
            f"° marks a number that may be due to chance (paired t-test, p of {PROBE_SIGNIFICANCE_LEVEL} or more after "
            f"correction by {self.correction} for the cells of a table). (few) marks a number from fewer than "
            f"{MIN_SAMPLES} samples, too few for a claim. The numbers of tests without a direction are the shares of "
            "pairs whose scores differ by more than delta."
        )
        if self.delta is None:
            values: dict[str, dict[str, None]] = {}
            for ranker, by_probe in thresholds.items():
                for one in by_probe.values():
                    values.setdefault(one.description, {})[f"{ranker} {one.delta:.4g}"] = None
            shown = "; ".join(f"{description}: {', '.join(some)}" for description, some in values.items())
            yield (
                "A ranker prefers a text if its score is higher by more than delta, which is the median difference "
                f"between neighbours among the first ten documents of the ranker's own lists ({shown})."
            )
        yield f"The parser is {context.parser.name}, and the stop list is {self.stopwords}."
        yield from _describe_originals(probes)
        if context.long_queries or context.long_documents:
            yield (
                f"Texts of more than {MAX_CHANGED_CHARS:,} characters are left out: {len(context.long_queries)} "
                f"queries and {len(context.long_documents)} documents."
            )
        if skipped:
            many = "1 test was" if len(skipped) == 1 else f"{len(skipped)} tests were"
            yield f"{many} skipped; the table 'left out' says why."
        for probe in probes.values():
            if remark := probe.remark(context) if hasattr(probe, "remark") else "":
                yield f"{format_probe_title(probe)}: {remark}."


ORIGINALS = {
    "tokens": "the original tokens joined by single spaces, so that tokenisation is no part of the difference",
    "raw": "the raw text, as in the code of the paper, so that tokenisation is part of the difference",
}
"""`against` of a token manipulation -> the original that it compares the changed text with."""


def _describe_originals(probes: Mapping[str, Probe]) -> Iterator[str]:
    """Yield a note on the original of each token manipulation."""
    for against, original in ORIGINALS.items():
        titles = [format_probe_title(probe) for probe in probes.values() if getattr(probe, "against", "") == against]
        if titles:
            yield f"Compared with {original}: {', '.join(titles)}."


def _draw_batches(
    experiment: Experiment, probes: Mapping[str, Probe], context: ProbeContext
) -> tuple[dict[str, ProbeBatch], PairTable]:
    """Draw the pairs of each probe, and return them with the table of all distinct texts."""
    units = PairTable()
    batches = {}
    with experiment.engine.progress("drawing samples", len(probes), "tests") as advance:
        for key, probe in probes.items():
            size = experiment.sizes.get_size(PROBES_FACET, key) if _is_in_verdict(probe) else None
            batch = draw_batch(probe, context, units if size is None else PairTable())
            if size is not None:
                batch = batch.take_queries(shuffle_queries(batch.qids, experiment.seed)[:size], units)
            batches[key] = batch
            advance(1)
    return batches, units


def _is_in_verdict(probe: Probe) -> bool:
    return getattr(probe, "degrades_text", False) or getattr(probe, "crossed", False)


def select_verdict_probes() -> tuple[str, ...]:
    """Return the specs of the probes that decide the facet on probes."""
    return tuple(format_probe_name(probe) for probe in select_probes(()) if _is_in_verdict(probe))

"""The findings, examples, table and notes of the languages task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from shaketable.core.languages import ENGLISH
from shaketable.core.results import Example, Finding
from shaketable.measures.facets import (
    DROP,
    ENGLISH_PREFERRED,
    LANGUAGES_FACET,
    MORE_WRONG_PAIRS,
    OVERLAP,
    REVERSED_PAIRS,
    WRONG_PAIRS,
    find_test,
    name_test,
)
from shaketable.measures.paired_comparison import weighted_mean
from shaketable.measures.rates import measure_rate, measure_rate_difference
from shaketable.probes.batch import ProbeBatch
from shaketable.tasks._probe_scoring import Differences
from shaketable.tasks._query_changes import ChangedQueryRun

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment

MINIMAL_PAIRS, OWN_LANGUAGE = "minimal_pairs", "own_language"
CHANGED_TEXTS = ("mixed_document", "direction_marks", "normal_forms")
NAMED_DIRECTIONS = "ab"


def name_language_test(test: str, language: str) -> str:
    """Return the name of a test in a language.

    >>> name_language_test("strip_accents", "de")
    'strip_accents in de'
    """
    return f"{test} in {language}"


@dataclass(frozen=True)
class PairResults:
    """The pairs of a test, and the difference between the scores of the two texts of each; NaN if it failed."""

    batch: ProbeBatch
    differences: Differences

    def list_texts(self, index: int) -> tuple[str, str, str]:
        """Return the query and the two texts of a pair."""
        query, first = self.batch.pair_table.pairs[self.batch.first[index]]
        return query, first.text, self.batch.pair_table.pairs[self.batch.second[index]][1].text

    def list_known(self) -> Iterator[tuple[int, str, float]]:
        """Yield index, query id and difference of the pairs that were scored."""
        for index, (qid, value) in enumerate(zip(self.batch.list_query_ids(), self.differences.tolist(), strict=True)):
            if not isnan(value):
                yield index, qid, value

    def find_wrong_pairs(self) -> dict[str, bool]:
        """Return for each crossed pair whether it is not right in both directions; a tie is not right."""
        wrong: dict[str, bool] = {}
        for _, qid, value in self.list_known():
            wrong[qid] = wrong.get(qid, False) or value <= 0
        return wrong


@dataclass
class LanguageTests:
    """The findings and examples of all tests so far."""

    languages: tuple[str, ...]
    bundled: tuple[str, ...]
    measure: str
    own_languages: tuple[str, ...] = ()
    findings: list[Finding] = field(default_factory=list)
    examples: list[Example] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def has_findings(self) -> bool:
        return bool(self.findings)

    def add_changed_queries(
        self, experiment: Experiment, ranker: str, test: str, run: ChangedQueryRun, indices: Sequence[int]
    ) -> None:
        """Add the cost of one change of the queries of one language, with the query that loses most."""
        if run.values_before is not None and run.values_after is not None:
            lost = run.compute_drops(indices, experiment.weights)
            panel, change = DROP, run.values_after[list(indices)] - run.values_before[list(indices)]
        else:
            lost = run.compute_overlaps(indices)
            panel, change = OVERLAP, np.array([run.movements[i].overlap - 1 for i in indices])
        mean = weighted_mean(lost, experiment.seed, experiment.weights)
        if not mean.n:
            return
        name = name_test(panel, test)
        about = f"its own {self.measure}" if panel == DROP else ""
        self.findings.append(
            Finding(
                ranker,
                name,
                mean.value,
                mean.low,
                mean.high,
                mean.n,
                against=about,
                facet=LANGUAGES_FACET,
                values=lost,
            )
        )
        if change.min() < 0:
            self.examples.append(run.make_example(ranker, indices[int(change.argmin())], test))

    def add_pairs(
        self, ranker: str, language: str, results: Mapping[str, PairResults], english: Mapping[str, PairResults]
    ) -> None:
        """Add the decisions between the bundled texts of a language; `english` has those of the same texts in English.

        A changed text counts only where the decision was right before, and stays right in English with the same change.
        """
        pairs = results[MINIMAL_PAIRS]
        self._add_minimal_pairs(ranker, name_language_test(MINIMAL_PAIRS, language), pairs, english[MINIMAL_PAIRS])
        own = results[OWN_LANGUAGE]
        values = {qid: 100.0 * (value < 0) for _, qid, value in own.list_known()}
        self._add_rate(ranker, ENGLISH_PREFERRED, name_language_test(OWN_LANGUAGE, language), values, own)
        directions = _list_directions(pairs, language)
        right = {directions[i] for i, _, value in pairs.list_known() if value > 0}
        for test in CHANGED_TEXTS:
            if test in results:
                control = english[test].list_known() if test in english else ()
                lost = {qid.replace(ENGLISH, language, 1) for _, qid, value in control if value <= 0}
                known = {qid: value for _, qid, value in results[test].list_known() if qid in right - lost}
                values = {qid: 100.0 * (value <= 0) for qid, value in known.items()}
                self._add_rate(ranker, REVERSED_PAIRS, name_language_test(test, language), values, results[test])

    def _add_minimal_pairs(self, ranker: str, test: str, pairs: PairResults, english: PairResults) -> None:
        wrong, before = pairs.find_wrong_pairs(), english.find_wrong_pairs()
        both = [qid for qid in wrong if qid in before]
        share = measure_rate({qid: 100.0 * wrong[qid] for qid in wrong})
        more = {qid: 100.0 * (int(wrong[qid]) - int(before[qid])) for qid in both}
        rate = measure_rate_difference(more)
        for name, one, values, facet in (
            (name_test(MORE_WRONG_PAIRS, test), rate, more, LANGUAGES_FACET),
            (name_test(WRONG_PAIRS, test), share, {qid: 100.0 * wrong[qid] for qid in wrong}, ""),
        ):
            if values:
                self.findings.append(
                    Finding(
                        *(ranker, name, one.value, one.low, one.high, len(values)),
                        better="lower",
                        facet=facet,
                        values=values,
                    )
                )
        failed = next((i for i, qid, value in pairs.list_known() if value <= 0 and not before.get(qid, True)), None)
        if failed is not None:
            self._add_example(ranker, test, pairs, failed)

    def _add_rate(self, ranker: str, panel: str, test: str, values: Mapping[str, float], results: PairResults) -> None:
        if not values:
            return
        rate = measure_rate(values)
        self.findings.append(
            Finding(
                *(ranker, name_test(panel, test), rate.value, rate.low, rate.high, len(values)),
                better="lower",
                facet=LANGUAGES_FACET,
                values=values,
            )
        )
        failed = next((i for i, qid, _ in results.list_known() if values.get(qid, 0.0) > 0), None)
        if failed is not None:
            self._add_example(ranker, test, results, failed)

    def _add_example(self, ranker: str, test: str, results: PairResults, index: int) -> None:
        """Add a pair as an example: the text that should be preferred, then the text that is."""
        query, better, worse = results.list_texts(index)
        self.examples.append(Example(ranker, query, test, better, worse))


def _list_directions(pairs: PairResults, language: str) -> list[str]:
    """Return the query id of each direction of crossed pairs, as the other tests name them."""
    return [f"{language}-{qid}-{NAMED_DIRECTIONS[i % 2]}" for i, qid in enumerate(pairs.batch.list_query_ids())]


def build_language_table(tests: LanguageTests) -> pd.DataFrame:
    """Return a row for each test, language and ranker."""
    import pandas as pd

    rows = []
    for one in tests.findings:
        test, _, language = find_test(one.name).rpartition(" in ")
        measure = one.name.partition("(")[0] + (" %" if one.name.endswith("%") or one.name.startswith(DROP) else "")
        rows.append(
            {"language": language, "test": test, "ranker": one.ranker, "measure": measure}
            | {"value": one.value, "low": one.low, "high": one.high, "queries": one.n}
        )
    return pd.DataFrame(rows).sort_values(["language", "test"], kind="stable", ignore_index=True)


def build_language_notes(tests: LanguageTests) -> Iterator[str]:
    """Yield sentences on the tests and the data."""
    yield (
        f"'drop %' is the change of {tests.measure} by a change of the queries. 'more wrong than in English %' "
        "compares minimal pairs, two texts and two queries of which each text is right for one, with the same pairs in "
        "English: a pair counts as right if both directions are. 'English preferred %' is the share of queries for "
        "which the ranker prefers the English text to the same text in the language of the query. 'reversed %' is the "
        "share of right decisions that a change of the right text makes wrong; decisions that the same change makes "
        "wrong in English are left out."
    )
    if tests.bundled:
        yield (
            "The bundled pairs were written for Shaketable; no native speaker checked them. Each query of the bundled "
            "lists has one relevant text among ten."
        )
    if tests.own_languages:
        yield f"The changed queries in {', '.join(tests.own_languages)} are those of the collection."
    missing = [code for code in tests.languages if code not in tests.bundled]
    if missing:
        yield f"There are no bundled pairs in {', '.join(missing)}, so only queries of the collection were changed."
    for name, reason in tests.left_out.items():
        yield f"{name} was left out: {reason}."

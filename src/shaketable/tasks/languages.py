"""The languages task: queries and texts in other languages than English."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from shaketable.core.documents import Query
from shaketable.core.errors import MissingExtra, NotApplicable
from shaketable.core.languages import ENGLISH, parse_languages
from shaketable.core.protocols import Probe
from shaketable.core.registries import TRANSFORMS
from shaketable.core.results import Result
from shaketable.datasets.languages import (
    build_language_collection,
    list_bundled_languages,
    list_bundled_translations,
    list_collection_translations,
)
from shaketable.experiment.sampling import SampleSizes
from shaketable.measures.significance import MIN_QUERIES
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.parser import open_parser
from shaketable.probes.batch import PairTable, ProbeBatch, draw_batch
from shaketable.probes.context import ProbeContext
from shaketable.probes.languages import DirectionMarks, LanguagePairs, MixedDocument, NormalForms, OwnLanguage
from shaketable.tasks._language_tables import (
    LanguageTests,
    PairResults,
    build_language_notes,
    build_language_table,
    name_language_test,
)
from shaketable.tasks._probe_scoring import score_differences
from shaketable.tasks._query_changes import ChangedQuery, list_settings, run_changed_queries
from shaketable.transforms.presets import list_language_methods
from shaketable.transforms.validity import Validity
from shaketable.transforms.vary import Variation, vary

if TYPE_CHECKING:
    from shaketable.experiment import Experiment

MEASURE = "nDCG@10"
LANGUAGE_PAIR_PROBES: Mapping[str, Callable[[str], Probe]] = {
    "minimal_pairs": LanguagePairs,
    "own_language": OwnLanguage,
    "mixed_document": MixedDocument,
    "direction_marks": DirectionMarks,
    "normal_forms": NormalForms,
}
"""The tests on bundled pairs, by the name that findings show."""
OTHER_LANGUAGE = "other_language"
"""The transform that asks in English. It needs a ranker across languages, so a collection must have parallel queries.
"""


@dataclass(frozen=True)
class LanguagesTask:
    """Robustness in other languages: accents, scripts, keyboards, mixed languages, and a preference for English.

    languages  codes such as ("de", "ru"); by default those of the collection's queries

    Each query in one of the languages is changed as people write it: without accents, in Latin letters, with a slip on
    the keyboard of the language, with an English word. Queries are those of the collection if at least 20 of them are
    in the language, and bundled ones otherwise. Bundled pairs of texts show whether the ranker understands the language
    as well as English, whether it prefers an English text to the same text in the language of the query, and whether
    mixed languages and Unicode forms change its decisions.
    """

    languages: tuple[str, ...] = ()

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True
    opt_in: ClassVar[bool] = True

    def __post_init__(self) -> None:
        parse_languages(self.languages)

    def run(self, experiment: Experiment) -> Result:
        languages = self.languages or list_collection_languages(experiment.queries)
        if not languages:
            raise NotApplicable("no query is in another language than English; name languages with --languages de,fr")
        bundled = tuple(code for code in languages if code in list_bundled_languages())
        tests = LanguageTests(languages, bundled, MEASURE)
        own = {code: _select_queries(experiment.queries, code) for code in languages}
        tested = {code: queries for code, queries in own.items() if len(queries) >= MIN_QUERIES}
        tests.own_languages = tuple(tested)
        if tested:
            parallel = list_collection_translations(experiment.collection)
            _test_changed_queries(experiment, tests, tested, parallel, list_language_methods())
        if bundled:
            small = replace(
                experiment,
                collection=build_language_collection(bundled, experiment.seed),
                split=None,
                limit=None,
                sample=None,
                sizes=SampleSizes(),
            )
            queries = {code: _select_queries(small.queries, code) for code in bundled if code not in tested}
            methods = [name for name in list_language_methods() if name != OTHER_LANGUAGE]
            _test_changed_queries(small, tests, queries, list_bundled_translations(bundled), methods)
            _test_pairs(small, tests)
        if not tests.has_findings:
            raise NotApplicable(f"there are no bundled pairs and fewer than {MIN_QUERIES} queries in {languages}")
        return Result(
            "languages",
            "Is it robust in other languages?",
            {"languages": build_language_table(tests)},
            notes=tuple(build_language_notes(tests)),
            findings=tuple(tests.findings),
            examples=tuple(tests.examples),
        )


def list_collection_languages(queries: Mapping[str, Query]) -> tuple[str, ...]:
    """Return the languages that queries declare, without English."""
    return tuple(dict.fromkeys(one.language for one in queries.values() if one.language not in ("", ENGLISH)))


def _select_queries(queries: Mapping[str, Query], language: str) -> dict[str, Query]:
    return {qid: query for qid, query in queries.items() if query.language == language}


def _test_changed_queries(
    experiment: Experiment,
    tests: LanguageTests,
    queries: Mapping[str, Mapping[str, Query]],
    translations: Mapping[str, Mapping[str, str]],
    methods: Sequence[str],
) -> None:
    """Rank the changed queries of each language, and add how much each change costs."""
    varied = _vary_queries(experiment, tests, queries, translations, methods)
    if not varied:
        return
    setting = list_settings(experiment)[0]
    changed = [ChangedQuery(one.qid, one.text, one.original) for _, one in varied]
    members: dict[str, list[int]] = {}
    for number, (language, variation) in enumerate(varied):
        members.setdefault(name_language_test(variation.method, language), []).append(number)
    for ranker in experiment.scoring_rankers:
        run = run_changed_queries(experiment, ranker, changed, MEASURE, setting)
        for test, indices in members.items():
            tests.add_changed_queries(experiment, ranker, test, run, indices)


def _vary_queries(
    experiment: Experiment,
    tests: LanguageTests,
    queries: Mapping[str, Mapping[str, Query]],
    translations: Mapping[str, Mapping[str, str]],
    methods: Sequence[str],
) -> list[tuple[str, Variation]]:
    """Return the valid changed queries of each language, each text of a query once."""
    found: list[tuple[str, Variation]] = []
    for language, some in queries.items():
        known: set[tuple[str, str]] = set()
        for name in methods:
            try:
                made = vary(
                    some,
                    [TRANSFORMS.build(name)],
                    seed=experiment.seed,
                    lower=False,
                    validity=Validity(),
                    translations=translations,
                )
            except MissingExtra as error:
                tests.left_out[name] = str(error)
                continue
            new = [one for one in made if one.valid and (one.qid, one.text) not in known]
            known |= {(one.qid, one.text) for one in new}
            found += [(language, one) for one in new]
    return found


def _test_pairs(experiment: Experiment, tests: LanguageTests) -> None:
    """Compare the bundled texts of each language, and add the decisions that are wrong."""
    context = ProbeContext(experiment.collection, (), open_parser("light"), Analyzer(), experiment.seed)
    units = PairTable()
    batches: dict[str, ProbeBatch] = {}
    for language in (ENGLISH, *tests.bundled):
        for name, probe in LANGUAGE_PAIR_PROBES.items():
            batch = draw_batch(probe(language), context, units)
            if len(batch):
                batches[name_language_test(name, language)] = batch
    for ranker in experiment.scoring_rankers:
        differences = score_differences(experiment, ranker, batches, units)
        results = {key: PairResults(batch, differences[key]) for key, batch in batches.items()}
        english = _select_results(results, ENGLISH)
        for language in tests.bundled:
            tests.add_pairs(ranker, language, _select_results(results, language), english)


def _select_results(results: Mapping[str, PairResults], language: str) -> dict[str, PairResults]:
    keys = {name: name_language_test(name, language) for name in LANGUAGE_PAIR_PROBES}
    return {name: results[key] for name, key in keys.items() if key in results}

"""The corpus shift task: rankers on corpora that they were not trained on (paper 000, sections 4.2, 4.3, 4.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.core.documents import Collection
from shaketable.core.errors import BadInput, NotApplicable, check_parameter
from shaketable.core.extras import format_install_command
from shaketable.core.protocols import Learner
from shaketable.core.results import Figure, Finding, Result
from shaketable.datasets.load import load
from shaketable.datasets.splits import shuffle_queries
from shaketable.experiment import Experiment
from shaketable.measures.corpus_distance import known_word_share, mmd, vocabulary_jaccard
from shaketable.measures.domain_shift import Cells, compute_drops
from shaketable.measures.significance import bootstrap_interval
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.features import FIELDS
from shaketable.rankers.similarity import make_encoder
from shaketable.retrieval.inverted_index import open_index
from shaketable.tasks._domain_shift import (
    CORPUS_SHIFT,
    DEFAULT_FOLDS,
    DEFAULT_LEARNERS,
    DROP_COLUMN,
    MEAN_DROP_COLUMN,
    TESTED_COLUMN,
    TRAINED_COLUMN,
    WU_2022,
    ShiftCell,
    TrainingParts,
    TrainingSet,
    build_learners,
    build_per_query_table,
    build_shift_figures,
    build_shift_findings,
    build_shift_notes,
    build_shift_tables,
    check_settings,
    describe_queries,
    hold_out_validation,
    list_feature_learners,
    list_judged_queries,
    make_fold_trainings,
    train_and_measure,
)
from shaketable.training.feature_learner import FeatureLearner
from shaketable.training.neural import WordLearner

if TYPE_CHECKING:
    import pandas as pd

OTHER_CORPUS = "another corpus"
PAPER_MEASURES = ("AP", "nDCG@10", "P@10", "RR@10")
"""The measures for which the paper reports drops: MAP, NDCG, P and MRR."""
DROP_TABLE_PREFIX, SHIFT_COLUMN = "drop by ", "trained → tested"
MAX_ENCODED_TEXTS = 200
"""The number of documents and queries of each corpus whose vectors are compared."""
MAX_INSPECTED_DOCUMENTS = 2000
"""The number of first documents that are inspected for titles and urls."""
MIN_FIELD_SHARE = 0.5
"""The share of documents that must have a title or a url for the corpus to have that field."""


@dataclass(frozen=True)
class CorpusShift:
    """Loss of rankers on corpora that they were not trained on: trained on each, tested on all queries of each.

    corpora     collections besides the audited one, by their specs: a folder, "irds:ID", "sample"
    rankers     learners; formulas such as bm25 are tuned; `shaketable list learners` shows them all
    measure     the effectiveness measure
    folds       number of cross-validation folds for the queries of the training corpus
    pairs       relevant query-document pairs that each model learns from; None is the largest number that all corpora
                have, 0 is all pairs. Unless it is 0, all models are validated on the same number of queries.

    The rankers of the audit are measured on each corpus without training (zero-shot).

    Wu, Zhang, Guo, Fan, Cheng. Are neural ranking models robust? TOIS 2022.
    """

    corpora: tuple[str, ...] = ()
    rankers: tuple[str, ...] = DEFAULT_LEARNERS
    measure: str = "nDCG@10"
    folds: int = DEFAULT_FOLDS
    pairs: int | None = None

    needs_judgements: ClassVar[bool] = True
    needs_scoring: ClassVar[bool] = False
    needs_rankers: ClassVar[bool] = False
    opt_in: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings("corpus_shift", self.rankers, self.measure, self.folds, 3)
        check_parameter(
            "corpus_shift", self.pairs is None or self.pairs >= 0, "pairs", "0 or more, or None", self.pairs
        )
        for name, learner in build_learners(self.rankers, self.measure).items():
            by_words = isinstance(learner, WordLearner) and getattr(learner, "input", "words") == "words"
            if by_words and not getattr(learner, "vectors", ""):
                raise BadInput(
                    f"corpus_shift: {name} would learn vectors only for the words of its training corpus, so every "
                    "other corpus would show a loss; name a file of vectors, as in knrm(vectors='glove.txt')"
                )

    def describe_collections(self, experiment: Experiment) -> pd.DataFrame:
        """Return statistics of the corpora and of their training sets, without training."""
        corpora = self._load_corpora(experiment)
        qids = _select_judged_queries(corpora, experiment)
        parts = {name: list_document_fields(corpus) for name, corpus in corpora.items()}
        return _build_statistics(corpora, qids, *self._build_training_sets(experiment, corpora, qids), parts)

    def run(self, experiment: Experiment) -> Result:
        corpora = self._load_corpora(experiment)
        qids = _select_judged_queries(corpora, experiment)
        own, whole = self._build_training_sets(experiment, corpora, qids)
        cells = [ShiftCell(name, name, corpus, own[name]) for name, corpus in corpora.items()]
        cells += [
            ShiftCell(train, test, corpora[test], ((training, tuple(qids[test])),), OTHER_CORPUS)
            for train, training in whole.items()
            for test in corpora
            if test != train
        ]
        parts = {name: list_document_fields(corpus) for name, corpus in corpora.items()}
        common = tuple(part for part in FIELDS if all(part in some for some in parts.values()))
        learners = {
            name: _restrict_fields(learner, common)
            for name, learner in build_learners(self.rankers, self.measure).items()
        }
        notes: list[str] = []
        measured, tuned = train_and_measure(
            experiment, learners, cells, list(dict.fromkeys((self.measure, *PAPER_MEASURES))), notes
        )
        found = measured[self.measure]
        dropped = build_shift_tables(found, cells, self.measure, experiment.seed)
        zero_shot, zero_shot_values = self._measure_zero_shot(experiment, corpora, qids)
        tables = {
            "collections": _build_statistics(corpora, qids, own, whole, parts),
            **dropped,
            "corpora": _measure_distances(experiment, corpora, qids, dropped["drop"], found),
            "zero-shot": zero_shot,
            "tuned": tuned,
        } | {
            f"{DROP_TABLE_PREFIX}{name}": _build_drop_table(measured[name], experiment.seed) for name in PAPER_MEASURES
        }
        tables |= {"per query": build_per_query_table(measured), "zero-shot per query": zero_shot_values}
        tables = {name: table for name, table in tables.items() if len(table)}
        brief = ("collections", "mean drop", "effectiveness", "corpora", "zero-shot")
        return Result(
            CORPUS_SHIFT,
            "How well does a ranker work on a corpus that it was not trained on?",
            tables,
            (
                *build_shift_figures(found, "corpora", ""),
                *_build_zero_shot_figures(zero_shot),
                *_build_measure_figures(tables),
            ),
            (
                *notes,
                *self._build_notes(experiment, own, whole, learners, common, parts, tables),
                *build_shift_notes(self.measure, "corpus", tables, learners),
            ),
            (*build_shift_findings(tables["mean drop"]), *_build_zero_shot_findings(zero_shot, self.measure)),
            brief=tuple(name for name in brief if name in tables),
        )

    def _load_corpora(self, experiment: Experiment) -> dict[str, Collection]:
        """Return the collections by name, the audited one first; duplicate names get a number."""
        loaded: dict[str, Collection] = {}
        for collection in (experiment.collection, *map(load, self.corpora)):
            if any(collection.fingerprint == other.fingerprint for other in loaded.values()):
                raise BadInput(f"corpus_shift: {collection.name} is given twice, but a shift needs different corpora")
            names = (collection.name if i == 1 else f"{collection.name} ({i})" for i in count(1))
            loaded[next(name for name in names if name not in loaded)] = collection
        if len(loaded) < 2:
            raise NotApplicable(
                f"corpus_shift needs two collections, but {experiment.collection.name} is the only one; add another "
                "with a second --data"
            )
        return loaded

    def _build_training_sets(
        self, experiment: Experiment, corpora: Mapping[str, Collection], qids: Mapping[str, Sequence[str]]
    ) -> tuple[dict[str, TrainingParts], dict[str, TrainingSet]]:
        """Return the training sets of each corpus: one for each fold and one for other corpora.

        All of them have about the same number of relevant pairs and the same number of validation queries.
        """
        seed = experiment.seed
        own = {
            name: make_fold_trainings(name, corpus, qids[name], self.folds, seed) for name, corpus in corpora.items()
        }
        whole = {name: hold_out_validation(name, corpus, qids[name], seed) for name, corpus in corpora.items()}
        sizes = {name: min(training.relevant_pairs for training, _ in parts) for name, parts in own.items()}
        least = min(sizes, key=sizes.__getitem__)
        if self.pairs == 0:
            return own, whole
        size = sizes[least] if self.pairs is None else self.pairs
        if size > sizes[least]:
            raise BadInput(
                f"corpus_shift: {least} has {sizes[least]} relevant pairs for training in a fold, fewer than {size}"
            )
        every = [*whole.values(), *(training for parts in own.values() for training, _ in parts)]
        held = min(len(training.valid) for training in every)

        def shorten(training: TrainingSet) -> TrainingSet:
            return training.limit_pairs(size, seed).limit_queries(len(training.train), held, seed)

        cut = {name: tuple((shorten(one), part) for one, part in parts) for name, parts in own.items()}
        short = {name: shorten(training) for name, training in whole.items()}
        for name, training in (
            (t.name, t) for t in (*short.values(), *(t for parts in cut.values() for t, _ in parts))
        ):
            if not training.train:
                raise BadInput(
                    f"corpus_shift: no query of {name} has as few as {size} relevant documents to learn from"
                )
        return cut, short

    def _measure_zero_shot(
        self, experiment: Experiment, corpora: Mapping[str, Collection], qids: Mapping[str, Sequence[str]]
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Measure the rankers of the experiment on each corpus, without training: means, and values of each query.

        Run files are left out.
        """
        import pandas as pd

        rows, per_query = [], []
        models = {name: experiment.models[name] for name in experiment.scoring_rankers}
        for name, corpus in corpora.items() if models else ():
            asked = {qid: corpus.queries[qid] for qid in qids[name]}
            part = replace(corpus, queries=asked, qrels={qid: corpus.qrels[qid] for qid in asked}, splits={})
            scored = replace(experiment.with_collection(part), models=models, limit=None).get_score_table(self.measure)
            for ranker, values in zip(scored.systems, scored.values, strict=True):
                low, high = bootstrap_interval(values, experiment.seed)
                rows.append(
                    {"ranker": ranker, TESTED_COLUMN: name, self.measure: float(values.mean())}
                    | {"low": float(low), "high": float(high), "queries": len(values)}
                )
                per_query += [
                    {"ranker": ranker, TESTED_COLUMN: name, "query": qid, self.measure: value}
                    for qid, value in zip(scored.topics, values.tolist(), strict=True)
                ]
        return pd.DataFrame(rows), pd.DataFrame(per_query)

    def _build_notes(
        self,
        experiment: Experiment,
        own: Mapping[str, TrainingParts],
        whole: Mapping[str, TrainingSet],
        learners: Mapping[str, Learner],
        common: Sequence[str],
        parts: Mapping[str, Sequence[str]],
        tables: Mapping[str, pd.DataFrame],
    ) -> list[str]:
        trainings = [*whole.values(), *(training for some in own.values() for training, _ in some)]
        sizes, counts = (
            [training.relevant_pairs for training in trainings],
            [len(training.train) for training in trainings],
        )
        held = sorted({len(training.valid) for training in trainings})
        validated = f"{held[0]}" if len(held) == 1 else f"{held[0]} to {held[-1]}"
        volume = "all that there are" if self.pairs == 0 else "about the same number for all models, in whole queries"
        notes = [
            (
                "Rankers were tested on all judged queries of a corpus, of all splits. Queries of the training "
                f"corpus were ranked by {self.folds} models, each for the queries that it was not trained on."
            ),
            (
                f"Each model learned from {min(sizes)} to {max(sizes)} relevant pairs of a query and a document "
                f"({volume}), of {min(counts)} to {max(counts)} queries, and was validated on {validated} queries."
            ),
        ]
        if featured := list_feature_learners(learners):
            lost = [part for part in FIELDS if part not in common]
            without = f", but not of {', '.join(lost)}, because some corpora do not have these fields" if lost else ""
            notes.append(f"{', '.join(featured)} learned from features of {', '.join(common)}{without}.")
        if "corpora" in tables:
            notes.append(
                "In the table 'corpora', 'shared words %' is the percentage of the distinct words of both corpora that "
                "both have; 'known words %' is the percentage of the word occurrences of the test corpus that are "
                "words of the other one; 'longer queries' is the difference in query length, in words. Words are "
                "stems without stop words, except in queries."
            )
            notes.append(
                "'MMD' (maximum mean discrepancy) is the distance between the vectors that MiniLM makes of "
                f"{MAX_ENCODED_TEXTS} documents, or queries, of each corpus; it is 0 if their distributions are equal."
                if "MMD of documents" in tables["corpora"]
                else "The distance of vectors is missing, because it needs an encoder "
                f"({format_install_command('neural')})."
            )
        if "zero-shot" in tables:
            notes.append(
                "The table 'zero-shot' has the rankers of the audit on each corpus, without training there. The "
                "corpora have different queries, so their values are not compared."
            )
        return notes


def list_document_fields(corpus: Collection) -> tuple[str, ...]:
    """Return the fields of a corpus's documents: title and url only if at least half of the documents have one."""
    docs = [doc for _, doc in islice(corpus.docs.items(), MAX_INSPECTED_DOCUMENTS)]
    shares = {"title": sum(bool(doc.title) for doc in docs), "url": sum(bool(doc.url) for doc in docs)}
    return tuple(part for part in FIELDS if part not in shares or shares[part] >= MIN_FIELD_SHARE * max(1, len(docs)))


def _restrict_fields(learner: Learner, common: Sequence[str]) -> Learner:
    """Restrict a feature learner to the fields that all corpora have: other columns would be zero."""
    if not isinstance(learner, FeatureLearner):
        return learner
    parts = tuple(part for part in learner.parts if part in common)
    return replace(learner, parts=parts) if parts != learner.parts else learner


def _select_judged_queries(corpora: Mapping[str, Collection], experiment: Experiment) -> dict[str, list[str]]:
    """Return the judged queries of each corpus, up to the experiment's limit."""
    return {name: list_judged_queries(corpus)[: experiment.limit] for name, corpus in corpora.items()}


def _build_statistics(
    corpora: Mapping[str, Collection],
    qids: Mapping[str, Sequence[str]],
    own: Mapping[str, TrainingParts],
    whole: Mapping[str, TrainingSet],
    parts: Mapping[str, Sequence[str]],
) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for name, corpus in corpora.items():
        index = open_index(corpus.docs, Analyzer())
        rows.append(
            {
                "corpus": name,
                "documents": len(corpus.docs),
                "terms a document": index.token_count / max(1, len(corpus.docs)),
            }
            | {"test queries": len(qids[name])}
            | describe_queries(corpus, qids[name])
            | {"training queries": len(whole[name].train), "training pairs": whole[name].relevant_pairs}
            | {"validation queries": len(whole[name].valid)}
            | {"pairs in folds": float(np.mean([training.relevant_pairs for training, _ in own[name]]))}
            | {"parts": ", ".join(parts[name])}
        )
    return pd.DataFrame(rows)


def _measure_distances(
    experiment: Experiment,
    corpora: Mapping[str, Collection],
    qids: Mapping[str, Sequence[str]],
    dropped: pd.DataFrame,
    found: Mapping[str, Cells],
) -> pd.DataFrame:
    """Return a row for each pair of corpora: their distance, and the loss of each ranker."""
    import pandas as pd

    counts, vectors, lengths = {}, {}, {}
    for name, corpus in corpora.items():
        index = open_index(corpus.docs, Analyzer())
        counts[name] = dict(zip(index.terms.take(np.arange(len(index.cf))), index.cf.tolist(), strict=True))
        lengths[name] = describe_queries(corpus, qids[name])["words a query"]
        if (encode := make_encoder()) is not None:
            docnos = shuffle_queries(list(corpus.docs), experiment.seed, "vectors")[:MAX_ENCODED_TEXTS]
            texts = [
                corpus.queries[qid].text
                for qid in shuffle_queries(qids[name], experiment.seed, "vectors")[:MAX_ENCODED_TEXTS]
            ]
            vectors[name] = encode([corpus.docs[docno].text for docno in docnos]), encode(texts)
    lost = {
        (row["ranker"], row[TRAINED_COLUMN], row[TESTED_COLUMN]): float(row[DROP_COLUMN])
        for row in dropped.to_dict("records")
    }
    rows = []
    for train in corpora:
        for test in corpora:
            if train == test:
                continue
            row: dict[str, Any] = {TRAINED_COLUMN: train, TESTED_COLUMN: test}
            row["shared words %"] = 100 * vocabulary_jaccard(counts[train], counts[test])
            row["known words %"] = 100 * known_word_share(counts[train], counts[test])
            row["longer queries"] = lengths[test] - lengths[train]
            if vectors:
                for what, left, right in zip(("documents", "queries"), vectors[train], vectors[test], strict=True):
                    row[f"MMD of {what}"] = mmd(left, right)
            each = {ranker: lost[ranker, train, test] for ranker in found}
            known = [drop for drop in each.values() if not np.isnan(drop)]
            row[MEAN_DROP_COLUMN] = float(np.mean(known)) if known else float("nan")
            rows.append(row | {f"{ranker} {DROP_COLUMN}": drop for ranker, drop in each.items()})
    return pd.DataFrame(rows)


def _build_drop_table(found: Mapping[str, Cells], seed: int) -> pd.DataFrame:
    """Return the drops of all rankers by one measure: a row for each ranker and shift."""
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "ranker": ranker,
                SHIFT_COLUMN: f"{one.train} → {one.test}",
                DROP_COLUMN: one.drop,
                "low": one.low,
                "high": one.high,
            }
            | {"queries": one.comparison.n}
            for ranker, values in found.items()
            for one in compute_drops(values, seed)
        ]
    )


def _build_measure_figures(tables: Mapping[str, pd.DataFrame]) -> Iterator[Figure]:
    for name in tables:
        if name.startswith(DROP_TABLE_PREFIX):
            yield Figure(
                "heatmap",
                name,
                f"{DROP_COLUMN} by {name.removeprefix(DROP_TABLE_PREFIX)}, from the corpus trained on to the one "
                "tested on",
                x="ranker",
                y=SHIFT_COLUMN,
                color=DROP_COLUMN,
                caption="Orange is a loss, blue a gain: DR_OOD, against the same ranker trained on the test corpus.",
                source=f"{WU_2022}, Fig. 5",
            )


def _build_zero_shot_figures(table: pd.DataFrame) -> list[Figure]:
    if not len(table):
        return []
    measure = str(table.columns[2])
    title = "The rankers of the audit on each corpus, without training there"
    return [Figure("bars", "zero-shot", title, x=TESTED_COLUMN, y=measure, color="ranker")]


def _build_zero_shot_findings(table: pd.DataFrame, measure: str) -> list[Finding]:
    return [
        Finding(
            row["ranker"],
            f"{measure} on {row[TESTED_COLUMN]}",
            row[measure],
            row["low"],
            row["high"],
            int(row["queries"]),
        )
        for row in table.to_dict("records")
    ]

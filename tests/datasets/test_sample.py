"""The bundled sample keeps the promises of its data card."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

import pytest

from shaketable.datasets.load import load
from shaketable.datasets.sample import SAMPLE_FOLDER
from shaketable.nlp import thesaurus

GENRES = {"encyclopaedia": "enc", "community": "com", "magazine": "mag"}
KINDS = {"location", "numeric", "person", "description", "entity"}
CATEGORIES = {
    "misspelling",
    "naturality",
    "ordering",
    "paraphrasing",
    "generalisation-specialisation",
    "aspect-change",
}
STOP = {
    "a",
    "an",
    "the",
    "of",
    "to",
    "in",
    "on",
    "at",
    "for",
    "and",
    "or",
    "is",
    "are",
    "was",
    "were",
    "be",
    "do",
    "does",
    "did",
    "how",
    "what",
    "when",
    "where",
    "which",
    "who",
    "why",
}


def rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (SAMPLE_FOLDER / name).read_text(encoding="utf-8").splitlines()]


def words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


@pytest.fixture(scope="module")
def passages() -> dict[str, dict]:
    return {row["_id"]: row for row in rows("corpus.jsonl")}


@pytest.fixture(scope="module")
def queries() -> dict[str, dict]:
    return {row["_id"]: row for row in rows("queries.jsonl")}


@pytest.fixture(scope="module")
def grades() -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for path in (SAMPLE_FOLDER / "qrels").glob("*.tsv"):
        for line in path.read_text().splitlines()[1:]:
            qid, docno, grade = line.split("\t")
            assert docno not in found[qid], f"{qid} {docno} is judged twice"
            found[qid][docno] = int(grade)
    return found


def test_passages(passages):
    assert len(passages) >= 360
    assert len(passages) == len(rows("corpus.jsonl")), "ids are unique"
    by_genre = Counter(row["genre"] for row in passages.values())
    assert by_genre.keys() == GENRES.keys()
    assert min(by_genre.values()) >= 120
    for docno, row in passages.items():
        assert docno.startswith(GENRES[row["genre"]])
        assert 40 <= len(row["text"].split()) <= 130, docno
        assert row["text"] == " ".join(row["text"].split()), docno
        assert re.fullmatch(r"https://[a-z.]*example(\.\w+)?/\S+", row["url"]), docno
    assert all(row["title"] for row in passages.values() if row["genre"] != "community")
    assert len({row["url"] for row in passages.values()}) == len(passages)
    topics = Counter((row["genre"], row["topic"]) for row in passages.values())
    assert min(topics.values()) >= 5, "several passages on each topic"
    assert min(Counter(genre for genre, _ in topics).values()) >= 8, "several topics in each genre"


def test_no_two_passages_are_nearly_the_same(passages):
    shingles = {
        docno: {tuple(tokens[i : i + 4]) for i in range(len(tokens) - 3)}
        for docno, row in passages.items()
        for tokens in [words(row["text"])]
    }
    for (a, left), (b, right) in combinations(shingles.items(), 2):
        assert len(left & right) <= 0.1 * min(len(left), len(right)), f"{a} and {b} share too much"
    starts = Counter(" ".join(words(row["text"])[:4]) for row in passages.values())
    assert max(starts.values()) <= 2, "openings vary"


def test_genres_differ_in_style(passages):
    """First person and contractions belong to the community, quotations to the magazine."""

    def share(genre: str, pattern: str) -> float:
        texts = [row["text"] for row in passages.values() if row["genre"] == genre]
        return sum(bool(re.search(pattern, text)) for text in texts) / len(texts)

    first_person = r"\b(I|I'm|I've|I'd|my|me|mine|we|our)\b"
    assert share("community", first_person) > 0.8 > 0.1 > share("encyclopaedia", first_person)
    assert share("magazine", '"') > 0.25 > 0.1 > share("encyclopaedia", '"')


def test_queries(queries):
    assert len(queries) >= 96
    assert min(Counter(row["genre"] for row in queries.values()).values()) >= 32
    by_kind = Counter(row["type"] for row in queries.values())
    assert by_kind.keys() == KINDS
    assert min(by_kind.values()) >= 0.15 * len(queries), "kinds are roughly even"
    assert len({row["text"].lower() for row in queries.values()}) == len(queries)
    for qid, row in queries.items():
        assert 2 <= len(row["text"].split()) <= 12, qid
        assert row["description"].endswith("."), qid
        assert len(re.findall(r"[.!?](?:\s|$)", row["description"])) == 1, f"{qid}: one sentence"
    questions = sum(
        words(row["text"])[0] in {"how", "what", "who", "where", "why", "which"} for row in queries.values()
    )
    assert 0.3 <= questions / len(queries) <= 0.7, "questions and keywords"


def test_judgements(passages, queries, grades):
    assert grades.keys() == queries.keys()
    for qid, by_doc in grades.items():
        assert by_doc.keys() <= passages.keys(), qid
        assert set(by_doc.values()) <= {0, 1, 2, 3}
        assert len(by_doc) >= 12, qid
        assert 3 in by_doc.values(), qid
        topic = queries[qid]["topic"]
        assert any(g == 0 and passages[d]["topic"] == topic for d, g in by_doc.items()), f"{qid}: no hard zero"
    many = sum(sum(g > 0 for g in by_doc.values()) >= 5 for by_doc in grades.values())
    assert many >= 8, "several queries have many relevant passages"


def test_a_quarter_of_the_best_answers_share_few_words(passages, queries, grades):
    def content(text: str) -> set[str]:
        return {word[:5] for word in words(text) if word not in STOP}

    def best_share(qid: str) -> float:
        asked = content(queries[qid]["text"])
        best = [docno for docno, grade in grades[qid].items() if grade == 3]
        found = (content(passages[d]["title"] + " " + passages[d]["text"]) for d in best)
        return max(len(asked & answer) / len(asked) for answer in found)

    assert sum(best_share(qid) <= 0.5 for qid in queries) >= len(queries) / 4


def test_variants(queries):
    texts = {row["text"].lower() for row in queries.values()}
    by_query: dict[str, list[dict]] = defaultdict(list)
    for row in rows("variants.jsonl"):
        assert row["category"] in CATEGORIES
        assert row["text"].strip().lower() not in texts, row
        by_query[row["query"]].append(row)
    assert by_query.keys() == queries.keys()
    for qid, variants in by_query.items():
        assert len(variants) >= 4, qid
        assert len({v["text"].lower() for v in variants}) == len(variants), qid
        categories = {v["category"] for v in variants}
        assert categories >= {"misspelling", "naturality", "ordering", "paraphrasing"}, qid
        for variant in variants:
            if variant["category"] == "ordering":
                assert sorted(words(variant["text"])) == sorted(words(queries[qid]["text"])), variant
    assert {v["category"] for variants in by_query.values() for v in variants} == CATEGORIES


def test_splits_are_even(queries):
    splits = load("sample").splits
    assert splits.keys() == {"train", "validation", "test"}
    assert sorted(qid for qids in splits.values() for qid in qids) == sorted(queries)
    for split in splits.values():
        cells = {(queries[qid]["genre"], queries[qid]["type"]) for qid in split}
        assert len(cells) == len(GENRES) * len(KINDS), "every genre and kind in every split"


def test_thesaurus(passages):
    heads = thesaurus.read_bundled_thesaurus()
    entries = [(word, pos, others) for word, by_pos in heads.items() for pos, others in by_pos.items()]
    assert len(heads) >= 2500
    assert all(1 <= len(others) <= 6 for _, _, others in entries)
    assert all(re.fullmatch(r"[^\W\d_]+(-[^\W\d_]+)*", w) for word, _, others in entries for w in (word, *others))
    mutual = sum(word in heads.get(other, {}).get(pos, ()) for word, pos, others in entries for other in others)
    assert mutual / sum(len(others) for _, _, others in entries) > 0.8, "symmetric where meaning is"
    vocabulary = Counter(w for row in passages.values() for w in words(row["text"]) if w not in STOP and len(w) > 3)
    known = {word[:5] for word in heads}
    assert sum(n for w, n in vocabulary.items() if w[:5] in known) / vocabulary.total() > 0.4


def test_size_and_words():
    files = [path for path in SAMPLE_FOLDER.rglob("*") if path.is_file()] + [thesaurus.BUNDLED_PATH]
    assert sum(path.stat().st_size for path in files) < 1_500_000
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert "\r" not in text
        assert "\ufffd" not in text
    card = (SAMPLE_FOLDER / "README.md").read_text()
    assert "demonstration" in card
    assert "CC0" in card


def test_it_loads_as_a_collection():
    sample = load("sample")
    assert sample.name == "sample"
    query = next(iter(sample.queries.values()))
    assert query.type in KINDS
    assert query.description
    doc = sample.docs["enc-001"]
    assert doc.title
    assert doc.url
    assert isinstance(SAMPLE_FOLDER, Path)

"""Valid inputs, each a function of a few draws: small, and with something of everything that the format allows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeVar

from shaketable.core.seeding import ItemRandom

Input = bytes | Mapping[str, bytes]
"""One file, or the files of a folder by their names."""

Part = TypeVar("Part")

LETTERS = "abcdefghijklmnopqrstuvwxyzABCXYZ"
WORDS = ("boat", "train", "tide", "glacier", "café", "naïve", "東京", "don't", "3.5", "a-b", "R&D", "x<y", "🙂", "“so”")
PUNCTUATION = "-_.:/#()é東"


def some(rng: ItemRandom, least: int, most: int, make: Callable[[], Part]) -> list[Part]:
    """From `least` to `most` parts."""
    return [make() for _ in range(least + rng.randbelow(most - least + 1))]


def name(rng: ItemRandom) -> str:
    """An id."""
    first = rng.choice(LETTERS + "0123456789")
    return first + "".join(some(rng, 0, 7, lambda: rng.choice(LETTERS + "0123456789" + PUNCTUATION)))


def names(rng: ItemRandom, least: int, most: int) -> list[str]:
    """Distinct ids."""
    return list(dict.fromkeys(some(rng, least, most, lambda: name(rng))))


def sentence(rng: ItemRandom, least: int = 0) -> str:
    return " ".join(some(rng, least, 8, lambda: rng.choice(WORDS)))


def decimal(rng: ItemRandom) -> str:
    """A number as people and programs write it."""
    value = rng.random() * 10 ** (rng.randbelow(7) - 3) * (1 if rng.randbelow(4) else -1)
    return rng.choice([repr(value), f"{value:.3f}", f"{value:e}", f"{value:g}", str(int(value)), f"{value:+.1f}"])


def positive(rng: ItemRandom) -> str:
    return decimal(rng).lstrip("-+")


def gap(rng: ItemRandom) -> str:
    return rng.choice([" ", " ", " ", "\t", "  "])


def text_of(rows: list[str], rng: ItemRandom) -> bytes:
    return ("\n".join(rows) + rng.choice(["\n", "\n", ""])).encode()


def qrels(rng: ItemRandom) -> bytes:
    rows = []
    form = rng.randbelow(3)
    for qid in names(rng, 1, 5):
        for docno in names(rng, 1, 6):
            grade = str(rng.randbelow(6) - 2)
            if form == 0:
                rows.append(gap(rng).join([qid, "0", docno, grade]))
            else:
                rows.append("\t".join([qid, docno, grade] if form == 1 else [grade, docno, qid]))
    if form == 0 and not rng.randbelow(3):
        rows.insert(rng.randbelow(len(rows) + 1), "# a comment")
    header = [[], ["query-id\tcorpus-id\tscore"], ["label\tdocno\tqid"]][form]
    return text_of(header + rows, rng)


def run(rng: ItemRandom) -> bytes:
    rows = []
    tag = name(rng)
    for qid in names(rng, 1, 5):
        for rank, docno in enumerate(names(rng, 1, 8), 1):
            more = " " + sentence(rng) if not rng.randbelow(8) else ""
            rows.append(gap(rng).join([qid, "Q0", docno, str(rank), decimal(rng), tag]) + more)
    if not rng.randbelow(3):
        rows.insert(rng.randbelow(len(rows) + 1), "# " + sentence(rng))
    return text_of(rows, rng)


def _json_lines(rows: list[dict[str, object]], rng: ItemRandom) -> bytes:
    return text_of([json.dumps(row, ensure_ascii=bool(rng.randbelow(2))) for row in rows], rng)


def corpus(rng: ItemRandom) -> bytes:
    rows: list[dict[str, object]] = []
    for docno in names(rng, 1, 8):
        row: dict[str, object] = {"_id": docno, "text": sentence(rng)}
        if rng.randbelow(2):
            row["title"] = sentence(rng)
        if rng.randbelow(2):
            row |= rng.choice([{"url": "http://a/b"}, {"metadata": {"url": "http://a/b", "year": 3, "x": [None, 1.5]}}])
        rows.append(row)
    return _json_lines(rows, rng)


def queries(rng: ItemRandom) -> bytes:
    return _json_lines(
        [
            {"_id": int(qid) if qid.isdecimal() else qid, "text": sentence(rng), "metadata": {"description": "x"}}
            for qid in names(rng, 1, 8)
        ],
        rng,
    )


def variants(rng: ItemRandom) -> bytes:
    rows: list[dict[str, object]] = [
        {"query": qid, "text": sentence(rng), "category": rng.choice(["ordering", "misspelling", ""])}
        for qid in names(rng, 1, 8)
    ]
    return _json_lines(rows, rng)


def crossed_pairs(rng: ItemRandom) -> bytes:
    fields = rng.choice([("query_a", "query_b", "a", "b"), ("q1", "q2", "doc1", "doc2")])
    return _json_lines([{"id": name} | {f: sentence(rng, 1) for f in fields} for name in names(rng, 1, 8)], rng)


def own_pairs(rng: ItemRandom) -> bytes:
    rows: list[dict[str, object]] = []
    for name in names(rng, 1, 8):
        row: dict[str, object] = {"id": name, "query": sentence(rng, 1), "a": "one " + sentence(rng)}
        row |= {"b": "other " + sentence(rng), "expect": rng.choice(["a", "b", "same"])}
        rows.append(row | ({"title_a": sentence(rng)} if rng.randbelow(2) else {}))
    return _json_lines(rows, rng)


def write_adversarial_documents(rng: ItemRandom) -> bytes:
    """All three forms in one file."""
    rows: list[dict[str, object]] = []
    for docno in names(rng, 1, 6):
        form = rng.randbelow(4)
        if form == 0:
            rows.append({"query": sentence(rng, 1), "text": sentence(rng)})
        elif form == 1:
            rows.append({"question": sentence(rng, 1), "texts": some(rng, 1, 3, lambda: sentence(rng))})
        else:
            asked = {qid: sentence(rng, 1) for qid in names(rng, 1, 3)}
            row: dict[str, object] = {"queries": asked, "docno": docno, "text": sentence(rng)}
            row |= {"title": sentence(rng), "url": "", "original": {"title": "", "text": sentence(rng)}}
            row |= {"recipe": "greedy(words=5)", "ranker": name(rng), "trials": rng.randbelow(100)}
            places: dict[str, object] = {key: [1 + rng.randbelow(100) for _ in asked] for key in ("before", "after")}
            rows.append(row | (places if rng.randbelow(2) else {}))
    return _json_lines(rows, rng)


def rewrites(rng: ItemRandom) -> Mapping[str, bytes]:
    """A folder of texts and their rewrites, line by line."""
    count = 1 + rng.randbelow(6)

    def column() -> bytes:
        return "".join(f"{sentence(rng)}\n" for _ in range(count)).encode()

    return {"test.src": column()} | {f"test.ref{i}": column() for i in range(4)}


def topics_table(rng: ItemRandom) -> bytes:
    header = ["qid\tquery"] if rng.randbelow(2) else []
    return text_of(header + [f"{qid}\t{sentence(rng)}" for qid in names(rng, 1, 8)], rng)


def topics_sgml(rng: ItemRandom) -> bytes:
    rows = []
    for qid in names(rng, 1, 5):
        close = rng.randbelow(2)
        rows += ["<top>", f"<num> Number: {qid}" + (" </num>" if close else "")]
        rows.append(f"<title> {rng.choice(['', 'Topic: '])}{_plain(rng)}" + ("</title>" if close else ""))
        rows += ["<desc> Description:", _plain(rng)] if rng.randbelow(2) else []
        rows += ["<narr> Narrative:", _plain(rng)] if rng.randbelow(2) else []
        rows.append("</top>")
    return text_of(rows, rng)


def topics_xml(rng: ItemRandom) -> bytes:
    rows = ['<?xml version="1.0" encoding="UTF-8"?>'] if rng.randbelow(2) else []
    rows.append("<topics>")
    for qid in names(rng, 1, 5):
        field = rng.choice(["query", "title"])
        rows.append(f'<topic number="{qid}" type="faceted"><{field}>{_plain(rng)}</{field}>')
        rows.append(f"<description>{_plain(rng)}</description>" if rng.randbelow(2) else "<narrative/>")
        rows.append("</topic>")
    return text_of([*rows, "</topics>"], rng)


def _plain(rng: ItemRandom) -> str:
    return sentence(rng, 1).replace("&", "&amp;").replace("<", "&lt;")


def scores(rng: ItemRandom) -> bytes:
    systems = names(rng, 1, 5)
    comma = rng.choice([",", "\t"])
    named = rng.randbelow(2)
    rows = [comma.join((["topic"] if named else []) + [f"{s} x" for s in systems])]
    for topic in names(rng, 1, 8):
        rows.append(comma.join(([topic] if named else []) + [positive(rng) for _ in systems]))
    return text_of(rows, rng)


def kinds(rng: ItemRandom) -> bytes:
    form = rng.choice([",", "\t", "{"])
    rows = [] if form == "{" else [form.join(["qid", "kind", "text"])]
    for qid in names(rng, 1, 8):
        cells = {"qid": qid, "kind": rng.choice(["entity", "PERSON", ""]), "text": f"what is {qid}"}
        rows.append(json.dumps(cells) if form == "{" else form.join(cells.values()))
    return text_of(rows, rng)


def letor(rng: ItemRandom) -> bytes:
    dims = 1 + rng.randbelow(6)
    rows = ["# features: " + " ".join(f"f{i}" for i in range(dims))] if rng.randbelow(2) else []
    for qid in names(rng, 1, 4):
        for docno in names(rng, 1, 5):
            shown = [i for i in range(1, dims + 1) if rng.randbelow(3) or i == dims]
            cells = "".join(f"{gap(rng)}{i}:{decimal(rng)}" for i in shown)
            comment = f" # docid = {docno}"
            rows.append(f"{rng.randbelow(5)} qid:{qid.replace('#', '-')}{cells}{comment}")
    return text_of(rows, rng)


def vectors(rng: ItemRandom) -> bytes:
    dims = 1 + rng.randbelow(5)
    words = names(rng, 1, 8)
    header = [f"{len(words)} {dims}"] if rng.randbelow(2) else []
    if dims == 1 and not header and words[0].isdigit():  # else that would be the header
        words[0] = "a"
    return text_of(header + [" ".join([word, *(decimal(rng) for _ in range(dims))]) for word in words], rng)


def neighbour_lists(rng: ItemRandom) -> bytes:
    return json.dumps({word: names(rng, 0, 4) for word in names(rng, 0, 8)}, indent=rng.choice([None, 1])).encode()


def thesaurus(rng: ItemRandom) -> bytes:
    rows = []
    for _ in range(1 + rng.randbelow(6)):
        words = ["one", *names(rng, 1, 4)]
        arrow = rng.choice([", ", " > "])
        rows.append(f"{rng.choice(['noun', 'verb', 'adj', 'adv'])}: {words[0]}{arrow}{', '.join(words[1:])}")
    return text_of(rows, rng)


def letters(rng: ItemRandom) -> str:
    return "".join(some(rng, 1, 6, lambda: rng.choice(LETTERS)))


def own_synonyms(rng: ItemRandom) -> bytes:
    """Words of one's own, or groups as in the thesaurus."""
    if rng.randbelow(2):
        return thesaurus(rng)
    rows = some(rng, 1, 6, lambda: "\t".join(some(rng, 2, 4, lambda: letters(rng))))
    return text_of(["# a remark", "boat\tship", *rows], rng)


def misspellings(rng: ItemRandom) -> bytes:
    words = [f"{word}x" for word in some(rng, 1, 6, lambda: "".join(some(rng, 1, 5, lambda: rng.choice(LETTERS))))]
    rows = ["# a remark"] if rng.randbelow(2) else []
    return text_of(rows + [f"{word}>{word}y,{word}z" for word in dict.fromkeys(words)], rng)


def wordnet(rng: ItemRandom) -> Mapping[str, bytes]:
    """All four parts of speech have the same words: car and others."""
    words = list(dict.fromkeys(["car", *("".join(some(rng, 1, 5, lambda: rng.choice(LETTERS))) for _ in range(3))]))
    files: dict[str, bytes] = {}
    for pos in ("noun", "verb", "adj", "adv"):
        data, index = b"  1 a licence\n", b"  1 a licence\n"
        for word in words:
            index += f"{word} n 1 1 @ 1 0 {len(data):08}\n".encode()
            data += f"{len(data):08} 03 n 02 {word} 0 other_{word} 0 001 @ 00000000 n 0000 | a gloss\n".encode()
        files[f"index.{pos}"], files[f"data.{pos}"] = index, data
    return files


def folder(rng: ItemRandom) -> Mapping[str, bytes]:
    """A BEIR folder."""
    files = {
        "corpus.jsonl": corpus(rng),
        "queries.jsonl": queries(rng),
        "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\n",
        "qrels/train.txt": b"q2 0 d1 1\n",
    }
    optional = {"candidates.run": run(rng), "variants.jsonl": variants(rng)}
    return files | {key: data for key, data in optional.items() if rng.randbelow(2)}


def competition(rng: ItemRandom) -> Mapping[str, bytes]:
    """Rounds of documents by two authors or more, some of them judged."""
    qids, authors = names(rng, 1, 3), [*names(rng, 1, 3), "äuthor"]
    docs: list[dict[str, object]] = []
    for turn in range(2 + rng.randbelow(3)):
        for qid in qids:
            for author in dict.fromkeys(authors):
                row: dict[str, object] = {"_id": f"d{len(docs)}", "round": turn, "query_id": qid, "author": author}
                row["text"] = sentence(rng)
                docs.append(row | ({"title": sentence(rng), "stuffed": 1} if not rng.randbelow(3) else {}))
    files = {
        "documents.jsonl": _json_lines(docs, rng),
        "queries.jsonl": _json_lines([{"_id": qid, "text": sentence(rng, 1)} for qid in qids], rng),
    }
    rows = [f"{doc['query_id']}\t{doc['_id']}\t{rng.randbelow(4)}" for doc in docs]
    return files | ({"qrels.tsv": text_of(["query-id\tcorpus-id\tscore", *rows], rng)} if rng.randbelow(2) else {})


def judged_run(rng: ItemRandom) -> Mapping[str, bytes]:
    """Judgements, and a run that has some of their ids."""
    qids, docnos = names(rng, 1, 4), names(rng, 1, 8)
    rows = [f"{qid} 0 {docno} {rng.randbelow(6) - 1}" for qid in qids for docno in docnos if rng.randbelow(3)]
    listed = [f"{qid} Q0 {docno} 1 {decimal(rng)} t" for qid in qids for docno in docnos if rng.randbelow(3)]
    return {
        "qrels": text_of([*rows, f"{qids[0]} 1 judged 1"], rng),
        "run": text_of([*listed, f"{qids[0]} Q0 found 1 0 t"], rng),
    }


def rules(rng: ItemRandom) -> bytes:
    """A file of all types of rules except those that need an earlier audit."""
    words = ("pass", "warn", "fail", "inconclusive")

    def rule() -> str:
        if rng.randbelow(2):
            about = f"finding = {json.dumps(name(rng), ensure_ascii=False)}\n"
            about += f"{rng.choice(['below', 'above'])} = {rng.randbelow(100) / 10 - 3}"
        else:
            about = f"facet = {json.dumps(rng.choice(['*', 'query typos', 'attack']))}\n"
            about += f"status = {json.dumps(rng.choice([rng.choice(words), list(words[:2])]))}"
        return f"[[{rng.choice(['fail_if', 'warn_if'])}]]\n{about}" + ("\nranker = 'a'" if rng.randbelow(2) else "")

    return text_of(some(rng, 1, 5, rule), rng)


def settings(rng: ItemRandom) -> bytes:
    """A file of settings."""
    texts = [json.dumps(name(rng), ensure_ascii=False) for _ in range(3)]
    rows = [f"data = {texts[0]}", f"ranker = [{', '.join(texts)}]", f"depth = {1 + rng.randbelow(500)}"]
    return text_of([row for row in [*rows, "keep-going = true", "# a remark"] if rng.randbelow(3)] or ["seed = 1"], rng)

"""Valid inputs, each a function of a few draws: small, and with something of everything that the format allows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from shaketable.chance import Draws
from tests.text.gguf_files import F32, Q4_1, Q8_0, gguf

Input = bytes | Mapping[str, bytes]
"""One file, or the files of a folder by their names."""

Part = TypeVar("Part")

LETTERS = "abcdefghijklmnopqrstuvwxyzABCXYZ"
WORDS = ("boat", "train", "tide", "glacier", "café", "naïve", "東京", "don't", "3.5", "a-b", "R&D", "x<y", "🙂", "“so”")
PUNCTUATION = "-_.:/#()é東"


def some(draws: Draws, least: int, most: int, make: Callable[[], Part]) -> list[Part]:
    """From `least` to `most` parts."""
    return [make() for _ in range(least + draws.below(most - least + 1))]


def name(draws: Draws) -> str:
    """An id."""
    first = draws.choice(LETTERS + "0123456789")
    return first + "".join(some(draws, 0, 7, lambda: draws.choice(LETTERS + "0123456789" + PUNCTUATION)))


def names(draws: Draws, least: int, most: int) -> list[str]:
    """Distinct ids."""
    return list(dict.fromkeys(some(draws, least, most, lambda: name(draws))))


def sentence(draws: Draws, least: int = 0) -> str:
    return " ".join(some(draws, least, 8, lambda: draws.choice(WORDS)))


def decimal(draws: Draws) -> str:
    """A number as people and programs write it."""
    value = draws.random() * 10 ** (draws.below(7) - 3) * (1 if draws.below(4) else -1)
    return draws.choice([repr(value), f"{value:.3f}", f"{value:e}", f"{value:g}", str(int(value)), f"{value:+.1f}"])


def positive(draws: Draws) -> str:
    return decimal(draws).lstrip("-+")


def gap(draws: Draws) -> str:
    return draws.choice([" ", " ", " ", "\t", "  "])


def text_of(rows: list[str], draws: Draws) -> bytes:
    return ("\n".join(rows) + draws.choice(["\n", "\n", ""])).encode()


def qrels(draws: Draws) -> bytes:
    rows = []
    form = draws.below(3)
    for qid in names(draws, 1, 5):
        for docno in names(draws, 1, 6):
            grade = str(draws.below(6) - 2)
            if form == 0:
                rows.append(gap(draws).join([qid, "0", docno, grade]))
            else:
                rows.append("\t".join([qid, docno, grade] if form == 1 else [grade, docno, qid]))
    if form == 0 and not draws.below(3):
        rows.insert(draws.below(len(rows) + 1), "# a comment")
    header = [[], ["query-id\tcorpus-id\tscore"], ["label\tdocno\tqid"]][form]
    return text_of(header + rows, draws)


def run(draws: Draws) -> bytes:
    rows = []
    tag = name(draws)
    for qid in names(draws, 1, 5):
        for rank, docno in enumerate(names(draws, 1, 8), 1):
            more = " " + sentence(draws) if not draws.below(8) else ""
            rows.append(gap(draws).join([qid, "Q0", docno, str(rank), decimal(draws), tag]) + more)
    if not draws.below(3):
        rows.insert(draws.below(len(rows) + 1), "# " + sentence(draws))
    return text_of(rows, draws)


def _json_lines(rows: list[dict[str, object]], draws: Draws) -> bytes:
    return text_of([json.dumps(row, ensure_ascii=bool(draws.below(2))) for row in rows], draws)


def corpus(draws: Draws) -> bytes:
    rows: list[dict[str, object]] = []
    for docno in names(draws, 1, 8):
        row: dict[str, object] = {"_id": docno, "text": sentence(draws)}
        if draws.below(2):
            row["title"] = sentence(draws)
        if draws.below(2):
            row |= draws.choice(
                [{"url": "http://a/b"}, {"metadata": {"url": "http://a/b", "year": 3, "x": [None, 1.5]}}]
            )
        rows.append(row)
    return _json_lines(rows, draws)


def queries(draws: Draws) -> bytes:
    return _json_lines(
        [
            {"_id": int(qid) if qid.isdecimal() else qid, "text": sentence(draws), "metadata": {"description": "x"}}
            for qid in names(draws, 1, 8)
        ],
        draws,
    )


def variants(draws: Draws) -> bytes:
    rows: list[dict[str, object]] = [
        {"query": qid, "text": sentence(draws), "category": draws.choice(["ordering", "misspelling", ""])}
        for qid in names(draws, 1, 8)
    ]
    return _json_lines(rows, draws)


def crossed_pairs(draws: Draws) -> bytes:
    fields = draws.choice([("query_a", "query_b", "a", "b"), ("q1", "q2", "doc1", "doc2")])
    return _json_lines([{"id": name} | {f: sentence(draws, 1) for f in fields} for name in names(draws, 1, 8)], draws)


def own_pairs(draws: Draws) -> bytes:
    rows: list[dict[str, object]] = []
    for name in names(draws, 1, 8):
        row: dict[str, object] = {"id": name, "query": sentence(draws, 1), "a": "one " + sentence(draws)}
        row |= {"b": "other " + sentence(draws), "expect": draws.choice(["a", "b", "same"])}
        rows.append(row | ({"title_a": sentence(draws)} if draws.below(2) else {}))
    return _json_lines(rows, draws)


def attacked(draws: Draws) -> bytes:
    """All three forms in one file."""
    rows: list[dict[str, object]] = []
    for docno in names(draws, 1, 6):
        form = draws.below(4)
        if form == 0:
            rows.append({"query": sentence(draws, 1), "text": sentence(draws)})
        elif form == 1:
            rows.append({"question": sentence(draws, 1), "texts": some(draws, 1, 3, lambda: sentence(draws))})
        else:
            asked = {qid: sentence(draws, 1) for qid in names(draws, 1, 3)}
            row: dict[str, object] = {"queries": asked, "docno": docno, "text": sentence(draws)}
            row |= {"title": sentence(draws), "url": "", "original": {"title": "", "text": sentence(draws)}}
            row |= {"recipe": "greedy(words=5)", "ranker": name(draws), "trials": draws.below(100)}
            places: dict[str, object] = {key: [1 + draws.below(100) for _ in asked] for key in ("before", "after")}
            rows.append(row | (places if draws.below(2) else {}))
    return _json_lines(rows, draws)


def rewrites(draws: Draws) -> Mapping[str, bytes]:
    """A folder of texts and their rewrites, line by line."""
    count = 1 + draws.below(6)

    def column() -> bytes:
        return "".join(f"{sentence(draws)}\n" for _ in range(count)).encode()

    return {"test.src": column()} | {f"test.ref{i}": column() for i in range(4)}


def topics_table(draws: Draws) -> bytes:
    header = ["qid\tquery"] if draws.below(2) else []
    return text_of(header + [f"{qid}\t{sentence(draws)}" for qid in names(draws, 1, 8)], draws)


def topics_sgml(draws: Draws) -> bytes:
    rows = []
    for qid in names(draws, 1, 5):
        close = draws.below(2)
        rows += ["<top>", f"<num> Number: {qid}" + (" </num>" if close else "")]
        rows.append(f"<title> {draws.choice(['', 'Topic: '])}{_plain(draws)}" + ("</title>" if close else ""))
        rows += ["<desc> Description:", _plain(draws)] if draws.below(2) else []
        rows += ["<narr> Narrative:", _plain(draws)] if draws.below(2) else []
        rows.append("</top>")
    return text_of(rows, draws)


def topics_xml(draws: Draws) -> bytes:
    rows = ['<?xml version="1.0" encoding="UTF-8"?>'] if draws.below(2) else []
    rows.append("<topics>")
    for qid in names(draws, 1, 5):
        field = draws.choice(["query", "title"])
        rows.append(f'<topic number="{qid}" type="faceted"><{field}>{_plain(draws)}</{field}>')
        rows.append(f"<description>{_plain(draws)}</description>" if draws.below(2) else "<narrative/>")
        rows.append("</topic>")
    return text_of([*rows, "</topics>"], draws)


def _plain(draws: Draws) -> str:
    return sentence(draws, 1).replace("&", "&amp;").replace("<", "&lt;")


def scores(draws: Draws) -> bytes:
    systems = names(draws, 1, 5)
    comma = draws.choice([",", "\t"])
    named = draws.below(2)
    rows = [comma.join((["topic"] if named else []) + [f"{s} x" for s in systems])]
    for topic in names(draws, 1, 8):
        rows.append(comma.join(([topic] if named else []) + [positive(draws) for _ in systems]))
    return text_of(rows, draws)


def kinds(draws: Draws) -> bytes:
    form = draws.choice([",", "\t", "{"])
    rows = [] if form == "{" else [form.join(["qid", "kind", "text"])]
    for qid in names(draws, 1, 8):
        cells = {"qid": qid, "kind": draws.choice(["entity", "PERSON", ""]), "text": f"what is {qid}"}
        rows.append(json.dumps(cells) if form == "{" else form.join(cells.values()))
    return text_of(rows, draws)


def letor(draws: Draws) -> bytes:
    dims = 1 + draws.below(6)
    rows = ["# features: " + " ".join(f"f{i}" for i in range(dims))] if draws.below(2) else []
    for qid in names(draws, 1, 4):
        for docno in names(draws, 1, 5):
            shown = [i for i in range(1, dims + 1) if draws.below(3) or i == dims]
            cells = "".join(f"{gap(draws)}{i}:{decimal(draws)}" for i in shown)
            comment = f" # docid = {docno}"
            rows.append(f"{draws.below(5)} qid:{qid.replace('#', '-')}{cells}{comment}")
    return text_of(rows, draws)


def vectors(draws: Draws) -> bytes:
    dims = 1 + draws.below(5)
    words = names(draws, 1, 8)
    header = [f"{len(words)} {dims}"] if draws.below(2) else []
    if dims == 1 and not header and words[0].isdigit():  # else that would be the header
        words[0] = "a"
    return text_of(header + [" ".join([word, *(decimal(draws) for _ in range(dims))]) for word in words], draws)


def neighbour_lists(draws: Draws) -> bytes:
    return json.dumps(
        {word: names(draws, 0, 4) for word in names(draws, 0, 8)}, indent=draws.choice([None, 1])
    ).encode()


def thesaurus(draws: Draws) -> bytes:
    rows = []
    for _ in range(1 + draws.below(6)):
        words = ["one", *names(draws, 1, 4)]
        arrow = draws.choice([", ", " > "])
        rows.append(f"{draws.choice(['noun', 'verb', 'adj', 'adv'])}: {words[0]}{arrow}{', '.join(words[1:])}")
    return text_of(rows, draws)


def letters(draws: Draws) -> str:
    return "".join(some(draws, 1, 6, lambda: draws.choice(LETTERS)))


def word_pairs(draws: Draws) -> bytes:
    rows = [draws.choice(["# a remark", "word1\tword2"])] if draws.below(2) else []
    return text_of(rows + some(draws, 1, 8, lambda: f"{letters(draws)}{gap(draws)}{letters(draws)}"), draws)


def own_synonyms(draws: Draws) -> bytes:
    """Words of one's own, or groups as in the thesaurus."""
    if draws.below(2):
        return thesaurus(draws)
    rows = some(draws, 1, 6, lambda: "\t".join(some(draws, 2, 4, lambda: letters(draws))))
    return text_of(["# a remark", "boat\tship", *rows], draws)


def weights(draws: Draws) -> bytes:
    """A file of weights with a setting and a tensor of each kind."""
    rows = np.array([draws.random() - 0.5 for _ in range(64)], dtype=np.float32).reshape(2, 32)
    settings = {
        "general.name": sentence(draws),
        "size": draws.below(1000),
        "share": 0.5,
        "open": bool(draws.below(2)),
        "tokens": some(draws, 1, 5, lambda: draws.choice(WORDS)),
        "kinds": some(draws, 1, 5, lambda: draws.below(9)),
    }
    return gguf(settings, {"plain": (rows, F32), "small": (rows, Q8_0), "smaller": (rows, Q4_1)})


def misspellings(draws: Draws) -> bytes:
    words = [
        f"{word}x" for word in some(draws, 1, 6, lambda: "".join(some(draws, 1, 5, lambda: draws.choice(LETTERS))))
    ]
    rows = ["# a remark"] if draws.below(2) else []
    return text_of(rows + [f"{word}>{word}y,{word}z" for word in dict.fromkeys(words)], draws)


def wordnet(draws: Draws) -> Mapping[str, bytes]:
    """All four parts of speech have the same words: car, and whatever else."""
    words = list(dict.fromkeys(["car", *("".join(some(draws, 1, 5, lambda: draws.choice(LETTERS))) for _ in range(3))]))
    files: dict[str, bytes] = {}
    for pos in ("noun", "verb", "adj", "adv"):
        data, index = b"  1 a licence\n", b"  1 a licence\n"
        for word in words:
            index += f"{word} n 1 1 @ 1 0 {len(data):08}\n".encode()
            data += f"{len(data):08} 03 n 02 {word} 0 other_{word} 0 001 @ 00000000 n 0000 | a gloss\n".encode()
        files[f"index.{pos}"], files[f"data.{pos}"] = index, data
    return files


def folder(draws: Draws) -> Mapping[str, bytes]:
    """A BEIR folder."""
    files = {
        "corpus.jsonl": corpus(draws),
        "queries.jsonl": queries(draws),
        "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\n",
        "qrels/train.txt": b"q2 0 d1 1\n",
    }
    optional = {"candidates.run": run(draws), "variants.jsonl": variants(draws)}
    return files | {key: data for key, data in optional.items() if draws.below(2)}


def competition(draws: Draws) -> Mapping[str, bytes]:
    """Rounds of documents by two authors or more, some of them judged."""
    qids, authors = names(draws, 1, 3), [*names(draws, 1, 3), "äuthor"]
    docs: list[dict[str, object]] = []
    for turn in range(2 + draws.below(3)):
        for qid in qids:
            for author in dict.fromkeys(authors):
                row: dict[str, object] = {"_id": f"d{len(docs)}", "round": turn, "query_id": qid, "author": author}
                row["text"] = sentence(draws)
                docs.append(row | ({"title": sentence(draws), "stuffed": 1} if not draws.below(3) else {}))
    files = {
        "documents.jsonl": _json_lines(docs, draws),
        "queries.jsonl": _json_lines([{"_id": qid, "text": sentence(draws, 1)} for qid in qids], draws),
    }
    rows = [f"{doc['query_id']}\t{doc['_id']}\t{draws.below(4)}" for doc in docs]
    return files | ({"qrels.tsv": text_of(["query-id\tcorpus-id\tscore", *rows], draws)} if draws.below(2) else {})


def judged_run(draws: Draws) -> Mapping[str, bytes]:
    """Judgements, and a run that has some of their ids."""
    qids, docnos = names(draws, 1, 4), names(draws, 1, 8)
    rows = [f"{qid} 0 {docno} {draws.below(6) - 1}" for qid in qids for docno in docnos if draws.below(3)]
    listed = [f"{qid} Q0 {docno} 1 {decimal(draws)} t" for qid in qids for docno in docnos if draws.below(3)]
    return {
        "qrels": text_of([*rows, f"{qids[0]} 1 judged 1"], draws),
        "run": text_of([*listed, f"{qids[0]} Q0 found 1 0 t"], draws),
    }


def rules(draws: Draws) -> bytes:
    """A file of rules, of all kinds but those that need an earlier audit."""
    words = ("steady", "shaken", "breaks", "unclear")

    def rule() -> str:
        if draws.below(2):
            about = f"finding = {json.dumps(name(draws), ensure_ascii=False)}\n"
            about += f"{draws.choice(['below', 'above'])} = {draws.below(100) / 10 - 3}"
        else:
            about = f"facet = {json.dumps(draws.choice(['*', 'query typos', 'attack']))}\n"
            about += f"called = {json.dumps(draws.choice([draws.choice(words), list(words[:2])]))}"
        return f"[[{draws.choice(['fail_if', 'warn_if'])}]]\n{about}" + ("\nranker = 'a'" if draws.below(2) else "")

    return text_of(some(draws, 1, 5, rule), draws)


def settings(draws: Draws) -> bytes:
    """A file of settings."""
    texts = [json.dumps(name(draws), ensure_ascii=False) for _ in range(3)]
    rows = [f"data = {texts[0]}", f"ranker = [{', '.join(texts)}]", f"depth = {1 + draws.below(500)}"]
    return text_of([row for row in [*rows, "keep-going = true", "# a remark"] if draws.below(3)] or ["seed = 1"], draws)

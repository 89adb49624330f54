"""Kinds of queries on MS MARCO's official types (paper 000, section 4.3): how often rules are right.

make evidence PAGE=query-kinds        (half a minute)
"""

from __future__ import annotations

from collections.abc import Mapping

from evidence import DATA, Guard, Page, Rows, need_data, prose, table
from shaketable.core.documents import Query
from shaketable.datasets.beir import read_beir
from shaketable.datasets.query_types.rules import QUERY_TYPES, classify_by_rules
from shaketable.measures.confusion import Confusion, compute_confusion


def split(name: str) -> dict[str, Query]:
    whole = read_beir(DATA / "collections" / "msmarco-types")
    return {qid: whole.queries[qid] for qid in whole.splits[name]}


def truth(queries: Mapping[str, Query]) -> list[str]:
    return [query.type for query in queries.values()]


def rules_say(queries: Mapping[str, Query]) -> list[str]:
    return [classify_by_rules(query.text) for query in queries.values()]


def summary(name: str, found: Confusion) -> list[str]:
    f1 = dict(zip(found.labels, found.f1, strict=True))
    return [name, f"{found.accuracy:.3f}", f"{found.macro_f1:.3f}", *(f"{f1[kind]:.3f}" for kind in QUERY_TYPES)]


HEADS = [*(f"as {kind}" for kind in QUERY_TYPES), "precision", "recall", "F1"]


def matrix(found: Confusion) -> list[list[str]]:
    return [
        [row["kind"], *(str(row[head]) for head in HEADS[:-3]), *(f"{row[head]:.3f}" for head in HEADS[-3:])]
        for _, row in found.to_frame().iterrows()
    ]


def measure() -> Rows:
    need_data("collections", "msmarco-types")
    train, test = split("train"), split("test")
    right = truth(test)
    rules = compute_confusion(right, rules_say(test))
    return {
        "train queries": len(train),
        "test queries": len(test),
        "accuracy": [
            summary("the commonest kind", compute_confusion(right, ["description"] * len(test))),
            summary("rules", rules),
            summary("rules, on the train queries", compute_confusion(truth(train), rules_say(train))),
        ],
        "confusion": matrix(rules),
    }


def compose(found: Rows) -> list[str]:
    return [
        prose(f"""Paper 000 tells queries apart by the official types of MS MARCO. Where a collection has none,
        `--query-types rules` guesses them by question words. The rules were written by looking at the
        {found["train queries"]} train queries of msmarco-types; they are measured on the {found["test queries"]} test
        queries."""),
        table(("by", "accuracy", "macro F1", *(f"F1 {kind}" for kind in QUERY_TYPES)), found["accuracy"]),
        prose("""Of the official types not all can be read off the queries: "university of phoenix online school
        code" is a person there, "do bigger tires affect gas mileage" is numeric. The rules do worse on the test
        queries than on those that they were written from. They tell location and numeric well, and entity and
        person badly, of which about half are missed: most queries for an entity read like ones for a description
        ("what is polydextrose made from"). A report that compares guessed types should say so; differences between
        entity and description mean little."""),
        "## What the rules take for what",
        table(["kind", *HEADS], found["confusion"]),
    ]


def rules_row() -> list[str]:
    test = split("test")
    return summary("rules", compute_confusion(truth(test), rules_say(test)))


PAGE = Page(
    __file__,
    "Kinds of queries on MS MARCO's official types",
    measure,
    compose,
    (Guard("accuracy", "the row of rules", rules_row),),
)

if __name__ == "__main__":
    PAGE.main()

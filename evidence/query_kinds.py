"""Kinds of queries on MS MARCO's official types (paper 000, section 4.3): how often rules are right.

make evidence PAGE=query-kinds        (half a minute)
"""

from __future__ import annotations

from collections.abc import Mapping

from evidence import DATA, line, need_data, prose, table, write_page
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


def matrix(found: Confusion) -> str:
    rows = found.to_frame()
    heads = [*(f"as {kind}" for kind in QUERY_TYPES), "precision", "recall", "F1"]
    cells = [
        [row["kind"], *(str(row[head]) for head in heads[:-3]), *(f"{row[head]:.3f}" for head in heads[-3:])]
        for _, row in rows.iterrows()
    ]
    return table(["kind", *heads], cells)


def main() -> None:
    need_data("collections", "msmarco-types")
    train, test = split("train"), split("test")
    right = truth(test)
    rules = compute_confusion(right, rules_say(test))
    write_page(
        __file__,
        "Kinds of queries on MS MARCO's official types",
        [
            prose(f"""Paper 000 tells queries apart by the official types of MS MARCO. Where a collection has none,
            `--kinds rules` guesses them by question words. The rules were written by looking at the {len(train)} train
            queries of msmarco-types; they are measured on the {len(test)} test queries."""),
            table(
                ("by", "accuracy", "macro F1", *(f"F1 {kind}" for kind in QUERY_TYPES)),
                [
                    summary("the commonest kind", compute_confusion(right, ["description"] * len(test))),
                    summary("rules", rules),
                    summary("rules, on the train queries", compute_confusion(truth(train), rules_say(train))),
                ],
            ),
            prose("""Of the official types not all can be read off the queries: "university of phoenix online school
            code" is a person there, "do bigger tires affect gas mileage" is numeric. The rules do worse on the test
            queries than on those that they were written from. They tell location and numeric well, and entity and
            person badly, of which about half are missed: most queries for an entity read like ones for a description
            ("what is polydextrose made from"). A report that compares guessed types should say so; differences between
            entity and description mean little."""),
            "## What the rules take for what",
            matrix(rules),
        ],
    )


def cheap_row() -> str:
    test = split("test")
    return line(summary("rules", compute_confusion(truth(test), rules_say(test))))


if __name__ == "__main__":
    main()

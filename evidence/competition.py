"""How stable rankings are while authors rewrite their documents to rank first (paper 000, section 5.5): ASRC.

make evidence PAGE=competition        (two minutes where the page rankers was made before)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd

from evidence import DATA, Guard, Page, Rows, fold, need_data, prose, table
from evidence._claims import MEASUREMENTS, load_claims
from evidence._intervals import show_interval
from evidence._rankers import LEARNING_TO_RANK, NET_NAMES, build_model, fit, name_training, open_collection
from evidence._verdicts import Measurement
from evidence.summary import tabulate_claims
from shaketable.core.results import Finding, Result
from shaketable.tasks.competition import RankCompetition

ASRC = DATA / "competition" / "asrc"
HOME = "rag24"
"""The collection that rankers are opened on and trained on."""
RANKERS = ("bm25", "ql", *LEARNING_TO_RANK, "minilm-l12", "bge-small")
MEASURES = ("TC", "KT", "MAP", "nDCG@5")
TRAINING_DEPTHS = (20, 50, 100)
"""Documents of each train query; the models of the other tables have the first."""
CLAIMS = {"000-competition-lexical": "KT", "000-competition-ltr": "TC"}
"""claim -> the measure whose difference decides it"""


def hold_competition(names: Sequence[str], depth: int = 0) -> Result:
    """Return what the task finds for rankers that know rag24 alone: its word statistics and its train queries.

    `depth` is the number of documents of each train query, 0 for the usual one.
    """
    learners = (*LEARNING_TO_RANK, *NET_NAMES)
    models = {name: fit(HOME, name, depth) if name in learners else build_model(name) for name in names}
    return RankCompetition(data=str(ASRC)).run(replace(open_collection(HOME), models=models))


def build_rows(frame: pd.DataFrame) -> list[list[str]]:
    """Return a row for each ranker, each number with its interval over queries."""
    return [
        [row["ranker"], *(f"{row[m]:.3f} [{row[f'{m} low']:.3f}, {row[f'{m} high']:.3f}]" for m in MEASURES)]
        for row in frame.to_dict("records")
    ]


def compare(found: Sequence[Finding], names: Sequence[str]) -> Iterator[Measurement]:
    """Yield the differences that claims are about; a finding has each pair of rankers in one order only."""
    differences = {(one.ranker, one.against, one.name): one for one in found if one.against}
    known = {claim.id: claim for claim in load_claims().claims}
    for claim, measure in CLAIMS.items():
        for label in known[claim].rankers:
            a, _, b = label.partition(" - ")
            if not {a, b} <= set(names):
                continue
            training = name_training(HOME, a) or name_training(HOME, b)
            ends = differences.get((a, b, f"difference of {measure}"))
            if ends is not None:
                numbers = ends.value, ends.low, ends.high
            else:
                ends = differences[b, a, f"difference of {measure}"]
                numbers = -ends.value, -ends.high, -ends.low
            yield Measurement(claim, label, "asrc", *map(float, numbers), ends.n, training)


def list_rewrites(moved: pd.DataFrame) -> list[list[str]]:
    """Return a row for each ranker: by how many ranks a rewritten document rises."""
    rows = []
    for row in moved[moved["documents"] == "rewritten"].to_dict("records"):
        ends = f"[{row['ranks gained low']:+.3f}, {row['ranks gained high']:+.3f}]"
        rows.append([row["ranker"], str(row["number"]), f"{row['ranks gained']:+.3f} {ends}"])
    return rows


def list_trainings() -> list[list[str]]:
    """Return a row for each training depth: TC of three learning-to-rank models, and differences from LambdaMART."""
    rows = []
    for depth in TRAINING_DEPTHS:
        result = hold_competition(tuple(LEARNING_TO_RANK), depth)
        tc = dict(result.tables["competition"][["ranker", "TC"]].itertuples(index=False))
        found = [one for one in compare(result.findings, tuple(LEARNING_TO_RANK)) if CLAIMS[one.claim] == "TC"]
        rows.append([str(depth), *(f"{tc[name]:.3f}" for name in LEARNING_TO_RANK), *map(show_interval, found)])
    return rows


def measure() -> Rows:
    need_data("competition", "asrc")
    result = hold_competition(RANKERS)
    summary = result.tables["competition"]
    return {
        "competition": build_rows(summary),
        "queries": int(summary["queries"].iloc[0]),
        MEASUREMENTS: [one.to_row() for one in compare(result.findings, RANKERS)],
        "training depths": list_trainings(),
        "rewritten": list_rewrites(result.tables["rewritten documents"]),
    }


def describe(found: Rows) -> str:
    """Return the answer: differences in KT and TC."""
    known = [Measurement(**row) for row in found[MEASUREMENTS]]
    lexical, ltr = ([one for one in known if one.claim == claim] for claim in CLAIMS)
    lower = [one.ranker.partition(" - ")[2] for one in lexical if one.ranker.startswith("bm25") and one.high < 0]
    others = sum(one.ranker.startswith("bm25") for one in lexical)
    said = "; ".join(f"{show_interval(one)} ({one.ranker})" for one in ltr)
    gains = [row for row in found["rewritten"] if float(row[-1].partition("[")[2].split(",")[0]) > 0]
    return prose(f"""BM25's rankings change significantly less from one round to the next (KT) than those of
    {len(lower)} of {others} other rankers{": " + ", ".join(lower) if lower else ""}. Differences in the
    share of rounds after which another document is first (TC): {said}. Rewriting raises a document significantly
    under {len(gains)} of {len(found["rewritten"])} rankers.""")


def compose(found: Rows) -> list[str]:
    toys = any(row["training"] for row in found[MEASUREMENTS])
    reach = max((row["high"] - row["low"]) / 2 for row in found[MEASUREMENTS] if CLAIMS[row["claim"]] == "TC")
    return [
        describe(found),
        prose("""TC: the share of rounds after which another author is at rank 1. KT: the share of pairs of authors that
        change their order. MAP and nDCG@5: over all rounds. Brackets: 95 % intervals over queries, each with all its
        rounds. Lower TC and KT are more stable; a ranker that ignores the texts is perfectly stable."""),
        table(("ranker", *MEASURES), found["competition"]),
        "## Verdicts",
        tabulate_claims("competition", found),
        *([prose("† a ranker that does not reach BM25 on its validation queries: a toy training.")] if toys else []),
        prose("""TC of LambdaMART depends on how many documents of each train query it learned from, so the verdict on
        it is about one training of 172 queries more than about the method:"""),
        table(
            (
                "documents",
                *(f"TC of {name}" for name in LEARNING_TO_RANK),
                "ranksvm - lambdamart",
                "prank - lambdamart",
            ),
            found["training depths"],
        ),
        "## How it was made",
        prose(f"""Data: ASRC, {found["queries"]} queries and 8 rounds; in each round five students (six for one query)
        each wrote a document that was to rank higher than before. Every ranker is the one of [rankers](rankers.md) on
        rag24: word statistics and train queries come from there, never from the competition. Differences are paired by
        query. With {found["queries"]} queries, the intervals of differences in TC reach {reach:.2f} to each
        side at most, so smaller differences may stay undecided; such a row says how many queries would decide it.
        Seed 0; less than two minutes of CPU time, an estimate."""),
        fold(
            "By how many ranks a rewritten document rises",
            table(("ranker", "rewritten documents", "ranks gained"), found["rewritten"]),
        ),
    ]


PAGE = Page(
    __file__,
    "Documents rewritten to rank first",
    measure,
    compose,
    (
        Guard(
            "competition", "the row of bm25", lambda: build_rows(hold_competition(["bm25"]).tables["competition"])[0]
        ),
        Guard(
            "competition",
            "the row of ranksvm, trained again",
            lambda: build_rows(hold_competition(["ranksvm"]).tables["competition"])[0],
        ),
    ),
)

if __name__ == "__main__":
    PAGE.main()

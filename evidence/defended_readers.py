"""Defences by training (paper 003, Table 1) on nets that begin with MiniLM: bert and prop.

make evidence PAGE=defended-readers        (an hour on one core; models and scores are kept, so it may be cut off)
"""

from __future__ import annotations

from dataclasses import replace

import torch

from evidence import Guard, Page, Rows, need_data, prose, table
from evidence._rag24 import open_rag24
from evidence.defence import HEAD, PRINTED, by_examples, context, piat, rows, task
from evidence.substitution import white
from shaketable.tasks._defence_tables import ALL_QUERIES_COLUMN, BETTER_COLUMN

STEPS, EXAMPLES, ATTACKED, RIVALS = 100, 40, 5, 5
COURSE = f"max_length=128, lists=2, size=4, steps={STEPS}, every={STEPS}, last=True"
READERS = {"bert": f"bert({COURSE})", "prop": f"prop({COURSE}, pretrain=30, adapt=15)"}
QUERIES, TARGETS, DEPTH = 10, 5, 30
OWN = white(20, 0.5, 40).removesuffix(")") + f", rivals={RIVALS})"
"""With the gradients of the net itself, against the first of a list."""
SHOWN = [number for number, name in enumerate(HEAD) if name not in (ALL_QUERIES_COLUMN, BETTER_COLUMN)]
PAPER = {
    "bert": {
        "ST": (0.3831, 0.3923, 0.3225, 0.3286, 92.1, 32.3),
        "AT": (0.3743, 0.3865, 0.3451, 0.3508, 55.1, 15.6),
        "PIAT-ListNet": (0.3892, 0.3981, 0.3728, 0.3802, 36.1, 7.2),
    },
    "prop": {
        "ST": (0.3902, 0.4061, 0.3352, 0.3478, 90.3, 30.9),
        "AT": (0.3819, 0.4002, 0.3532, 0.3611, 51.2, 12.8),
        "PIAT-ListNet": (0.3971, 0.4121, 0.3794, 0.3890, 35.0, 6.2),
    },
}
"""Table 1: CleanMRR@10 and @100, RobustMRR@10 and @100, ASR, LSD."""


def defended(name: str) -> list[list[str]]:
    """A reader with each defence."""
    few = by_examples(EXAMPLES, ATTACKED, OWN)
    known = {"ST": "standard", "AT": f"at({few})", "PIAT-ListNet": piat("listnet", f"{few}, size=4, attacked=2")}
    experiment = replace(context().with_depth(DEPTH), limit=QUERIES)  # a reader takes minutes for all lists
    how = {"learner": READERS[name], "recipe": OWN, "queries": QUERIES, "targets": TARGETS}
    found = task(known.values(), experiment, **how)
    return [[name, *(cells[i] for i in SHOWN)] for cells in rows(found, known)]


def first_stage() -> str:
    return f"{open_rag24('bm25').get_score_table('RR@10').values.mean():.4f}"


def measure() -> Rows:
    need_data("collections", "rag24")
    torch.set_num_threads(1)
    return {"defences": [row for name in READERS for row in defended(name)], "clean RR@10 of bm25": first_stage()}


def compose(found: Rows) -> list[str]:
    paper = [[name, how, *map(str, values)] for name, some in PAPER.items() for how, values in some.items()]
    return [
        prose(f"""rag24: nets on MiniLM read 128 word pieces of query and passage and learn from the train queries
        for {STEPS} steps of two lists of four texts, the last weights being kept; prop is first pre-trained for 30
        steps on the passages. Adversarial examples: {EXAMPLES} train queries with {ATTACKED} documents each.
        {QUERIES} test queries are attacked, {TARGETS} targets in each list of {DEPTH}, one seed. The attack has the
        gradients of the net itself against the first {RIVALS} of a list (a surrogate for each net would take hours
        here), and what resists it resists more than the paper's attack. PIAT's lists have four texts, two of them
        attacked. Columns as in defence.md. All of this is little, for the time that an encoder takes on one core.
        With so few queries nothing is marked as significant, and what is not told apart by the intervals is
        chance."""),
        table(("ranker", *(HEAD[i] for i in SHOWN)), found["defences"]),
        prose("BM25 before any attack, on all test queries: clean RR@10 " + found["clean RR@10 of bm25"] + "."),
        "## The same rows in paper 003",
        prose("""MS MARCO, 1,000 queries of Dev with one relevant passage each, so RR is on another scale."""),
        table(("ranker", "defence", *PRINTED), paper),
    ]


PAGE = Page(
    __file__,
    "Defences by training: bert and prop",
    measure,
    compose,
    (Guard("clean RR@10 of bm25", "clean RR@10 of BM25", first_stage),),
)

if __name__ == "__main__":
    PAGE.main()

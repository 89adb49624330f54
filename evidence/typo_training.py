"""Training on typos (Zhuang and Zuccon 2021, 2022): what slips in queries cost before and after.

make evidence PAGE=typo-training        (half an hour on one core; models are kept)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import torch

from evidence import Guard, Page, Rows, need_data, prose, table
from evidence._rag24 import VECTORS, open_rag24
from evidence.defence import drop_rows, dropped, interval
from shaketable.core.protocols import Model
from shaketable.core.registries import LEARNERS
from shaketable.defences.training import plan_defended_training
from shaketable.experiment import Experiment
from shaketable.tasks.query_typos import QueryTypos

STEPS = 100
LEARNED = {
    "knrm": f"knrm(vectors={str(VECTORS)!r}, steps=300, every=100, last=True)",
    "dense": f"dense(steps={STEPS}, lists=4, size=4, every={STEPS}, max_length=64, lr=5e-5, last=True)",
}
COSINES = "temperature=0.05"
"""Scores of dense are cosines: without it, all orders are nearly alike and there is nothing to teach."""
TRAININGS = {
    "knrm": {"typos in place": "typos(teach=False)", "self-teaching": "typos"},
    "dense": {"typos in place": "typos(teach=False)", "self-teaching": f"typos({COSINES})"},
}
HEAD = ("ranker", "attack", "nDCG@10 before", "after", "drop %")


def trained() -> tuple[list[list[str]], list[list[str]]]:
    """The drops of each ranker after each training, and each training beside the standard one, query by query."""
    experiment = replace(open_rag24("bm25"), models={})
    drops: list[list[str]] = []
    gains: list[list[str]] = []
    for name, text in LEARNED.items():
        learner = LEARNERS.build(text)
        models: dict[str, Model] = {f"{name}, standard": experiment.fit(learner, "train")}
        for label, how in TRAININGS[name].items():
            plan = plan_defended_training(experiment, learner, how, None, "train", None, None, 0, lambda said: None)
            models[f"{name}, {label}"] = experiment.fit(learner, "train", plan=plan)
        result = QueryTypos().run(replace(experiment, models=models))
        drops += drop_rows(result)
        gains += gained(result.tables["per query"], list(models))
    return drops, gains


def train_standard(name: str) -> Experiment:
    """Return the test queries with one model, after standard training."""
    torch.set_num_threads(1)
    experiment = replace(open_rag24("bm25"), models={})
    return replace(experiment, models={f"{name}, standard": experiment.fit(LEARNERS.build(LEARNED[name]), "train")})


def gained(draws: pd.DataFrame, models: Sequence[str]) -> list[list[str]]:
    """What a training adds to nDCG@10: on queries as they are, on attacked ones, and to what an attack takes away."""
    means = draws.groupby(["attack", "ranker", "query"])[["before", "after", "change"]].mean()
    lines = []
    for attack in dict.fromkeys(draws["attack"]):
        standard = means.loc[attack, models[0]]
        for model in models[1:]:
            differences = means.loc[attack, model] - standard
            found = [interval(differences[column].to_numpy()) for column in ("before", "after", "change")]
            lines.append(
                [model, str(attack), *(f"{value:+.4f} [{low:+.4f}, {high:+.4f}]" for value, low, high in found)]
            )
    return lines


def measure() -> Rows:
    need_data("collections", "rag24")
    torch.set_num_threads(1)
    drops, gains = trained()
    return {"drops": [*dropped(open_rag24("bm25")), *drops], "gains": gains}


def compose(found: Rows) -> list[str]:
    return [
        prose(f"""rag24: rankers learn from its train queries and are measured on its 86 test queries, each
        attacked five times in each way; candidates are BM25's first 100 for the query as it is. knrm reads words
        (GloVe) and learns for 300 steps; a word with a slip is unknown to it, so there is nothing that it could
        learn. dense is MiniLM with 64 word pieces, fine-tuned on judgements for {STEPS} steps of four lists, which
        is little. Typos in place: in half of the lists a query with a slip of the keyboard stands in the place of
        the query. Self-teaching: the order of a list under the query teaches its order under the query with the
        slip. The last weights are kept. drop %: of nDCG@10, with a 95 % interval over queries. bm25 learns
        nothing, and stands beside them. One seed."""),
        table(HEAD, found["drops"]),
        "## Is it more than chance?",
        prose("""Differences of nDCG@10 to the same ranker with standard training, query by query, with 95 %
        intervals: on the queries as they are, on the attacked ones, and of what the attack takes away. A training
        helps against slips where the last interval lies above 0, and it costs where the first lies below."""),
        table(("ranker", "attack", "as they are", "attacked", "less lost"), found["gains"]),
    ]


PAGE = Page(
    __file__,
    "Training on typos",
    measure,
    compose,
    (
        Guard("drops", "the first row of bm25", lambda: dropped(open_rag24("bm25"))[0]),
        Guard(
            "drops",
            "a row of knrm with standard training, trained again",
            lambda: dropped(train_standard("knrm"))[0],
            slow=True,
        ),
    ),
)

if __name__ == "__main__":
    PAGE.main()

"""Query variations and attacks on three collections: what each method costs lexical rankers and a dense one.

make evidence PAGE=query-variation        (some minutes on two cores)
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pandas as pd

from evidence import DATA, Guard, Page, Rows, need_data, plain_drops, prose, table
from shaketable.core.home import home_folder
from shaketable.core.registries import RANKERS
from shaketable.datasets.load import load
from shaketable.experiment import Experiment
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.tasks.query_typos import ATTACK_NAMES, QueryTypos
from shaketable.tasks.query_variation import QueryVariation
from shaketable.transforms.presets import list_default_methods

COLLECTIONS = ("cranfield", "rag24", "cacm")
SHOWN = ("bm25", "ql", "rm3", "dense")
NEIGHBOURS = DATA / "synonyms" / "counterfitted-neighbors.json"


def open_bench(name: str, rankers: tuple[str, ...] = SHOWN) -> Experiment:
    """A collection's test queries; scores are kept."""
    models = {ranker: RANKERS.build(ranker) for ranker in rankers}
    return Experiment(
        load(DATA / "collections" / name), models, ScoringEngine(Store(home_folder() / "scores.sqlite")), split="test"
    )


def transforms() -> tuple[str, ...]:
    """Every method by rules, those on WordNet and on counter-fitted vectors among them."""
    os.environ.setdefault("NLTK_DATA", str(DATA / "nltk_data"))
    vectors = f"word_embed_syn_swap(file={str(NEIGHBOURS)!r})"
    return tuple(vectors if name == "word_embed_syn_swap" else name for name in list_default_methods())


def short(method: str) -> str:
    return method.partition("(")[0]


def original(experiment: Experiment) -> list[str]:
    """What the queries are worth as they are."""
    means = experiment.get_score_table("nDCG@10").values.mean(axis=1)
    return ["", "the original", *(f"{mean:.4f}" for mean in means), "", "", str(len(experiment.queries))]


def by_method(frame: pd.DataFrame) -> Iterator[list[str]]:
    """A row for each method: the change for each ranker."""
    for (category, method), rows in frame.groupby(["category", "method"], sort=False):
        first = rows.iloc[0]
        changes = [f"{row['change']:+.4f}{row['']}" for _, row in rows.iterrows()]
        shares = [f"{first[name]:.0f}" for name in ("valid %", "applies %")]
        yield [category, short(method), *changes, *shares, str(first["queries"])]


def by_category(frame: pd.DataFrame) -> Iterator[list[str]]:
    """A row for each category: the relative change over valid variations, the whole pipeline / the ranker alone."""
    for category, rows in frame.groupby("category", sort=False):
        drops = {key: part.set_index("ranker")["drop % (valid)"] for key, part in rows.groupby("setting", sort=False)}
        yield [category, *(" / ".join(f"{drop[ranker]:+.1f}" for drop in drops.values()) for ranker in SHOWN)]


def attacked(experiment: Experiment) -> list[list[str]]:
    """A row for each ranker: what attacks change, with the interval over queries."""
    frame = plain_drops(QueryTypos().run(experiment))
    return [
        [f"{ranker}, {experiment.collection.name}", *(_interval(row) for _, row in rows.iterrows())]
        for ranker, rows in frame.groupby("ranker", sort=False)
    ]


def _interval(row: pd.Series) -> str:
    return f"{row['drop %']:+.1f} [{row['drop % low']:+.1f}, {row['drop % high']:+.1f}]"


def measure_collection(name: str) -> Rows:
    experiment = open_bench(name)
    found = QueryVariation(transforms=transforms(), depths=()).run(experiment).tables
    method = found["by method"]
    rows = {
        f"{name}: queries": len(experiment.queries),
        f"{name}: methods": [original(experiment), *by_method(method[method["setting"] == "pipeline"])],
        f"{name}: categories": list(by_category(found["by category"])),
        f"{name}: typos": attacked(experiment),
    }
    print(f"{name} done", flush=True)
    return rows


def measure() -> Rows:
    need_data("collections")
    return {key: value for name in COLLECTIONS for key, value in measure_collection(name).items()}


def section(name: str, found: Rows) -> list[str]:
    return [
        f"## {name}: {found[f'{name}: queries']} queries",
        table(("category", "method", *SHOWN, "valid %", "applies %", "queries"), found[f"{name}: methods"]),
        "Relative change over valid variations, in per cent, the whole pipeline / the ranker alone:",
        table(("category", *SHOWN), found[f"{name}: categories"]),
        "Query attack, relative change in per cent with 95 % intervals (five draws, candidates of the original query):",
        table(("ranker", *ATTACK_NAMES.values()), found[f"{name}: typos"]),
    ]


def compose(found: Rows) -> list[str]:
    intro = prose("""nDCG@10 of the original queries, and what one variation of each by each method changes (all
    variations as they are, whole pipeline, top 100; a method that does not apply to a query is measured on those that
    it does apply to, beside what these have as they are). `*`: paired t-test, p < 0.05 after Holm's correction over
    methods, rankers and both settings. valid %, applies %: of all queries, by the rules of `Validity`, not by people
    (see validity.md). dense is MiniLM as it comes.""")
    return [intro, *(part for name in COLLECTIONS for part in section(name, found))]


PAGE = Page(
    __file__,
    "Query variations on real collections",
    measure,
    compose,
    (Guard("cacm: typos", "the row of bm25 under typos on cacm", lambda: attacked(open_bench("cacm", ("bm25",)))[0]),),
)

if __name__ == "__main__":
    PAGE.main()

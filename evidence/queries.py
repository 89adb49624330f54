"""Query variations and attacks on real collections: a table like paper 004's Table 5 for each.

    python evidence/queries.py

Reads ../shared/data (collections, WordNet, counter-fitted neighbours) and writes docs/evidence/query-variation.md.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from shaketable.bench import Bench
from shaketable.data.load import load
from shaketable.registry import EDITS, RANKERS
from shaketable.task.query_attack import QueryAttack
from shaketable.task.query_variation import ATTACKS, QueryVariation

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
OUT = ROOT / "docs" / "evidence" / "query-variation.md"
COLLECTIONS = {"cranfield": "test", "rag24": "test", "cacm": "test"}
RANKERS_SHOWN = ("bm25", "ql", "rm3")
MODELS = ("desc_to_title", "back_translation", "paraphrase")


def main() -> None:
    if not DATA.is_dir():
        sys.exit(f"real data is not at {DATA}: nothing to show")
    os.environ.setdefault("NLTK_DATA", str(DATA / "nltk_data"))
    neighbours = DATA / "synonyms" / "counterfitted-neighbors.json"
    edits = [
        f"word_embed_syn_swap(file={str(neighbours)!r})" if name == "word_embed_syn_swap" else name
        for name in EDITS
        if name not in (*ATTACKS, *MODELS)
    ]
    page = [
        "# Query variations on real collections",
        "",
        "nDCG@10 of lexical rankers for the original queries and for each kind of variation (one variation a query and",
        "method, every one as it is, whole pipeline, top 100). `*`: differs from the original, paired t-test, p < 0.05",
        "after Holm's correction over the table. A method that does not apply to every query is measured on those it",
        "does apply to (last column): there only the star compares it with the original. Reproduce with",
        "`python evidence/queries.py`.",
    ]
    for name, split in COLLECTIONS.items():
        collection = load(DATA / "collections" / name, split)
        bench = Bench(collection, {ranker: RANKERS.build(ranker) for ranker in RANKERS_SHOWN})
        page += ["", f"## {name}: {len(bench.qrels)} queries", "", *variations(bench, edits), "", *attacks(bench)]
        print(f"{name} done", flush=True)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("\n".join(page) + "\n", encoding="utf-8")
    print("\n".join(page))


def variations(bench: Bench, edits: list[str]) -> list[str]:
    table = QueryVariation(edits=tuple(edits), depths=()).run(bench).tables["by method"]
    table = table[table["setting"] == "pipeline"]
    lines = [
        f"| category | method | {' | '.join(RANKERS_SHOWN)} | valid % | queries |",
        f"|---|---|{'---:|' * (len(RANKERS_SHOWN) + 2)}",
    ]
    start = {ranker: bench.table("nDCG@10").row(ranker).mean() for ranker in RANKERS_SHOWN}
    lines.append(
        f"| | original query | {' | '.join(f'{start[r]:.4f}' for r in RANKERS_SHOWN)} | | {len(bench.qrels)} |"
    )
    for (category, method), rows in table.groupby(["category", "method"], sort=False):
        cells = {row["ranker"]: f"{row['as is']:.4f}{row['']}" for _, row in rows.iterrows()}
        first = rows.iloc[0]
        shown = method.partition("(")[0]
        values = " | ".join(cells[r] for r in RANKERS_SHOWN)
        lines.append(f"| {category} | {shown} | {values} | {first['valid %']:.0f} | {first['queries']} |")
    return lines


def attacks(bench: Bench) -> list[str]:
    table = QueryAttack().run(bench).tables["query attack"]
    lines = ["Query attack (drop of nDCG@10 in %, five draws, candidates of the original query):", ""]
    lines += [f"| attack | {' | '.join(RANKERS_SHOWN)} |", f"|---|{'---:|' * len(RANKERS_SHOWN)}"]
    for attack, rows in table.groupby("attack", sort=False):
        cells = {row["ranker"]: f"{row['drop %']:.1f}{row['']}" for _, row in rows.iterrows()}
        lines.append(f"| {attack} | {' | '.join(cells[r] for r in RANKERS_SHOWN)} |")
    return lines


if __name__ == "__main__":
    main()

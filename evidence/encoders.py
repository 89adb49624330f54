"""Pretrained encoders, tuned on some queries of rag24 and tested on others, beside BM25 and the encoder as it is.

make evidence PAGE=encoders        (about an hour on two cores; models and scores are kept, so it may be cut off)
"""

from __future__ import annotations

from evidence import line, need_data, prose, table, write_page
from evidence.neural import HEAD, LEVEL, baseline, measured, open_rag24, reranked, row

ENCODERS = {
    "colbert": "colbert(text_length=128, steps=80, every=40)",
    "dense, tuned": "dense(max_length=128, steps=80, every=40)",
    "bert": "bert(max_length=128, steps=160, every=80)",
}
DEPTH, CONTROL = 50, 40
"""How many of BM25's list negatives are drawn from and validation ranks; and the steps of the controls."""


def main() -> None:
    need_data("collections", "rag24")
    bench = open_rag24("bm25", "dense")
    base = reranked(bench, bench.models["bm25"])
    searched = measured(bench, bench.answer("dense", bench.texts))  # it leaves the vectors of all passages on disk
    rows = [baseline("bm25", base), baseline("dense", reranked(bench, bench.models["dense"]), base)]
    rows.append(baseline("dense, searching all passages", searched, base))
    for name, learner in ENCODERS.items():
        rows.append(row(name, learner, bench, (0,), CONTROL, DEPTH).cells(base))
        print(line(rows[-1]), flush=True)
    write_page(
        __file__,
        "Pretrained encoders on rag24",
        [
            prose(f"""Queries, tests and columns are those of neural.md, but there is one seed, so nothing is said of
            how much chance does in training. All are on MiniLM (six layers, 22 million weights), cut at 128 word
            pieces; negatives and validation are from BM25's top {DEPTH}; controls had {CONTROL} steps. These are short
            trainings on {len(bench.collection.splits["train"])} queries, for two cores, and no measure of what such
            models reach. The control of dense and of colbert begins with weights that rank well already, so that being
            above it (paired t-test, p < {LEVEL}) says more than for the small nets."""),
            table(HEAD, rows),
        ],
    )


def cheap_row() -> str:
    bench = open_rag24("bm25")
    return line(baseline("bm25", reranked(bench, bench.models["bm25"])))


if __name__ == "__main__":
    main()

"""The rankers of the papers that neural.md leaves out, on rag24: encoders, EPIC, PROP, trigram Duet, L-GBM, DocT5Query.

make evidence PAGE=rankers        (about two hours on one core; models and scores are kept, so it may be cut off)
"""

from __future__ import annotations

from dataclasses import replace

from evidence import line, need_data, prose, table, write_page
from evidence.neural import HEAD, LEVEL, Row, Values, baseline, measured, open_rag24, reranked, row
from shaketable.bench import Bench
from shaketable.data.splits import held_out
from shaketable.files import home
from shaketable.learners.plan import Control, Plan
from shaketable.learners.seq2seq import Seq2Seq, query_pairs
from shaketable.rankers.expansion import DocT5Query

SHORT = "lists=8, size=4, steps=60, every=60"
ENCODERS = {
    "bert": f"bert(max_length=64, {SHORT})",
    "prop": f"prop(max_length=64, {SHORT}, pretrain=100, adapt=50)",
    "colbert": f"colbert(text_length=64, {SHORT})",
    "epic": f"epic(max_length=48, {SHORT})",
}
"""prop is bert after pre-training, with as many steps."""
TREES = {"lambdamart": "lambdamart(trees=300, leaves=8, min_docs=20)", "lgbm": "lgbm(trees=300, leaves=8, min_docs=20)"}
DEPTH, CONTROL = 30, 30
"""How many of BM25's list are ranked; and the steps of the controls."""
WRITER = Seq2Seq(checkpoint="", epochs=6, lr=5e-4, source_length=128, target_length=24, batch=16)


def trees(bench: Bench) -> list[list[str]]:
    """LambdaMART on the features of paper 000 and on those of L-GBM, and the same on labels dealt out at random."""
    train, valid = held_out(bench.collection.splits["train"], bench.seed)
    base = reranked(bench, bench.models["bm25"])
    rows = []
    for name, learner in TREES.items():
        model = bench.fit(learner, train, valid=valid)
        control = bench.fit(learner, train, valid=valid, plan=Plan(Control()))
        whole = Row(name, [reranked(bench, model)], reranked(bench, control), [float(model.card()["best"])], 0.0)
        rows.append([*whole.cells(base)[:-1], ""])
        print(line(rows[-1]), flush=True)
    return rows


def expanded(bench: Bench) -> tuple[Values, str]:
    """BM25 over expanded texts, and what the expander wrote of the first test document."""
    pairs = query_pairs(bench.collection, bench.collection.splits["train"])
    folder = home() / "models" / "rag24-expander"
    if not (folder / "config.json").exists():
        WRITER.fit(pairs, folder, seed=0)
    ranker = DocT5Query(expander=str(folder))
    alone = replace(bench, models={"doct5query": ranker})
    values = measured(bench, alone.answer("doct5query", bench.texts))
    opened = alone.ranker("doct5query")
    docno = next(iter(bench.collection.docs))
    doc = bench.collection.docs[docno]
    (longer,) = opened.expander.expand([doc])  # type: ignore[attr-defined]
    return values, longer.body[len(doc.body) :].strip()


def main() -> None:
    need_data("collections", "rag24")
    bench = open_rag24("bm25", "dense").cut(DEPTH)
    base = reranked(bench, bench.models["bm25"])
    searched = measured(bench, bench.answer("dense", bench.texts))  # it leaves the vectors of all passages on disk
    rows = [baseline("bm25", base), baseline("dense", reranked(bench, bench.models["dense"]), base)]
    rows.append(baseline("dense, searching all passages", searched, base))
    rows += trees(bench)
    rows.append(row("duet on letter trigrams", "duet(input='trigrams')", bench, (0,), depth=DEPTH).cells(base))
    print(line(rows[-1]), flush=True)
    values, sample = expanded(bench)
    rows.append(baseline("doct5query, searching", values, base))
    print(line(rows[-1]), flush=True)
    for name, learner in ENCODERS.items():
        rows.append(row(name, learner, bench, (0,), CONTROL, DEPTH).cells(base))
        print(line(rows[-1]), flush=True)
    write_page(
        __file__,
        "The other rankers of the papers, on rag24",
        [
            prose(f"""Queries, tests and columns are those of neural.md, but there is one seed, so nothing is said of
            how much chance does in training. The encoders are on MiniLM (six layers, 22 million weights), cut at 64
            word pieces (epic at 48), and everybody re-ranks BM25's top {DEPTH}; their controls had {CONTROL} steps.
            These are short trainings on {len(bench.collection.splits["train"])} queries, for two cores, and no
            measure of what such models reach. The control of colbert begins with weights that rank well
            already, so that being above it (paired t-test, p < {LEVEL}) says more than for the small nets. MiniLM has
            no head that fills in masked words, so epic reads through one that is tied to its embeddings, and prop
            learns to fill in words first; bert has the same steps without pre-training."""),
            table(HEAD, rows),
            prose(f"""The expander of doct5query is a T5 of two layers that learned from nothing but the
            {len(query_pairs(bench.collection, bench.collection.splits["train"])):,} relevant passages of the train
            queries: a test of the mechanism, and no measure of DocT5Query. Of the first passage it wrote:
            “{sample}”."""),
        ],
    )


def cheap_row() -> str:
    bench = open_rag24("bm25").cut(DEPTH)
    return line(baseline("bm25", reranked(bench, bench.models["bm25"])))


if __name__ == "__main__":
    main()

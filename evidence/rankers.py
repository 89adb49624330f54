"""The rankers of the papers that neural.md leaves out, on rag24: encoders, EPIC, PROP, trigram Duet, L-GBM, DocT5Query.

make evidence PAGE=rankers        (about two hours on one core; models and scores are kept, so it may be cut off)
"""

from __future__ import annotations

from dataclasses import replace

from evidence import Guard, Page, Rows, line, need_data, prose, table
from evidence.neural import HEAD, LEVEL, Row, Values, baseline, measured, open_rag24, reranked, row
from shaketable.core.home import home_folder
from shaketable.datasets.splits import split_held_out
from shaketable.experiment import Experiment
from shaketable.rankers.doct5query import DocT5Query
from shaketable.training.plan import ShuffledLabelSource, TrainingPlan
from shaketable.training.seq2seq import Seq2SeqWriter
from shaketable.training.seq2seq_pairs import build_query_pairs

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
WRITER = Seq2SeqWriter(checkpoint="", epochs=6, lr=5e-4, source_length=128, target_length=24, batch=16)


def trees(experiment: Experiment) -> list[list[str]]:
    """LambdaMART on the features of paper 000 and on those of L-GBM, and the same on labels dealt out at random."""
    train, valid = split_held_out(experiment.collection.splits["train"], experiment.seed)
    base = reranked(experiment, experiment.models["bm25"])
    rows = []
    for name, learner in TREES.items():
        model = experiment.fit(learner, train, valid=valid)
        control = experiment.fit(learner, train, valid=valid, plan=TrainingPlan(ShuffledLabelSource()))
        whole = Row(
            name, [reranked(experiment, model)], reranked(experiment, control), [float(model.read_card()["best"])], 0.0
        )
        rows.append([*whole.cells(base)[:-1], ""])
        print(line(rows[-1]), flush=True)
    return rows


def expanded(experiment: Experiment) -> tuple[Values, str]:
    """BM25 over expanded texts, and what the expander wrote of the first test document."""
    pairs = build_query_pairs(experiment.collection, experiment.collection.splits["train"])
    folder = home_folder() / "models" / "rag24-expander"
    if not (folder / "config.json").exists():
        WRITER.fit(pairs, folder, seed=0)
    ranker = DocT5Query(expander=str(folder))
    alone = replace(experiment, models={"doct5query": ranker})
    values = measured(experiment, alone.run_pipeline("doct5query", experiment.texts))
    opened = alone.get_ranker("doct5query")
    docno = next(iter(experiment.collection.docs))
    doc = experiment.collection.docs[docno]
    (longer,) = opened.expander.expand([doc])  # type: ignore[attr-defined]
    return values, longer.body[len(doc.body) :].strip()


def measure() -> Rows:
    need_data("collections", "rag24")
    experiment = open_rag24("bm25", "dense").with_depth(DEPTH)
    base = reranked(experiment, experiment.models["bm25"])
    searched = measured(
        experiment, experiment.run_pipeline("dense", experiment.texts)
    )  # it leaves the vectors of all passages on disk
    rows = [baseline("bm25", base), baseline("dense", reranked(experiment, experiment.models["dense"]), base)]
    rows.append(baseline("dense, searching all passages", searched, base))
    rows += trees(experiment)
    rows.append(row("duet on letter trigrams", "duet(input='trigrams')", experiment, (0,), depth=DEPTH).cells(base))
    print(line(rows[-1]), flush=True)
    values, sample = expanded(experiment)
    rows.append(baseline("doct5query, searching", values, base))
    print(line(rows[-1]), flush=True)
    for name, learner in ENCODERS.items():
        rows.append(row(name, learner, experiment, (0,), CONTROL, DEPTH).cells(base))
        print(line(rows[-1]), flush=True)
    splits = experiment.collection.splits
    return {
        "train queries": len(splits["train"]),
        "rankers": rows,
        "expanded passages": len(build_query_pairs(experiment.collection, splits["train"])),
        "an expansion": sample,
    }


def compose(found: Rows) -> list[str]:
    return [
        prose(f"""Queries, tests and columns are those of neural.md, but there is one seed, so nothing is said of
        how much chance does in training. The encoders are on MiniLM (six layers, 22 million weights), cut at 64
        word pieces (epic at 48), and everybody re-ranks BM25's top {DEPTH}; their controls had {CONTROL} steps.
        These are short trainings on {found["train queries"]} queries, for two cores, and no
        measure of what such models reach. The control of colbert begins with weights that rank well
        already, so that being above it (paired t-test, p < {LEVEL}) says more than for the small nets. MiniLM has
        no head that fills in masked words, so epic reads through one that is tied to its embeddings, and prop
        learns to fill in words first; bert has the same steps without pre-training."""),
        table(HEAD, found["rankers"]),
        prose(f"""The expander of doct5query is a T5 of two layers that learned from nothing but the
        {found["expanded passages"]:,} relevant passages
        of the train queries: a test of the mechanism, and no measure of DocT5Query. Of the first passage it wrote:
        “{found["an expansion"]}”."""),
    ]


def baseline_row() -> list[str]:
    experiment = open_rag24("bm25").with_depth(DEPTH)
    return baseline("bm25", reranked(experiment, experiment.models["bm25"]))


def dense_row() -> list[str]:
    experiment = open_rag24("bm25", "dense").with_depth(DEPTH)
    base, dense = (reranked(experiment, experiment.models[name]) for name in ("bm25", "dense"))
    return baseline("dense", dense, base)


PAGE = Page(
    __file__,
    "The other rankers of the papers, on rag24",
    measure,
    compose,
    (
        Guard("rankers", "the row of bm25", baseline_row),
        Guard("rankers", "the row of dense", dense_row, slow=True),
        Guard(
            "rankers",
            "the rows of lambdamart, trained again",
            lambda: trees(open_rag24("bm25").with_depth(DEPTH))[0],
            slow=True,
        ),
    ),
)

if __name__ == "__main__":
    PAGE.main()

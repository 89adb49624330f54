"""What query variations cost, whether fusing them helps, and which of them are valid (paper 004, Tables 3 and 5 to 7).

make evidence PAGE=query-variation        (ten minutes of CPU time; scores are stored, so it may be cut off)
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from evidence import FOLDER, Guard, Page, Rows, fold, need_data, prose, read_interval, table
from evidence._claims import MEASUREMENTS, load_claims
from evidence._intervals import bound, draw_topics, measure_difference, measure_relative_change, show_interval
from evidence._rankers import FIRST_STAGE, NET_NAMES, PIECES, PRE_TRAINED, Values, name_training
from evidence._validity import HEAD as VALIDITY_HEAD
from evidence._validity import judge_swaps, measure_validity
from evidence._variations import (
    DEPTH,
    LIST_LENGTH,
    Outcome,
    VariedQueries,
    correlate,
    list_methods,
    measure_classes,
    open_variations,
    rank_variations,
    shorten,
)
from evidence._verdicts import Measurement
from evidence.summary import tabulate_claims
from shaketable.core.results import Figure
from shaketable.files.atomic import atomic_write
from shaketable.report.charts import draw_svg
from shaketable.tasks._query_changes import PIPELINE, RERANKER
from shaketable.transforms.categories import MEANING_PRESERVING, MISSPELLING, NATURALITY, ORDERING, PARAPHRASING

COLLECTIONS = ("dl19", "rag24")
RANKERS = ("bm25", "rm3", *PRE_TRAINED)
NEURAL = (*NET_NAMES, *PRE_TRAINED)
FIGURE = FOLDER / "query-variation-categories.svg"
ENDS = ("change", "change low", "change high")
FUSION_HEAD = (
    "ranker",
    "original",
    "one variation",
    "RRF",
    "best query",
    "RRF - one variation",
    f"RRF of {DEPTH} documents - one variation",
)
Outcomes = Mapping[str, Outcome]
"""ranker -> its outcome in the pipeline, or as a re-ranker"""


def rank_all(varied: VariedQueries, rankers: Sequence[str] = RANKERS) -> tuple[Outcomes, Outcomes]:
    """Return the outcomes of all rankers in the pipeline, and of neural ones as re-rankers of the original's list."""
    neural = [name for name in rankers if name in NEURAL]
    return (
        {name: rank_variations(varied, name, PIPELINE) for name in rankers},
        {name: rank_variations(varied, name, RERANKER) for name in neural},
    )


def measure_mean(claim: str, ranker: str, collection: str, values: Values, training: str = "") -> Measurement:
    """Return the mean over the queries that have a value."""
    known = values[~np.isnan(values)]
    return measure_difference(claim, ranker, collection, known, np.zeros_like(known), training)


def measure_drop(
    claim: str, ranker: str, collection: str, changes: Values, before: Values, training: str = ""
) -> Measurement:
    """Return the mean change of the queries that have one, in per cent of what these queries have before."""
    some = ~np.isnan(changes)
    return measure_relative_change(claim, ranker, collection, changes[some], before[some], training)


def compare_ranker(name: str, collection: str, whole: Outcomes, alone: Outcomes) -> Iterator[Measurement]:
    """Yield what all claims ask of one ranker, also what they do not ask of this one."""
    about = (name, collection)
    training = name_training(collection, name)
    one = whole[name]
    before, changes = one.before, one.compute_changes()
    misspelt, reworded, plain = (one.compute_changes(kind) for kind in (MISSPELLING, PARAPHRASING, NATURALITY))
    yield measure_drop("004-drop", *about, changes, before, training)
    yield measure_mean("004-misspelling", *about, misspelt - reworded, training)
    yield measure_mean("004-order", *about, one.compute_changes(ORDERING), training)
    yield measure_mean("004-fusion-helps", *about, one.fused - one.average_after(), training)
    yield measure_mean("004-fusion-no-gain", *about, one.fused - before, training)
    yield measure_mean("004-oracle", *about, one.best - before, training)
    lexical = whole[FIRST_STAGE].compute_changes(NATURALITY)
    yield measure_mean("004-naturality", f"{name} - bm25", collection, plain - lexical, training)
    if name in alone:
        reranked = alone[name].compute_changes()
        yield measure_drop("004-rerankers", *about, reranked, alone[name].before, training)
        yield measure_drop("004-smaller", *about, reranked - changes, before, training)


def compare(collection: str, whole: Outcomes, alone: Outcomes) -> Iterator[Measurement]:
    """Yield the measurements of all claims that are about this collection."""
    known = {claim.id: claim for claim in load_claims().claims}
    found = [one for name in whole for one in compare_ranker(name, collection, whole, alone)]
    trainings = (name_training(collection, name) for name in whole)
    found.append(measure_classes("004-classes", collection, whole, next(filter(None, trainings), "")))
    for one in found:
        if one.ranker in known[one.claim].rankers and collection in known[one.claim].collections:
            yield one


def build_row(name: str, whole: Outcome, alone: Outcome | None) -> list[str]:
    """Return the row of a ranker: its nDCG@10, and what valid variations change, in the pipeline and alone."""
    shown = [
        show_interval(measure_drop("", name, "", one.compute_changes(), one.before), 1) if one else ""
        for one in (whole, alone)
    ]
    return [name, f"{whole.before.mean():.3f}", *shown]


def list_categories(whole: Outcomes, alone: Outcomes) -> Iterator[list[str]]:
    """Yield a row for each category and ranker: the change in the pipeline and alone, and the number of queries."""
    for category in MEANING_PRESERVING:
        for name, one in whole.items():
            found = measure_mean("", name, "", one.compute_changes(category))
            again = [measure_mean("", name, "", alone[name].compute_changes(category))] if name in alone else []
            yield [category, name, show_interval(found), "".join(map(show_interval, again)), str(found.n)]


def tabulate_methods(whole: Outcomes, varied: VariedQueries) -> Iterator[list[str]]:
    """Yield a row for each method: its valid variations, and the change for each ranker in the pipeline."""
    for category, method in dict.fromkeys((one.category, shorten(one.method)) for one in varied.variations):
        found = [measure_mean("", name, "", one.compute_changes(category, method)) for name, one in whole.items()]
        yield [category, method, f"{varied.select(category, method).sum()}", *map(show_interval, found)]


def list_fusions(whole: Outcomes) -> Iterator[list[str]]:
    """Yield a row for each ranker: the original query, one variation, RRF of all variations, and the best query."""
    for name, one in whole.items():
        single = one.average_after()
        means = one.before.mean(), np.nanmean(single), one.fused.mean(), one.best.mean()
        changes = one.fused - single, one.fused_short - single
        yield [name, *(f"{mean:.3f}" for mean in means), *(show_interval(measure_mean("", "", "", c)) for c in changes)]


def list_correlations(whole: Outcomes) -> Iterator[list[str]]:
    """Yield a row for all variations and for each category that moves rankers of two classes: mean r of pairs."""
    for category in ("", *MEANING_PRESERVING):
        within, between = correlate(whole, category)
        difference = within - between
        if np.isnan(difference[0]):
            continue
        low, high = bound(float(difference[0]), difference[1:])
        yield [
            category or "all",
            f"{within[0]:.2f}",
            f"{between[0]:.2f}",
            f"{difference[0]:+.2f} [{low:+.2f}, {high:+.2f}]",
        ]


def average_collections(found: Mapping[str, Outcomes]) -> Iterator[list[str]]:
    """Yield a row for each category and ranker: the mean change over collections, which weigh the same."""
    for category in MEANING_PRESERVING:
        for name in RANKERS:
            changes = [whole[name].compute_changes(category) for whole in found.values()]
            known = [some[~np.isnan(some)] for some in changes]
            value = float(np.mean([some.mean() for some in known]))
            drawn = np.mean([some[draw_topics(len(some))].mean(axis=1) for some in known], axis=0)
            low, high = bound(value, drawn)
            yield [category, name, f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"]


def draw(found: Rows) -> None:
    """Write the figure of the page: the mean change by category and ranker."""
    rows = [
        dict(zip(("category", "ranker", *ENDS), (*row[:2], *read_interval(row[2])), strict=True))
        for row in found["figure"]
    ]
    figure = Figure("bars", "figure", "Change of nDCG@10 by valid variations", x="category", y=ENDS[0], color="ranker")
    with atomic_write(FIGURE) as out:
        out.write(draw_svg(figure, pd.DataFrame(rows)))


def measure() -> Rows:
    need_data("collections", "nfcorpus")
    started = time.monotonic()
    rows: Rows = {MEASUREMENTS: []}
    found: dict[str, Outcomes] = {}
    for collection in COLLECTIONS:
        varied = open_variations(collection, RANKERS)
        found[collection], alone = rank_all(varied)
        whole = found[collection]
        rows[collection] = [build_row(name, one, alone.get(name)) for name, one in whole.items()]
        rows[f"{collection}: queries"] = len(varied.originals)
        rows[f"{collection}: variations"] = len(varied.variations)
        rows[f"{collection}: categories"] = list(list_categories(whole, alone))
        rows[f"{collection}: methods"] = list(tabulate_methods(whole, varied))
        rows[f"{collection}: fusion"] = list(list_fusions(whole))
        rows[f"{collection}: correlations"] = list(list_correlations(whole))
        rows[MEASUREMENTS] += [one.to_row() for one in compare(collection, whole, alone)]
        print(collection, flush=True)
    rows["figure"] = list(average_collections(found))
    draw(rows)
    rows |= measure_validity()
    rows["minutes"] = round((time.monotonic() - started) / 60, 1)
    return rows


def tabulate(found: Rows) -> list[list[str]]:
    """Return the main table: the change in the pipeline and as a re-ranker by ranker and collection."""
    cells = {(name, row[0]): row for name in COLLECTIONS for row in found[name]}
    names = [row[0] for row in found[COLLECTIONS[0]]]
    return [[ranker, *(cell for name in COLLECTIONS for cell in cells[name, ranker][2:])] for ranker in names]


def describe(found: Rows) -> str:
    """Return the answer: the cost of variations, the categories that cost most, and fusion."""
    known = {(one.claim, one.ranker, one.collection): one for one in map(_read, found[MEASUREMENTS])}
    costs = [one for one in known.values() if one.claim == "004-drop"]
    most = "; ".join(
        f"{show_interval(known['004-drop', 'minilm-l12', name], 1)} on {name}"
        f" ({show_interval(known['004-rerankers', 'minilm-l12', name], 1)} if BM25 sees the original)"
        for name in COLLECTIONS
    )
    worse = [one for one in known.values() if one.claim == "004-misspelling"]
    fused = [one for one in known.values() if one.claim == "004-fusion-helps"]
    gains = [one for one in known.values() if one.claim == "004-fusion-no-gain"]
    return prose(f"""Valid variations change nDCG@10 of a pipeline of BM25 and the cross-encoder by {most}, in per cent;
    {sum(one.high < 0 for one in costs)} of {len(costs)} pairs of ranker and collection lose significantly. Misspelling
    costs significantly more than paraphrasing in {sum(one.high < 0 for one in worse)} of {len(worse)}. Fusing the lists
    of all variations by RRF is significantly better than one variation in {sum(one.low > 0 for one in fused)} of
    {len(fused)}, and significantly better than the original query in {sum(one.low > 0 for one in gains)}.""")


def _read(row: Mapping[str, object]) -> Measurement:
    return Measurement(**row)  # type: ignore[arg-type]


def describe_power(found: Rows) -> str:
    """Return how small a change each collection can show."""
    cells = []
    for name in COLLECTIONS:
        reach = [(high - low) / 2 for _, low, high in (read_interval(row[2]) for row in found[name])]
        counts = f"{found[f'{name}: queries']} queries, {found[f'{name}: variations']} valid variations"
        cells.append(f"{name} ({counts}) ±{sorted(reach)[len(reach) // 2]:.1f}")
    return prose(f"""Power: the median half-width of the intervals in the pipeline, in percentage points:
    {"; ".join(cells)}. Smaller changes cannot be told from 0 there.""")


def describe_nets() -> str:
    """Return how the nets were trained, or that none was."""
    if any(name in RANKERS for name in NET_NAMES):
        return "knrm and conv_knrm are those of [rankers](rankers.md), with one seed; on dl19 those of rag24."
    return "Nets (K-NRM, Conv-KNRM) have not been trained yet, so claims about them rest on the other rankers."


def describe_fusion(found: Rows) -> str:
    """Return which lists are fused, when that was decided, and what the other choice gives."""
    rows = [row for name in COLLECTIONS for row in found[f"{name}: fusion"] if row[0] in NEURAL]
    long, short = (sum(read_interval(row[column])[1] > 0 for row in rows) for column in (-2, -1))
    return f"""RRF fuses lists of {LIST_LENGTH} documents: the {DEPTH} that were re-ranked, then the others that BM25
    found. This was decided after a first look at dl19, where RRF of {DEPTH} documents alone was no better than one
    variation for re-rankers, because RRF of so short lists is close to a vote. Read the verdict on 004-fusion-helps
    with that in mind: RRF is significantly better than one variation for {long} of {len(rows)} re-rankers of a
    collection, and for {short} with lists of {DEPTH} documents; the folded tables have both."""


def describe_own(found: Rows) -> str:
    """Return which collections have variations that are made here, and how."""
    own = [f"{name} ({found[f'{name}: queries']} test queries)" for name in COLLECTIONS if name != "dl19"]
    if not own:
        return ""
    return f"""{" and ".join(own)} have one variation of each query by each of the {len(list_methods())} generators that
    need no generative model, and rules judge them (see the last table)."""


def describe_making(found: Rows) -> list[str]:
    """Return data, models and settings."""
    return [
        prose(f"""Data: dl19 has the 429 published variations of the paper by its ten generators, of which people found
        {found["dl19: variations"]} valid. {describe_own(found)} Only valid variations count, each query once with the
        mean of its variations; queries without one take no part. BM25 searches, and all but bm25 and rm3 re-rank its
        first {DEPTH} documents: those of the variation ("pipeline") or those of the original ("re-ranker"). On dl19
        BM25 searches the 9,139 judged passages and not all 8.8 million, an easier search than that of the paper."""),
        prose(f"""Models: minilm-l12 and bge-small compute in int8 (see [rankers](rankers.md)) and read {PIECES} word
        pieces; no ranker was trained on variations. {describe_nets()} Depth {DEPTH} leaves a re-ranker little to
        lose, so re-rankers of longer lists may lose more. Intervals resample queries; for a change in per cent, the
        mean change and the mean before come from the same resample. Changes are of nDCG@10. 004-misspelling is paired:
        it uses queries with valid variations of both categories. 004-classes compares lexical rankers, nets and
        pre-trained rankers over all valid variations together. {describe_fusion(found)} Seed 0. Wall-clock minutes:
        {found["minutes"]} on a busy machine, with scores from the store of all pages; scoring took about ten
        minutes of CPU time before that, an estimate."""),
    ]


def compose(found: Rows) -> list[str]:
    toys = any(row["training"] for row in found[MEASUREMENTS])
    names = [row[0] for row in found[COLLECTIONS[0]]]
    by_method = "change in the pipeline by generator"
    valid, labelled = found["valid swaps"]
    validity = prose(f"""Are the rules right that judge variations? Agreement with labels that people gave to the
    variations of the paper, and with ours of {labelled} swaps by `syn_swap` ({valid} valid), which have one annotator,
    a language model. Phrases are those of the collection. An encoder is all-MiniLM-L6-v2. Thresholds are fitted on
    ANTIQUE and on our labels of msmarco-types; which kinds of evidence to use was decided with all labels in view.""")
    kinds = "Does `classify_variation` tell the category from words alone? Paraphrases, hardly ever:"
    thresholds = ", ".join(f"{name} {fitted} (default {default})" for name, fitted, default in found["thresholds"])
    return [
        describe(found),
        f"![Change of nDCG@10 by category of variation and ranker, with 95 % intervals]({FIGURE.name})",
        prose(f"""The figure shows the pipeline, {" and ".join(COLLECTIONS)} with equal weight. The table has the change
        of nDCG@10 by all valid variations in per cent, with 95 % intervals:"""),
        table(
            ("ranker", *(f"{name}, {kind}" for name in COLLECTIONS for kind in (PIPELINE, RERANKER))), tabulate(found)
        ),
        describe_power(found),
        "## Verdicts",
        tabulate_claims("query-variation", found),
        *([prose("† a ranker that does not reach BM25 on its validation queries: a toy training.")] if toys else []),
        "## How it was made",
        *describe_making(found),
        *(
            fold(
                f"{name}: change by category",
                table(("category", "ranker", PIPELINE, RERANKER, "queries"), found[f"{name}: categories"]),
            )
            for name in COLLECTIONS
        ),
        *(
            fold(f"{name}: {by_method}", table(("category", "method", "valid", *names), found[f"{name}: methods"]))
            for name in COLLECTIONS
        ),
        *(
            fold(
                f"{name}: fusion (nDCG@10 in the pipeline)",
                table(FUSION_HEAD, found[f"{name}: fusion"]),
            )
            for name in COLLECTIONS
        ),
        fold(
            "Do the same variations hurt two rankers? Mean of Pearson's r of their changes",
            table(
                ("collection, variations", "within classes", "between classes", "difference"),
                [[f"{name}, {row[0]}", *row[1:]] for name in COLLECTIONS for row in found[f"{name}: correlations"]],
            ),
        ),
        fold(
            "Validity of variations",
            "\n\n".join(
                (
                    validity,
                    table(VALIDITY_HEAD, found["validity"]),
                    prose(f"Fitted thresholds: {thresholds}."),
                    kinds,
                    table(("category", "by methods", "by people"), found["kinds"]),
                )
            ),
        ),
    ]


def find_row(collection: str, name: str) -> list[str]:
    """Return the row of a ranker, computed again."""
    whole, alone = rank_all(open_variations(collection, (name,)), (name,))
    return build_row(name, whole[name], alone.get(name))


PAGE = Page(
    __file__,
    "What query variations cost, and whether fusing them helps",
    measure,
    compose,
    (
        Guard("dl19", "the row of rm3 on dl19", lambda: find_row("dl19", "rm3")),
        Guard("rag24", "the row of bm25 on rag24, with variations made again", lambda: find_row("rag24", "bm25")),
        Guard("validity", "the row of our labels of swaps without an encoder", judge_swaps),
        Guard("dl19", "the row of minilm-l12 on dl19", lambda: find_row("dl19", "minilm-l12"), slow=True),
        Guard("dl19", "the row of bge-small on dl19", lambda: find_row("dl19", "bge-small"), slow=True),
    ),
)

if __name__ == "__main__":
    PAGE.main()

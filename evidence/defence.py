"""Defences by training (paper 003, Table 1, Figures 1 and 2), on Conv-KNRM.

make evidence PAGE=defence        (an hour and a half on one core; models and scores are kept, so it may be cut off)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isnan, nan
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from evidence import FOLDER, Guard, Page, Rows, line, need_data, plain_drops, prose, read_interval, read_number, table
from evidence._rag24 import VECTORS, open_rag24
from evidence.substitution import FITTED, white, wsra
from shaketable.core.protocols import Model
from shaketable.core.registries import DEFENCES, LEARNERS
from shaketable.core.results import Result
from shaketable.defences.training import plan_defended_training
from shaketable.experiment import Experiment
from shaketable.files.atomic import atomic_write
from shaketable.measures.significance import bootstrap_interval
from shaketable.report.charts import draw_svg
from shaketable.tasks._defence_tables import BOOST_COLUMN, MEASURES, SUCCESS_COLUMN, DefendedRanker
from shaketable.tasks._probe_tables import ALL_DOCUMENTS
from shaketable.tasks.defence import DefenceTask
from shaketable.tasks.document_attack import DocumentAttack
from shaketable.tasks.probes import ProbesTask
from shaketable.tasks.query_typos import QueryTypos
from shaketable.training.plan import split_train_valid

READS = f"text_length=100, vectors={str(VECTORS)!r}"
TAUGHT = f"conv_knrm(teacher='bm25', sentences=3000, steps=600, lists=8, every=100, filters=128, lr=0.001, {READS})"
"""What all defences begin with: a Conv-KNRM that learned BM25's order of sentences and passages."""
STEPS = 300
SHARES = (0.2, 0.35, 0.5, 0.65, 0.8)
"""Lambda, of Figure 1."""
SEEDS = (0, 1, 2)
ATTACK = wsra(20, 0.5, 40, surrogate=f"knrm(steps=150, vectors={str(VECTORS)!r})")
OWN = white(20, 0.5, 40)
"""The attack that adversarial examples are made with: our own net shows its gradients."""
TAU = 0.65
"""The least similarity of words of a perturbation set; certdr.md shows what others come to, CertDR's own 0.9 too."""
SYNONYMS = f"counterfitted(threshold=0.5, count=40, {FITTED})"
MOVED = ("ST", "AT", "PIAT-ListNet")
"""What other attacks are tried on."""
SWEPT = ("PIAT-ListNet", "PIAT-ListMLE")
"""What lambda is tried with: the paper's Figure 1 has the first."""
POINTS = ("ST", "DA", "AT", *SWEPT)
QUERIES, FEW, TARGETS = 30, 10, 9
DRAWS = 1
PAPER_QUERIES = 100_000
DOCUMENTS, SIZE = 10, 20
"""Documents of each train query that are attacked for examples, and texts of PIAT's lists (paper 003; methods B.3)."""
TRAINED = ("ST", "DA", "AT", "PIAT-KL", "PIAT-ListNet", "PIAT-ListMLE")
PIATS = TRAINED[3:]
SHOWN = {"clean RR@10": 4, "robust RR@10": 4, SUCCESS_COLUMN: 1, BOOST_COLUMN: 1, "LSD": 1}
"""What is compared query by query, and the digits that are shown."""
PAPER = {
    "ST": (0.2461, 0.2592, 0.1692, 0.1741, 95.1, 33.2),
    "DA": (0.2298, 0.2378, 0.1786, 0.1829, 71.2, 23.6),
    "CertDR": (0.1816, 0.1935, 0.1592, 0.1632, 65.3, 19.3),
    "AT": (0.2316, 0.2410, 0.1896, 0.1953, 61.3, 17.6),
    "PIAT-KL": (0.2498, 0.2603, 0.2008, 0.2073, 51.1, 12.6),
    "PIAT-ListNet": (0.2513, 0.2621, 0.2035, 0.2009, 48.3, 11.5),
    "PIAT-ListMLE": (0.2534, 0.2645, 0.2018, 0.2091, 49.2, 11.9),
}
"""Table 1, ConvKNRM: CleanMRR@10 and @100, RobustMRR@10 and @100, ASR, LSD."""
PRINTED = tuple(measure for measure in MEASURES if measure != BOOST_COLUMN)
HEAD = ("defence", *MEASURES,
        "clean RR@10, all queries", "displacement", "training s", "better than the best baseline")  # fmt: skip


@cache
def context() -> Experiment:
    return replace(open_rag24("bm25"), models={})


@cache
def conv() -> str:
    """The learner of all rows of conv_knrm: from the one that BM25 taught, on judgements."""
    start = context().fit(TAUGHT, "train").path
    course = f"steps={STEPS}, lists=4, size=8, every={STEPS}, lr=0.001, last=True, start={start!r}"
    return f"conv_knrm({course}, filters=128, {READS})"


def taught() -> int:
    """The train queries that examples are made of; others validate."""
    return len(split_train_valid(context().collection, *context().resolve_query_ids("train", None), 0)[0])


def by_examples(queries: int = 0, documents: int = DOCUMENTS, recipe: str = OWN) -> str:
    return f"recipe={recipe!r}, queries={queries}, documents={documents}"


def piat(loss: str, more: str = "") -> str:
    lists = more or f"{by_examples()}, size={SIZE}, attacked={DOCUMENTS}"
    return f"piat(loss={loss!r}, {lists})"


def names() -> dict[str, str]:
    """A short name for each defence of the page."""
    return {
        "ST": "standard",
        "DA": f"da(synonyms={SYNONYMS!r}, {by_examples()})",
        "AT": f"at({by_examples()})",
        "PIAT-KL": piat("kl"),
        "PIAT-ListNet": piat("listnet"),
        "PIAT-ListMLE": piat("listmle", f"{by_examples()}, size={SIZE}, attacked={DOCUMENTS}, per_text=True"),
        "CertDR": f"certdr(tau={TAU}, synonyms={SYNONYMS!r})",
    }


@dataclass(frozen=True)
class Remembered(DefenceTask):
    """The task, which measures a model once however often the page asks."""

    def _measure_defence(self, experiment: Experiment, text: str, seed: int, notes: list[str]) -> DefendedRanker:
        key = self.learner, self.recipe, self.targets, self.queries, experiment.depth, experiment.limit, text, seed
        if key not in MEASURED:
            MEASURED[key] = super()._measure_defence(experiment, text, seed, notes)
            print(f"{text} seed {seed}: {dict(MEASURED[key].summary)}", flush=True)
        return MEASURED[key]


MEASURED: dict[tuple[object, ...], DefendedRanker] = {}


def task(texts: Iterable[str], experiment: Experiment | None = None, **more: Any) -> Result:
    how: dict[str, Any] = {"learner": conv(), "recipe": ATTACK, "targets": TARGETS, "queries": QUERIES} | more
    return Remembered(defences=tuple(texts), **how).run(experiment or context())


def rows(result: Result, known: dict[str, str]) -> list[list[str]]:
    """A row for each defence of a result."""
    back = {DEFENCES.spec(DEFENCES.build(text)): name for name, text in known.items()}
    lines = []
    for row in result.tables["defence"].to_dict("records"):
        name = back[DEFENCES.spec(DEFENCES.build(row["defence"]))]
        success = f"{row[SUCCESS_COLUMN]:.1f} [{row[f'{SUCCESS_COLUMN} low']:.1f}, {row[f'{SUCCESS_COLUMN} high']:.1f}]"
        cells = [
            name,
            *(f"{row[m]:.4f}" for m in MEASURES[:4]),
            success,
            f"{row[BOOST_COLUMN]:.1f}",
            f"{row['LSD']:.1f}",
        ]
        apart = row["displacement"]
        cells += [f"{row['clean RR@10, all queries']:.4f}", "" if isnan(apart) else f"{apart:.3f}"]
        lines.append([*cells, f"{row['training s']:.0f}", row.get("better than the best baseline", "")])
        print(line(lines[-1]), flush=True)
    return lines


def drawings(result: Result, wanted: Mapping[str, tuple[str, str]]) -> list[str]:
    """Figures of a result, drawn beside the page: title of the figure -> the one that is shown, the end of a name."""
    links = []
    for figure in result.figures:
        if figure.title in wanted:
            title, end = wanted[figure.title]
            path = FOLDER / f"defence-{end}.svg"
            with atomic_write(path) as out:
                out.write(draw_svg(replace(figure, title=title), result.tables[figure.table]))
            links.append(f"![{title}]({path.name})")
    return links


def main_part(seeds: tuple[int, ...]) -> tuple[list[list[str]], Result]:
    known = names()
    found = task([known[name] for name in TRAINED], seeds=seeds)
    return rows(found, known), found


def trade_off(first: Result) -> tuple[list[list[str]], Result]:
    """Figure 1: lambda of PIAT, with the others as points; one seed, whose rows of Table 1 are taken again."""
    own = {name: DEFENCES.build(names()[name]) for name in SWEPT}
    lowest, *_ = others = [share for share in SHARES if share != own[SWEPT[0]].lambda_]
    texts = {DEFENCES.spec(replace(how, lambda_=lowest)): name for name, how in own.items()}
    found = task(texts, lambdas=tuple(others))
    back = {text: name for name, text in names().items()}
    seeds = first.tables["defence by seed"]
    known = [row for row in seeds.to_dict("records") if row["seed"] == SEEDS[0] and back[row["defence"]] in POINTS]
    points = [
        {
            "series": back[row["defence"]],
            "lambda": getattr(DEFENCES.build(row["defence"]), "lambda_", nan),
            "queries": row["queries"],
            **{name: row[name] for name in ("clean RR@10", "robust RR@10", BOOST_COLUMN, "LSD")},
            SUCCESS_COLUMN: row["success %"],
        }
        for row in known
    ]
    swept = found.tables["trade-off"].replace({"series": texts})
    shown = pd.concat([swept, pd.DataFrame(points)], ignore_index=True).sort_values(["series", "lambda"])
    lines = [
        [
            row["series"],
            "" if isnan(row["lambda"]) else f"{row['lambda']:g}",
            *(f"{row[name]:.4f}" for name in ("clean RR@10", "robust RR@10")),
            *(f"{row[name]:.1f}" for name in (SUCCESS_COLUMN, BOOST_COLUMN, "LSD")),
        ]
        for row in shown.to_dict("records")
    ]
    return lines, replace(found, tables={**found.tables, "trade-off": shown})


def by_query(name: str, measure: str, seeds: Sequence[int]) -> dict[str, float]:
    """A measure of a defence for each query, means over seeds."""
    text = names()[name]
    some = [one.values[measure] for key, one in MEASURED.items() if key[-2] == text and key[-1] in seeds]
    return {qid: float(np.mean([values[qid] for values in some])) for qid in some[0]}


def differences(name: str, base: str, measure: str, seeds: Sequence[int]) -> NDArray[np.float64]:
    """Of two defences, query by query; both attacked the same queries."""
    ours, theirs = (by_query(one, measure, seeds) for one in (name, base))
    return np.array([ours[qid] - theirs[qid] for qid in ours if qid in theirs])


def interval(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """A mean over queries, with its 95 % interval."""
    low, high = bootstrap_interval(values)
    return float(values.mean()), float(low), float(high)


def beside_standard(seeds: Sequence[int]) -> list[list[str]]:
    """What each defence adds to standard training."""
    lines = []
    for name in TRAINED[1:]:
        cells = []
        for measure, digits in SHOWN.items():
            value, low, high = interval(differences(name, "ST", measure, seeds))
            cells.append(f"{value:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]")
        lines.append([name, *cells])
    return lines


def beside_adversarial(seeds: Sequence[int]) -> list[list[str]]:
    """For each measure: the PIATs that have less of it than AT beyond chance, those that have more, and all."""
    lines = []
    for measure in (SUCCESS_COLUMN, BOOST_COLUMN, "LSD"):
        found = [interval(differences(name, "AT", measure, seeds)) for name in PIATS]
        counts = sum(high < 0 for _, _, high in found), sum(low > 0 for _, low, _ in found), len(found)
        lines.append([measure, *map(str, counts)])
    return lines


def count_apart(printed: Mapping[str, Mapping[str, str]], names: Sequence[str], measure: str) -> tuple[int, int, int]:
    """Of the printed differences to standard training: those below 0 beyond chance, those above, and all."""
    found = [read_interval(printed[name][measure]) for name in names]
    return sum(high < 0 for _, _, high in found), sum(low > 0 for _, low, _ in found), len(found)


def verdict(less: int, more: int, count: int) -> str:
    """Whether the first of each of some pairs has less of a measure than the second."""
    said = f"less beyond chance in {less} of {count}, more in {more}"
    return f"{said}: {'holds' if less == count else 'does not hold' if more else 'cannot be told'}"


def claims(beside: Sequence[Sequence[str]], adversarial: Sequence[Sequence[str]]) -> list[list[str]]:
    """What 5.1 and 5.2 say of Table 1, and what is found here."""
    printed = {name: dict(zip(SHOWN, cells, strict=True)) for name, *cells in beside}
    against = {measure: verdict(*map(int, counts)) for measure, *counts in adversarial}

    def against_standard(names: Sequence[str], measure: str) -> str:
        return verdict(*count_apart(printed, names, measure))

    lower, _, _ = count_apart(printed, PIATS, "clean RR@10")
    kept = len(PIATS) - lower
    return [
        ["attacks succeed less on every defence than on ST", against_standard(TRAINED[1:], SUCCESS_COLUMN)],
        ["and less on PIAT than on ST", against_standard(PIATS, SUCCESS_COLUMN)],
        ["and less on PIAT than on AT", against[SUCCESS_COLUMN]],
        ["documents win fewer places on PIAT than on ST", against_standard(PIATS, BOOST_COLUMN)],
        ["and fewer than on AT", against[BOOST_COLUMN]],
        ["lists of PIAT move less (LSD) than those of ST", against_standard(PIATS, "LSD")],
        ["and less than those of AT", against["LSD"]],
        ["AT and DA pay on clean lists (RR@10, against ST)", against_standard(("AT", "DA"), "clean RR@10")],
        ["PIAT does not pay on clean lists", f"not below ST beyond chance for {kept} of {len(PIATS)}: "
         + ("holds as far as can be told" if kept == len(PIATS) else "does not hold")],
    ]  # fmt: skip


def answer(table_1: Sequence[Sequence[str]], beside: Sequence[Sequence[str]]) -> str:
    """What the page comes to: standard training, and the PIAT under which lists move least."""
    known = {cells[0]: dict(zip(HEAD, cells, strict=True)) for cells in table_1}
    added = {name: dict(zip(SHOWN, cells, strict=True)) for name, *cells in beside}
    best = min(PIATS, key=lambda name: read_number(known[name]["LSD"]))

    def became(measure: str) -> str:
        old, new = (known[name][measure].split()[0] for name in ("ST", best))
        _, low, high = read_interval(added[best][measure])
        sure = "beyond chance" if low > 0 or high < 0 else "which may be chance"
        return f"from {old} to {new} ({sure})"

    return prose(f"""With {best} instead of standard training, the places that an attacked document wins go
    {became(BOOST_COLUMN)}, and the LSD of lists {became("LSD")}; the share of attacks that win at least one place goes
    {became(SUCCESS_COLUMN)} per cent, and RR@10 on lists without an attack {became("clean RR@10")}.""")


def hardened(*wanted: str) -> dict[str, Model]:
    """The models of the first seed, by the names of the page."""
    experiment, learner, known = context(), LEARNERS.build(conv()), names()
    models: dict[str, Model] = {}
    for name in wanted:
        plan = plan_defended_training(
            experiment, learner, known[name], None, "train", None, None, 0, lambda message: None
        )
        models[name] = experiment.fit(learner, plan=plan)
    return models


@cache
def transfer() -> tuple[list[list[str]], list[list[str]], list[list[str]]]:
    """Other recipes, typos in queries, and shuffled texts, before and after."""
    models = hardened(*MOVED)
    experiment = replace(context(), models=models)
    recipes = ("greedy", "characters", "homoglyphs", "keyword_stuffing", "query_insertion", "sentence_insertion")
    found = (
        DocumentAttack(recipes=recipes, targets=3, queries=FEW, detectors=(), similarity=False)
        .run(experiment)
        .tables["attack in full"]
    )
    attacks = []
    for recipe in recipes:
        part = found[found["recipe"] == recipe].set_index("ranker")
        ends = [tuple(part.loc[m, f"success %{end}"] for end in ("", " low", " high")) for m in models]
        attacks.append([recipe, *(f"{value:.1f} [{low:.1f}, {high:.1f}]" for value, low, high in ends)])
    details = ProbesTask(probes=("shuffle-words", "shuffle-sentences", "typos")).run(experiment).tables["details"]
    slips = dropped(open_rag24("bm25"), DRAWS) + dropped(experiment, DRAWS)
    return attacks, slips, shuffled(details[details["documents"] == ALL_DOCUMENTS], list(models))


def dropped(experiment: Experiment, draws: int = 5) -> list[list[str]]:
    """The drop of each ranker under each attack on queries."""
    return drop_rows(QueryTypos(draws=draws).run(experiment))


def drop_rows(result: Result) -> list[list[str]]:
    """The rows of a query attack."""
    found, lines = plain_drops(result), []
    for attack, part in found.groupby("attack", sort=False):
        for row in part.to_dict("records"):
            ends = f"[{row['drop % low']:+.1f}, {row['drop % high']:+.1f}]"
            values = [f"{row[name]:.4f}" for name in ("before", "after")]
            lines.append([row["ranker"], str(attack), *values, f"{row['drop %']:+.1f} {ends}"])
    return lines


def shuffled(details: pd.DataFrame, models: Sequence[str]) -> list[list[str]]:
    """s of each probe and ranker: below 0 the original is preferred to the changed text, above 0 the changed text."""
    lines = []
    for probe, part in details.groupby("test", sort=False):
        found = part.set_index("ranker")
        ends = [tuple(found.loc[name, end] for end in ("s", "low", "high")) for name in models]
        lines.append([str(probe), *(f"{value:+.2f} [{low:+.2f}, {high:+.2f}]" for value, low, high in ends)])
    return lines


def elsewhere(found: Rows) -> list[str]:
    """What hardening against one attack does against others."""
    return [
        "## Does it help against anything else?",
        prose(f"""conv_knrm, first seed. Other recipes with their defaults, {FEW} queries, three targets each: the
        share that succeeds."""),
        table(("recipe", *MOVED), found["other recipes"]),
        prose("""Slips and changed words in the test queries, each attacked in each way: nDCG@10, and
        the drop in per cent; bm25 beside them."""),
        table(("ranker", "attack", "before", "after", "drop %"), found["typos"]),
        prose("""Shuffled and mistyped texts of judged documents: s, from -1 where the original is always preferred
        to +1."""),
        table(("probe", *MOVED), found["shuffled"]),
    ]


def measure() -> Rows:
    need_data("collections", "rag24")
    torch.set_num_threads(1)
    table_1, first = main_part(SEEDS)
    figure_1, second = trade_off(first)
    maps = {
        f"One list as {names()[name]} sees it": (f"One list as {name} sees it", f"map-{name.lower()}")
        for name in ("AT", "PIAT-ListMLE")
    }
    curves = {figure.title: (figure.title, f"trade-off-{n}") for n, figure in enumerate(second.figures[:3], 1)}
    others, slips, shuffles = transfer()
    return {
        "train queries": taught(),
        "table 1": table_1,
        "beside standard training": beside_standard(SEEDS),
        "PIAT beside AT": beside_adversarial(SEEDS),
        "trade-off": figure_1,
        "pictures of the trade-off": drawings(second, curves),
        "pictures of lists": drawings(first, maps),
        "other recipes": others,
        "typos": slips,
        "shuffled": shuffles,
    }


def compose(found: Rows) -> list[str]:
    return [
        answer(found["table 1"], found["beside standard training"]),
        prose(f"""rag24: nets learn from its train queries, which a language model judged, and are attacked on
        {QUERIES} of its 86 test queries, one document from each of {TARGETS} ranges of places, in each net's own
        lists; the attack is that of substitution.md (paper 003: 20 words, a K-NRM as surrogate) and is made anew
        for each net. conv_knrm reads 100 words and begins, whatever the defence, with what BM25 taught it in 600
        steps on 3,000 sentences of the passages; then it learns from judgements for {STEPS} steps of four lists,
        and the last weights are kept. Adversarial examples: {DOCUMENTS} documents of each train query (as in the
        paper), attacked with the gradients of the net that standard training gives; PIAT's lists have {SIZE}
        texts, {DOCUMENTS} of them attacked. The paper has {PAPER_QUERIES:,} train queries, and here there are
        {found["train queries"]}: that is the great difference, for an order that does not change under the synonyms of
        some texts has to be learned for the words of others. The ListMLE loss is divided by the number of texts: as a
        sum it drowned the natural loss and unlearned the ranking."""),
        prose(f"""Numbers are means over {len(SEEDS)} trainings, each with a
        seed of its own and on one thread (sums of several come to other weights). ASR: the share of targets that
        stand higher than before, with a 95 % interval over queries. boost: the places that a target wins. LSD: the
        mean square of the places that documents moved. displacement: how far a changed text is from its original
        in the 99 kernel features, as a share of the mean distance of two documents of the list. training s: on one
        core, without what the examples took. The last column names the measures by which a row is better than the
        best of ST, DA and AT (paired t-test over queries, p <= .05 after Holm)."""),
        "## Table 1: conv_knrm",
        table(HEAD, found["table 1"]),
        "## What the defences add to standard training",
        prose("""Differences, query by query, with 95 % intervals over the queries; below 0 is better for the last
        three. Intervals do not tell what other seeds would do."""),
        table(("defence", *SHOWN), found["beside standard training"]),
        "## What the paper says, and what is found here",
        prose("""A claim holds if the intervals of all its comparisons lie on its side of 0, it does not hold if one
        lies on the other, and else it cannot be told here."""),
        table(("claim", "here"), claims(found["beside standard training"], found["PIAT beside AT"])),
        "## The same table in paper 003",
        prose("""MS MARCO, 1,000 queries of Dev with one relevant passage each, so RR is on another scale."""),
        table(("defence", *PRINTED), [[name, *map(str, values)] for name, values in PAPER.items()]),
        "## Figure 1: the share of the natural loss",
        prose("""PIAT-ListNet, as in the paper, and PIAT-ListMLE with five values of lambda, and the others; the
        first seed alone."""),
        table(("defence", "lambda", *SHOWN), found["trade-off"]),
        *found["pictures of the trade-off"],
        "## Figure 2: one list, before and after",
        prose("""The candidates of one query by their 99 kernel features, in the plane (t-SNE); lines join documents
        and what the attack made of them, stars are relevant documents. The number behind it is the displacement of
        the first table."""),
        *found["pictures of lists"],
        *elsewhere(found),
    ]


PAGE = Page(
    __file__,
    "Defences by training",
    measure,
    compose,
    (Guard("typos", "the first row of bm25 under typos", lambda: dropped(open_rag24("bm25"), DRAWS)[0]),),
)

if __name__ == "__main__":
    PAGE.main()

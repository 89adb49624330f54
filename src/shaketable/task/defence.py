"""What does a defence cost, and what does it buy? One learner is trained with several, and each ranker attacked anew.

Liu, Zhang, Zhang, Chen, de Rijke, Guo, Cheng. Perturbation-invariant adversarial training for neural ranking models:
Improving the effectiveness-robustness trade-off. AAAI 2024 (paper 003): Table 1, Figure 1, and the number behind
Figure 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, product
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shaketable.data.splits import TRAIN
from shaketable.defend.defences import PIAT
from shaketable.errors import BadInput, NotApplicable, check
from shaketable.learners.neural import NeuralLearner
from shaketable.measure.certificate import READINGS, certified_queries, conditional_success
from shaketable.measure.change import LSD
from shaketable.measure.comparison import compare, query_means, starred
from shaketable.measure.effectiveness import score_tables
from shaketable.measure.plane import tsne
from shaketable.measure.promotion import estimate
from shaketable.measure.significance import FEWEST_QUERIES
from shaketable.rankers.saved import Saved
from shaketable.rankers.smoothed import SmoothedRanker
from shaketable.registry import DEFENCES, LEARNERS
from shaketable.score.executor import Job
from shaketable.task.campaign import attacked_lists, open_target, ranges
from shaketable.task.certificate import certifiable
from shaketable.task.defending import defended
from shaketable.task.substitution import Substitution
from shaketable.types import Attacked, Doc, Figure, Finding, Model, Result, ranking

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.attacks.target import Target
    from shaketable.bench import Bench

Vectors = NDArray[np.float64]

BASELINES = ("st", "da", "at", "certdr")
"""What other defences are compared with, by name: the best of those that were measured."""
SUCCESS, BOOST = "ASR %", "boost"
LOWER = (SUCCESS, BOOST, "LSD")
"""The measures that are better when they are lower."""
MEASURES = ("clean RR@10", "clean RR@100", "robust RR@10", "robust RR@100", *LOWER)
ALL = "clean RR@10, all queries"
KEPT = "kept step"
"""The step of the training whose weights are kept; at 0 nothing was learned."""
OWN = (ALL, "displacement", "training s", "steps", KEPT)
"""Numbers of a ranker, whatever the query."""
BETTER = "better than the best baseline"
CONDITIONAL = "conditional success"
CERTIFIED_AT = 10
"""The place K of conditional success rates."""


@dataclass(frozen=True, eq=False)
class Places:
    """What the last layer of a net makes the scores of a query's list of, and of the texts that attacks changed."""

    query: str
    docnos: tuple[str, ...]
    before: Vectors
    """[documents, d]"""
    changed: tuple[int, ...]
    """The numbers of those that attacks changed."""
    after: Vectors
    """[changed documents, d]"""
    relevant: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Measured:
    """A defended ranker under attack, for one seed of the training."""

    defence: str
    seed: int
    values: Mapping[str, Mapping[str, float]]
    """measure -> query id -> value"""
    targets: pd.DataFrame
    row: Mapping[str, Any]
    """What the attack and its damage came to, and what the training cost."""
    result: Result
    first: Places | None = None
    """Where the documents of the first query are, if the net tells."""
    conditional: tuple[Mapping[str, Any], ...] = ()
    """Rows of the conditional success rate, of a smoothed ranker."""


@dataclass(frozen=True)
class Defence:
    """What defences cost and what they buy: one learner trained with each, and attacked anew each time.

    learner     a learner of neural rankers
    defences    the defences to train with; `shaketable list defences` shows them all
    recipe      the attack on each ranker: its own lists, its own targets
    targets     documents attacked in each list, one from each of so many ranges of places from 11 on
    queries     queries whose lists are attacked, drawn at random; 0 is all of them
    seeds       of the training; numbers are means over them, and the attacked queries stay the same
    lambdas     shares of the natural loss to try with each piat that is among the defences, between 0 and 1

    It learns from the split train and attacks the queries that are measured on. What is learned is kept.
    """

    learner: str = "conv_knrm"
    defences: tuple[str, ...] = (
        "st",
        "da",
        "at",
        "piat(loss='kl')",
        "piat(loss='listnet')",
        "piat(loss='listmle')",
    )
    recipe: str = "wsra"
    targets: int = 9
    queries: int = 30
    seeds: tuple[int, ...] = (0,)
    lambdas: tuple[float, ...] = ()

    needs_judgements: ClassVar[bool] = True
    needs_scoring: ClassVar[bool] = False
    asked_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check("defence", bool(self.defences), "defences", "one or more", self.defences)
        check("defence", bool(self.seeds), "seeds", "one or more", self.seeds)
        for seed in self.seeds:
            check("defence", isinstance(seed, int) and seed >= 0, "seeds", "whole numbers, 0 or more", seed)
        for share in self.lambdas:
            check("defence", 0 <= share <= 1, "lambdas", "between 0 and 1", share)
        if not isinstance(LEARNERS.build(self.learner), NeuralLearner):
            raise BadInput(f"defence: defences are for nets, which learn from texts; {self.learner} is none, knrm is")
        hows = [DEFENCES.build(text) for text in self.defences]
        if self.lambdas and not any(isinstance(how, PIAT) for how in hows):
            raise BadInput("defence: lambdas are shares of the natural loss in piat, and none of the defences is piat")
        self._attack()

    def run(self, bench: Bench) -> Result:
        import pandas as pd

        self._check(bench)
        notes: list[str] = []
        swept = self._swept()
        measured: list[Measured] = []
        texts = list(dict.fromkeys((*self.defences, *(text for some in swept.values() for text in some))))
        if bench.road.executor.in_flight > 1:
            self._train_together(bench, texts)
        for text in texts:
            said: list[str] = []
            try:
                measured += [self._measured(bench, text, seed, said) for seed in self.seeds]
                notes += said
            except BadInput as error:
                notes.append(f"{text} is left out: {error}.")
        if not measured:
            raise NotApplicable(f"no defence can be measured; {notes[0].removesuffix('.')}")
        groups: dict[str, list[Measured]] = {}
        for one in measured:
            groups.setdefault(one.defence, []).append(one)
        full = pd.DataFrame([_row(text, some, bench.seed) for text, some in groups.items()])
        asked = full[full["defence"].isin(self.defences)]
        compared = _against_baselines({text: groups[text] for text in asked["defence"]}, bench.seed)
        tables = {
            "defence": _with_stars(asked, compared).reset_index(drop=True),
            "trade-off": _trade_off(full, swept),
            "against the best baseline": compared,
            "defence by seed": pd.DataFrame([{"defence": m.defence, "seed": m.seed} | dict(m.row) for m in measured]),
            "targets": pd.concat([m.targets.assign(seed=m.seed) for m in measured], ignore_index=True),
            CONDITIONAL: pd.DataFrame([row for m in measured for row in m.conditional]),
        }
        firsts = {text: groups[text][0].first for text in asked["defence"]}
        tables |= {f"map of {text}": _map(first) for text, first in firsts.items() if first}
        tables = {name: table for name, table in tables.items() if len(table)}
        return Result(
            "defence",
            "What does a defence cost, and what does it buy?",
            tables,
            tuple(_figures(tables)),
            (*_together(dict.fromkeys(notes), list(groups)), *self._notes(tables)),
            tuple(_findings(tables["defence"])),
            failures=tuple(failure for one in measured for failure in one.result.failures),
            brief=("defence", "trade-off"),
            sources={"defence": "Liu et al. 2024, Table 1"},
            attacked=tuple(doc for one in measured for doc in one.result.attacked),
        )

    def _attack(self) -> Substitution:
        """The attack on each ranker."""
        return Substitution((self.recipe,), targets=self.targets, queries=self.queries, detectors=(), similarity=False)

    def _check(self, bench: Bench) -> None:
        """Refuse what no training could help, before hours of it."""
        ranges(self.targets, bench.depth)
        learned = {qid for part in bench.parts(TRAIN, None) for qid in part}
        if both := [qid for qid in bench.queries if qid in learned]:
            raise NotApplicable(
                f"{len(both)} of the {len(bench.queries)} queries to measure on are those that rankers learn from; "
                "name a split of others, such as --split test"
            )

    def _swept(self) -> dict[str, list[str]]:
        """For each piat its texts with the shares that are tried; one that is among the defences keeps its text."""
        hows = {text: DEFENCES.build(text) for text in self.defences}
        known = {DEFENCES.spec(how): text for text, how in hows.items()}
        return {
            text: [known.get(spec := DEFENCES.spec(replace(how, lambda_=share)), spec) for share in self.lambdas]
            for text, how in hows.items()
            if isinstance(how, PIAT) and self.lambdas
        }

    def _train_together(self, bench: Bench, texts: Sequence[str]) -> None:
        """Train side by side what can be; what cannot be trained is told where it is measured."""
        wanted: list[Saved | Job] = []
        for text, seed in product(texts, self.seeds):
            with suppress(BadInput):
                wanted.append(self._prepared(bench, text, seed))
        with suppress(BadInput):
            bench.together(wanted)

    def _prepared(self, bench: Bench, text: str, seed: int) -> Saved | Job:
        """The model of a defence, or the job of its training."""
        how, learner = DEFENCES.build(text), LEARNERS.build(self.learner)
        school = replace(bench, models={}, seed=seed)
        plan = defended(school, learner, how, None, TRAIN, None, None, 0, lambda said: None)
        return school.prepared(learner, plan=plan)

    def _measured(self, bench: Bench, text: str, seed: int, notes: list[str]) -> Measured:
        """Train with a defence, attack what was learned, and measure both lists of each query."""
        how = DEFENCES.build(text)
        (saved,) = bench.together([self._prepared(bench, text, seed)])
        card = saved.card()
        if card.get("best") == 0:
            notes.append(
                f"{text}: no step of the training did better on the validation queries than the beginning, so the "
                "model that is kept has learned nothing. If attacks move it little, that is no merit, and it is "
                "compared with no other."
            )
        smoothed = getattr(how, "smoothed", None)
        model: Model = smoothed(saved.path, seed=seed) if smoothed else saved
        table = replace(bench, models={text: model})
        result = self._attack().run(table)
        notes += [note for note in result.notes if note.startswith((f"{text}:", f"{text} gives"))]
        targets = result.tables["targets"]
        texts = {qid: table.texts[qid] for qid in dict.fromkeys(targets["query"])}
        target = open_target(table, text, texts, table.candidates)
        values = _values(table, text, target, targets, result.attacked)
        places = _represented(table, text, target, result.attacked)
        first = next(places, None)
        if first is None:
            notes.append(f"{text}: the score is not made by one linear layer of a net, so it has no displacement.")
        attack, damage = (result.tables[name].to_dict("records")[0] for name in ("attack in full", "damage in full"))
        row = {str(key): value for key, value in (damage | attack).items() if key not in ("recipe", "ranker")}
        row |= {
            "displacement": displacement(chain(filter(None, [first]), places)),
            "documents changed": len(result.attacked),
        }
        row |= {ALL: float(table.table("RR@10").values.mean())}
        row |= {"training s": card.get("seconds", nan), "steps": card.get("steps", nan), KEPT: card.get("best", nan)}
        conditional = tuple(_conditional(table, text, targets)) if smoothed else ()
        return Measured(text, seed, values, targets, row, result, first, conditional)

    def _notes(self, tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
        count = int(tables["defence"]["queries"].max())
        yield (
            f"{self.learner} learned from the split {TRAIN} with each defence, and each of the models was attacked by "
            f"{self.recipe}, in its own lists of {count} queries. 'clean' is before the attack, and 'robust' with all "
            "changed documents in the lists at once; RR is the reciprocal rank of the first relevant document."
        )
        yield (
            f"'{SUCCESS}' (attack success rate) is the percentage of attacked documents that stand strictly higher "
            f"than before, with the ends of its interval over queries, and '{BOOST}' the number of places that they "
            "win on average; where nearly every attack succeeds, it still tells defences apart. 'LSD' is the mean "
            "square of the places that documents moved."
        )
        yield (
            "'displacement' is how far a changed text lies from its original, in the numbers of which the last layer "
            "makes the score, as a share of the mean distance between two documents of the list; it is the mean over "
            "all documents that an attack changed."
        )
        if CONDITIONAL in tables:
            yield (
                f"The table '{CONDITIONAL}' is about smoothed rankers. 'CSR@{CERTIFIED_AT} %' is the percentage of "
                f"attacked documents from below place {CERTIFIED_AT} that the attack brings above it; the other "
                "columns count only queries whose lists are certified, by each reading of a certificate ('--task "
                "certificate' explains them). The synonyms of the attack may be others than those that the ranker is "
                "smoothed against, so even certified lists may change."
            )
        if len(self.seeds) > 1:
            yield f"Each number is a mean over {len(self.seeds)} trainings; the table by seed has each of them."
        if "against the best baseline" in tables:
            yield (
                f"'{BETTER}' names the measures in which the defence differs significantly from the best of those of "
                f"{', '.join(BASELINES)} that were measured (paired t-test over queries, corrected by Holm for all "
                "comparisons of the table)."
            )
        if count < FEWEST_QUERIES:
            yield f"There are fewer than {FEWEST_QUERIES} queries: nothing is marked as significant."


def _together(notes: Iterable[str], texts: Sequence[str]) -> Iterator[str]:
    """Notes, each once: what is said of several defences names all of them before it.

    >>> list(_together(["st: it is slow.", "a word", "at: it is slow."], ["st", "at", "da"]))
    ['st, at: it is slow.', 'a word']
    """
    names: dict[str, list[str]] = {}
    for note in notes:
        name = next((text for text in texts if note.startswith(f"{text}: ")), "")
        names.setdefault(note.removeprefix(f"{name}: "), []).extend(filter(None, [name]))
    for note, some in names.items():
        named = "each of the models" if 1 < len(some) == len(texts) else ", ".join(some)
        yield f"{named}: {note}" if some else note


def _values(
    bench: Bench, name: str, target: Target, targets: pd.DataFrame, attacked: Sequence[Attacked]
) -> dict[str, dict[str, float]]:
    """measure -> query id -> value, for the lists before and after."""
    changed: dict[str, dict[str, Doc]] = {qid: {} for qid in targets["query"]}
    for one in attacked:
        for qid in one.queries:
            changed[qid][one.docno] = one.doc
    clean, robust = attacked_lists(bench, name, target, changed)
    judged = {qid: bench.qrels[qid] for qid in robust}
    values: dict[str, dict[str, float]] = {}
    for table in score_tables(["RR@10", "RR@100"], judged, {"clean": clean, "robust": robust}):
        for kind, row in zip(table.systems, table.values, strict=True):
            values[f"{kind} {table.measure}"] = dict(zip(table.topics, row.tolist(), strict=True))
    values[SUCCESS] = query_means(list(targets["query"]), 100.0 * targets["success"].to_numpy())
    values[BOOST] = query_means(list(targets["query"]), (targets["before"] - targets["after"]).to_numpy(np.float64))
    values["LSD"] = {qid: LSD().between(ranking(clean[qid]), ranking(robust[qid])) for qid in robust}
    return {measure: values[measure] for measure in MEASURES}


def _conditional(bench: Bench, name: str, targets: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """How often attacks on a smoothed ranker succeed, by each reading of a certificate and of a condition."""
    ranker = bench.ranker(name)
    assert isinstance(ranker, SmoothedRanker)
    lists = certifiable(bench, name, list(dict.fromkeys(targets["query"])))
    before, after = (targets[column].to_numpy(dtype=np.float64) for column in ("before", "after"))
    for reading in READINGS:
        sure = certified_queries(lists, CERTIFIED_AT, reading, ranker.samples)
        found = conditional_success(list(targets["query"]), before, after, sure, CERTIFIED_AT, bench.seed)
        about = {"defence": name, "certificate": reading, "queries": len(lists), "certified queries": len(sure)}
        yield about | {heading: one.value for heading, one in found.items()}


def _represented(bench: Bench, name: str, target: Target, attacked: Sequence[Attacked]) -> Iterator[Places]:
    """What the net makes of the first query's list, and of each list with changed documents; nothing if it tells none.

    That is what the last layer makes the score of: `rankers.nets.scoring.NeuralRanker.features`.
    """
    read = getattr(bench.ranker(name), "features", None)
    by_query: dict[str, list[Attacked]] = {next(iter(target.pools)): []}
    for one in attacked:
        for qid in one.queries:
            by_query.setdefault(qid, []).append(one)
    for qid, some in by_query.items():
        if read is None:
            return
        pool = target.pools[qid]
        found = read([(pool.query, doc.text) for doc in (*pool.docs, *(one.doc for one in some))])
        if found is None:
            return
        before, after = np.split(found.astype(np.float64), [len(pool.docs)])
        changed = tuple(pool.numbers[one.docno] for one in some)
        relevant = frozenset(docno for docno, grade in bench.qrels.get(qid, {}).items() if grade > 0)
        yield Places(pool.query, pool.docnos, before, changed, after, relevant)


def displacement(lists: Iterable[Places]) -> float:
    """How far changed texts are from their originals, in mean distances of two documents of the list.

        mean over changed documents of  |φ(q, d') - φ(q, d)| / mean over pairs of the list of |φ(q, d_i) - φ(q, d_j)|

    NaN where nothing was changed. Figure 2 of paper 003 shows it.

    >>> line = np.array([[0.0], [1.0], [2.0]])
    >>> displacement([Places("q", ("a", "b", "c"), line, (2,), np.array([[0.0]]))])  # 2 of 4/3
    1.5
    """
    from scipy.spatial.distance import pdist

    shares: list[float] = []
    for one in lists:
        moved = np.linalg.norm(one.after - one.before[list(one.changed)], axis=1)
        spread = float(pdist(one.before).mean()) if len(one.before) > 1 else 0.0
        shares += (moved / spread).tolist() if spread else []
    return float(np.mean(shares)) if shares else nan


def _map(places: Places) -> pd.DataFrame:
    """The documents of a list in the plane, near ones near each other, and where attacks moved some of them to."""
    import pandas as pd

    kinds = ["original" if number in places.changed else "other" for number in range(len(places.docnos))]
    moved = [places.docnos[number] for number in places.changed]
    documents = [*places.docnos, *moved]
    return pd.DataFrame(
        {
            "query": places.query,
            "document": documents,
            "text": [*kinds, *["attacked"] * len(moved)],
            "relevant": ["★" if docno in places.relevant else "" for docno in documents],
            "pair": [docno if docno in moved else None for docno in documents],
            **dict(zip("xy", tsne(np.concatenate([places.before, places.after])).T, strict=True)),
        }
    )


def _row(text: str, some: Sequence[Measured], seed: int) -> dict[str, Any]:
    """The numbers of a defence, over all seeds."""
    queries = [str(qid) for one in some for qid in one.targets["query"]]
    won = np.concatenate([one.targets["success"].to_numpy(dtype=np.float64) for one in some])
    success = estimate(100.0 * won, queries, seed)
    means = {measure: float(np.mean(list(values.values()))) for measure, values in _over_seeds(some).items()}
    ends = {SUCCESS: success.value, f"{SUCCESS} low": success.low, f"{SUCCESS} high": success.high}
    row: dict[str, Any] = {"defence": text, "queries": success.queries, "targets": success.targets}
    for measure in MEASURES:
        row |= ends if measure == SUCCESS else {measure: means[measure]}
    return row | {name: float(np.mean([one.row[name] for one in some])) for name in OWN}


def _over_seeds(some: Sequence[Measured]) -> dict[str, dict[str, float]]:
    """measure -> query id -> the mean over seeds."""
    return {
        measure: query_means(
            [qid for one in some for qid in one.values[measure]],
            [value for one in some for value in one.values[measure].values()],
        )
        for measure in MEASURES
    }


def _against_baselines(groups: Mapping[str, Sequence[Measured]], seed: int) -> pd.DataFrame:
    """Each defence that is no baseline against the best baseline, by each measure: a paired test over queries."""
    import pandas as pd

    values = {text: _over_seeds(some) for text, some in groups.items() if all(one.row[KEPT] != 0 for one in some)}
    baselines = [text for text in values if _is_baseline(text)]
    rows = []
    for measure in MEASURES if baselines else ():
        sign = -1 if measure in LOWER else 1
        best = max(baselines, key=lambda text: sign * float(np.mean(list(values[text][measure].values()))))
        for text in values:
            if text not in baselines:
                change = compare(values[best][measure], values[text][measure], seed)
                about = {"defence": text, "measure": measure, "best baseline": best, "its value": change.before}
                found = {"value": change.after, "change": change.change, "low": change.low, "high": change.high}
                rows.append(about | found | {"queries": change.n, "p": change.p, "better": sign * change.change > 0})
    return starred(pd.DataFrame(rows))


def _is_baseline(text: str) -> bool:
    return DEFENCES.spec(DEFENCES.build(text)).partition("(")[0] in BASELINES


def _with_stars(table: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """The table with a column that names the measures by which a defence is better than the best baseline."""
    if not len(compared):
        return table
    won = compared[(compared[""] == "*") & compared["better"]]
    names = {text: ", ".join(rows["measure"]) for text, rows in won.groupby("defence")}
    return table.assign(**{BETTER: [names.get(text, "") for text in table["defence"]]})


def _trade_off(full: pd.DataFrame, swept: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """A row for each share of the natural loss of each piat, and one for each baseline (Figure 1 of the paper)."""
    import pandas as pd

    shown = ["queries", "clean RR@10", "robust RR@10", *LOWER]
    found = {row["defence"]: row for row in full.to_dict("records")}
    rows = [
        {"series": series, "lambda": DEFENCES.build(text).lambda_} | {name: found[text][name] for name in shown}
        for series, texts in swept.items()
        for text in sorted(texts, key=lambda text: float(DEFENCES.build(text).lambda_))
        if text in found
    ]
    points = [{"series": text, "lambda": nan} for text in found if swept and _is_baseline(text)]
    return pd.DataFrame([*rows, *(one | {name: found[one["series"]][name] for name in shown} for one in points)])


def _figures(tables: Mapping[str, pd.DataFrame]) -> Iterator[Figure]:
    name, color = ("trade-off", "series") if "trade-off" in tables else ("defence", "defence")
    swept = " Each point is a share (λ) of the natural loss." if name == "trade-off" else ""
    for title, y, caption in (
        ("How good clean lists are, and how good they are under attack", "robust RR@10", "Top right is best."),
        ("How good clean lists are, and how often attacks succeed", SUCCESS, "Bottom right is best."),
        ("How good clean lists are, and how many places attacks win", BOOST, "Bottom right is best."),
    ):
        join = color if swept else ""
        source = "Liu et al. 2024, Fig. 1" if swept and y != BOOST else ""
        yield Figure("scatter", name, title, "clean RR@10", y, color, caption + swept, join=join, source=source)
    for name in tables:
        if name.startswith("map of "):
            yield Figure(
                "scatter",
                name,
                f"One list as {name.removeprefix('map of ')} sees it",
                x="x",
                y="y",
                color="text",
                caption="The documents of one query, by the numbers of which the last layer makes scores (t-SNE). "
                "A line joins a document and what the attack made of it; a star is a relevant document.",
                join="pair",
                mark="relevant",
                source="Liu et al. 2024, Fig. 2",
            )


def _findings(table: pd.DataFrame) -> Iterator[Finding]:
    for row in table.to_dict("records"):
        about: Any = {"ranker": row["defence"], "n": int(row["queries"])}
        for name in ("clean RR@10", "robust RR@10"):
            yield Finding(name=name, value=row[name], **about)
        ends = {"low": row[f"{SUCCESS} low"], "high": row[f"{SUCCESS} high"]}
        yield Finding(name="attack success %", value=row[SUCCESS], better="lower", **ends, **about)

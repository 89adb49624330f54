"""How easily does a document buy a rank? Documents of a ranker's own lists are changed until they stand higher.

Liu et al. Perturbation-invariant adversarial training for neural ranking models. AAAI 2024 (paper 003), section 4; Wu
et al. PRADA. ACM Transactions on Information Systems 2023.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.attacks.detect import caught, threshold
from shaketable.attacks.drive import drive
from shaketable.attacks.knowledge import Knowledge
from shaketable.attacks.surrogate import Surrogate
from shaketable.attacks.target import Target
from shaketable.data.attacked import read_attacked
from shaketable.errors import BadInput, NotApplicable, check, quoted
from shaketable.measure.change import LMD, LSD, RLSD, Kendall, TopChange
from shaketable.measure.comparison import compare
from shaketable.measure.effectiveness import score_tables
from shaketable.measure.facets import ATTACK, INTO_TEN
from shaketable.measure.promotion import Attempts, by_range, by_trials, promotion_row
from shaketable.measure.ranking_error import RankingError, ranking_error
from shaketable.measure.significance import FEWEST_QUERIES
from shaketable.measure.wording import Encode, similarity, words_changed
from shaketable.rankers.similarity import encoder
from shaketable.registry import ATTACKS, DETECTORS, GOALS
from shaketable.task.campaign import (
    Attempt,
    Range,
    aims,
    attacked_lists,
    attacked_queries,
    by_origin,
    changed_texts,
    knowledge,
    newcomers,
    open_target,
    opened,
    ranges,
    shortage,
    tried,
)
from shaketable.types import (
    Attacked,
    ChangeMeasure,
    Example,
    Failure,
    Figure,
    Finding,
    Goal,
    Result,
    Run,
    ranking,
)

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.bench import Bench

QUICK = "greedy(words=3)"
"""What an audit attacks with: no net is trained for it."""
EXAMPLES = 3
TOP = 10
INTO = f"into top {TOP} %"


@dataclass(frozen=True)
class Substitution:
    """How easily a document buys a rank: recipes that change documents, their success, their cost and their damage.

    recipes      the recipes to attack with; `shaketable list recipes` shows them all
    goal         promote, demote, or top(k=10)
    targets      documents attacked in each list, one from each of so many ranges of places from 11 on; paper 003 has
                 nine, an audit has one, because an encoder reads some fifty texts for each
    queries      queries whose lists are attacked, drawn at random; 0 is all of them. A word needs twenty, and some
                 lists end before the eleventh place
    group        one text for so many queries at once: then documents from outside are added to the lists
    budget       texts that a ranker is asked about for all targets together; None is as many as a recipe wants
    attacked     a file of documents as others left them: they are tried as they are, nothing is searched for
    any_grade    attack relevant documents as well, not only those of grade 0 and those that nobody judged
    detectors    simple filters; how many of the successful texts each would catch is shown
    similarity   say how much alike texts are before and after, where MiniLM is installed
    language     the linguistic tool: light, spacy, or spacy:MODEL
    """

    recipes: tuple[str, ...] = (QUICK,)
    goal: str = "promote"
    targets: int = 1
    queries: int = 25
    group: int = 1
    budget: int | None = None
    attacked: str = ""
    any_grade: bool = False
    detectors: tuple[str, ...] = tuple(DETECTORS)
    similarity: bool = True
    language: str = "light"
    measure: str = "nDCG@10"

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True
    adapts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check("substitution", self.targets >= 1, "targets", "1 or more", self.targets)
        check("substitution", self.queries >= 0, "queries", "0 or more", self.queries)
        check("substitution", self.group >= 1, "group", "1 or more", self.group)
        check("substitution", self.budget is None or self.budget >= 1, "budget", "1 or more, or None", self.budget)
        check("substitution", bool(self.recipes or self.attacked), "recipes", "one or more", self.recipes)
        for recipe in self.recipes:
            ATTACKS.build(recipe)
        for detector in self.detectors:
            DETECTORS.build(detector)
        GOALS.build(self.goal)

    def run(self, bench: Bench) -> Result:
        import pandas as pd

        goal: Goal = GOALS.build(self.goal)
        foreign = read_attacked(Path(self.attacked)) if self.attacked else []
        texts, candidates = self._lists(bench, foreign)
        attempts: list[Attempt] = []
        failures: list[Failure] = []
        damage: list[dict[str, Any]] = []
        caught_rows: list[dict[str, Any]] = []
        notes: list[str] = []
        for name in bench.scoring:
            target = open_target(bench, name, texts, candidates)
            if flat := {qid for qid, pool in target.pools.items() if len(pool.docs) > 1 and np.ptp(pool.scores) == 0}:
                notes.append(
                    f"{name} gives all documents the same score in {len(flat)} of {len(target.pools)} lists: "
                    "where nothing is ranked, nothing can be attacked, and those lists are left out."
                )
                target.pools = {qid: pool for qid, pool in target.pools.items() if qid not in flat}
            if not target.pools:
                continue
            known = knowledge(bench, name, list(texts), self.language)
            for recipe, done in self._attack(bench, name, target, known, goal, foreign, notes):
                fine = [a for a in done if isinstance(a, Attempt)]
                failures += [a for a in done if isinstance(a, Failure)]
                attempts += fine
                if fine:
                    damage.append({"recipe": recipe, "ranker": name} | self._damage(bench, name, target, fine, goal))
                    caught_rows += self._detection(known, target, recipe, name, fine)
            notes += [_said(name, one) for one in known.shared.values() if isinstance(one, Surrogate)]
        if not attempts:
            raise NotApplicable(_nothing(notes, failures, bench.road.failures))
        tables = self._tables(attempts, pd.DataFrame(damage), pd.DataFrame(caught_rows), goal, bench.seed)
        return Result(
            "substitution",
            "How easily does a document buy a rank?",
            tables,
            _figures(tables),
            (*notes, *self._notes(bench, tables)),
            tuple(_findings(tables, goal)),
            tuple(_examples(attempts, goal)),
            tuple(failures),
            brief=("attack", "damage", "detection"),
            attacked=tuple(_documents(attempts)),
        )

    def _lists(self, bench: Bench, foreign: Sequence[Attacked]) -> tuple[dict[str, str], Run]:
        """The queries whose lists are attacked, and their candidates: those of the bench, or those of a file."""
        if not foreign:
            texts = attacked_queries(bench, self.queries)
            return texts, {qid: bench.candidates[qid] for qid in texts if bench.candidates.get(qid)}
        known = bench.collection.queries
        texts = {qid: text for one in foreign for qid, text in one.queries.items()}
        for qid, text in texts.items():
            if qid in known and known[qid].text != text:
                here = f"{quoted(known[qid].text)} in {bench.collection.name}"
                raise BadInput(f"the query {qid} is {quoted(text)} there and {here}: other data", self.attacked)
        given = {qid: bench.candidates[qid] for qid in texts if qid in bench.queries and bench.candidates.get(qid)}
        new = {qid: text for qid, text in texts.items() if qid not in given and text.strip()}
        return texts, given | (dict(bench.first_stage_finds(new)) if new else {})

    def _attack(
        self,
        bench: Bench,
        name: str,
        target: Target,
        known: Knowledge,
        goal: Goal,
        foreign: Sequence[Attacked],
        notes: list[str],
    ) -> Iterator[tuple[str, list[Attempt | Failure]]]:
        """For each recipe what became of its targets; the failures among them name the ranker."""
        if foreign:
            listed = [one for one in foreign if one.queries.keys() <= target.pools.keys()]
            if len(listed) < len(foreign):
                notes.append(
                    f"{name}: {len(foreign) - len(listed)} of the {len(foreign)} documents of {self.attacked} are left "
                    "out, because there is no list for one of their queries."
                )
            for recipe, mine in by_origin(listed).items():
                named = [(one.docno, *one.queries) for one in mine if one.docno]
                if again := len(named) - len(set(named)):
                    notes.append(
                        f"{recipe}: {again} texts of {self.attacked} are of a document that has one already. Each is "
                        "tried; in the lists that damage is measured on, the last text of a document stands."
                    )
                yield recipe, list(tried(name, target, mine, goal, recipe))
            return
        places: list[Range | None]
        if self.group > 1:
            documents = newcomers(bench, target, self.targets, self.group)
            places = [None] * len(documents)
        else:
            parts = ranges(self.targets, bench.depth)
            drawn = [
                aim
                for qid, pool in target.pools.items()
                for aim in aims(pool.listing, bench.qrels.get(qid, {}), parts, bench.seed, self.any_grade)
            ]
            if len(drawn) < len(parts) * len(target.pools):
                notes.append(f"{name}: {shortage(drawn, parts, [len(pool.docnos) for pool in target.pools.values()])}")
            documents = [(aim.docno, aim.doc, [aim.qid]) for aim in drawn]
            places = [aim.range for aim in drawn]
        cases = target.cases(documents, goal)
        found = {case.name: case for case in cases}
        ordered = [
            (found[docno, *qids], place)
            for (docno, _, qids), place in zip(documents, places, strict=True)
            if (docno, *qids) in found
        ]
        for text in dict.fromkeys(self.recipes) if ordered else ():
            attack = opened(bench, name, ATTACKS.build(text), known)
            outcomes = drive(
                attack,
                [case for case, _ in ordered],
                target,
                budget=self.budget,
                seed=bench.seed,
                watch=bench.road.watch,
                what=f"attacking {name} by {text}",
            )
            yield (
                text,
                [
                    Failure(name, outcome.query, outcome.reason)
                    if isinstance(outcome, Failure)
                    else Attempt(name, text, case, outcome, place)
                    for (case, place), outcome in zip(ordered, outcomes, strict=True)
                ],
            )

    def _damage(
        self, bench: Bench, name: str, target: Target, attempts: Sequence[Attempt], goal: Goal
    ) -> dict[str, Any]:
        """What all outcomes of a query, put into its list at once, do to the list: its order, and what it is worth."""
        clean, robust = attacked_lists(bench, name, target, changed_texts(attempts))
        orders = {qid: (ranking(clean[qid]), ranking(robust[qid])) for qid in robust}
        moved = {
            heading: float(np.mean([measure.between(*order) for order in orders.values()]))
            for heading, measure in MOVEMENTS.items()
        }
        judged = {qid: bench.qrels[qid] for qid in robust if qid in bench.qrels}
        row: dict[str, Any] = {"queries": len(robust)}
        if judged:
            for table in score_tables(["RR@10", "RR@100", self.measure], judged, {"clean": clean, "robust": robust}):
                before, after = (dict(zip(table.topics, row.tolist(), strict=True)) for row in table.values)
                change = compare(before, after, bench.seed)
                row |= {
                    f"clean {table.measure}": change.before,
                    f"robust {table.measure}": change.after,
                    f"{table.measure} change low": change.low,
                    f"{table.measure} change high": change.high,
                    f"{table.measure} p": change.p,
                }
            if self.group == 1 and not self.attacked:
                row |= _errors([ranking_error(orders[q][0], judged[q], _reached(q, attempts)) for q in judged])
        return row | moved

    def _detection(
        self, known: Knowledge, target: Target, recipe: str, name: str, attempts: Sequence[Attempt]
    ) -> Iterator[dict[str, Any]]:
        """The share of changed texts that each detector catches, at one false alarm in a hundred clean texts."""
        won = [attempt.outcome.doc for attempt in attempts if attempt.outcome.doc != attempt.case.doc]
        for text in self.detectors if won else ():
            suspicion = known.shared.setdefault(("detector", text), DETECTORS.build(text).open(known))
            key = "clean", text, *sorted(target.pools)
            if key not in known.shared:
                clean = dict.fromkeys(doc for pool in target.pools.values() for doc in pool.docs)
                known.shared[key] = suspicion(list(clean))
            limit = threshold(known.shared[key])
            yield {
                "recipe": recipe,
                "ranker": name,
                "detector": text,
                "caught %": 100 * caught(suspicion(won), limit),
                "false alarms %": 100 * caught(known.shared[key], limit),
                "texts": len(won),
                "clean texts": len(known.shared[key]),
            }

    def _tables(
        self, attempts: Sequence[Attempt], damage: pd.DataFrame, detection: pd.DataFrame, goal: Goal, seed: int
    ) -> dict[str, pd.DataFrame]:
        import pandas as pd

        names = _names(attempts)
        details = _details(attempts, goal, encoder() if self.similarity else None)
        series = [names[recipe, ranker] for recipe, ranker in zip(details["recipe"], details["ranker"], strict=True)]
        details.insert(0, SERIES, series)
        grid = _grid([attempt.outcome.first for attempt in attempts])
        summary, places, cost = [], [], []
        for (recipe, ranker), some in _grouped(attempts).items():
            about: dict[str, Any] = {"recipe": recipe, "ranker": ranker}
            counted = Attempts.of((attempt.case, attempt.outcome) for attempt in some)
            mine = details[(details["recipe"] == recipe) & (details["ranker"] == ranker)]
            similar = {name: float(mine[name].mean()) for name in SIMILARITIES if name in mine}
            summary.append(about | promotion_row(counted, seed=seed) | similar)
            drawn = sorted({attempt.range for attempt in some if attempt.range})
            drawing = {SERIES: names[recipe, ranker]} | about
            places += [drawing | row for row in by_range(counted, drawn, seed)]
            cost += [drawing | row for row in by_trials(counted, grid, seed)]
        whole = pd.DataFrame(summary)
        tables = {
            "attack": _brief(whole, SHOWN),
            "damage": _brief(damage, _harm(self.measure)),
            "detection": _caught(detection),
            "success by place": pd.DataFrame(places),
            "success by cost": pd.DataFrame(cost),
            "attack in full": whole,
            "damage in full": damage,
            "detection in full": detection,
            "targets": details,
        }
        return {name: table for name, table in tables.items() if len(table)}

    def _notes(self, bench: Bench, tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
        details = tables["targets"]
        count = details["query"].nunique()
        yield (
            f"{len(details)} documents were attacked, in the lists of {count} queries"
            + (f" of {len(bench.queries)}" if count < len(bench.queries) and not self.attacked else "")
            + (f", with {self.budget} trials for each recipe and ranker." if self.budget else ".")
        )
        if self.recipes == (QUICK,) and not self.attacked:
            yield (
                f"This is a quick setting, {QUICK}, which trains nothing. 'shaketable attack' has recipes that find "
                "more, so a ranker that is steady here may still be bought."
            )
        better = {"promote": "strictly higher", "demote": "strictly lower"}.get(self.goal, "better for the goal")
        yield (
            ("" if self.attacked else "A recipe sees the places of documents only, never their scores. ")
            + f"A target is a document that is attacked. 'success %' is the percentage of targets that stand {better} "
            "than before, with the ends of its 95 % interval over queries ('low', 'high'); 'boost' is the number of "
            "places won, on average over all targets; 'into top 10 %' is the percentage of the targets from outside "
            "of the first ten that came among them, and 'top 10 %' that of all targets that stand there now; the same "
            "goes for the first five ('top 5 %')."
        )
        yield (
            "'words changed %' is the percentage of a target's words that were changed, and 'similarity' how alike "
            "the texts before and after are, 1 being the same ('sentence similarity' looks at the sentences that "
            "changed); 'trials' is the number of texts that the ranker was asked about for a target, and 'pairs' the "
            "number of query-document pairs that it scored for them."
        )
        yield (
            "In the table 'damage' all changed documents of a query stand in its list at once; 'clean' is before the "
            "attack and 'robust' after it, and 'p' is by a paired t-test. 'LSD' is the mean square of the places that "
            "documents moved, 'RLSD' its share of the largest possible value, and 'LMD' the mean number of places. "
            "'Kendall' is the share of pairs of documents that changed their order, and 'top change' that of queries "
            "with another document in first place."
        )
        yield (
            "The 'robust ranking error' is the share of documents that stand where documents of another grade belong, "
            "or that an attack brings there; 'natural' is its part before the attack, and 'boundary' the part that the "
            "attack adds, which is a lower bound."
        )
        if self.attacked and (details["words"] == 0).any():
            yield (
                "A new text, which replaces no document, is compared with an empty text in its place, and an empty "
                "text stands where a text about nothing does. So 'into top 10 %' says more of it than 'boost'."
            )
        if "detection" in tables:
            yield from _on_detection(tables["detection in full"])
        if count < FEWEST_QUERIES:
            yield f"There are fewer than {FEWEST_QUERIES} queries: nothing is marked as significant."
        if not bench.qrels:
            yield "Nobody judged these queries, so any document may be a target, and RR and nDCG have no value."


MOVEMENTS: Mapping[str, ChangeMeasure] = {
    "top change": TopChange(),
    "Kendall": Kendall(),
    "LSD": LSD(),
    "RLSD": RLSD(),
    "LMD": LMD(),
}
SIMILARITIES = ("similarity", "sentence similarity")
ABOUT = ("recipe", "ranker")
SERIES = "series"
"""The column that drawings tell apart: the ranker, and the recipe where there are several."""
WORTH = (("clean ", ""), ("robust ", ""), ("", " p"))
CLEAN = 99
"""Clean texts that it takes to tell one false alarm in a hundred (`detect.threshold`)."""
SHOWN = (
    *ABOUT, "queries", "targets", "success %", "success % low", "success % high", "boost", "into top 10 %",
    "words changed %", "similarity", "trials",
)  # fmt: skip
"""What a screen has room for; the tables in full have the intervals, and more measures."""


def _harm(measure: str) -> tuple[str, ...]:
    """The same of the damage."""
    worth = (f"{kind}{name}{end}" for name in dict.fromkeys(("RR@10", measure)) for kind, end in WORTH)
    return (*ABOUT, *worth, "robust ranking error", "top change", "Kendall", "LSD")


def _on_detection(rows: pd.DataFrame) -> Iterator[str]:
    """What the table of detectors shows, and whom it has too few clean texts for."""
    yield (
        "The table 'detection' has the percentage of the changed texts that each filter catches, when it raises a "
        "false alarm on one clean text of these lists in a hundred at most. In the full table this is 'caught %', "
        "beside 'false alarms %'."
    )
    if few := list(dict.fromkeys(rows[rows["clean texts"] < CLEAN]["ranker"])):
        yield (
            f"{', '.join(few)}: the lists have fewer than {CLEAN} clean texts, which is too few to tell one false "
            "alarm in a hundred. So no filter can catch anything, and the zeros say nothing; attack the lists of more "
            "queries."
        )


def _brief(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    return table[[column for column in columns if column in table]]


def _caught(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each recipe and ranker, with the share that each detector catches, in per cent."""
    if not len(table):
        return table
    wide = table.pivot_table(index=[*ABOUT, "texts"], columns="detector", values="caught %", sort=False)
    wide.columns.name = None
    return wide.reset_index()


def _reached(qid: str, attempts: Sequence[Attempt]) -> dict[str, list[int]]:
    """docno -> the place that its changed text stands at in the list of a query, alone."""
    return {
        attempt.case.docno: [place]
        for attempt in attempts
        for listing, place in zip(attempt.case.lists, attempt.outcome.after, strict=True)
        if listing.qid == qid
    }


def _details(attempts: Sequence[Attempt], goal: Goal, encode: Encode | None) -> pd.DataFrame:
    """A row for each target and list."""
    import pandas as pd

    rows = []
    for attempt in attempts:
        case, outcome = attempt.case, attempt.outcome
        common = {
            "recipe": attempt.recipe,
            "ranker": attempt.ranker,
            "document": case.docno,
            "range": "{}-{}".format(*attempt.range) if attempt.range else "",
            "words": len(case.doc.text.split()),
            "changed": words_changed(case.doc, outcome.doc),
            "trials": outcome.trials,
            "pairs": outcome.pairs,
            "first": outcome.first,
        }
        for listing, before, after in zip(case.lists, outcome.before, outcome.after, strict=True):
            gain = goal.worth((after,)) - goal.worth((before,))
            places = {"query": listing.qid, "before": before, "after": after, "gain": gain, "success": gain > 0}
            rows.append(common | places)
    details = pd.DataFrame(rows)
    if encode is None:
        return details
    texts = [(attempt.case.doc, attempt.outcome.doc) for attempt in attempts for _ in attempt.case.lists]
    alike = similarity(encode, [before for before, _ in texts], [after for _, after in texts])
    known = np.array([bool(before.text.strip()) for before, _ in texts])
    values = {"similarity": alike.doc, "sentence similarity": alike.sentence}
    return details.assign(**{name: np.where(known, value, np.nan) for name, value in values.items()})


def _grouped(attempts: Sequence[Attempt]) -> dict[tuple[str, str], list[Attempt]]:
    """By recipe and ranker."""
    groups: dict[tuple[str, str], list[Attempt]] = {}
    for attempt in attempts:
        groups.setdefault((attempt.recipe, attempt.ranker), []).append(attempt)
    return groups


def _names(attempts: Sequence[Attempt]) -> dict[tuple[str, str], str]:
    """What drawings call each recipe and ranker: as short as it can be."""
    groups = _grouped(attempts)
    recipes = {recipe for recipe, _ in groups}
    if len(recipes) == 1:
        return {(recipe, ranker): ranker for recipe, ranker in groups}
    short = Counter(recipe.partition("(")[0] for recipe in recipes)
    return {
        (recipe, ranker): f"{ranker}, {name if short[name := recipe.partition('(')[0]] == 1 else recipe}"
        for recipe, ranker in groups
    }


def _grid(first: Sequence[int]) -> list[int]:
    """Numbers of trials to show the cost at: 0, and up to twenty of those that brought a first success."""
    won = sorted({trial for trial in first if trial})
    return [0, *sorted({won[round(i * (len(won) - 1) / 19)] for i in range(20)})] if len(won) > 20 else [0, *won]


def _said(name: str, surrogate: Surrogate) -> str:
    return (
        f"{name}: the attack used a surrogate, a net that learned from the order of {surrogate.lists} lists of queries "
        f"that are not attacked; they cost {surrogate.pairs:,} query-document pairs, once. On lists that it did not "
        f"learn from, its order agrees with that of {name} at nDCG@10 {surrogate.agreement:.2f}."
    )


def _errors(errors: Sequence[RankingError]) -> dict[str, float]:
    """Means over queries."""
    names = ("natural", "boundary", "robust")
    return {f"{name} ranking error": float(np.mean([getattr(error, name) for error in errors])) for name in names}


def _figures(tables: Mapping[str, pd.DataFrame]) -> tuple[Figure, ...]:
    figures = (
        Figure(
            "slope",
            "targets",
            "Where each target stood before, and where it stands after",
            x="before",
            y="after",
            color=SERIES,
            caption=(
                "Each line is an attacked document, and the first place is on top: a line that rises has won places."
            ),
        ),
        Figure(
            "bars",
            "success by place",
            "How often attacks succeed, by where the document stood before, in per cent",
            x="places",
            y="success %",
            color=SERIES,
            caption="The whiskers are 95 % intervals over queries.",
        ),
        Figure(
            "lines",
            "success by cost",
            "What success costs: the share of attacks that have succeeded after a number of trials, in per cent",
            x="trials",
            y="success %",
            color=SERIES,
            caption="A trial is a text that the ranker is asked about.",
        ),
    )
    return tuple(figure for figure in figures if figure.table in tables)


def _findings(tables: Mapping[str, pd.DataFrame], goal: Goal) -> Iterator[Finding]:
    """The success rate, the boost and what is left of RR@10, by recipe and ranker."""
    recipes = tables["attack"]["recipe"].nunique()
    climbing = goal.worth((1,)) > goal.worth((2,))
    for row in tables["attack in full"].to_dict("records"):
        about: Any = {"ranker": row["ranker"], "n": int(row["queries"]), "where": row["recipe"] if recipes > 1 else ""}
        for name, heading, lower in (("attack success %", "success %", True), ("attack boost", "boost", climbing)):
            ends = {"low": row[f"{heading} low"], "high": row[f"{heading} high"]}
            better: Any = "lower" if lower else "higher"
            yield Finding(name=name, value=row[heading], better=better, **ends, **about)
        if climbing:
            ends = {"low": row[f"{INTO} low"], "high": row[f"{INTO} high"]}
            more: Any = {"against": row["recipe"], "facet": ATTACK, "values": _arrived(tables["targets"], row)}
            yield Finding(name=INTO_TEN, value=row[INTO], better="lower", **ends, **about, **more)
    for row in tables["damage in full"].to_dict("records"):
        about = {"ranker": row["ranker"], "n": int(row["queries"]), "where": row["recipe"] if recipes > 1 else ""}
        for heading in [str(column) for column in row if f"{str(column).removeprefix('robust ')} p" in row]:
            yield Finding(name=heading, value=row[heading], p=row[f"{heading.removeprefix('robust ')} p"], **about)


def _arrived(targets: pd.DataFrame, row: Mapping[Any, Any]) -> dict[str, float]:
    """Of each query: the share of its targets from outside the first ten that came among them, in per cent."""
    mine = targets[(targets["recipe"] == row["recipe"]) & (targets["ranker"] == row["ranker"])]
    mine = mine[mine["before"] > TOP]
    shares = (100.0 * (mine["after"] <= TOP)).groupby(mine["query"], sort=False).mean()
    return {str(qid): float(share) for qid, share in shares.items()}


def _examples(attempts: Sequence[Attempt], goal: Goal) -> Iterator[Example]:
    """The attacks of each recipe and ranker that won most."""
    for (recipe, ranker), some in _grouped(attempts).items():
        gain = {id(a): goal.worth(a.outcome.after) - goal.worth(a.outcome.before) for a in some}
        for attempt in sorted(some, key=lambda a: -gain[id(a)])[:EXAMPLES]:
            if gain[id(attempt)] > 0:
                yield Example(
                    ranker,
                    attempt.case.query,
                    recipe,
                    attempt.case.doc.text,
                    attempt.outcome.doc.text,
                    document=attempt.case.docno,
                    place_before=attempt.outcome.before[0],
                    place_after=attempt.outcome.after[0],
                )


def _documents(attempts: Sequence[Attempt]) -> Iterator[Attacked]:
    """What is left for others: every document that an attack changed."""
    for attempt in attempts:
        case, outcome = attempt.case, attempt.outcome
        if outcome.doc != case.doc:
            yield Attacked(
                {listing.qid: listing.query for listing in case.lists},
                case.docno,
                outcome.doc,
                case.doc,
                attempt.recipe,
                attempt.ranker,
                outcome.before,
                outcome.after,
                outcome.trials,
            )


def _nothing(notes: Sequence[str], failures: Sequence[Failure], silent: Sequence[Failure]) -> str:
    """Why there is nothing to show: what attacks failed of, what rankers did before, or what was left out."""
    if failures:
        return f"every attack failed; the first: {failures[0].reason}"
    why = notes[0] if notes else silent[0].reason if silent else ""
    return "there is no document to attack" + (f": {why.removesuffix('.')}" if why else "")

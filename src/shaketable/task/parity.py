"""Are two rankers the same one? The same model in two servers, precisions, batch sizes, or before and after an upgrade.

All rankers score the same documents, and are asked anew: a score that is kept says nothing of the ranker of today.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.chance import draws_for
from shaketable.errors import BadInput, UnknownName, check
from shaketable.measure.comparison import (
    BETTER,
    COLUMNS,
    EXPLAINED,
    Mean,
    compare,
    movement,
    movement_means,
    weighted_mean,
)
from shaketable.measure.effectiveness import score_table, tie_rate
from shaketable.measure.parity import (
    VERDICTS,
    beyond,
    differences,
    end_share,
    largest,
    orders,
    tied_share,
    verdict,
)
from shaketable.score.anew import Anew
from shaketable.score.road import Traits, settled
from shaketable.types import Example, Figure, Finding, Recorded, Result, Run, Slate, ranking

if TYPE_CHECKING:
    from shaketable.bench import Bench

SHOWN = 10
"""Documents, and lists, that are shown: those that differ most."""
PARITY, NOISE, WHERE, LISTS, PER_QUERY = "parity", "each ranker", "where scores differ most", "lists", "per query"


@dataclass(frozen=True)
class Parity:
    """Whether rankers are the same: score differences beside the noise floor, lists that change, ties, saturation.

    reference   the ranker that the others are compared with; the first one unless another is named
    repeats     queries whose lists each ranker scores twice more, for its noise: once as they were, once in another
                order where a score does not depend on the list; 0 for none
    measure     what lists are worth, where there are judgements
    """

    reference: str = ""
    repeats: int = 10
    measure: str = "nDCG@10"

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = False
    asked_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check("parity", self.repeats >= 0, "repeats", "0 or more", self.repeats)

    def run(self, bench: Bench) -> Result:
        import pandas as pd

        reference = self.reference or next(iter(bench.models))
        if reference not in bench.models:
            raise UnknownName("ranker", reference, bench.models)
        if len(bench.models) < 2:
            raise BadInput("parity compares two rankers or more: --ranker old=SPEC --ranker new=SPEC")
        asked = {name: _Answers.of(bench, name, self.repeats) for name in bench.models}
        rows, per_query, where, examples = [], [], [], []
        for name in bench.models:
            if name != reference:
                row, queries, places, some = self._compared(bench, reference, name, asked)
                rows.append(row)
                per_query += queries
                where += places
                examples += some
        tables = {
            PARITY: pd.DataFrame([_overview(row) for row in rows]),
            LISTS: pd.DataFrame([line for row in rows for line in _lines(row)]),
            NOISE: pd.DataFrame([_about(name, one) for name, one in asked.items()]),
            WHERE: pd.DataFrame(where),
            PER_QUERY: pd.DataFrame(per_query),
        }
        return Result(
            "parity",
            "Are these rankers the same?",
            {name: table for name, table in tables.items() if len(table)},
            (
                Figure(
                    "distribution",
                    PER_QUERY,
                    "Largest score difference of each query's list",
                    x="ranker",
                    y="largest difference",
                ),
            ),
            tuple(self._notes(bench, reference, rows)),
            tuple(finding for row in rows for finding in _findings(row, asked)),
            tuple(examples),
            brief=(PARITY, LISTS, NOISE, WHERE),
        )

    def _compared(
        self, bench: Bench, reference: str, name: str, asked: dict[str, _Answers]
    ) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]], list[Example]]:
        """One ranker against the reference: numbers, a row for each query, the largest differences, examples."""
        old, new = asked[reference], asked[name]
        found = differences(old.scores, new.scores)
        if not found:
            raise BadInput(f"{reference} and {name} have no document of a query in common: nothing can be compared")
        noise = float(np.nanmax([old.noise, new.noise, 0.0]))
        lists = orders(old.lists, new.lists)
        moved = {qid: movement(*both) for qid, both in lists.items()}
        many = beyond(found, noise)
        place = verdict(many, lists)
        changed = {qid: 100.0 * (before != after) for qid, (before, after) in lists.items()}
        top_ten = {qid: 100.0 * (before[:10] != after[:10]) for qid, (before, after) in lists.items()}
        means = {
            "lists that change %": weighted_mean(changed, bench.seed, bench.weights),
            "first ten that change %": weighted_mean(top_ten, bench.seed, bench.weights),
            "Kendall tau": weighted_mean(
                {qid: 1 - 2 * one.kendall for qid, one in moved.items()}, bench.seed, bench.weights
            ),
            **movement_means(list(moved), list(moved.values()), bench.seed, bench.weights),
        }
        row: dict[str, Any] = {
            "ranker": name,
            "reference": reference,
            "verdict": VERDICTS[place],
            "place": place,
            "largest difference": found[0].size,
            "noise floor": noise,
            "beyond noise %": 100 * many / len(found),
            "pairs": len(found),
            "queries": len(lists),
            "means": means,
        }
        if bench.qrels:
            values = score_table(self.measure, bench.qrels, {"old": old.lists, "new": new.lists})
            before, after = (dict(zip(values.topics, of.tolist(), strict=True)) for of in values.values)
            row |= {"judged": compare(before, after, bench.seed, bench.weights), "measure": self.measure}
        queries = _per_query(name, old, new, moved, changed)
        shown = [
            {
                "ranker": name,
                "query": one.query,
                "document": one.document,
                reference: one.first,
                name: one.second,
                "difference": one.second - one.first,
                f"place by {reference}": lists[one.query][0].index(one.document) + 1,
                f"place by {name}": lists[one.query][1].index(one.document) + 1,
            }
            for one in found[:SHOWN]
            if one.size > 0
        ]
        return row, queries, shown, _examples(bench, name, lists, moved)

    def _notes(self, bench: Bench, reference: str, rows: list[dict[str, Any]]) -> list[str]:
        notes = [f"{row['ranker']} against {reference}: {row['verdict']}." for row in rows]
        notes += [
            f"Every ranker scored the same documents anew; no score was looked up. Each ranker ranks {bench.pool}.",
            (
                "The 'noise floor' is the largest difference between two answers of one ranker to the same question, "
                "of the two rankers the larger. A difference is beyond noise if it is more than twice that and more "
                "than a millionth of the score."
            ),
            (
                "'tied %' is the percentage of documents whose score another document of the list has too; 'at the "
                "ends %' is the percentage of scores that equal the highest or the lowest of all, where several do, "
                "which is a sign of saturation."
            ),
            f"'Kendall tau' is 1 for the same order and -1 for the reverse. {EXPLAINED}",
        ]
        if not bench.qrels:
            notes.append("Which of two lists is the better one, only judgements could tell.")
        if bench.weights:
            notes.append(f"{bench.weighing[0].upper()}{bench.weighing[1:]}.")
        return notes


@dataclass(frozen=True)
class _Answers:
    """What a ranker answered: its scores as they came, the scores that order its lists, and how steady it is."""

    scores: Run
    lists: Run
    noise: float
    repeated: int
    shaken: float
    """Of the repeated lists: the share, in per cent, that came in another order."""

    @classmethod
    def of(cls, bench: Bench, name: str, repeats: int) -> _Answers:
        """Ask a ranker for all lists, and for some of them again; a run has its lists, and nothing to repeat."""
        ranker = bench.ranker(name)
        if isinstance(ranker, Recorded):
            run = bench.run(name)
            return cls(run, run, float("nan"), 0, float("nan"))
        traits = Traits.of(ranker)
        scores = _asked(bench, name, bench.candidates)
        if not scores:
            reason = f": {bench.road.failures[-1].reason}" if bench.road.failures else ""
            raise BadInput(f"ranker {name} scored none of the {len(bench.queries)} queries{reason}")
        lists = _settled(scores, traits.noise)
        some = sorted(scores, key=lambda qid: draws_for(bench.seed, "repeats", qid).bits())[:repeats]
        few = {qid: bench.candidates[qid] for qid in some}
        again = [_asked(bench, name, few)] if few else []
        if few and traits.pointwise:
            again.append(_asked(bench, name, few, backwards=True))
        noise = max((largest(scores, one) for one in again), default=float("nan"))
        steady = [
            ranking(lists[qid]) == ranking(scores_again)
            for one in again
            for qid, scores_again in _settled(one, traits.noise).items()
        ]
        shaken = 100 * (1 - float(np.mean(steady))) if steady else float("nan")
        return cls(scores, lists, noise, sum(map(len, few.values())), shaken)


def _asked(bench: Bench, name: str, candidates: Run, backwards: bool = False) -> Run:
    """The scores of candidates, as the ranker gives them now."""
    docnos = {qid: ranking(candidates[qid]) for qid in candidates if candidates[qid]}
    if backwards:
        docnos = {qid: listed[::-1] for qid, listed in reversed(docnos.items())}
    slates = [Slate(bench.texts[qid], bench.documents(listed)) for qid, listed in docnos.items()]
    answers = bench.road.score(Anew(bench.ranker(name)), slates, name)
    return {
        qid: dict(zip(listed, scores.tolist(), strict=True))
        for (qid, listed), scores in zip(docnos.items(), answers, strict=True)
        if scores is not None
    }


def _settled(scores: Run, noise: float) -> Run:
    """Scores as lists are ordered by: those that differ by no more than a ranker's own noise tie."""
    if not noise:
        return scores
    return {
        qid: dict(zip(of, settled(np.array(list(of.values())), noise).tolist(), strict=True))
        for qid, of in scores.items()
    }


def _per_query(
    name: str, old: _Answers, new: _Answers, moved: dict[str, Any], changed: dict[str, float]
) -> list[dict[str, Any]]:
    rows = []
    for qid, one in moved.items():
        both = {qid: old.scores[qid]}, {qid: new.scores[qid]}
        rows.append(
            {
                "ranker": name,
                "query": qid,
                "largest difference": largest(*both),
                "list changes": bool(changed[qid]),
                **{heading: getattr(one, field) for field, heading in COLUMNS.items() if field != "top"},
                "new first": bool(one.top),
            }
        )
    return rows


def _overview(row: dict[str, Any]) -> dict[str, Any]:
    keys = ("ranker", "reference", "verdict", "largest difference", "noise floor", "beyond noise %", "pairs", "queries")
    return {key: row[key] for key in keys}


def _lines(row: dict[str, Any]) -> list[dict[str, Any]]:
    """What becomes of the lists, a line for each number."""
    about = {"ranker": row["ranker"], "reference": row["reference"]}
    lines = [
        about | {"measure": heading, "mean": mean.value, "low": mean.low, "high": mean.high, "queries": mean.n}
        for heading, mean in row["means"].items()
    ]
    if "judged" in row:
        one = row["judged"]
        what = {"measure": f"{row['measure']} change", "mean": one.change, "low": one.low, "high": one.high}
        lines.append(about | what | {"queries": one.n})
    return lines


def _about(name: str, one: _Answers) -> dict[str, Any]:
    """A ranker by itself: its noise, its ties, its ends."""
    every = [score for scores in one.scores.values() for score in scores.values()]
    return {
        "ranker": name,
        "noise floor": one.noise,
        "repeated pairs": one.repeated,
        "repeated lists that change %": one.shaken,
        "tied %": 100 * tied_share(one.scores),
        "at the ends %": 100 * end_share(one.scores),
        "lists of one score %": 100 * tie_rate(one.scores).constant_lists,
        "lowest": min(every),
        "highest": max(every),
    }


def _findings(row: dict[str, Any], asked: dict[str, _Answers]) -> list[Finding]:
    """What gates read. "parity" is the place of the verdict: 0 is equal within noise, 3 a change in the first ten."""
    about: Any = {"ranker": row["ranker"], "against": row["reference"], "n": row["queries"]}
    means: dict[str, Mean] = row["means"]
    lower: Any = {"better": "lower"}
    one = asked[row["ranker"]]
    found = [
        Finding(name="parity", value=float(row["place"]), **lower, **about),
        Finding(name="largest difference", value=row["largest difference"], **lower, **about),
        Finding(name="beyond noise %", value=row["beyond noise %"], **lower, **about),
        Finding(name="noise floor", value=one.noise, **lower, **about),
        Finding(name="tied %", value=100 * tied_share(one.scores), **lower, **about),
        Finding(name="at the ends %", value=100 * end_share(one.scores), **lower, **about),
    ]
    for heading, mean in means.items():
        better = BETTER.get(heading, "higher" if heading == "Kendall tau" else "lower")
        found.append(
            Finding(
                row["ranker"],
                heading,
                mean.value,
                mean.low,
                mean.high,
                mean.n,
                better=better,
                against=row["reference"],
            )
        )
    if "judged" in row:
        change = row["judged"]
        name = f"{row['measure']} change"
        found.append(Finding(name=name, value=change.change, low=change.low, high=change.high, p=change.p, **about))
    return found


def _examples(bench: Bench, name: str, lists: dict[str, Any], moved: dict[str, Any]) -> list[Example]:
    """The lists that moved most: the query, the document that was first, and where it stands now."""
    worst = sorted(moved, key=lambda qid: (-moved[qid].fall, moved[qid].overlap))[:3]
    found = []
    for qid in worst:
        before, after = lists[qid]
        if before != after:
            text = bench.texts[qid]
            now = after.index(before[0]) + 1 if before[0] in after else 0
            found.append(Example(name, qid, "parity", text, text, document=before[0], place_before=1, place_after=now))
    return found

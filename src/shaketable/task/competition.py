"""How steady is a ranking while authors rewrite their documents to win it?

Wu, Zhang, Guo, Fan, Cheng. Are neural ranking models robust? TOIS 2022, sections 5.2, 5.3 and 5.5; the comparison of
consecutive rounds is Goren, Kurland, Tennenholtz, Raiber. Ranking robustness under adversarial document manipulations.
SIGIR 2018.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.data.competition import SAMPLE, read_competition
from shaketable.errors import NotApplicable, RankerFailed
from shaketable.measure.change import Kendall, TopChange
from shaketable.measure.comparison import compare, query_means
from shaketable.measure.effectiveness import score_tables
from shaketable.measure.facets import COMPETITION
from shaketable.measure.significance import FEWEST_QUERIES, bootstrap_interval
from shaketable.types import Competition, Doc, Example, Figure, Finding, Result, Slate, ranking

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.bench import Bench

CHANGES = ("TC", "KT")
MEASURES = {"AP": "MAP", "nDCG@5": "nDCG@5"}
"""What is measured in each round of each query, and what the mean is called."""
EXAMPLES = 3
UNDECIDED = "not told apart"
DIGITS = 12
"""Of a difference of means; what lies behind is rounding, and must not decide on which side of 0 it is."""

EXPLAINED = (
    "'TC' (top change) is the share of pairs of consecutive rounds after which another author stands first.",
    (
        "'KT' (Kendall's tau distance) is the share of pairs of authors that change their order in the next round. "
        "Documents with the same score share a place, and a pair that shares a place before or after has not changed "
        "its order. Lower is steadier."
    ),
    (
        "A ranker that is blind to what authors write is perfectly steady (TC = KT = 0), so read both beside its "
        "effectiveness, if there are judgements."
    ),
)


@dataclass(frozen=True)
class RankCompetition:
    """How steady the ranking is while authors rewrite documents to win: top change (TC) and Kendall distance (KT).

    `data` is a folder with rounds of documents by named authors (`data.competition` says what is in it), or "sample".
    Without it, an audit of the sample takes the competition that comes with the sample, and any other leaves the task
    out. In every round the documents of a query are ranked by the same ranker, as it was opened on the audited
    collection, and the authors' order is compared with that of the next round.
    """

    data: str = ""

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True

    def run(self, bench: Bench) -> Result:
        import pandas as pd

        competition = read_competition(self._source(bench))
        qids = [qid for qid in competition.queries if len(competition.matches(qid)) > 1][: bench.limit]
        ranked = {name: _ranked(bench, name, competition, qids) for name in bench.scoring}
        steps = {
            name: [step for qid in qids for step in steps_of(competition, qid, lists)] for name, lists in ranked.items()
        }
        judged = _judged(competition, qids, ranked)
        names = [*CHANGES, *judged]
        values = {
            name: {key: query_means([s.qid for s in own], [getattr(s, key.lower()) for s in own]) for key in CHANGES}
            | {key: by_ranker[name].by_query for key, by_ranker in judged.items()}
            for name, own in steps.items()
        }
        summary = pd.DataFrame([_row(name, values[name], len(steps[name]), bench.seed) for name in ranked])
        rounds = _by_round(steps, judged, bench.seed)
        orders = _orders(values, names, bench.seed)
        tables = {
            "competition": summary,
            "pairs of rankers": orders,
            "rewritten documents": _rewritten(steps, competition, bench.seed),
            "by round": rounds,
            "authors": _authors(ranked, competition),
            "TC and KT": _long(summary, list(CHANGES), "share"),
            "MAP and nDCG@5": _long(summary, list(judged), "mean"),
            "per query": pd.DataFrame([{"ranker": n} | step.row for n, own in steps.items() for step in own]),
        }
        several = len(ranked) > 1
        return Result(
            "competition",
            "How steady is the ranking while authors rewrite their documents to win it?",
            {name: frame for name, frame in tables.items() if len(frame) and (several or name != "pairs of rankers")},
            _figures(rounds, bool(judged)),
            tuple(_notes(bench, competition, qids, steps, judged, several)),
            tuple(_findings(summary, orders, names)),
            tuple(example for name in ranked for example in _winners(name, steps[name], competition)),
            brief=("competition", "pairs of rankers", "rewritten documents"),
        )

    def _source(self, bench: Bench) -> str:
        if self.data:
            return self.data
        if bench.collection.source.partition("?")[0] == SAMPLE:
            return SAMPLE
        raise NotApplicable(
            "it needs documents that authors wrote in rounds; name their folder, as in "
            "--task \"competition(data='my-folder')\", or take those of the sample, data='sample'"
        )


Match = Mapping[str, float]
"""author -> score, in one round of one query."""
Lists = Mapping[tuple[str, int], Match]
"""(query id, round) -> the scores of the authors' documents."""


@dataclass(frozen=True)
class Step:
    """From one round of a query to the next, as one ranker sees both."""

    qid: str
    start: int
    end: int
    before: Match
    after: Match

    @cached_property
    def old(self) -> list[str]:
        """The authors before, best first; those that tie in the order of their names, the same in every round."""
        return ranking(self.before)

    @cached_property
    def new(self) -> list[str]:
        return ranking(self.after)

    @cached_property
    def tc(self) -> float:
        return TopChange().between(self.old, self.new)

    @cached_property
    def kt(self) -> float:
        return Kendall().between(self.before, self.after)

    @property
    def row(self) -> dict[str, Any]:
        first = {"first before": self.old[0], "first after": self.new[0]}
        return {"query": self.qid, "round": self.start, "next": self.end} | first | {"TC": self.tc, "KT": self.kt}


def steps_of(competition: Competition, qid: str, lists: Lists) -> list[Step]:
    """From each round of a query to the next that there is, where both were ranked and have two authors in common."""
    return [
        Step(qid, start, end, before, after)
        for start, end in pairwise(competition.matches(qid))
        if (before := lists.get((qid, start))) and (after := lists.get((qid, end)))
        if len(before.keys() & after.keys()) > 1
    ]


def _ranked(bench: Bench, name: str, competition: Competition, qids: Sequence[str]) -> Lists:
    """What a ranker, opened on the bench's collection, makes of every round; a list that it failed on is absent."""
    keys = [(qid, turn) for qid in qids for turn in competition.matches(qid)]
    docs = [dict(sorted(competition.rounds[turn][qid].items())) for qid, turn in keys]
    slates = [
        Slate(competition.queries[qid].text, tuple(own.values())) for (qid, _), own in zip(keys, docs, strict=True)
    ]
    answers = bench.road.score(bench.ranker(name), slates, name, bench.origin(name))
    lists = {
        key: dict(zip(own, scores.tolist(), strict=True))
        for key, own, scores in zip(keys, docs, answers, strict=True)
        if scores is not None
    }
    if not any(steps_of(competition, qid, lists) for qid in qids):
        reason = f": {bench.road.failures[0].reason}" if bench.road.failures else ""
        raise RankerFailed(f"ranker {name} ranked no two consecutive rounds of the {len(qids)} queries{reason}")
    return lists


@dataclass(frozen=True)
class Judged:
    """A measure of one ranker's lists: its value for each judged round of each query."""

    values: Mapping[tuple[str, int], float]

    @property
    def by_query(self) -> dict[str, float]:
        return query_means([qid for qid, _ in self.values], list(self.values.values()))

    def in_round(self, turn: int) -> list[float]:
        return [value for (_, number), value in self.values.items() if number == turn]


def _judged(competition: Competition, qids: Sequence[str], ranked: Mapping[str, Lists]) -> dict[str, dict[str, Judged]]:
    """heading -> ranker -> values. Each round of each query is a topic, and a ranker without a list for it has 0."""
    topics = [(qid, turn) for qid in qids for turn in competition.matches(qid)]
    judged = [(qid, turn) for qid, turn in topics if competition.grades.get(turn, {}).get(qid)]
    if not judged:
        return {}
    qrels = {str(i): competition.grades[turn][qid] for i, (qid, turn) in enumerate(judged)}
    runs = {n: {str(i): lists[key] for i, key in enumerate(judged) if key in lists} for n, lists in ranked.items()}
    tables = score_tables(tuple(MEASURES), qrels, runs)
    return {
        heading: {name: Judged(dict(zip(judged, table.row(name).tolist(), strict=True))) for name in runs}
        for heading, table in zip(MEASURES.values(), tables, strict=True)
    }


def _row(name: str, values: Mapping[str, Mapping[str, float]], pairs: int, seed: int) -> dict[str, Any]:
    """Means over queries with their intervals."""
    row: dict[str, Any] = {"ranker": name}
    for key, by_query in values.items():
        mean, low, high = _mean(list(by_query.values()), seed)
        row |= {key: mean, f"{key} low": low, f"{key} high": high}
    return row | {"queries": len(values["TC"]), "pairs of rounds": pairs}


def _mean(values: Sequence[float], seed: int) -> tuple[float, float, float]:
    """Mean and the ends of its 95 % interval over queries."""
    low, high = bootstrap_interval(values, seed)
    return float(np.mean(values)), float(low), float(high)


def _long(summary: pd.DataFrame, keys: list[str], value: str) -> pd.DataFrame:
    """Some measures under each other, each with its interval: what bars are drawn of."""
    frame = summary.melt(["ranker", "queries"], keys, "measure", value)
    for end in ("low", "high"):
        frame[end] = summary.melt("ranker", [f"{key} {end}" for key in keys])["value"]
    return frame


def _orders(values: Mapping[str, Mapping[str, Mapping[str, float]]], names: Sequence[str], seed: int) -> pd.DataFrame:
    """Every two rankers, query by query: which is lower in TC and KT, or higher in MAP and nDCG@5."""
    import pandas as pd

    columns = ["measure", "ranker", "other", "difference", "low", "high", "order", "queries"]
    rows: list[dict[str, Any]] = []
    for key in names:
        for one, other in combinations(values, 2):
            both = compare(values[other][key], values[one][key], seed)
            change, low, high = (round(value, DIGITS) for value in (both.change, both.low, both.high))
            apart = both.n >= FEWEST_QUERIES and (low > 0 or high < 0)
            word = "is steadier" if key in CHANGES else "is better"
            ahead = one if (change < 0) == (key in CHANGES) else other
            about = {"measure": key, "ranker": one, "other": other, "difference": change}
            ends = {"low": low, "high": high}
            rows.append(about | ends | {"order": f"{ahead} {word}" if apart else UNDECIDED, "queries": both.n})
    return pd.DataFrame(rows, columns=columns)


def _by_round(
    steps: Mapping[str, Sequence[Step]], judged: Mapping[str, Mapping[str, Judged]], seed: int
) -> pd.DataFrame:
    """TC and KT on arriving in each round, and how good the lists of that round are."""
    import pandas as pd

    rows = []
    for name, own in steps.items():
        for turn in sorted({step.end for step in own}):
            here = [step for step in own if step.end == turn]
            row: dict[str, Any] = {"ranker": name, "round": turn}
            for key in CHANGES:
                mean, low, high = _mean([getattr(step, key.lower()) for step in here], seed)
                row |= {key: mean, f"{key} low": low, f"{key} high": high}
            for heading, by_ranker in judged.items():
                values = by_ranker[name].in_round(turn)
                row[heading] = float(np.mean(values)) if values else np.nan
            rows.append(row | {"queries": len(here)})
    return pd.DataFrame(rows)


def _rewritten(steps: Mapping[str, Sequence[Step]], competition: Competition, seed: int) -> pd.DataFrame:
    """Where documents stood before and after their authors changed them, and where those stood that nobody changed."""
    import pandas as pd

    rows = []
    for name, own in steps.items():
        for changed in (True, False):
            moves = [
                (step.qid, step.old.index(author) + 1, step.new.index(author) + 1)
                for step in own
                for author in step.old
                if author in step.after and _is_changed(competition, step, author) is changed
            ]
            if not moves:
                continue
            qids, old, new = zip(*moves, strict=True)
            gains = np.subtract(old, new)
            means = [
                query_means(qids, np.asarray(v, float)) for v in (old, new, gains, 100 * (gains > 0), 100 * (gains < 0))
            ]
            before, after, gain, rose, fell = ([*by_query.values()] for by_query in means)
            won, low, high = _mean(gain, seed)
            rows.append(
                {
                    "ranker": name,
                    "documents": "rewritten" if changed else "left as they were",
                    "number": len(moves),
                    "place before": float(np.mean(before)),
                    "place after": float(np.mean(after)),
                    "places won": won,
                    "places won low": low,
                    "places won high": high,
                    "rose %": float(np.mean(rose)),
                    "fell %": float(np.mean(fell)),
                }
            )
    return pd.DataFrame(rows)


def _docs(competition: Competition, step: Step, author: str) -> tuple[Doc, Doc]:
    return competition.rounds[step.start][step.qid][author], competition.rounds[step.end][step.qid][author]


def _is_changed(competition: Competition, step: Step, author: str) -> bool:
    before, after = _docs(competition, step, author)
    return before != after


def _authors(ranked: Mapping[str, Lists], competition: Competition) -> pd.DataFrame:
    """How each author fared with each ranker: documents, share of first places, mean place, mean grade."""
    import pandas as pd

    rows = []
    for name, lists in ranked.items():
        places: dict[str, list[int]] = {}
        grades: dict[str, list[int]] = {}
        for (qid, turn), match in lists.items():
            known = competition.grades.get(turn, {}).get(qid, {})
            for place, author in enumerate(ranking(match), 1):
                places.setdefault(author, []).append(place)
                if author in known:
                    grades.setdefault(author, []).append(known[author])
        rows += [
            {
                "ranker": name,
                "author": author,
                "documents": len(own),
                "first %": 100 * own.count(1) / len(own),
                "mean place": float(np.mean(own)),
                **({"mean grade": float(np.mean(grades[author]))} if author in grades else {}),
            }
            for author, own in sorted(places.items())
        ]
    return pd.DataFrame(rows)


def _winners(ranker: str, steps: Sequence[Step], competition: Competition) -> list[Example]:
    """Authors who came from furthest behind to the first place with a new text; with judgements, the grades of both."""
    climbs = [
        (step.old.index(step.new[0]) + 1, step)
        for step in steps
        if step.new[0] in step.before and step.tc and _is_changed(competition, step, step.new[0])
    ]
    examples = []
    for place, step in sorted(climbs, key=lambda climb: -climb[0])[:EXAMPLES]:
        author = step.new[0]
        old, new = _docs(competition, step, author)
        grades = [competition.grades.get(turn, {}).get(step.qid, {}).get(author) for turn in (step.start, step.end)]
        worth = [np.nan if grade is None else float(grade) for grade in grades]
        query, shake = competition.queries[step.qid].text, f"round {step.start} to {step.end}"
        examples.append(Example(ranker, query, shake, old.text, new.text, worth[0], worth[1], author, place, 1))
    return examples


def _notes(
    bench: Bench,
    competition: Competition,
    qids: Sequence[str],
    steps: Mapping[str, Sequence[Step]],
    judged: Mapping[str, Any],
    several: bool,
) -> list[str]:
    matches = {qid: competition.matches(qid) for qid in qids}
    lists = [(turn, qid, docs) for qid, own in matches.items() for turn, docs in own.items()]
    authors = {author for _, _, docs in lists for author in docs}
    notes = [
        (
            f"The competition {competition.name} has {len(qids)} queries, and {sum(len(docs) for *_, docs in lists)} "
            f"documents that {len(authors)} authors wrote in {len({turn for turn, *_ in lists})} rounds. The "
            f"statistics of words that rankers use come from {bench.collection.name}, and not from the competition."
        ),
        *EXPLAINED,
    ]
    if alone := sum(len(own.get(qid, ())) == 1 for own in competition.rounds.values() for qid in qids):
        notes.append(f"{alone} documents were alone in their round, as examples are, and are left out.")
    if judged:
        blank = sum(not any(g > 0 for g in competition.grades.get(t, {}).get(q, {}).values()) for t, q, _ in lists)
        none = f" In {blank} of {len(lists)} lists no document is relevant, or none is judged." if blank else ""
        notes.append(f"'MAP' and 'nDCG@5' are means over all judged rounds of all queries.{none}")
    notes.append(
        "'low' and 'high' are the ends of a 95 % interval over queries. The value of a query is the mean over its "
        "pairs of rounds, because these depend on each other."
    )
    if several:
        few = len(qids) < FEWEST_QUERIES
        claim = (
            f"With fewer than {FEWEST_QUERIES} queries no order is claimed."
            if few
            else "An order is claimed where this interval leaves out 0; it is not corrected for the number of pairs."
        )
        notes.append(
            f"The table of pairs has the difference of two rankers over the same queries, with its interval. {claim}"
        )
    notes.append(
        "'places won' is by how many places documents rose from a round to the next, and negative where they fell; "
        "'rose %' and 'fell %' are the percentages of documents that did. 'number' counts the documents; 'place "
        "before' and 'place after' are their mean places. Of authors, 'first %' is the percentage of rounds that they "
        "win, and 'mean place' and 'mean grade' are those of their documents."
    )
    missing = {name: sum(max(0, len(own) - 1) for own in matches.values()) - len(steps[name]) for name in steps}
    notes += [f"{name}: {n} pairs of rounds could not be compared." for name, n in missing.items() if n]
    return notes


def _findings(summary: pd.DataFrame, orders: pd.DataFrame, names: Sequence[str]) -> list[Finding]:
    """The means, and the differences between rankers; effectiveness is named after the task: no gate confuses it."""
    findings = [
        Finding(
            row["ranker"],
            key if key in CHANGES else f"competition {key}",
            float(row[key]),
            float(row[f"{key} low"]),
            float(row[f"{key} high"]),
            n=int(row["queries"]),
            better="lower" if key in CHANGES else "higher",
            facet=COMPETITION if key == "KT" else "",
        )
        for _, row in summary.iterrows()
        for key in names
    ]
    findings += [
        Finding(
            row["ranker"],
            f"difference of {row['measure']}",
            float(row["difference"]),
            float(row["low"]),
            float(row["high"]),
            n=int(row["queries"]),
            better="lower" if row["measure"] in CHANGES else "higher",
            against=row["other"],
        )
        for _, row in orders.iterrows()
    ]
    return findings


def _figures(rounds: pd.DataFrame, judged: bool) -> tuple[Figure, ...]:
    changes = Figure(
        "bars",
        "TC and KT",
        "How much of the ranking changes from a round to the next (lower is steadier)",
        x="ranker",
        y="share",
        color="measure",
        caption="TC: another author is first. KT: the share of pairs of authors that change order. Whiskers: 95 %.",
        source="Wu et al. 2022, Fig. 7",
    )
    worth = Figure(
        "bars",
        "MAP and nDCG@5",
        "How good the rankings of the competition are",
        x="ranker",
        y="mean",
        color="measure",
        caption="Means over rounds and queries, with 95 % intervals over queries.",
        source="Wu et al. 2022, Fig. 6",
    )
    bars = (changes, worth) if judged else (changes,)
    if rounds["round"].nunique() < 2:
        return bars
    by_round = (
        Figure("lines", "by round", "Another author is first, by round", x="round", y="TC", color="ranker"),
        Figure("lines", "by round", "Pairs of authors that change order, by round", x="round", y="KT", color="ranker"),
    )
    return *bars, *by_round

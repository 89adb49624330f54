"""The tables, notes, charts, findings and examples of a ranking competition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from shaketable.core.documents import Competition, rank_docnos
from shaketable.core.results import Example, Figure, Finding
from shaketable.measures.facets import COMPETITION
from shaketable.measures.paired_comparison import compare_paired, query_means
from shaketable.measures.significance import MIN_QUERIES, bootstrap_interval
from shaketable.tasks._competition_rounds import (
    CHANGE_MEASURES,
    JudgedRounds,
    RoundChange,
    RoundScores,
    get_round_documents,
    is_rewritten,
)

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment

MAX_EXAMPLES = 3
UNDECIDED = "no significant difference"
ROUNDING_DIGITS = 12
"""Digits of a difference of means; further digits are rounding errors, which must not decide its sign."""
MEASURE_NOTES = (
    "'TC' (top change) is the share of pairs of consecutive rounds after which another author is at rank 1.",
    (
        "'KT' (Kendall's tau distance) is the share of pairs of authors that change their order in the next round. "
        "Documents with the same score share a rank, and a pair with a shared rank before or after does not count as "
        "changed. Lower is more stable."
    ),
    (
        "A ranker that ignores the texts is perfectly stable (TC = KT = 0), so read both together with its "
        "effectiveness, if there are judgements."
    ),
)


def build_competition_row(
    name: str, values: Mapping[str, Mapping[str, float]], pairs: int, seed: int
) -> dict[str, Any]:
    """Return means over queries with their intervals."""
    row: dict[str, Any] = {"ranker": name}
    for key, by_query in values.items():
        mean, low, high = _compute_mean_interval(list(by_query.values()), seed)
        row |= {key: mean, f"{key} low": low, f"{key} high": high}
    return row | {"queries": len(values["TC"]), "pairs of rounds": pairs}


def _compute_mean_interval(values: Sequence[float], seed: int) -> tuple[float, float, float]:
    """Return the mean and the ends of its 95 % interval over queries."""
    low, high = bootstrap_interval(values, seed)
    return float(np.mean(values)), float(low), float(high)


def melt_measures(summary: pd.DataFrame, keys: list[str], value: str) -> pd.DataFrame:
    """Return measures in long form with their intervals, for bar charts."""
    frame = summary.melt(["ranker", "queries"], keys, "measure", value)
    for end in ("low", "high"):
        frame[end] = summary.melt("ranker", [f"{key} {end}" for key in keys])["value"]
    return frame


def compare_rankers(
    values: Mapping[str, Mapping[str, Mapping[str, float]]], names: Sequence[str], seed: int
) -> pd.DataFrame:
    """Return the paired differences of every two rankers in TC, KT, MAP and nDCG@5, with intervals."""
    import pandas as pd

    columns = ["measure", "ranker", "other", "difference", "low", "high", "order", "queries"]
    rows: list[dict[str, Any]] = []
    for key in names:
        for one, other in combinations(values, 2):
            both = compare_paired(values[other][key], values[one][key], seed)
            change, low, high = (round(value, ROUNDING_DIGITS) for value in (both.change, both.low, both.high))
            apart = both.n >= MIN_QUERIES and (low > 0 or high < 0)
            word = "is more stable" if key in CHANGE_MEASURES else "is better"
            ahead = one if (change < 0) == (key in CHANGE_MEASURES) else other
            about = {"measure": key, "ranker": one, "other": other, "difference": change}
            ends = {"low": low, "high": high}
            rows.append(about | ends | {"order": f"{ahead} {word}" if apart else UNDECIDED, "queries": both.n})
    return pd.DataFrame(rows, columns=columns)


def build_round_table(
    steps: Mapping[str, Sequence[RoundChange]], judged: Mapping[str, Mapping[str, JudgedRounds]], seed: int
) -> pd.DataFrame:
    """Return TC and KT of each round against the previous round, and the effectiveness in the round."""
    import pandas as pd

    rows = []
    for name, own in steps.items():
        for turn in sorted({step.round_after for step in own}):
            here = [step for step in own if step.round_after == turn]
            row: dict[str, Any] = {"ranker": name, "round": turn}
            for key in CHANGE_MEASURES:
                mean, low, high = _compute_mean_interval([getattr(step, key.lower()) for step in here], seed)
                row |= {key: mean, f"{key} low": low, f"{key} high": high}
            for heading, by_ranker in judged.items():
                values = by_ranker[name].get_round_values(turn)
                row[heading] = float(np.mean(values)) if values else np.nan
            rows.append(row | {"queries": len(here)})
    return pd.DataFrame(rows)


def measure_rewrites(steps: Mapping[str, Sequence[RoundChange]], competition: Competition, seed: int) -> pd.DataFrame:
    """Return the ranks of documents before and after a rewrite, and of documents that were not rewritten."""
    import pandas as pd

    rows = []
    for name, own in steps.items():
        for changed in (True, False):
            moves = [
                (step.qid, step.ranking_before.index(author) + 1, step.ranking_after.index(author) + 1)
                for step in own
                for author in step.ranking_before
                if author in step.scores_after and is_rewritten(competition, step, author) is changed
            ]
            if not moves:
                continue
            qids, old, new = zip(*moves, strict=True)
            gains = np.subtract(old, new)
            means = [
                query_means(qids, np.asarray(v, float)) for v in (old, new, gains, 100 * (gains > 0), 100 * (gains < 0))
            ]
            before, after, gain, rose, fell = ([*by_query.values()] for by_query in means)
            won, low, high = _compute_mean_interval(gain, seed)
            rows.append(
                {
                    "ranker": name,
                    "documents": "rewritten" if changed else "left as they were",
                    "number": len(moves),
                    "rank before": float(np.mean(before)),
                    "rank after": float(np.mean(after)),
                    "ranks gained": won,
                    "ranks gained low": low,
                    "ranks gained high": high,
                    "rose %": float(np.mean(rose)),
                    "fell %": float(np.mean(fell)),
                }
            )
    return pd.DataFrame(rows)


def summarize_authors(ranked: Mapping[str, RoundScores], competition: Competition) -> pd.DataFrame:
    """Return the documents, share of rounds won, mean rank and mean grade of each author, by ranker."""
    import pandas as pd

    rows = []
    for name, lists in ranked.items():
        ranks: dict[str, list[int]] = {}
        grades: dict[str, list[int]] = {}
        for (qid, turn), match in lists.items():
            known = competition.grades.get(turn, {}).get(qid, {})
            for rank, author in enumerate(rank_docnos(match), 1):
                ranks.setdefault(author, []).append(rank)
                if author in known:
                    grades.setdefault(author, []).append(known[author])
        rows += [
            {
                "ranker": name,
                "author": author,
                "documents": len(own),
                "first %": 100 * own.count(1) / len(own),
                "mean rank": float(np.mean(own)),
                **({"mean grade": float(np.mean(grades[author]))} if author in grades else {}),
            }
            for author, own in sorted(ranks.items())
        ]
    return pd.DataFrame(rows)


def select_winners(ranker: str, steps: Sequence[RoundChange], competition: Competition) -> list[Example]:
    """Return the rewritten documents that rose furthest to rank 1, with their grades if there are any."""
    climbs = [
        (step.ranking_before.index(step.ranking_after[0]) + 1, step)
        for step in steps
        if step.ranking_after[0] in step.scores_before
        and step.tc
        and is_rewritten(competition, step, step.ranking_after[0])
    ]
    examples = []
    for rank, step in sorted(climbs, key=lambda climb: -climb[0])[:MAX_EXAMPLES]:
        author = step.ranking_after[0]
        old, new = get_round_documents(competition, step, author)
        grades = [
            competition.grades.get(turn, {}).get(step.qid, {}).get(author)
            for turn in (step.round_before, step.round_after)
        ]
        worth = [np.nan if grade is None else float(grade) for grade in grades]
        query, change = competition.queries[step.qid].text, f"round {step.round_before} to {step.round_after}"
        examples.append(Example(ranker, query, change, old.text, new.text, worth[0], worth[1], author, rank, 1))
    return examples


def build_competition_notes(
    experiment: Experiment,
    competition: Competition,
    qids: Sequence[str],
    steps: Mapping[str, Sequence[RoundChange]],
    judged: Mapping[str, Any],
    several: bool,
) -> list[str]:
    matches = {qid: competition.get_contested_rounds(qid) for qid in qids}
    lists = [(turn, qid, docs) for qid, own in matches.items() for turn, docs in own.items()]
    authors = {author for _, _, docs in lists for author in docs}
    notes = [
        (
            f"The competition {competition.name} has {len(qids)} queries, and {sum(len(docs) for *_, docs in lists)} "
            f"documents that {len(authors)} authors wrote in {len({turn for turn, *_ in lists})} rounds. The word "
            f"statistics of rankers come from {experiment.collection.name}, and not from the "
            "competition."
        ),
        *MEASURE_NOTES,
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
        few = len(qids) < MIN_QUERIES
        claim = (
            f"With fewer than {MIN_QUERIES} queries, no difference counts as significant."
            if few
            else "Two rankers differ if this interval excludes 0; it is not corrected for the number of pairs."
        )
        notes.append(
            f"The table of pairs has the differences between two rankers on the same queries, with intervals. {claim}"
        )
    notes.append(
        "'ranks gained' is the number of ranks by which documents rose from one round to the next, negative if they "
        "fell; "
        "'rose %' and 'fell %' are the percentages of documents that did. 'number' counts the documents; 'rank before' "
        "and 'rank after' are their mean ranks. For authors, 'first %' is the percentage of rounds that they win, and "
        "'mean rank' and 'mean grade' are those of their documents."
    )
    missing = {name: sum(max(0, len(own) - 1) for own in matches.values()) - len(steps[name]) for name in steps}
    notes += [f"{name}: {n} pairs of rounds could not be compared." for name, n in missing.items() if n]
    return notes


def build_competition_findings(summary: pd.DataFrame, orders: pd.DataFrame, names: Sequence[str]) -> list[Finding]:
    """Return means and differences between rankers; effectiveness findings carry the task's name, for gates."""
    findings = [
        Finding(
            row["ranker"],
            key if key in CHANGE_MEASURES else f"competition {key}",
            float(row[key]),
            float(row[f"{key} low"]),
            float(row[f"{key} high"]),
            n=int(row["queries"]),
            better="lower" if key in CHANGE_MEASURES else "higher",
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
            better="lower" if row["measure"] in CHANGE_MEASURES else "higher",
            against=row["other"],
        )
        for _, row in orders.iterrows()
    ]
    return findings


def build_competition_figures(rounds: pd.DataFrame, judged: bool) -> tuple[Figure, ...]:
    changes = Figure(
        "bars",
        "TC and KT",
        "How much of the ranking changes from one round to the next (lower is more stable)",
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

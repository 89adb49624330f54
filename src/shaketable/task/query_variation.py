"""Which ways of asking the same break a ranker, by how much, and on which queries?

Penha, Câmara, Hauff. Evaluating the robustness of retrieval pipelines with query variation generators. ECIR 2022.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shaketable.edit.published import read_variations
from shaketable.edit.taxonomy import KEEPING, MISSPELLING
from shaketable.edit.vary import HUMAN, Variation
from shaketable.errors import BadInput, check, check_within
from shaketable.measure.comparison import EXPLAINED, Comparison, compare, mean_movement, query_means, starred
from shaketable.measure.effectiveness import Evaluator, judged_share, parse
from shaketable.measure.facets import TYPOS, WORDING
from shaketable.measure.plane import tsne
from shaketable.measure.significance import FEWEST_QUERIES
from shaketable.rankers.similarity import judge_for
from shaketable.task.changed import (
    PIPELINE,
    SETTINGS,
    Added,
    Shaken,
    Trial,
    originals,
    runs_of,
    settings,
    shake,
    stability_findings,
    stability_rows,
    values_of,
)
from shaketable.task.layouts import LAYOUT, MORE_FIGURES, PENHA, REPLACED, SOURCES, across
from shaketable.task.sliced import SLICES, sliced
from shaketable.types import Example, Figure, Finding, Result

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.bench import Bench

EXAMPLES = 2
FACETS = {category: TYPOS if category == MISSPELLING else WORDING for category in KEEPING}
"""What each category that keeps the meaning speaks for."""


@dataclass(frozen=True)
class QueryVariation:
    """What other ways of asking the same cost: misspelling, naturality, ordering, paraphrasing.

    `edits` names the methods; none means every rule-based one whose resources are there, and the variants that people
    wrote, if the collection has any; "paper_004" stands for the ten methods of that paper. `variations` is a file of
    ready variations instead: query, method, category, text, valid. Variations that are not valid count as they are, are
    dropped, and are replaced by the original: all three are reported. A query to which a method does not apply counts,
    as in the paper, as one whose variation is not valid.
    """

    measure: str = "nDCG@10"
    edits: tuple[str, ...] = ()
    n: int = 1
    depths: tuple[int, ...] = (10, 100, 1000)
    variations: str = ""

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_within("query_variation", self, n=(1, 10_000))
        check("query_variation", all(depth >= 1 for depth in self.depths), "depths", "1 or more", self.depths)

    def run(self, bench: Bench) -> Result:
        import pandas as pd

        variations, lacking = varied(bench, self.edits, self.n, self.variations)
        trials = [Trial(v.qid, v.text, v.original) for v in variations]
        whole = originals(bench, variations)
        first = settings(bench)[0]
        rows: list[dict[str, Any]] = []
        stability: list[dict[str, Any]] = []
        details: list[dict[str, Any]] = []
        examples: list[Example] = []
        deltas: dict[str, NDArray[np.float64]] = {}
        lost: dict[tuple[str, str], Mapping[str, float]] = {}
        stay: dict[tuple[str, str], Mapping[str, float]] = {}
        for setting in settings(bench):
            for name in bench.scoring:
                shaken = shake(bench, name, trials, self.measure, setting)
                clean = self._clean(bench, name, whole, setting)
                rows += self._rows(bench, setting, name, variations, shaken, clean)
                if setting == first:
                    stability += _stability(bench, name, variations, shaken)
                    deltas[name] = _change(shaken)
                    for category, places in _by_category(variations).items():
                        lost[category, name] = shaken.drops(places, bench.weights)
                        stay[category, name] = shaken.overlaps(places)
                    details += _details(name, variations, shaken)
                    examples += _examples(name, variations, shaken, deltas[name])
        by_method = _starred(pd.DataFrame([row for row in rows if row["method"] != "all"]))
        by_category = _starred(pd.DataFrame([row for row in rows if row["method"] == "all"]).drop(columns="method"))
        per_query = pd.DataFrame(details)
        shown = by_method[by_method["setting"] == first]
        change = "change" if bench.qrels else "overlap@10"
        tables: dict[str, pd.DataFrame] = {
            "change by category": _overview(by_category[by_category["setting"] == first], change),
            "by category": by_category,
            "stability": pd.DataFrame(stability),
            "by method": by_method,
            "by class of ranker": _classes(bench, by_category, change),
            **self._depths(bench, variations),
            "what the first stage finds": self._recall(bench, variations),
            "correlation of changes": _correlations(variations, deltas),
            "map of rankers": _map(bench, deltas),
            "change by method": shown[["category", "method", "ranker", change, "queries"]],
            "variations per query": per_query,
        }
        if bench.qrels:
            better = by_category[by_category["setting"] == first]
            tables["means by method"] = across(shown.to_dict("records"), ("category", "method"), *REPLACED)
            tables["better than the original"] = better[["category", "ranker", "better %", "worse %", "queries"]]
        kept = per_query[per_query["valid"] & per_query["category"].isin(KEEPING)]
        slices, worst_slices = sliced(bench, kept, change, "change under query variation") if len(kept) else ({}, [])
        tables = {name: table for name, table in (tables | slices).items() if len(table)}
        return Result(
            "query-variation",
            "Which other ways of asking break a ranker?",
            tables,
            tuple(figure for figure in (*_figures(first, change), *MORE_FIGURES) if figure.table in tables),
            (
                *self._notes(bench, variations, lacking),
                *([f"In the table 'means by method', {LAYOUT[0].lower()}{LAYOUT[1:]}"] if bench.qrels else []),
                *([SLICES] if slices else []),
            ),
            (
                *(self._findings(by_category[by_category["setting"] == first], lost) if bench.qrels else ()),
                *stability_findings(stability, "category", stay, {} if bench.qrels else FACETS),
                *worst_slices,
            ),
            tuple(examples),
            brief=("change by category",) if bench.qrels else ("change by category", "stability"),
            sources=SOURCES,
        )

    def _findings(self, by_category: pd.DataFrame, lost: Added) -> Iterator[Finding]:
        """The change of each category, as it is and in per cent, which speaks for a facet where the meaning is kept."""
        for row in by_category.to_dict("records"):
            category, ranker, start = row["category"], row["ranker"], row["before"]
            about: Any = {"ranker": ranker, "n": int(row["queries"]), "p": row["p (Holm)"]}
            ends = row["change"], row["low"], row["high"]
            change = dict(zip(("value", "low", "high"), ends, strict=True))
            yield Finding(name=f"change({category})", **change, **about)
            if start:
                drop = {name: 100 * value / start for name, value in change.items()}
                about |= {"against": f"its own {self.measure}", "facet": FACETS.get(category, "")}
                yield Finding(name=f"drop({category})", **drop, **about, values=lost[category, ranker])

    def _rows(
        self,
        bench: Bench,
        setting: str,
        name: str,
        variations: Sequence[Variation],
        shaken: Shaken,
        clean: Mapping[str, float],
    ) -> Iterator[dict[str, Any]]:
        """A row for each method, and for each category with all its methods."""
        movements = shaken.movements
        for (category, method), members in _groups(variations).items():
            qids = [variations[i].qid for i in members]
            valid = np.array([variations[i].valid for i in members])
            wanted = len(bench.queries) * len({(variations[i].method) for i in members})
            row: dict[str, Any] = {"setting": setting, "category": category, "method": method, "ranker": name}
            if shaken.before is not None and shaken.after is not None:
                row |= self._values(bench, qids, valid, clean, shaken.after[members])
                row |= _judged(bench, members, shaken, qids)
            done = len({(variations[i].qid, variations[i].method) for i in members})
            accepted = len({(variations[i].qid, variations[i].method) for i in members if variations[i].valid})
            row |= {"valid %": 100 * accepted / wanted, "applies %": 100 * done / wanted}
            yield (
                row | mean_movement(qids, [movements[i] for i in members], bench.weights) | {"queries": len(set(qids))}
            )

    def _values(
        self,
        bench: Bench,
        qids: list[str],
        valid: NDArray[np.bool_],
        clean: Mapping[str, float],
        after: NDArray[np.float64],
    ) -> dict[str, Any]:
        """The three conventions: all variations as they are, the valid ones, and originals in place of the others."""
        base = np.array([clean[qid] for qid in qids])
        as_is = compare(clean, query_means(qids, after), bench.seed, bench.weights)
        kept = query_means([q for q, k in zip(qids, valid, strict=True) if k], after[valid])
        accepted = compare(clean, kept, bench.seed, bench.weights)
        mended = query_means(qids, np.where(valid, after, base))
        # a query without a variation stays what it was
        replaced = compare(clean, {**clean, **mended}, bench.seed, bench.weights)
        return {
            "before": as_is.before,
            "as is": as_is.after,
            "change": as_is.change,
            "low": as_is.low,
            "high": as_is.high,
            "p": as_is.p,
            "before (valid)": accepted.before,
            "valid only": accepted.after,
            "drop % (valid)": accepted.drop,
            "p (valid)": accepted.p,
            "invalid replaced": replaced.after,
            "p (replaced)": replaced.p,
            "better %": 100 * float((after > base).mean()),
            "worse %": 100 * float((after < base).mean()),
        }

    def _clean(self, bench: Bench, name: str, whole: Sequence[Trial], setting: str) -> dict[str, float]:
        """What each query is worth as it is, prepared as its variations are."""
        if not bench.qrels:
            return {}
        values = values_of(bench, self.measure, whole, runs_of(bench, name, whole, setting))
        return {trial.qid: float(value) for trial, value in zip(whole, values, strict=True)}

    def _depths(self, bench: Bench, variations: Sequence[Variation]) -> dict[str, pd.DataFrame]:
        """The pipeline with every ranker as a re-ranker of lists cut at several depths: means, and query by query."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        changes: list[dict[str, Any]] = []
        if PIPELINE not in settings(bench) or not bench.qrels:
            return {}
        kept = [v for v in variations if v.category in KEEPING]
        qids = [v.qid for v in kept]
        trials = [Trial(v.qid, v.text, v.original) for v in kept]
        plain = [Trial(v.qid, v.original) for v in kept]
        for depth in sorted(d for d in self.depths if d <= bench.depth):
            shallow = bench.cut(depth)
            for name in bench.scoring:
                ends = []
                for some in (plain, trials):
                    texts = {str(i): trial.text for i, trial in enumerate(some)}
                    lists = bench.rerank(name, texts, shallow.first_stage_finds(texts))
                    run = {key: lists.get(key, {}) for key in texts}
                    ends.append(query_means(qids, values_of(bench, self.measure, some, run)))
                compared = compare(ends[0], ends[1], bench.seed, bench.weights)
                rows.append({"ranker": name, "depth": depth, **_ends(compared)})
                changes += [
                    {"ranker": name, "depth": depth, "query": qid, "change": ends[1][qid] - ends[0][qid]}
                    for qid in ends[0]
                ]
        return {"depth": starred(pd.DataFrame(rows)), "depth per query": pd.DataFrame(changes)} if rows else {}

    def _recall(self, bench: Bench, variations: Sequence[Variation]) -> pd.DataFrame:
        """The share of the relevant documents that the first stage finds, by category and depth."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        if PIPELINE not in settings(bench) or not bench.qrels:
            return pd.DataFrame(rows)
        for category in dict.fromkeys(v.category for v in variations):
            some = [v for v in variations if v.category == category]
            qrels = {str(i): bench.qrels[v.qid] for i, v in enumerate(some)}
            for depth in sorted(d for d in self.depths if d <= bench.depth):
                recall = parse(f"R@{depth}")
                ends = []
                for texts in ([v.original for v in some], [v.text for v in some]):
                    run = bench.first_stage_finds({str(i): text for i, text in enumerate(texts)})
                    values = Evaluator((recall,), qrels).per_query(run)[recall]
                    ends.append(query_means([v.qid for v in some], list(values.values())))
                compared = compare(ends[0], ends[1], bench.seed, bench.weights)
                rows.append({"category": category, "depth": depth, **_ends(compared)})
        return starred(pd.DataFrame(rows)) if rows else pd.DataFrame(rows)

    def _notes(self, bench: Bench, variations: Sequence[Variation], lacking: Mapping[str, str]) -> list[str]:
        notes = [f"Each ranker ranks {bench.pool}.", SETTINGS]
        if bench.qrels:
            notes += [
                (
                    f"'before' is the mean {self.measure} of the original queries, and 'as is' that of all their "
                    "variations; 'change' is the difference, 'low' and 'high' are the ends of its 95 % interval, and "
                    "'p (Holm)' is the probability that chance alone makes a change as large, corrected for all rows."
                ),
                (
                    "A variation is valid if it still asks for the same. 'valid only' is the mean of the valid "
                    "variations, beside that of their originals ('before (valid)'); for 'invalid replaced', the "
                    "original stands in for every variation that is not valid, and for queries without one; 'drop % "
                    "(valid)', 'p (valid)' and 'p (replaced)' belong to these two. 'better %' and 'worse %' are the "
                    "percentages of variations that gain and that lose. 'judged@10 before' and 'judged@10' are the "
                    "shares of the first ten documents that somebody judged, before and after."
                ),
                (
                    "'applies %' is the percentage of queries that a method finds something to change in, and 'valid "
                    "%' that of queries for which it makes a valid variation."
                ),
            ]
        notes.append(EXPLAINED)
        if not self.variations:
            notes.append(
                "Rules judge whether a variation is valid, in the place of people; docs/evidence/validity.md says how "
                "well they do."
            )
        if deeper := [depth for depth in self.depths if depth > bench.depth]:
            listed = ", ".join(map(str, deeper))
            notes.append(
                f"The table by depth leaves out {listed}, because lists end at {bench.depth} (option --depth)."
            )
        methods = dict.fromkeys(v.method for v in variations if v.method != HUMAN)
        done = {m: len({v.qid for v in variations if v.method == m}) for m in methods}
        if partly := {m: n for m, n in done.items() if n < len(bench.queries)}:
            listed = ", ".join(f"{method} in {n}" for method, n in partly.items())
            notes.append(
                f"Not every method finds something to change in each of the {len(bench.queries)} queries: {listed}."
            )
        if lacking:
            notes.append(
                f"These methods are left out because their data or models are not here: {', '.join(lacking)}. "
                "'shaketable list resources' says what they need."
            )
        if any(v.category not in KEEPING for v in variations):
            notes.append(
                "A generalisation, a specialisation or another aspect asks for something else, so a ranker is not to "
                "blame for these changes."
            )
        if len(bench.queries) < FEWEST_QUERIES:
            notes.append(f"There are fewer than {FEWEST_QUERIES} queries, so no change is marked as significant.")
        return notes


def varied(bench: Bench, edits: Sequence[str], n: int, file: str = "") -> tuple[list[Variation], dict[str, str]]:
    """The variations of the queries: from a file where one is named, else made by the bench."""
    if not file:
        return bench.variations(edits, n)
    variations = read_variations(Path(file), bench.queries, judge_for(bench.collection))
    if not variations:
        raise BadInput(f"none of its variations is of a query of {bench.collection.name}", file)
    return variations, {}


def _groups(variations: Sequence[Variation]) -> dict[tuple[str, str], list[int]]:
    groups: dict[tuple[str, str], list[int]] = {}
    for i, v in enumerate(variations):
        groups.setdefault((v.category, v.method), []).append(i)
        groups.setdefault((v.category, "all"), []).append(i)
    return groups


def _judged(bench: Bench, members: list[int], shaken: Shaken, qids: list[str]) -> dict[str, float]:
    """The judged share of the first ten documents, before and after."""
    qrels = {str(i): bench.qrels[qid] for i, qid in zip(members, qids, strict=True)}
    shares = {}
    for heading, run in (("judged@10 before", shaken.old), ("judged@10", shaken.new)):
        shares[heading] = float(np.mean(list(judged_share(qrels, run).values())))
    return shares


def _change(shaken: Shaken) -> NDArray[np.float64]:
    """What each trial changed: the value, or without judgements the overlap lost."""
    if shaken.before is not None and shaken.after is not None:
        return np.asarray(shaken.after - shaken.before)
    return np.array([moved.overlap - 1 for moved in shaken.movements])


def _details(ranker: str, variations: Sequence[Variation], shaken: Shaken) -> Iterator[dict[str, Any]]:
    for i, (v, moved) in enumerate(zip(variations, shaken.movements, strict=True)):
        row: dict[str, Any] = {"category": v.category, "method": v.method, "ranker": ranker, "query": v.qid}
        row |= {"text": v.text, "valid": v.valid, "why not": v.why}
        if shaken.before is not None and shaken.after is not None:
            start, end = float(shaken.before[i]), float(shaken.after[i])
            row |= {"before": start, "after": end, "change": end - start}
        yield row | {"overlap@10": moved.overlap, "fall of first": moved.fall}


def _examples(
    ranker: str, variations: Sequence[Variation], shaken: Shaken, change: NDArray[np.float64]
) -> list[Example]:
    """The largest losses and gains, of valid variations that keep the meaning."""
    usable = [i for i, v in enumerate(variations) if v.valid and v.category in KEEPING]
    falling = sorted(usable, key=lambda i: change[i])
    places = [i for i in falling[:EXAMPLES] if change[i] < 0] + [
        i for i in falling[: -EXAMPLES - 1 : -1] if change[i] > 0
    ]
    return [shaken.example(ranker, i, f"{variations[i].category}: {variations[i].method}") for i in places]


def _ends(compared: Comparison) -> dict[str, Any]:
    return {
        "before": compared.before,
        "after": compared.after,
        "change": compared.change,
        "low": compared.low,
        "high": compared.high,
        "p": compared.p,
        "queries": compared.n,
    }


def _starred(frame: pd.DataFrame) -> pd.DataFrame:
    """Each convention is a family of tests of its own."""
    for column in ("p", "p (valid)", "p (replaced)"):
        frame = starred(frame, column)
    return frame


def _overview(by_category: pd.DataFrame, change: str) -> pd.DataFrame:
    """A row for each category, a column for each ranker: the change, with a star where chance is unlikely."""
    import pandas as pd

    rows: dict[str, dict[str, Any]] = {}
    for _, row in by_category.iterrows():
        cells = rows.setdefault(row["category"], {"category": row["category"], "valid %": row["valid %"]})
        cells[row["ranker"]] = f"{row[change]:+.4f}{row['']}" if change == "change" else row[change]
    return pd.DataFrame(list(rows.values()))


def _classes(bench: Bench, by_category: pd.DataFrame, change: str) -> pd.DataFrame:
    """Means over the rankers of a class: traditional, neural, transformer (paper 004, section 5.1)."""
    families = {name: _class(bench, name) for name in bench.scoring}
    if len(set(families.values())) < 2:
        return by_category.iloc[:0]
    classes = by_category.assign(**{"class": by_category["ranker"].map(families)})
    means = classes.groupby(["setting", "category", "class"], sort=False)
    return means.agg(**{change: (change, "mean"), "rankers": ("ranker", "nunique")}).reset_index()


def _by_category(variations: Sequence[Variation]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for i, v in enumerate(variations):
        places.setdefault(v.category, []).append(i)
    return places


def _stability(bench: Bench, name: str, variations: Sequence[Variation], shaken: Shaken) -> Iterator[dict[str, Any]]:
    """How far each category moves the lists of a ranker."""
    for category, members in _by_category(variations).items():
        moved = [shaken.movements[i] for i in members]
        about = {"category": category, "ranker": name}
        yield from stability_rows(bench, about, [variations[i].qid for i in members], moved)


def _correlations(variations: Sequence[Variation], deltas: Mapping[str, NDArray[np.float64]]) -> pd.DataFrame:
    """Pearson's correlation of two rankers' changes, over all and by category: do the same variations break both?"""
    import pandas as pd

    categories = np.array([v.category for v in variations])
    groups = {"all": np.ones(len(categories), dtype=bool)}
    groups |= {category: categories == category for category in dict.fromkeys(categories.tolist())}
    return pd.DataFrame(
        [
            {"ranker": left, "other": right}
            | {what: _pearson(deltas[left][of], deltas[right][of]) for what, of in groups.items()}
            for left, right in combinations(deltas, 2)
        ]
    )


def _pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    varies = len(x) > 2 and np.ptp(x) > 0 and np.ptp(y) > 0
    return float(np.corrcoef(x, y)[0, 1]) if varies else float("nan")


def _map(bench: Bench, deltas: Mapping[str, NDArray[np.float64]]) -> pd.DataFrame:
    """Rankers in the plane by their changes (t-SNE): those that break alike stand together."""
    import pandas as pd

    if len(deltas) < 3:
        return pd.DataFrame()
    places = tsne(np.array(list(deltas.values())))
    classes = [_class(bench, name) for name in deltas]
    return pd.DataFrame({"ranker": list(deltas), "class": classes, "x": places[:, 0], "y": places[:, 1]})


def _class(bench: Bench, name: str) -> str:
    return str(getattr(bench.ranker(name), "family", "other"))


def _figures(setting: str, change: str) -> tuple[Figure, ...]:
    return (
        Figure(
            "distribution",
            "variations per query",
            "How far each category of variations moves a query",
            x="category",
            y=change,
            color="ranker",
            caption=(
                f"Each box holds the middle half of the changes, and its line is their median (setting: {setting})."
            ),
            source=f"{PENHA}, Fig. 2",
        ),
        Figure(
            "heatmap", "change by method", f"Mean {change} by method and ranker", x="ranker", y="method", color=change
        ),
        Figure(
            "heatmap",
            "correlation of changes",
            "Do the same variations break both rankers? (correlation of their changes, Pearson's r)",
            x="ranker",
            y="other",
            color="all",
            folded=True,
        ),
        Figure(
            "scatter",
            "map of rankers",
            "Rankers that the same variations break stand together",
            x="x",
            y="y",
            color="class",
            caption="Only nearness has a meaning here; the axes have none (t-SNE of the changes).",
            label="ranker",
            folded=True,
            source=f"{PENHA}, Fig. 3",
        ),
    )

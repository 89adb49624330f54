"""Which ways of asking the same break a ranker, by how much, and on which queries?

Penha, Câmara, Hauff. Evaluating the robustness of retrieval pipelines with query variation generators. ECIR 2022.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shaketable.edit.missing import missing
from shaketable.edit.taxonomy import KEEPING
from shaketable.edit.vary import HUMAN, Variation, vary, written
from shaketable.errors import BadInput
from shaketable.measure.effectiveness import judged_share
from shaketable.measure.significance import FEWEST_QUERIES, adjust, mark, t_test
from shaketable.rank.similarity import encoder_similarity, judge_for
from shaketable.registry import EDITS
from shaketable.task.changed import PIPELINE, Trial, before, cut_to, runs_of, settings, values_of
from shaketable.types import Figure, Result, Run

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.bench import Bench

ATTACKS = ("char_attack", "word_attack")  # a task of their own
EXAMPLES = 2


@dataclass(frozen=True)
class QueryVariation:
    """What other ways of asking the same cost: misspelling, naturality, ordering, paraphrasing.

    `edits` names the methods; none means every rule-based one whose resources are there, and the variants that people
    wrote, if the collection has any. Variations that are not valid count as they are, are dropped, and are replaced by
    the original: all three are reported.
    """

    measure: str = "nDCG@10"
    edits: tuple[str, ...] = ()
    n: int = 1
    depths: tuple[int, ...] = (10, 100, 1000)

    needs_judgements: ClassVar[bool] = True

    def run(self, bench: Bench) -> Result:
        import pandas as pd

        variations, lacking = made(bench, self.edits, self.n)
        trials = [Trial(v.qid, v.text) for v in variations]
        rows: list[dict[str, Any]] = []
        deltas: dict[str, NDArray[np.float64]] = {}
        per_query: list[dict[str, Any]] = []
        for setting in settings(bench):
            for name in bench.scoring:
                clean = before(bench, name, self.measure, setting)
                run = runs_of(bench, name, trials, setting)
                values = values_of(bench, self.measure, trials, run)
                rows += self._rows(bench, setting, name, variations, clean, values, run)
                if setting == settings(bench)[0]:
                    deltas[name] = values - np.array([clean[v.qid] for v in variations])
                    per_query += [
                        {"category": v.category, "method": v.method, "ranker": name, "query": v.qid, "text": v.text}
                        | {"valid": v.valid, "why not": v.why, "before": clean[v.qid], "after": value}
                        for v, value in zip(variations, values.tolist(), strict=True)
                    ]
        by_method = corrected(pd.DataFrame([row for row in rows if row["method"] != "all"]))
        by_category = corrected(pd.DataFrame([row for row in rows if row["method"] == "all"]).drop(columns="method"))
        details = pd.DataFrame(per_query)
        details["change"] = details["after"] - details["before"]
        first = settings(bench)[0]
        shown = by_method[by_method["setting"] == first].assign(change=lambda f: f["as is"] - f["before"])
        human = shown["method"] == HUMAN
        shown["method"] = shown["method"].where(~human, shown["method"] + ", " + shown["category"])
        tables: dict[str, pd.DataFrame] = {
            "change by category": _overview(by_category[by_category["setting"] == first]),
            "by category": by_category,
            "by method": by_method,
            "depth": self._depths(bench, variations),
            "correlation of changes": _correlations(variations, deltas),
            "map of rankers": _map(deltas),
            "worst drops": _examples(details, worst=True),
            "best gains": _examples(details, worst=False),
            "change by method": shown[["method", "ranker", "change"]],
            "variations per query": details,
        }
        tables = {name: table for name, table in tables.items() if len(table)}
        return Result(
            "query-variation",
            "Which other ways of asking break a ranker?",
            tables,
            tuple(figure for figure in _figures(first) if figure.table in tables),
            tuple(self._notes(bench, variations, lacking)),
            {
                f"{row['ranker']}.change({row['category']})": row["as is"] - row["before"]
                for _, row in by_category.iterrows()
                if row["setting"] == first
            },
            brief=("change by category", "worst drops"),
        )

    def _rows(
        self,
        bench: Bench,
        setting: str,
        name: str,
        variations: Sequence[Variation],
        clean: Mapping[str, float],
        values: NDArray[np.float64],
        run: Run,
    ) -> list[dict[str, Any]]:
        """A row for each method, and for each category with all its methods."""
        groups: dict[tuple[str, str], list[int]] = {}
        for i, v in enumerate(variations):
            groups.setdefault((v.category, v.method), []).append(i)
            groups.setdefault((v.category, "all"), []).append(i)
        found = []
        for (category, method), members in groups.items():
            base = np.array([clean[variations[i].qid] for i in members])
            after = values[members]
            valid = np.array([variations[i].valid for i in members])
            qids = [variations[i].qid for i in members]
            left, right = _by_query(qids, base), _by_query(qids, after)
            trials = {str(i): run[str(i)] for i in members}
            judged = judged_share({str(i): bench.qrels[variations[i].qid] for i in members}, trials)
            found.append(
                {
                    "setting": setting,
                    "category": category,
                    "method": method,
                    "ranker": name,
                    "before": float(base.mean()),
                    "as is": float(after.mean()),
                    "valid only": float(after[valid].mean()) if valid.any() else np.nan,
                    "before (valid)": float(base[valid].mean()) if valid.any() else np.nan,
                    "invalid replaced": float(np.where(valid, after, base).mean()),
                    "better %": 100 * float((after > base).mean()),
                    "worse %": 100 * float((after < base).mean()),
                    "valid %": 100 * float(valid.mean()),
                    "judged@10": float(np.mean(list(judged.values()))),
                    "queries": len(left),
                    "p": float(t_test(left, right)),
                }
            )
        return found

    def _depths(self, bench: Bench, variations: Sequence[Variation]) -> pd.DataFrame:
        """The pipeline with every ranker as a re-ranker of lists cut at several depths."""
        import pandas as pd

        if PIPELINE not in settings(bench):
            return pd.DataFrame()
        trials = [Trial(v.qid, v.text) for v in variations if v.category in KEEPING]
        rows = []
        for depth in self.depths:
            if depth > bench.depth:
                continue
            shallow = cut_to(bench, depth)
            texts = {str(i): trial.text for i, trial in enumerate(trials)}
            candidates = shallow.first_stage_finds(texts)
            for name in bench.scoring:
                ranker = bench.ranker(name)
                start = values_of(
                    bench,
                    self.measure,
                    plain := [Trial(qid, bench.queries[qid].text) for qid in bench.qrels],
                    _numbered(bench.rerank(ranker, bench.texts, shallow.candidates), plain),
                )
                found = bench.rerank(ranker, texts, candidates)
                after = values_of(
                    bench, self.measure, trials, {str(i): found.get(str(i), {}) for i in range(len(trials))}
                )
                rows.append(
                    {"ranker": name, "depth": depth, "before": float(start.mean()), "after": float(after.mean())}
                    | {"change": float(after.mean() - start.mean())}
                )
        return pd.DataFrame(rows)

    def _judge(self, bench: Bench) -> str:
        return "by words and MiniLM" if encoder_similarity() else "by words alone (extra: neural)"

    def _notes(self, bench: Bench, variations: Sequence[Variation], lacking: Mapping[str, str]) -> list[str]:
        notes = [
            f"{self.measure}; ranked: {bench.pool}.",
            "pipeline: first stage and ranker see the variation; re-ranker: the candidates are the original query's.",
            "as is: every variation counts, and p is of these; valid only: those that the automatic rules accept.",
            "before (valid): what the originals of these have; invalid replaced: originals stand in for the others.",
            f"Validity is a proxy for people's judgement, {self._judge(bench)}: see docs/evidence/validity.md.",
        ]
        done = {
            method: len({v.qid for v in variations if v.method == method}) for method in {v.method for v in variations}
        }
        partly = {m: n for m, n in sorted(done.items()) if n < len(bench.qrels) and m != HUMAN}
        if partly:
            listed = ", ".join(f"{method} to {n}" for method, n in partly.items())
            notes.append(f"Not every edit applies to each of {len(bench.qrels)} queries: {listed}.")
        if lacking:
            notes.append(f"Left out for want of data or models ('shaketable list resources'): {', '.join(lacking)}.")
        if any(v.category not in KEEPING for v in variations):
            notes.append(
                "Generalisation, specialisation and another aspect change what is asked: no ranker is to blame."
            )
        if len(bench.qrels) < FEWEST_QUERIES:
            notes.append(f"Only {len(bench.qrels)} queries: no change is marked as significant.")
        return notes


def _overview(by_category: pd.DataFrame) -> pd.DataFrame:
    """A row for each category, a column for each ranker: the change, with a star where chance is unlikely."""
    import pandas as pd

    rows: dict[str, dict[str, Any]] = {}
    for _, row in by_category.iterrows():
        cells = rows.setdefault(row["category"], {"category": row["category"], "valid %": row["valid %"]})
        cells[row["ranker"]] = f"{row['as is'] - row['before']:+.4f}{row['']}"
    return pd.DataFrame(list(rows.values()))


def made(bench: Bench, edits: Sequence[str], n: int) -> tuple[list[Variation], dict[str, str]]:
    """Variations of the judged queries, and which methods were left out for want of what."""
    queries = {qid: bench.queries[qid] for qid in bench.qrels}
    lacking: dict[str, str] = {}
    wanted = [EDITS.build(text) for text in edits or [name for name in EDITS if name not in ATTACKS] if text != HUMAN]
    for edit in list(wanted):
        if reason := missing(edit):
            if edits:
                raise BadInput(f"{EDITS.spec(edit)}: {reason}")
            lacking[EDITS.spec(edit)] = reason
            wanted.remove(edit)
    validity = judge_for(bench.collection)
    variations = vary(queries, wanted, n, bench.seed, bench.vocabulary, validity=validity) if wanted else []
    if not edits or HUMAN in edits:
        variants = {qid: texts for qid, texts in bench.collection.variants.items() if qid in queries}
        variations += written(queries, variants)
    if not variations:
        raise BadInput("no edit applies to any of the queries, so there is nothing to compare")
    return variations, lacking


def corrected(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its p-values corrected for their number, and stars."""
    frame = frame.copy()
    frame["p (Holm)"] = adjust(frame.pop("p").to_numpy(), "holm")
    frame[""] = [mark(p, n) for p, n in zip(frame["p (Holm)"], frame["queries"], strict=True)]
    return frame.reset_index(drop=True)


def _by_query(qids: Sequence[str], values: NDArray[np.float64]) -> NDArray[np.float64]:
    order = {qid: i for i, qid in enumerate(dict.fromkeys(qids))}
    place = np.array([order[qid] for qid in qids])
    return np.asarray(np.bincount(place, values) / np.bincount(place))


def _numbered(run: Run, trials: Sequence[Trial]) -> Run:
    return {str(i): run.get(trial.qid, {}) for i, trial in enumerate(trials)}


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


def _map(deltas: Mapping[str, NDArray[np.float64]]) -> pd.DataFrame:
    """Rankers in the plane by their changes: t-SNE for ten and more if scikit-learn is there, else two components."""
    import pandas as pd

    if len(deltas) < 3:
        return pd.DataFrame()
    points = np.array(list(deltas.values()))
    places = _neighbours(points) if len(deltas) >= 10 else None
    if places is None:
        u, s, _ = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
        places = u[:, :2] * s[:2]
        # the sign of a component is arbitrary: let the largest be positive, so that runs look alike
        places = places * np.sign(places[np.abs(places).argmax(axis=0), [0, 1]] + 1e-300)
    return pd.DataFrame({"ranker": list(deltas), "x": places[:, 0], "y": places[:, 1]})


def _neighbours(points: NDArray[np.float64]) -> NDArray[np.float64] | None:
    try:
        from sklearn.manifold import TSNE
    except ModuleNotFoundError:
        return None
    return np.asarray(TSNE(2, perplexity=len(points) / 3, init="pca", random_state=0).fit_transform(points))


def _examples(details: pd.DataFrame, worst: bool) -> pd.DataFrame:
    """The largest changes of each ranker, with the texts; only variations that are valid and keep the meaning."""
    sign = 1 if worst else -1
    of = details[details["valid"] & details["category"].isin(KEEPING) & (sign * details["change"] < 0)]
    of = of.assign(size=sign * of["change"]).sort_values("size", kind="stable")
    columns = ["ranker", "category", "method", "query", "text", "before", "after"]
    return of.groupby("ranker", sort=False).head(EXAMPLES).sort_values(["ranker", "size"], kind="stable")[columns]


def _figures(setting: str) -> tuple[Figure, ...]:
    return (
        Figure(
            "distribution",
            "variations per query",
            "How far each category moves a query",
            x="category",
            y="change",
            color="ranker",
            caption=f"Each box is the middle half of the changes, the line their median ({setting}).",
        ),
        Figure(
            "heatmap", "change by method", "Mean change by method and ranker", x="ranker", y="method", color="change"
        ),
        Figure(
            "heatmap",
            "correlation of changes",
            "Do the same variations break both rankers? (Pearson's r)",
            x="ranker",
            y="other",
            color="all",
        ),
        Figure("scatter", "map of rankers", "Rankers that break alike stand together", x="x", y="y", color="ranker"),
    )

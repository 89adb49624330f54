"""What two papers say of risk and variance, on ten public matrices of all runs of a TREC track.

make evidence PAGE=risk-matrices        (a minute on two cores)
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from evidence import DATA as SHARED
from shaketable.core.seeding import make_numpy_rng
from shaketable.datasets.scores import read_scores
from shaketable.measures.risk import geo_risk, rank_systems, t_risk, t_risk_p, t_star_risk, u_risk, z_risk
from shaketable.measures.variance import VNAP, mean_variance_correlation

Values = NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[1]
DATA, PAGE = SHARED / "scores", ROOT / "docs" / "evidence" / "risk-matrices.md"
RANKERS, SUBSETS, BEST = 11, 2000, 8
"""Rankers that paper 000 compares, sets of as many that are drawn, and runs that paper 002 compares."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """All runs of a track on its topics."""

    name: str
    x: Values

    @cached_property
    def mean(self) -> Values:
        return np.asarray(self.x.mean(axis=1))

    @cached_property
    def baseline(self) -> int:
        """The run whose mean is the median of all: the single baseline."""
        return int(np.argsort(self.mean, kind="stable")[len(self.x) // 2])

    @cached_property
    def best(self) -> NDArray[np.int64]:
        return np.argsort(-self.mean, kind="stable")[:BEST]

    def of(self, measure: str, alpha: float) -> Values:
        """A measure of all runs."""
        if measure == "mean":
            return self.mean
        if measure in ("U", "T"):
            return (u_risk if measure == "U" else t_risk)(self.x, self.x[self.baseline], alpha)
        return {"T*": t_star_risk, "Z": z_risk, "Geo": geo_risk}[measure](self.x, alpha)

    def tau(self, first: tuple[str, float], second: tuple[str, float], best: bool = False) -> float:
        """Kendall's τ of two orders, of all runs or of the best."""
        runs = self.best if best else np.setdiff1d(np.arange(len(self.x)), self._left_out(first, second))
        return float(kendalltau(self.of(*first)[runs], self.of(*second)[runs]).statistic)

    def _left_out(self, *measures: tuple[str, float]) -> list[int]:
        """The baseline has no risk against itself."""
        return [self.baseline] if {"U", "T"} & {measure for measure, _ in measures} else []


def read() -> list[Matrix]:
    return [Matrix(path.stem, read_scores(path).values) for path in sorted(DATA.glob("*.csv"))]


def correlations(matrices: list[Matrix]) -> tuple[str, float]:
    """Paper 000, 3.4.3: the table, and the largest share of sets of runs that reach what the paper found."""
    rows, most = [], 0.0
    for m in matrices:
        vnap = VNAP().over(m.x)
        rng, drawn = make_numpy_rng(1, "rankers", m.name), []
        for _ in range(SUBSETS):
            some = rng.choice(len(m.x), RANKERS, replace=False)
            drawn.append(mean_variance_correlation(m.mean[some], vnap[some]))
        low, high = np.nanquantile(drawn, [0.025, 0.975])
        without, share = int(np.isnan(vnap).sum()), 100 * float(np.mean(np.array(drawn) <= -0.9869))
        most = max(most, share)
        rows.append(
            [
                m.name,
                f"{len(m.x)} x {m.x.shape[1]}",
                f"{mean_variance_correlation(m.mean, vnap):.3f}" + (f" ({without} without VNAP)" if without else ""),
                f"{low:.2f} to {high:.2f}",
                f"{share:.1f} %",
            ]
        )
    return table(["matrix", "runs x topics", "r", f"r of {RANKERS} runs", "≤ -.9869"], rows), most


PAIRS: dict[str, tuple[tuple[str, float], tuple[str, float]]] = {
    "T, mean": (("T", 0), ("mean", 0)),
    "U, T at 5": (("U", 5), ("T", 5)),
    "U at 5, mean": (("U", 5), ("mean", 0)),
    "Z, mean": (("Z", 0), ("mean", 0)),
    "Z at 5, mean": (("Z", 5), ("mean", 0)),
    "Z at 5, U at 5": (("Z", 5), ("U", 5)),
    "Geo, mean": (("Geo", 0), ("mean", 0)),
    "Geo at 5, mean": (("Geo", 5), ("mean", 0)),
    "Geo at 5, Z at 5": (("Geo", 5), ("Z", 5)),
    "Geo at 20, Z at 20": (("Geo", 20), ("Z", 20)),
    "Geo at 20, Z at 5": (("Geo", 20), ("Z", 5)),
    "Geo at 100, Z at 100": (("Geo", 100), ("Z", 100)),
    "T*, mean": (("T*", 0), ("mean", 0)),
    "T* at 5, mean": (("T*", 5), ("mean", 0)),
    "T* at 20, mean": (("T*", 20), ("mean", 0)),
}
"""Two orders of the runs; α is 0 where nothing else is said."""


def taus(matrices: list[Matrix], best: bool) -> dict[str, list[float]]:
    return {name: [m.tau(*pair, best=best) for m in matrices] for name, pair in PAIRS.items()}


def orders(matrices: list[Matrix], found: dict[str, list[float]]) -> str:
    head = ["τ of", *(m.name for m in matrices)]
    return table(head, [[name, *(f"{value:.2f}" for value in values)] for name, values in found.items()])


def places(matrices: list[Matrix]) -> str:
    """How far T*Risk's own places are from those by the mean."""
    rows = []
    for m in matrices:
        by_mean, cells = rank_systems(m.mean), []
        for alpha in (0, 5, 20):
            moved = np.abs(rank_systems(t_star_risk(m.x, alpha)) - by_mean)
            cells.append(f"{int((moved > 0).sum())} of {len(moved)}, by up to {int(moved.max())}")
        rows.append([m.name, *cells])
    return table(["matrix", "α = 0", "α = 5", "α = 20"], rows)


def flagged(matrices: list[Matrix]) -> tuple[str, dict[float, tuple[int, int, int]]]:
    """Runs with |TRisk| above 2, and runs that differ from the baseline by more than chance, at each α."""
    rows, sums = [], {0.0: (0, 0, 0), 1.0: (0, 0, 0), 5.0: (0, 0, 0)}
    for m in matrices:
        others = np.arange(len(m.x)) != m.baseline
        p = t_risk_p(m.x[others], m.x[m.baseline], tuple(sums))
        cells = []
        for i, alpha in enumerate(sums):
            large = np.abs(m.of("T", alpha)[others]) > 2
            real = p[:, i] < 0.05
            here = int(large.sum()), int(real.sum()), int((large & ~real).sum())
            cells.append(f"{here[0]}, {here[1]}, {here[2]}")
            sums[alpha] = (sums[alpha][0] + here[0], sums[alpha][1] + here[1], sums[alpha][2] + here[2])
        rows.append([m.name, *cells])
    return table(["matrix", *(f"α = {alpha:g}" for alpha in sums)], rows), sums


def falls(matrices: list[Matrix]) -> bool:
    """Whether every run's GeoRisk falls from each α to the next."""
    return all((np.diff([geo_risk(m.x, a) for a in range(21)], axis=0) <= 1e-12).all() for m in matrices)


def claims(matrices: list[Matrix], every: dict[str, list[float]], best: dict[str, list[float]]) -> str:
    """Each claim with what the matrices say of it; the rule is the same for all."""
    n = len(matrices)

    def same(name: str) -> str:
        return f"same order of the best {BEST} on {_same(best[name])} of {n}, τ of all runs {_range(every[name])}"

    def agree(*names: str) -> str:
        return _verdict(min(_same(best[name]) for name in names), n)

    def differ(*names: str) -> str:
        return _verdict(min(n - _same(best[name]) for name in names), n)

    _, sums = flagged(matrices)
    u0 = all(np.array_equal(rank_systems(m.of("U", 0)), rank_systems(m.mean)) for m in matrices)
    rows = [
        ["2: by T*Risk runs are ordered as by the mean: α = 0", same("T*, mean"), agree("T*, mean")],
        ["2: whatever α: α = 20", same("T* at 20, mean"), agree("T* at 20, mean")],
        ["5: URisk at α = 0 agrees with the mean", "by definition", "holds" if u0 else "does not hold"],
        ["5: TRisk at α = 0 agrees with the mean", same("T, mean"), agree("T, mean")],
        ["5: at α = 5 URisk and TRisk agree", same("U, T at 5"), agree("U, T at 5")],
        ["5: at α = 5 URisk no longer agrees with the mean", same("U at 5, mean"), differ("U at 5, mean")],
        ["5: ZRisk agrees neither with the mean", same("Z at 5, mean"), differ("Z, mean", "Z at 5, mean")],
        ["5: nor with URisk", same("Z at 5, U at 5"), differ("Z at 5, U at 5")],
        ["5: GeoRisk at α = 0 agrees with the mean", same("Geo, mean"), agree("Geo, mean")],
        ["5: GeoRisk at α = 5 no longer does", same("Geo at 5, mean"), differ("Geo at 5, mean")],
        ["5: at a high α GeoRisk agrees with ZRisk: α = 20", same("Geo at 20, Z at 20"), agree("Geo at 20, Z at 20")],
        ["5: the same at α = 100", same("Geo at 100, Z at 100"), agree("Geo at 100, Z at 100")],
        ["5: GeoRisk of every run falls with α", "", "holds" if falls(matrices) else "does not hold"],
        *(
            [
                f"5: TRisk beyond ±2 is significant, at α = {alpha:g}",
                f"{large} runs beyond ±2, {extra} of them within what chance does",
                "holds" if extra <= 0.05 * large else "does not hold",
            ]
            for alpha, (large, _, extra) in sums.items()
        ),
        ["5: Table 6, and what is said of single runs", "the matrix of 2012 is not among these", "cannot be told"],
    ]
    return table(["claim of paper 002, section", "here", "verdict"], rows)


def _same(values: list[float]) -> int:
    return sum(value > 1 - 1e-9 for value in values)


def _range(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def _verdict(count: int, total: int) -> str:
    """Holds on eight of ten at least, does not on two of ten at most, and in between depends on the runs."""
    if count >= 0.8 * total:
        return "holds"
    return "does not hold" if count <= 0.2 * total else f"depends on the runs ({count} of {total})"


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def page(matrices: list[Matrix]) -> str:
    every, best = taus(matrices, best=False), taus(matrices, best=True)
    r = {m.name: mean_variance_correlation(m.mean, VNAP().over(m.x)) for m in matrices}
    said = ", ".join(f"{value:.2f} on {name.removesuffix('_ap')}" for name, value in r.items() if name.endswith("_ap"))
    negative, reached = sum(value < 0 for value in r.values()), sum(value <= -0.98 for value in r.values())
    correlated, most = correlations(matrices)
    return f"""# Risk and variance on matrices of TREC runs

Made by `evidence/risk_matrices.py`; nothing here was edited by hand. The matrices are those of Urbano and others: every
run of a track on its topics, without names. The end of a matrix's name is the measure: average precision, ERR@20 or
nDCG@20.

## Mean and variance (paper 000, 3.4.3)

The paper finds a Pearson correlation of MAP and VNAP of -.9869 over its {RANKERS} rankers, and calls that a strong
correlation. Here r is over all runs; beside it, where 95 % of {SUBSETS} random sets of {RANKERS} runs lie, and how many
of those reach what the paper found. VNAP is computed of whatever a matrix measures.

{correlated}

- VNAP falls as the mean rises: {_verdict(negative, len(r))} (r below 0 on {negative} of {len(r)}; {said}).
- r is as strong as -.98: {_verdict(reached, len(r))} ({reached} of {len(r)}); of sets as large as the paper's,
  {most:.1f} % at most reach -.9869.

## Orders of runs (paper 002, sections 2 and 5)

The paper compares the best runs of eight groups of TREC 2012, which are not public as a matrix. Here the single
baseline of URisk and TRisk is the run with the median mean, and the verdicts are of the {BEST} best runs; they may be
of one group and much alike, so τ of all runs stands beside. A claim that two orders agree holds if the order of the
best {BEST} is the same on eight matrices of ten at least, and does not hold if it is on two at most; a claim that they
differ likewise.

{claims(matrices, every, best)}

All runs:

{orders(matrices, every)}

The best {BEST}:

{orders(matrices, best)}

## Places by T*Risk

Runs whose place by T*Risk is not that by the mean, and by how many places at most:

{places(matrices)}

## TRisk beyond ±2

Runs with |TRisk| above 2; runs that differ from the baseline by more than chance at that α (p < .05, by randomisation,
not corrected); and runs that are beyond 2 without that:

{flagged(matrices)[0]}
"""


def main() -> int:
    if not DATA.is_dir():
        print(f"skipped: there are no matrices at {DATA}")
        return 0
    text = page(read())
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
    print(text)
    return 0


def cheap_row() -> str:
    return correlations([Matrix("web2013_err20", read_scores(DATA / "web2013_err20.csv").values)])[0].splitlines()[-1]


if __name__ == "__main__":
    sys.exit(main())

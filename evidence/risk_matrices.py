"""What two papers say of risk and variance, on ten public matrices of all runs of a TREC track.

make evidence PAGE=risk-matrices        (a minute on two cores)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from evidence import DATA as SHARED
from evidence import Guard, Page, Rows, need_data, prose, read_number, table
from shaketable.core.seeding import make_numpy_rng
from shaketable.datasets.scores import read_scores
from shaketable.measures.risk import geo_risk, rank_systems, t_risk, t_risk_p, t_star_risk, u_risk, z_risk
from shaketable.measures.variance import VNAP, mean_variance_correlation

Values = NDArray[np.float64]

DATA = SHARED / "scores"
ALPHAS = (0.0, 1.0, 5.0)
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


def correlations(matrices: list[Matrix]) -> list[list[str]]:
    """Paper 000, 3.4.3: how mean and variance go together, and in how many sets of runs as strongly as there."""
    rows = []
    for m in matrices:
        vnap = VNAP().over(m.x)
        rng, drawn = make_numpy_rng(1, "rankers", m.name), []
        for _ in range(SUBSETS):
            some = rng.choice(len(m.x), RANKERS, replace=False)
            drawn.append(mean_variance_correlation(m.mean[some], vnap[some]))
        low, high = np.nanquantile(drawn, [0.025, 0.975])
        without, share = int(np.isnan(vnap).sum()), 100 * float(np.mean(np.array(drawn) <= -0.9869))
        rows.append(
            [
                m.name,
                f"{len(m.x)} x {m.x.shape[1]}",
                f"{mean_variance_correlation(m.mean, vnap):.3f}" + (f" ({without} without VNAP)" if without else ""),
                f"{low:.2f} to {high:.2f}",
                f"{share:.1f} %",
            ]
        )
    return rows


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


def orders(found: dict[str, list[float]]) -> list[list[str]]:
    return [[name, *(f"{value:.2f}" for value in values)] for name, values in found.items()]


def places(matrices: list[Matrix]) -> list[list[str]]:
    """How far T*Risk's own places are from those by the mean."""
    rows = []
    for m in matrices:
        by_mean, cells = rank_systems(m.mean), []
        for alpha in (0, 5, 20):
            moved = np.abs(rank_systems(t_star_risk(m.x, alpha)) - by_mean)
            cells.append(f"{int((moved > 0).sum())} of {len(moved)}, by up to {int(moved.max())}")
        rows.append([m.name, *cells])
    return rows


def flagged(matrices: list[Matrix]) -> list[list[str]]:
    """Runs with |TRisk| above 2, and runs that differ from the baseline by more than chance, at each α."""
    rows = []
    for m in matrices:
        others = np.arange(len(m.x)) != m.baseline
        p = t_risk_p(m.x[others], m.x[m.baseline], ALPHAS)
        cells = []
        for i, alpha in enumerate(ALPHAS):
            large = np.abs(m.of("T", alpha)[others]) > 2
            real = p[:, i] < 0.05
            here = int(large.sum()), int(real.sum()), int((large & ~real).sum())
            cells.append(f"{here[0]}, {here[1]}, {here[2]}")
        rows.append([m.name, *cells])
    return rows


def falls(matrices: list[Matrix]) -> bool:
    """Whether every run's GeoRisk falls from each α to the next."""
    return all((np.diff([geo_risk(m.x, a) for a in range(21)], axis=0) <= 1e-12).all() for m in matrices)


def read_taus(printed: Sequence[Sequence[str]]) -> dict[str, list[float]]:
    """Return the printed τ of each pair of orders; of eight runs, 1.00 is the same order."""
    return {name: [float(cell) for cell in cells] for name, *cells in printed}


def claims(found: Rows) -> list[list[str]]:
    """Each claim with what the printed tables say of it; the rule is the same for all."""
    every, best = read_taus(found["orders of all runs"]), read_taus(found["orders of the best"])
    n = len(found["correlations"])

    def same(name: str) -> str:
        return f"same order of the best {BEST} on {_same(best[name])} of {n}, τ of all runs {_range(every[name])}"

    def agree(*names: str) -> str:
        return _verdict(min(_same(best[name]) for name in names), n)

    def differ(*names: str) -> str:
        return _verdict(min(n - _same(best[name]) for name in names), n)

    counts = {alpha: [cells[place].split(", ") for cells in found["flagged"]] for place, alpha in enumerate(ALPHAS, 1)}
    sums = {alpha: [sum(int(of[at]) for of in some) for at in range(3)] for alpha, some in counts.items()}
    u0, fall = found["URisk at 0 orders as the mean"], found["GeoRisk falls with α"]
    return [
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
        ["5: GeoRisk of every run falls with α", "", "holds" if fall else "does not hold"],
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


def _same(values: list[float]) -> int:
    return sum(value > 1 - 1e-9 for value in values)


def _range(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def _verdict(count: int, total: int) -> str:
    """Holds on eight of ten at least, does not on two of ten at most, and in between depends on the runs."""
    if count >= 0.8 * total:
        return "holds"
    return "does not hold" if count <= 0.2 * total else f"depends on the runs ({count} of {total})"


def measure() -> Rows:
    need_data("scores")
    matrices = read()
    return {
        "correlations": correlations(matrices),
        "orders of all runs": orders(taus(matrices, best=False)),
        "orders of the best": orders(taus(matrices, best=True)),
        "places": places(matrices),
        "flagged": flagged(matrices),
        "URisk at 0 orders as the mean": all(
            np.array_equal(rank_systems(m.of("U", 0)), rank_systems(m.mean)) for m in matrices
        ),
        "GeoRisk falls with α": falls(matrices),
    }


def compose(found: Rows) -> list[str]:
    names = [cells[0] for cells in found["correlations"]]
    r = {cells[0]: read_number(cells[2]) for cells in found["correlations"]}
    most = max(read_number(cells[4]) for cells in found["correlations"])
    said = ", ".join(f"{value:.3f} on {name.removesuffix('_ap')}" for name, value in r.items() if name.endswith("_ap"))
    negative, reached = sum(value < 0 for value in r.values()), sum(value <= -0.98 for value in r.values())
    return [
        prose("""The matrices are those of Urbano and others: every run of a track on its topics, without names. The end
        of a matrix's name is the measure: average precision, ERR@20 or nDCG@20."""),
        "## Mean and variance (paper 000, 3.4.3)",
        prose(f"""The paper finds a Pearson correlation of MAP and VNAP of -.9869 over its {RANKERS} rankers, and calls
        that a strong correlation. Here r is over all runs; beside it, where 95 % of {SUBSETS} random sets of {RANKERS}
        runs lie, and how many of those reach what the paper found. VNAP is computed of whatever a matrix measures."""),
        table(("matrix", "runs x topics", "r", f"r of {RANKERS} runs", "≤ -.9869"), found["correlations"]),
        prose(f"""- VNAP falls as the mean rises: {_verdict(negative, len(r))} (r below 0 on {negative} of {len(r)};
        {said})."""),
        prose(f"""- r is as strong as -.98: {_verdict(reached, len(r))} ({reached} of {len(r)}); of sets as large as the
        paper's, {most:.1f} % at most reach -.9869."""),
        "## Orders of runs (paper 002, sections 2 and 5)",
        prose(f"""The paper compares the best runs of eight groups of TREC 2012, which are not public as a matrix. Here
        the single baseline of URisk and TRisk is the run with the median mean, and the verdicts are of the {BEST} best
        runs; they may be of one group and much alike, so τ of all runs stands beside. A claim that two orders agree
        holds if the order of the best {BEST} is the same on eight matrices of ten at least, and does not hold if it is
        on two at most; a claim that they differ likewise."""),
        table(("claim of paper 002, section", "here", "verdict"), claims(found), numbers=False),
        "All runs:",
        table(("τ of", *names), found["orders of all runs"]),
        f"The best {BEST}:",
        table(("τ of", *names), found["orders of the best"]),
        "## Places by T*Risk",
        "Runs whose place by T*Risk is not that by the mean, and by how many places at most:",
        table(("matrix", "α = 0", "α = 5", "α = 20"), found["places"]),
        "## TRisk beyond ±2",
        prose("""Runs with |TRisk| above 2; runs that differ from the baseline by more than chance at that α (p < .05,
        by randomisation, not corrected); and runs that are beyond 2 without that:"""),
        table(("matrix", *(f"α = {alpha:g}" for alpha in ALPHAS)), found["flagged"]),
    ]


def read_small() -> list[Matrix]:
    return [Matrix("web2013_err20", read_scores(DATA / "web2013_err20.csv").values)]


PAGE = Page(
    __file__,
    "Risk and variance on matrices of TREC runs",
    measure,
    compose,
    (
        Guard("correlations", "the correlation on web2013_err20", lambda: correlations(read_small())[0]),
        Guard("places", "the places on web2013_err20", lambda: places(read_small())[0]),
        Guard("flagged", "the runs beyond ±2 on web2013_err20", lambda: flagged(read_small())[0]),
    ),
)

if __name__ == "__main__":
    PAGE.main()

"""Statuses of findings: pass, warn, fail or inconclusive, by thresholds and intervals.

A status is a claim, so it needs evidence. A finding passes if its loss is below the warn threshold and the upper end of
its interval is below the fail threshold. It fails if its loss reaches the fail threshold and the interval excludes the
warn threshold. It warns if its loss reaches the warn threshold and the interval excludes no loss. Otherwise it is
inconclusive. If a facet has a panel of tests, Holm's correction over the panel applies to warnings and failures, as
one of many tests exceeds a threshold by chance; a pass needs no correction, because every test has to pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite, isnan
from typing import Final, Literal, TypeAlias

from shaketable.core.results import Finding
from shaketable.measures.facets import Facet, FacetScale
from shaketable.measures.significance import MIN_QUERIES, adjust_p_values

SIGNIFICANCE_LEVEL = 0.05
INTERIM_LEVEL = 0.001
"""The level of a status at an interim look."""
Status: TypeAlias = Literal["pass", "warn", "fail", "inconclusive", "not tested"]
"""The status of a facet or of a gate."""
PASS: Final = "pass"
WARN: Final = "warn"
FAIL: Final = "fail"
INCONCLUSIVE: Final = "inconclusive"
NOT_TESTED: Final = "not tested"
STATUSES_WORST_FIRST: tuple[Status, ...] = (FAIL, WARN, INCONCLUSIVE, PASS)
"""The statuses of a measured facet; a facet without a measurement is `NOT_TESTED`."""
MIN_P = 1e-6
"""The least p by which a corrected p is divided: an interval of no width has p 0."""
MAX_DECIDING_QUERIES = 100_000
"""The largest number of queries that is worth naming."""
MAX_JUDGED_FALL = 10.0
"""The largest fall of the percentage of judged documents in the first ten with which a loss can be interpreted."""


@dataclass(frozen=True)
class ClassifiedFinding:
    """A finding with its status, a remark on it, and its loss with the ends of its interval (NaN without a scale)."""

    finding: Finding
    status: Status
    remark: str = ""
    loss: float = float("nan")
    least: float = float("nan")
    most: float = float("nan")
    scale: FacetScale | None = None
    correction: float = 1.0
    """The factor by which correction for several tests enlarged the p of an undecided finding."""

    @property
    def corrected_interval(self) -> tuple[float, float]:
        """The 95 % interval of the finding's value, widened like the p of an undecided finding."""
        from scipy.special import ndtri

        wider = float(ndtri(1 - SIGNIFICANCE_LEVEL / 2 / self.correction) / ndtri(1 - SIGNIFICANCE_LEVEL / 2))
        value, low, high = self.finding.value, self.finding.low, self.finding.high
        return value - wider * (value - low), value + wider * (high - value)

    @property
    def loss_ratio(self) -> float:
        """The loss divided by the fail threshold, or by the warn threshold if the number cannot fail."""
        if self.scale is None or isnan(self.loss):
            return -inf
        top = self.scale.fail_threshold
        return self.loss / (top if isfinite(top) else self.scale.warn_threshold)

    @property
    def sort_key(self) -> tuple[int, float]:
        """The key that sorts the worst first."""
        return STATUSES_WORST_FIRST.index(self.status), -self.loss_ratio


def classify_findings(findings: Sequence[Finding], facet: Facet) -> list[ClassifiedFinding]:
    """Return the findings of one ranker and facet with their statuses, in the given order.

    >>> from shaketable.measures.facets import TYPOS, get_facet
    >>> drop = Finding("dense", "drop(1-char)", -13.3, -17.5, -9.3, n=225)
    >>> [one.status for one in classify_findings([drop], get_facet(TYPOS))]
    ['warn']
    """
    measured = [_measure_loss(one, facet.find_scale(one)) for one in findings]
    known = [i for i, one in enumerate(measured) if not one.remark]
    warn_p = adjust_p_values([_exceeding_p(measured[i], 0.0) for i in known])
    fail_p = adjust_p_values([_exceeding_p(measured[i], _get_scale(measured[i]).warn_threshold) for i in known])
    for i, above_zero, above_warn in zip(known, warn_p.tolist(), fail_p.tolist(), strict=True):
        measured[i] = _classify(measured[i], above_zero, above_warn)
    return measured


def find_decided(findings: Sequence[Finding], facet: Facet) -> dict[str, Status]:
    """Return the findings of one ranker and facet whose status more queries will hardly change: name -> status.

    Several looks at growing samples find a status by chance more often than one. So an interim status needs an interval
    of 99.9 % instead of 95 % (Haybittle and Peto), and a warning must exclude a failure. The last look is classified as
    usual.

    >>> from shaketable.measures.facets import TYPOS, get_facet
    >>> certain = Finding("dense", "drop(1-char)", -40.0, -45.0, -35.0, n=24)
    >>> likely = Finding("dense", "drop(keyboard)", -22.0, -38.0, -6.0, n=24)
    >>> find_decided([certain, likely], get_facet(TYPOS))
    {'drop(1-char)': 'fail'}
    """
    wide = classify_findings([_widen(one) for one in findings], facet)
    return {
        one.finding.name: one.status
        for one in wide
        if one.status in (PASS, FAIL)
        or (one.status == WARN and one.scale is not None and one.most < one.scale.fail_threshold)
    }


def _widen(finding: Finding) -> Finding:
    """Return the finding with an interval of `INTERIM_LEVEL`, by the normal approximation."""
    from scipy.special import ndtri

    factor = float(ndtri(1 - INTERIM_LEVEL / 2) / ndtri(1 - SIGNIFICANCE_LEVEL / 2))
    return replace(
        finding,
        low=finding.value - factor * (finding.value - finding.low),
        high=finding.value + factor * (finding.high - finding.value),
    )


def _measure_loss(finding: Finding, scale: FacetScale | None) -> ClassifiedFinding:
    """Return the loss of a finding and its interval; a remark says why it can have no status."""
    if scale is None:
        return ClassifiedFinding(finding, INCONCLUSIVE, "there is no threshold for it")
    loss = scale.compute_loss(finding, finding.value)
    least, most = sorted(scale.compute_loss(finding, end) for end in (finding.low, finding.high))
    one = ClassifiedFinding(finding, INCONCLUSIVE, "", loss, least, most, scale)
    if isnan(finding.low) or isnan(finding.high):
        return replace(one, remark="it has no interval")
    fall = finding.judged_before - finding.judged_after
    if fall > MAX_JUDGED_FALL and loss >= scale.warn_threshold:
        return replace(
            one,
            remark=f"judged documents in the first ten fall from {finding.judged_before:.0f} % to "
            f"{finding.judged_after:.0f} %, so the loss may be missing judgements",
        )
    return one


def _exceeding_p(one: ClassifiedFinding, threshold: float) -> float:
    """Return the one-sided p of "the loss is at most the threshold", from the near end of the 95 % interval."""
    from scipy.special import ndtr, ndtri

    if one.loss <= threshold:
        return 1.0
    if one.loss <= one.least:  # an interval of no width
        return 0.0
    z = (one.loss - threshold) / (one.loss - one.least) * float(ndtri(1 - SIGNIFICANCE_LEVEL / 2))
    return float(ndtr(-z))


def _classify(one: ClassifiedFinding, above_zero: float, above_warn: float) -> ClassifiedFinding:
    """Return the status by the corrected p of "no loss" and of "no more than the warn threshold"."""
    scale, n = _get_scale(one), one.finding.n
    half = SIGNIFICANCE_LEVEL / 2
    if n < MIN_QUERIES and one.least < scale.fail_threshold:
        return replace(one, remark=f"{n} queries, too few for a status ({MIN_QUERIES} needed)")
    if scale.needs_p and one.loss >= scale.warn_threshold and not one.finding.p < SIGNIFICANCE_LEVEL:
        # a change is tested against 0; the p of a rate is that of "more than chance", which its interval does not show
        raw = max(_exceeding_p(one, 0.0), MIN_P)
        correction = max(1.0, one.finding.p / 2 / raw) if scale.unit == "+%" else 1.0
        return replace(one, remark=_explain_undecided(one, "not significant", one.finding.p / 2), correction=correction)
    if one.loss >= scale.fail_threshold and above_warn < half:
        return replace(one, status=FAIL)
    if one.loss >= scale.warn_threshold:
        if above_zero < half:
            return replace(one, status=WARN)
        raw = _exceeding_p(one, 0.0)
        tests = above_zero / raw
        return replace(one, remark=_explain_undecided(one, "not significant", raw, tests), correction=tests)
    if one.most >= scale.fail_threshold:
        return replace(one, remark=_explain_undecided(one, "the interval is too wide"))
    return replace(one, status=PASS)


def _explain_undecided(one: ClassifiedFinding, reason: str, p: float | None = None, tests: float = 1.0) -> str:
    """Return the reason, and the number of queries that would decide the status if the estimate stays the same."""
    needed = count_deciding_queries(one, p, tests)
    return f"{reason}; about {needed:,} queries would decide" if needed else reason


def count_deciding_queries(one: ClassifiedFinding, p: float | None = None, tests: float = 1.0) -> int:
    """Return how many queries would decide an inconclusive finding at the same estimate and spread; 0 if unknown.

    Errors shrink with the square root of the number of queries. `p` is the one-sided p of "no loss" if that is
    the reason, and `tests` the number of tests that it is corrected for; otherwise the interval is too wide for a pass.
    """
    from scipy.special import ndtri

    scale, n = _get_scale(one), one.finding.n
    if p is not None:
        needed, reached = (-float(ndtri(tail)) for tail in (SIGNIFICANCE_LEVEL / 2 / tests, p))
        ratio = needed / reached if reached > 0 else inf
    else:
        allowed = scale.fail_threshold - one.loss
        ratio = (one.most - one.loss) / allowed if allowed > 0 else inf
    return count_narrowing_queries(n, ratio)


def count_narrowing_queries(n: int, ratio: float) -> int:
    """Return how many queries make an interval of `n` queries `ratio` times as narrow; 0 if unknown or too many.

    >>> count_narrowing_queries(50, 2.0), count_narrowing_queries(50, inf)
    (200, 0)
    """
    needed = n * ratio * ratio  # a power would raise OverflowError where a product is infinite
    if n <= 0 or not isfinite(ratio) or needed > MAX_DECIDING_QUERIES:
        return 0
    return max(n + 1, MIN_QUERIES, ceil(round(needed, 6)))


def _get_scale(one: ClassifiedFinding) -> FacetScale:
    assert one.scale is not None
    return one.scale

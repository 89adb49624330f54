"""The facets of robustness: the number that decides the status of each, and its thresholds.

Tasks tag their findings with a facet; the verdict of an audit uses this table to turn a tagged number into a status.
The thresholds come from this project, not from a paper: docs/verdict.md has the reason for each. A status other than
`INCONCLUSIVE` needs evidence: an interval that excludes the opposite, a p below `SIGNIFICANCE_LEVEL` if there is a p,
and `MIN_QUERIES` queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import isnan
from typing import Final, Literal, TypeAlias

from shaketable.core.results import Finding
from shaketable.measures.significance import MIN_QUERIES

EFFECTIVENESS = "effectiveness"
VARIANCE = "variance"
RISK = "risk"
TYPOS = "query typos"
WORDING = "query wording"
INPUT_ORDER = "input order"
PROBES_FACET = "probes"
ATTACK = "attack"
COMPETITION = "competition"
SHIFT = "shift"

OWN_ORDER_SHARE = "order of its own %"
"""The finding that gives the share of lists whose order is neither the first stage's nor constant."""
GAIN_OVER_FIRST_STAGE, UNSERVED_INCREASE = "gain over the first stage %", "more queries without an answer %"
GAIN_AT_DOUBLE_LOSSES = "gain at double losses %"
"""Names of the findings that compare a ranker with the first stage: its first measure, the queries without a relevant
document in the first ten, and the gain if a loss counts twice.
"""
INTO_TOP_TEN = "into the first ten %"
"""The name of the finding on attacked documents that entered the first ten from below."""
SIGNIFICANCE_LEVEL = 0.05
Status: TypeAlias = Literal["pass", "warn", "fail", "inconclusive", "not tested"]
"""The status of a facet or of a gate."""
PASS: Final = "pass"
WARN: Final = "warn"
FAIL: Final = "fail"
INCONCLUSIVE: Final = "inconclusive"
NOT_TESTED: Final = "not tested"
STATUSES_WORST_FIRST: tuple[Status, ...] = (FAIL, WARN, INCONCLUSIVE, PASS)
"""The statuses of a measured facet; a facet without a measurement is `NOT_TESTED`."""


@dataclass(frozen=True)
class FacetScale:
    """The thresholds that turn a number into a status. The loss is the distance to `neutral_value` on the bad side.

    finding_pattern  a pattern of the names of findings
    warn_threshold   the smallest loss whose status is `WARN`
    fail_threshold   the smallest loss whose status is `FAIL`
    neutral_value    the number of a ranker that loses nothing
    unit             the unit of the number: "+%" is a change in per cent, "%" a share, "" a plain number
    sentence         the loss in plain words, with the fields {ranker}, {loss}, {what} and {of}
    """

    finding_pattern: str
    warn_threshold: float
    fail_threshold: float
    sentence: str
    neutral_value: float = 0.0
    unit: str = "+%"

    def compute_loss(self, finding: Finding, value: float) -> float:
        """Return the distance of a value to `neutral_value`, positive on the bad side."""
        return self.neutral_value - value if finding.better == "higher" else value - self.neutral_value


@dataclass(frozen=True)
class Facet:
    """A facet of robustness: its question, its scales, and the advice for a ranker that fails.

    `legend` names the number in a few words. `relative_to_first_stage` is True if the number is compared with the
    first stage, and False if a ranker is compared with itself before and after a change. In the second case an
    ineffective ranker has little to lose.
    """

    name: str
    question: str
    legend: str
    scales: tuple[FacetScale, ...]
    advice: str
    relative_to_first_stage: bool = False

    def find_scale(self, finding: Finding) -> FacetScale | None:
        """Return the scale of a finding, or None."""
        return next((scale for scale in self.scales if fnmatchcase(finding.name, scale.finding_pattern)), None)


_DROP_SCALE = FacetScale("drop(*)", 5, 20, "{what} costs {ranker} {loss:.1f} % of {of}")
_OVERLAP_SCALE = FacetScale(
    "overlap(*)",
    0.2,
    0.5,
    "{what} takes {loss:.0%} of the first ten documents of {ranker} away",
    neutral_value=1.0,
    unit="",
)
_ORDER_CHANGE_SENTENCE = "{ranker} changes the order of {loss:.0%} of the pairs of documents "

FACETS = (
    Facet(
        EFFECTIVENESS,
        "How good are its lists, beside those of the first stage?",
        "the first measure",
        (FacetScale(GAIN_OVER_FIRST_STAGE, 5, 25, "{ranker} is {loss:.1f} % worse than {of}"),),
        "Do not replace the first stage with it before you train or tune it on data like these.",
        relative_to_first_stage=True,
    ),
    Facet(
        VARIANCE,
        "How many queries are left without a relevant document in the first ten?",
        "queries with nothing relevant in the first ten",
        (
            FacetScale(
                UNSERVED_INCREASE,
                3,
                10,
                "{ranker} leaves {loss:.1f} % more of the queries with nothing relevant in the first ten than {of}",
            ),
        ),
        "Look at the queries that it leaves without an answer, and fuse its lists with the first stage's.",
        relative_to_first_stage=True,
    ),
    Facet(
        RISK,
        "What does it lose on some queries, beside what it wins on others?",
        "the gain over the first stage if losses count twice",
        (
            FacetScale(
                GAIN_AT_DOUBLE_LOSSES,
                10,
                25,
                "{ranker} loses so much on some queries that, losses counted twice, it is {loss:.1f} % below {of}",
            ),
        ),
        "Look at the queries that it loses on; fusing its lists with the first stage's keeps losses small.",
        relative_to_first_stage=True,
    ),
    Facet(
        TYPOS,
        "What does a slip of the keyboard cost?",
        "what one slip costs",
        (_DROP_SCALE, _OVERLAP_SCALE),
        "Correct the spelling of queries before it, fuse the lists of variations, or train it with typos.",
    ),
    Facet(
        WORDING,
        "What do other words for the same question cost?",
        "what other words cost",
        (_DROP_SCALE, _OVERLAP_SCALE),
        "Fuse the lists of several wordings of a query, or train it on more than one wording.",
    ),
    Facet(
        INPUT_ORDER,
        "Does the order in which it is shown documents change its list?",
        "pairs that change order with the input's",
        (
            FacetScale(
                "order sensitivity",
                0.1,
                0.3,
                _ORDER_CHANGE_SENTENCE + "when it is shown them in another order",
                unit="",
            ),
        ),
        "Show it several orders and join the answers (self-consistency), or rank pairwise.",
    ),
    Facet(
        PROBES_FACET,
        "How often does it prefer a text that was spoiled?",
        "spoiled texts that it prefers",
        (FacetScale("fooled %", 25, 50, "{ranker} prefers a spoiled text in {loss:.1f} % of the cases", unit="%"),),
        "See which spoiled texts it prefers ('shaketable probe'), and filter such texts before they are ranked.",
    ),
    Facet(
        ATTACK,
        "How easily does a changed document come among the first ten?",
        "attacked documents that reach the first ten",
        (
            FacetScale(
                INTO_TOP_TEN,
                10,
                30,
                "{what} brings {loss:.1f} % of the attacked documents among the first ten of {ranker}",
                unit="%",
            ),
        ),
        "Train it against attacks ('shaketable train --defence piat'), or put a detector before it (guarded).",
    ),
    Facet(
        COMPETITION,
        "How much of its order changes while authors rewrite documents?",
        "pairs of authors that change order",
        (FacetScale("KT", 0.25, 0.5, _ORDER_CHANGE_SENTENCE + "from a round of rewriting to the next", unit=""),),
        "Look at which rewritings gain ranks, and whether readers would agree.",
    ),
    Facet(
        SHIFT,
        "What does it lose on queries or corpora that it was not trained on?",
        "what training elsewhere costs",
        (
            FacetScale(
                "drop(*)",
                5,
                20,
                "Training elsewhere ({what}) costs {ranker} {loss:.1f} % of what training at home gives",
            ),
        ),
        "Train it on data like those that it will meet, or keep the first stage there.",
    ),
)
"""The facets in the order of the scorecard."""

PERTURBATION_DESCRIPTIONS = {
    "1-char": "One slip of the keyboard in a query",
    "word": "One changed word of a query",
    "misspelling": "A misspelt query",
    "naturality": "A query in a less natural form",
    "ordering": "Another order of a query's words",
    "paraphrasing": "A paraphrase of a query",
}
"""The text in the brackets of a finding's name -> the perturbation in plain words."""


def get_facet(name: str) -> Facet:
    """Return the facet of a name; the facet of a plug-in task has no scale."""
    return next((facet for facet in FACETS if facet.name == name), Facet(name, "", "", (), ""))


def classify_finding(finding: Finding, scale: FacetScale | None) -> tuple[Status, str]:
    """Return the status of a finding, and a remark on it or "".

    >>> drop = Finding("dense", "drop(1-char)", -13.3, -17.5, -9.3, n=225, p=0.001)
    >>> classify_finding(drop, get_facet(TYPOS).find_scale(drop))
    ('warn', '')
    """
    if scale is None:
        return INCONCLUSIVE, "there is no threshold for it"
    if finding.n < MIN_QUERIES:
        return INCONCLUSIVE, f"on {finding.n} queries only"
    if isnan(finding.low) or isnan(finding.high):
        return INCONCLUSIVE, "without an interval"
    loss = scale.compute_loss(finding, finding.value)
    least, most = sorted(scale.compute_loss(finding, end) for end in (finding.low, finding.high))
    chance = not isnan(finding.p) and finding.p >= SIGNIFICANCE_LEVEL
    if loss >= scale.warn_threshold and (chance or least <= 0):
        return INCONCLUSIVE, "not significant"
    if loss >= scale.fail_threshold and least > scale.warn_threshold:
        return FAIL, ""
    if loss >= scale.warn_threshold:
        return WARN, ""
    if most >= scale.fail_threshold:
        return INCONCLUSIVE, "the interval is too wide to tell"
    return PASS, ""

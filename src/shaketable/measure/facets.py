"""The facets of robustness: which number speaks for each in the answer of an audit, and from where on it is bad.

Tasks mark their findings with the name of a facet; the answer turns a marked number into a word by this table. The
thresholds are ours, not those of a paper: docs/answer.md has the reason for each. A word needs evidence: an interval
that leaves out the opposite, a p below `LEVEL` where there is one, and `FEWEST_QUERIES` queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import isnan

from shaketable.measure.significance import FEWEST_QUERIES
from shaketable.types import Finding

EFFECTIVENESS = "effectiveness"
VARIANCE = "variance"
RISK = "risk"
TYPOS = "query typos"
WORDING = "query wording"
ORDER = "input order"
BEHAVIOUR = "behaviour"
ATTACK = "attack"
COMPETITION = "competition"
SHIFT = "shift"

OWN_ORDER = "order of its own %"
"""The name of the finding that says in how many lists a ranker's order is neither the first stage's nor no order."""
GAIN, MORE_UNSERVED = "gain over the first stage %", "more queries without an answer %"
GAIN_AT_DOUBLE = "gain at double losses %"
"""Names of the findings that compare a ranker with the first stage: its first measure, the queries that are left
without a relevant document in the first ten, and the gain where a loss counts twice."""
INTO_TEN = "into the first ten %"
"""The name of the finding on attacked documents from below that came among the first ten."""
LEVEL = 0.05
STEADY, SHAKEN, BREAKS, UNCLEAR = "steady", "shaken", "breaks", "unclear"
WORST_FIRST = (BREAKS, SHAKEN, UNCLEAR, STEADY)


@dataclass(frozen=True)
class Scale:
    """How a number becomes a word. Its loss is how far it lies on the bad side of `still`.

    named     a pattern of the names of findings
    shaken    the loss from which on a ranker is shaken
    breaks    the loss from which on it breaks
    still     the number of a ranker that nothing moves
    unit      how the number is shown: "+%" is a change in per cent, "%" a share, "" a plain number
    sentence  what the loss is in plain words: {ranker}, {loss}, {what} and {of} are filled in
    """

    named: str
    shaken: float
    breaks: float
    sentence: str
    still: float = 0.0
    unit: str = "+%"

    def loss(self, finding: Finding, value: float) -> float:
        """How far a value of the finding lies on the bad side."""
        return self.still - value if finding.better == "higher" else value - self.still


@dataclass(frozen=True)
class Facet:
    """A side of robustness: the question it answers, its scales, and what to do where a ranker does badly.

    `legend` is what the number is, in a few words. `compared` is True where the number is compared with the first
    stage's, and False where a ranker is compared with itself, before and after: then a ranker that is no good has
    little to lose.
    """

    name: str
    question: str
    legend: str
    scales: tuple[Scale, ...]
    advice: str
    compared: bool = False

    def scale(self, finding: Finding) -> Scale | None:
        """The scale of a finding; None if it has none."""
        return next((scale for scale in self.scales if fnmatchcase(finding.name, scale.named)), None)


_LOST = Scale("drop(*)", 5, 20, "{what} costs {ranker} {loss:.1f} % of {of}")
_MOVED = Scale(
    "overlap(*)", 0.2, 0.5, "{what} takes {loss:.0%} of the first ten documents of {ranker} away", still=1.0, unit=""
)
_ORDER = "{ranker} changes the order of {loss:.0%} of the pairs of documents "

FACETS = (
    Facet(
        EFFECTIVENESS,
        "How good are its lists, beside those of the first stage?",
        "the first measure",
        (Scale(GAIN, 5, 25, "{ranker} is {loss:.1f} % worse than {of}"),),
        "Do not put it in the place of the first stage before it was trained or tuned on data like these.",
        compared=True,
    ),
    Facet(
        VARIANCE,
        "How many queries are left without a relevant document in the first ten?",
        "queries with nothing relevant in the first ten",
        (
            Scale(
                MORE_UNSERVED,
                3,
                10,
                "{ranker} leaves {loss:.1f} % more of the queries with nothing relevant in the first ten than {of}",
            ),
        ),
        "Look at the queries that it leaves without an answer, and fuse its lists with the first stage's.",
        compared=True,
    ),
    Facet(
        RISK,
        "What does it lose on some queries, beside what it wins on others?",
        "the gain over the first stage if losses count twice",
        (
            Scale(
                GAIN_AT_DOUBLE,
                10,
                25,
                "{ranker} loses so much on some queries that, losses counted twice, it is {loss:.1f} % below {of}",
            ),
        ),
        "Look at the queries that it loses on; fusing its lists with the first stage's keeps losses small.",
        compared=True,
    ),
    Facet(
        TYPOS,
        "What does a slip of the keyboard cost?",
        "what one slip costs",
        (_LOST, _MOVED),
        "Correct the spelling of queries before it, fuse the lists of variations, or train it with typos.",
    ),
    Facet(
        WORDING,
        "What do other words for the same question cost?",
        "what other words cost",
        (_LOST, _MOVED),
        "Fuse the lists of several wordings of a query, or train it on more than one wording.",
    ),
    Facet(
        ORDER,
        "Does the order in which it is shown documents change its list?",
        "pairs that change order with the input's",
        (Scale("order sensitivity", 0.1, 0.3, _ORDER + "when it is shown them in another order", unit=""),),
        "Show it several orders and join the answers (self-consistency), or rank pairwise.",
    ),
    Facet(
        BEHAVIOUR,
        "How often does it prefer a text that was spoiled?",
        "spoiled texts that it prefers",
        (Scale("fooled %", 25, 50, "{ranker} prefers a spoiled text in {loss:.1f} % of the cases", unit="%"),),
        "See which spoiled texts it prefers ('shaketable probe'), and filter such texts before they are ranked.",
    ),
    Facet(
        ATTACK,
        "How easily does a changed document come among the first ten?",
        "attacked documents that reach the first ten",
        (
            Scale(
                INTO_TEN,
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
        (Scale("KT", 0.25, 0.5, _ORDER + "from a round of rewriting to the next", unit=""),),
        "Look at which rewritings win places, and whether readers would agree.",
    ),
    Facet(
        SHIFT,
        "What does it lose on queries or corpora that it was not trained on?",
        "what training elsewhere costs",
        (
            Scale(
                "drop(*)",
                5,
                20,
                "Training elsewhere ({what}) costs {ranker} {loss:.1f} % of what training at home gives",
            ),
        ),
        "Train it on data like those that it will meet, or keep the first stage there.",
    ),
)
"""In the order of the scorecard: what a ranker is worth comes first."""

SHAKES = {
    "1-char": "One slip of the keyboard in a query",
    "word": "One changed word of a query",
    "misspelling": "A misspelt query",
    "naturality": "A query in a less natural form",
    "ordering": "Another order of a query's words",
    "paraphrasing": "A paraphrase of a query",
}
"""What stands in the brackets of a finding's name, in plain words."""


def facet_of(name: str) -> Facet:
    """The facet of that name; one that a task of somebody else's brings has no scale."""
    return next((facet for facet in FACETS if facet.name == name), Facet(name, "", "", (), ""))


def judged(finding: Finding, scale: Scale | None) -> tuple[str, str]:
    """The word for a number, and a remark on it where there is one.

    >>> drop = Finding("dense", "drop(1-char)", -13.3, -17.5, -9.3, n=225, p=0.001)
    >>> judged(drop, facet_of(TYPOS).scale(drop))
    ('shaken', '')
    """
    if scale is None:
        return UNCLEAR, "there is no threshold for it"
    if finding.n < FEWEST_QUERIES:
        return UNCLEAR, f"on {finding.n} queries only"
    if isnan(finding.low) or isnan(finding.high):
        return UNCLEAR, "without an interval"
    loss = scale.loss(finding, finding.value)
    least, most = sorted(scale.loss(finding, end) for end in (finding.low, finding.high))
    chance = not isnan(finding.p) and finding.p >= LEVEL
    if loss >= scale.shaken and (chance or least <= 0):
        return UNCLEAR, "not significant"
    if loss >= scale.breaks and least > scale.shaken:
        return BREAKS, ""
    if loss >= scale.shaken:
        return SHAKEN, ""
    if most >= scale.breaks:
        return UNCLEAR, "the interval is too wide to tell"
    return STEADY, ""

"""The facets of robustness: the numbers that decide the status of each, and their thresholds.

Tasks tag their findings with a facet; `shaketable.measures.status` turns tagged numbers into a status by this table.
A finding of a panel, such as one of several attacks, has its test in brackets: "drop(char_noise)". The thresholds come
from this project, not from a paper: docs/verdict.md has the reason for each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import inf

from shaketable.core.results import Finding

EFFECTIVENESS = "effectiveness"
VARIANCE = "variance"
RISK = "risk"
SLICES = "slices"
TYPOS = "query typos"
WORDING = "query wording"
PROMPT_WORDING = "prompt wording"
REPEATABILITY = "repeatability"
INPUT_ORDER = "input order"
TIES = "ties"
DOCUMENT_FORM = "document form"
PROBES_FACET = "probes"
ATTACK = "attack"
COMPETITION = "competition"
SHIFT = "shift"
LANGUAGES_FACET = "languages"

OWN_ORDER_SHARE = "order of its own %"
"""The finding that gives the share of lists whose order is neither the first stage's nor constant."""
GAIN_OVER_FIRST_STAGE, UNSERVED_INCREASE = "gain over the first stage %", "more queries without an answer %"
GAIN_AT_DOUBLE_LOSSES, SEVERE_LOSSES = "gain at double losses %", "queries that lose half %"
"""Names of the findings that compare a ranker with the first stage: its first measure, the queries without a relevant
document in the first ten, the gain if a loss counts twice, and the queries that lose more than half of the first
measure.
"""
UNSERVED_SHARE = "%no@10"
"""The share of queries without a relevant document in the first ten; its increase decides the facet variance."""
WORSE_THAN_RANDOM = "queries ranked worse than at random %"
CHANGED_ANSWERS, TIED_NEIGHBOURS = "changed when asked again %", "tied neighbours in the first ten %"
ORDER_SENSITIVITY = "order sensitivity"
FAILED_OPEN, INPUT_RETURNED = "answers without a ranking %", "answers in input order %"
"""The share of answers in input order or with one score for all texts, which other answers to the same texts refute;
and the share of those in input order.
"""
SLICE_GAIN, DROP, OVERLAP = "slice gain", "drop", "overlap"
FOOLED, WRONG_PAIRS = "fooled", "wrong"
FALLS_OUT, JUMPS_IN = "falls out of the first ten", "jumps into the first ten"
INTO_TOP_TEN, LOSS_UNDER_ATTACK = "into the first ten", "loss under attack"
MORE_WRONG_PAIRS, ENGLISH_PREFERRED, REVERSED_PAIRS = "more wrong than in English", "English preferred", "reversed"
"""The parts before the bracket of names of findings of panels; `name_test` adds the rest."""
PERCENT_PANELS = (
    *(SLICE_GAIN, FOOLED, WRONG_PAIRS, FALLS_OUT, JUMPS_IN, INTO_TOP_TEN, LOSS_UNDER_ATTACK),
    *(MORE_WRONG_PAIRS, ENGLISH_PREFERRED, REVERSED_PAIRS),
)


def name_test(panel: str, test: str) -> str:
    """Return the name of a finding of a panel of tests.

    >>> name_test(INTO_TOP_TEN, "query_insertion"), name_test(DROP, "char_noise")
    ('into the first ten(query_insertion) %', 'drop(char_noise)')
    """
    return f"{panel}({test}){' %' if panel in PERCENT_PANELS else ''}"


def find_test(name: str) -> str:
    """Return the test in the outer brackets of a finding's name, or "".

    >>> find_test("into the first ten(greedy(words=3)) %"), find_test("nDCG@10")
    ('greedy(words=3)', '')
    """
    inside = name.partition("(")[2]
    return inside.removesuffix(" %").removesuffix(")") if inside else ""


@dataclass(frozen=True)
class FacetScale:
    """The thresholds that turn a number into a status. The loss is the distance to `neutral_value` on the bad side.

    finding_pattern  a pattern of the names of findings
    warn_threshold   the smallest loss whose status is "warn"
    fail_threshold   the smallest loss whose status is "fail"; infinite if the number only ever warns
    sentence         the loss in plain words, with the fields {ranker}, {loss}, {what} and {of}
    measure          the number in a few words, for a cell, with the field {what}
    neutral_value    the number of a ranker that loses nothing
    unit             the unit of the number: "+%" is a change in per cent, "%" a share, "" a plain number
    needs_p          True if a loss counts only with a p below 0.05
    example_change   the change in the examples of a finding without a test in its name; any if empty
    test_noun        the kind of test in the name of a finding, for sentences: "the recipe greedy"
    """

    finding_pattern: str
    warn_threshold: float
    fail_threshold: float
    sentence: str
    measure: str
    neutral_value: float = 0.0
    unit: str = "%"
    needs_p: bool = False
    example_change: str = ""
    test_noun: str = "method"

    def compute_loss(self, finding: Finding, value: float) -> float:
        """Return the distance of a value to `neutral_value`, positive on the bad side."""
        return self.neutral_value - value if finding.better == "higher" else value - self.neutral_value


@dataclass(frozen=True)
class Facet:
    """A facet of robustness: its question, its scales, and the advice for a ranker that fails.

    `relative_to_first_stage` is True if the number itself is compared with the first stage, and False if a ranker is
    compared with itself before and after a change. In the second case an ineffective ranker has little to lose.
    `fails_beside` names a panel of findings in which a ranker must be significantly worse than the first stage to fail;
    otherwise it warns. It is for tests that nearly all rankers fail, so that an absolute threshold would say nothing.
    `margin_beside` is how much worse it has to be at least.
    """

    name: str
    question: str
    scales: tuple[FacetScale, ...]
    advice: str
    relative_to_first_stage: bool = False
    fails_beside: tuple[str, ...] = ()
    margin_beside: float = 0.0

    def find_scale(self, finding: Finding) -> FacetScale | None:
        """Return the scale of a finding, or None."""
        return next((scale for scale in self.scales if fnmatchcase(finding.name, scale.finding_pattern)), None)


_DROP_SCALE = FacetScale(
    "drop(*)", 5, 20, "{what} costs {ranker} {loss:.1f} % of {of}", "change of nDCG@10 by {what}", unit="+%"
)
_OVERLAP_SCALE = FacetScale(
    "overlap(*)",
    0.2,
    0.5,
    "{what} takes {loss:.0%} of the first ten documents of {ranker} away",
    "overlap of the first ten by {what}",
    neutral_value=1.0,
    unit="",
)
_OTHER_WRITING_SCALES = tuple(
    replace(_DROP_SCALE, finding_pattern=f"{DROP}({test} in *)", fail_threshold=inf)
    for test in ("transliterate", "other_language")
)
"""Queries in another script or language: few rankers can read them, so a loss warns and never fails."""
_ORDER_CHANGE_SENTENCE = "{ranker} changes the order of {loss:.0%} of the pairs of documents "

FACETS = (
    Facet(
        EFFECTIVENESS,
        "How good are its lists, compared with those of the first stage?",
        (
            FacetScale(
                GAIN_OVER_FIRST_STAGE,
                5,
                25,
                "{ranker} is {loss:.1f} % worse than {of}",
                "gain over the first stage",
                unit="+%",
                needs_p=True,
            ),
        ),
        "Train or tune it on data like these before you replace the first stage with it.",
        relative_to_first_stage=True,
    ),
    Facet(
        VARIANCE,
        "How many queries have no relevant document in the first ten?",
        (
            FacetScale(
                UNSERVED_INCREASE,
                3,
                10,
                "{ranker} leaves {loss:.1f} % more of the queries without a relevant document in the first ten than "
                "{of}",
                "more queries without a relevant document in the first ten",
                unit="+%",
            ),
        ),
        "Look at the queries without a relevant document, and fuse its lists with those of the first stage.",
        relative_to_first_stage=True,
    ),
    Facet(
        RISK,
        "On how many queries does it do badly, although its mean may be good?",
        (
            FacetScale(
                SEVERE_LOSSES,
                10,
                inf,
                "{ranker} loses more than half of the effectiveness of {of} on {loss:.1f} % of the queries, more than "
                "chance explains",
                "queries that lose more than half",
                needs_p=True,
            ),
            FacetScale(
                WORSE_THAN_RANDOM,
                5,
                inf,
                "{ranker} ranks {loss:.1f} % of the queries worse than a random order, more than a ranker does that is "
                "equally good on all queries",
                "queries ranked worse than at random",
                needs_p=True,
            ),
        ),
        "Look at the queries with the largest losses; fusing its lists with those of the first stage limits losses.",
        relative_to_first_stage=True,
    ),
    Facet(
        SLICES,
        "Is there a group of queries on which it is worse than the first stage?",
        (
            FacetScale(
                f"{SLICE_GAIN}(*) %",
                5,
                25,
                "{ranker} is {loss:.1f} % worse than {of} on the queries of {what}",
                "gain over the first stage on {what}",
                unit="+%",
                needs_p=True,
            ),
        ),
        "Look at these queries; route them to the first stage or train on more of them.",
        relative_to_first_stage=True,
    ),
    Facet(
        TYPOS,
        "What does a typing error in the query change?",
        (_DROP_SCALE, _OVERLAP_SCALE),
        "Correct the spelling of queries before it, fuse the lists of variations, or train it with typos.",
    ),
    Facet(
        WORDING,
        "What do other words for the same question change?",
        (_DROP_SCALE, _OVERLAP_SCALE),
        "Fuse the lists of several wordings of a query, or train it on more than one wording.",
    ),
    Facet(
        PROMPT_WORDING,
        "What do a missing, swapped or reworded prompt change?",
        (_DROP_SCALE, _OVERLAP_SCALE),
        "Check its prompts wherever it is deployed, or train it with several prompts.",
    ),
    Facet(
        REPEATABILITY,
        "Does it give the same answer twice?",
        (
            FacetScale(
                CHANGED_ANSWERS,
                5,
                25,
                "{ranker} changes the order of the first ten documents in {loss:.1f} % of the lists when it is asked "
                "again",
                "lists that change when asked again",
                example_change="asked again",
            ),
            FacetScale(
                FAILED_OPEN,
                0.3,
                3,
                "{ranker} fails open: {loss:.1f} % of its answers are the input order or one score for all documents",
                "answers without a ranking",
                example_change="asked again",
            ),
        ),
        "Fix its seed or temperature, or average several answers; a server that fails open should return errors.",
    ),
    Facet(
        INPUT_ORDER,
        "Does the order of the input change its list?",
        (
            FacetScale(
                ORDER_SENSITIVITY,
                0.1,
                0.3,
                _ORDER_CHANGE_SENTENCE + "when the input is shuffled",
                "pairs that change order with the input",
                unit="",
                example_change="input reversed",
            ),
            FacetScale(
                INPUT_RETURNED,
                0.3,
                3,
                "{ranker} fails open: {loss:.1f} % of its answers are the input order",
                "answers in input order",
                example_change="input reversed",
            ),
        ),
        "Average its answers over several input orders (self-consistency), or rank pairwise.",
    ),
    Facet(
        TIES,
        "How often are neighbours in the first ten tied, so that their order means nothing?",
        (
            FacetScale(
                TIED_NEIGHBOURS,
                20,
                50,
                "{ranker} gives {loss:.1f} % of the neighbours in the first ten the same score",
                "tied neighbours in the first ten",
                example_change="tied neighbours",
            ),
        ),
        "Return scores of full precision, before rounding and clipping.",
    ),
    Facet(
        DOCUMENT_FORM,
        "Does a change of a document that keeps its meaning change its rank?",
        (
            FacetScale(
                f"{FALLS_OUT}(*) %",
                10,
                30,
                "{what} takes {loss:.1f} % of the best documents out of the first ten of {ranker}",
                "out of the first ten by {what}",
                test_noun="change",
            ),
            FacetScale(
                f"{JUMPS_IN}(*) %",
                10,
                30,
                "{what} brings {loss:.1f} % of the documents from below into the first ten of {ranker}",
                "into the first ten by {what}",
                test_noun="change",
            ),
        ),
        "Normalise documents before they are ranked (case, Unicode, boilerplate), or train on such changes.",
    ),
    Facet(
        PROBES_FACET,
        "Does it prefer degraded texts, or miss a difference in meaning?",
        (
            FacetScale(
                f"{FOOLED}(*) %",
                15,
                50,
                "{ranker} prefers the degraded text in {loss:.1f} % of the pairs of {what}",
                "degraded texts preferred in {what}",
                test_noun="probe",
            ),
            FacetScale(
                f"{WRONG_PAIRS}(*) %",
                15,
                50,
                "{ranker} is wrong about {loss:.1f} % of the pairs of {what}",
                "wrong pairs of {what}",
                test_noun="probe",
            ),
        ),
        "Filter such texts before they are ranked, and see 'shaketable probe' for the pairs.",
        fails_beside=(FOOLED, WRONG_PAIRS),
        margin_beside=10.0,
    ),
    Facet(
        LANGUAGES_FACET,
        "Is it as good in other languages as in English, and does it stand their accents, scripts and mixtures?",
        (
            *_OTHER_WRITING_SCALES,
            _DROP_SCALE,
            _OVERLAP_SCALE,
            FacetScale(
                f"{MORE_WRONG_PAIRS}(*) %",
                10,
                30,
                "{ranker} is wrong about {loss:.1f} % more pairs than in English in {what}",
                "more wrong pairs than in English in {what}",
                test_noun="test",
            ),
            FacetScale(
                f"{ENGLISH_PREFERRED}(*) %",
                50,
                75,
                "{ranker} prefers the English text to the same text in the language of the query in {loss:.1f} % of "
                "the pairs of {what}",
                "English text preferred in {what}",
                test_noun="test",
            ),
            FacetScale(
                f"{REVERSED_PAIRS}(*) %",
                10,
                30,
                "{what} turns {loss:.1f} % of the right decisions of {ranker} into wrong ones",
                "right decisions reversed by {what}",
                test_noun="test",
            ),
        ),
        "Use a multilingual model, or the analysis of the language such as bm25(language='de'); fold accents and "
        "Unicode forms before ranking.",
    ),
    Facet(
        ATTACK,
        "How easily does a changed document reach the first ten?",
        (
            FacetScale(
                f"{INTO_TOP_TEN}(*) %",
                10,
                30,
                "{what} brings {loss:.1f} % of the attacked documents into the first ten of {ranker}",
                "into the first ten by {what}",
                test_noun="recipe",
            ),
        ),
        "Put a detector before it (guarded), or train it against attacks ('shaketable train --defence piat').",
        fails_beside=(LOSS_UNDER_ATTACK,),
    ),
    Facet(
        COMPETITION,
        "How much of its order changes while authors rewrite documents?",
        (
            FacetScale(
                "KT",
                0.25,
                0.5,
                _ORDER_CHANGE_SENTENCE + "from a round of rewriting to the next",
                "pairs of authors that change order",
                unit="",
            ),
        ),
        "Look at which rewritings gain ranks, and whether readers would agree.",
    ),
    Facet(
        SHIFT,
        "What does it lose on queries or corpora that it was not trained on?",
        (
            FacetScale(
                "drop(*)",
                5,
                20,
                "Training on other data ({what}) costs {ranker} {loss:.1f} % compared with training on data like these",
                "change by training on {what}",
                unit="+%",
            ),
        ),
        "Train it on data like those that it will meet, or keep the first stage there.",
    ),
)
"""The facets in the order of the scorecard."""


def get_facet(name: str) -> Facet:
    """Return the facet of a name; the facet of a plug-in task has no scale."""
    return next((facet for facet in FACETS if facet.name == name), Facet(name, "", (), ""))

"""A glossary of terms for the page and the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Term:
    """A term and its meaning, in a sentence or two; `aliases` are other spellings in tables and notes."""

    name: str
    meaning: str
    aliases: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """The id of the term in a page.

        >>> Term("T*Risk", "").anchor
        'term-t-risk'
        """
        return "term-" + (re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-") or "sign")


TERMS = (
    Term("AP", "Average precision: the mean, over the relevant documents, of the precision at the rank of each. It "
               "is 1 if all relevant documents come first. MAP is its mean over queries.", ("MAP",)),
    Term("ASR", "Attack success rate: the share of attacked documents that rank strictly higher than before, in per "
         "cent. Lower is more robust.", ("success %",)),
    Term("baseline", "The ranker with which the others are compared; by default the first one."),
    Term("BM25", "A formula that scores a document by the query's words in it: rare words count more, repetition "
         "counts less and less, long documents count less. It is the usual first stage."),
    Term("Bonferroni", "A correction for many comparisons: each p is multiplied by their number."),
    Term("bootstrap", "A way to find an interval: draw as many queries as there are, with replacement, many times, "
                      "and compute the mean of each draw. The 95 % interval leaves out the lowest and the highest "
                      "2.5 % of the draws.",
         ("95 % interval", "95 % intervals")),
    Term("candidates", "The documents that a ranker orders for a query. They come from the first stage or from the "
                       "data."),
    Term("Cohen's d", "The effect size: the mean difference, divided by the standard deviation of the differences. 0.2 "
         "is small, 0.5 is medium, 0.8 is large.", ("effect size",)),
    Term("CombSUM", "Fusion by adding up the scores of a document in all lists, after normalisation to one scale. "
         "CombMNZ also multiplies the sum by the number of lists that have the document.", ("CombMNZ",)),
    Term("CRQ", "Certified ranking at K: the share of queries for which no attack of a stated kind can bring a "
         "document from below rank K among the first K. It is proved, not measured by attacks."),
    Term("CSR", "Conditional success rate: the attack success rate, counted only over queries whose list is certified "
         "(or over all, for comparison)."),
    Term("delta", "The difference in score from which a probe counts a preference: the median gap between "
         "neighbours in the ranker's own first ten documents."),
    Term("DR_OOD", "The drop rate out of distribution: how much a ranker loses, in per cent, on queries or a corpus "
         "that it was not trained on, against the same ranker trained there. Below 0 is a loss.", ("DR OOD",)),
    Term("first stage", "The retriever that finds the candidates for a re-ranker; most often BM25."),
    Term("GeoRisk", "The geometric mean of the ranker's effectiveness and its ZRisk (as a probability): high if it is "
         "good on average and rarely fails where others succeed."),
    Term("gMAP", "The geometric mean of average precision over queries: one failed query weighs as much as many good "
         "ones. Higher is better."),
    Term("G²", "How far all rankers' scores, query by query, are from the values that their means predict; 0 means "
               "no difference."),
    Term("Holm", "A correction for many comparisons: the more are made, the smaller p must be to count. It keeps the "
         "chance of a single false claim at 5 %."),
    Term("Kendall distance", "The share of pairs of documents that two rankings order differently: 0 if they are the "
         "same, 1 if one is the reverse of the other.", ("Kendall", "KT")),
    Term("LSD", "The mean square of the ranks by which documents moved when a list was attacked. RLSD is its share of "
         "the largest possible; LMD is the mean of the absolute rank changes.", ("RLSD", "LMD")),
    Term("nDCG", "Normalised discounted cumulative gain: relevant documents count by their grade, and less the lower "
         "they rank; 1 is the best possible order. nDCG@10 looks at the first ten documents."),
    Term("overlap@10", "The share of the first ten documents that two rankings have in common."),
    Term("p", "The probability that chance alone makes a difference as large as this one. A star marks p below 0.05, "
         "after correction, on 20 queries or more.", ("p-value",)),
    Term("PIAT", "Perturbation-invariant adversarial training: the ranker learns to give a list the same order before "
         "and after an attack, in addition to learning from judgements; λ is the weight of the judgements."),
    Term("pipeline", "The first stage and the ranker together: both see the changed query."),
    Term("R-Loss", "Relevant documents that a ranker loses from the first ten, against the initial ranking."),
    Term("RBO", "Rank-biased overlap: how far two rankings agree, the top counting most; 1 if they are the same."),
    Term("re-ranker", "A ranker that re-orders the candidates that a first stage found."),
    Term("robustness index", "Queries that got better minus those that got worse, against the initial ranking, as a "
         "share of all."),
    Term("RR", "Reciprocal rank: 1 divided by the rank of the first relevant document. MRR is its mean over queries.",
         ("MRR",)),
    Term("RRF", "Reciprocal rank fusion: several lists become one; a document's score is the sum of 1 / (60 + its "
         "rank) over the lists."),
    Term("t-SNE", "A drawing of points with many coordinates in the plane: similar points are close. The axes "
         "have no meaning of their own."),
    Term("TC", "Top change: how often the document (or author) at rank 1 changes.", ("top change",)),
    Term("TRisk", "URisk divided by its standard error, as in a t-test: below -2 the risk is more than chance. T*Risk "
         "has the mean of all rankers as the baseline.", ("T*Risk",)),
    Term("URisk", "The mean gain over the baseline minus the mean loss, the loss counted 1 + α times. Below 0: the "
         "losses outweigh the gains."),
    Term("VNAP", "The variance of average precision over queries, divided by the square of its mean: how unevenly a "
         "ranker serves its queries. Lower is more even."),
    Term("W/L", "Wins divided by losses: queries on which the ranker is better than the baseline, and worse."),
    Term("ZRisk", "How far a ranker is above or below the values that its own mean and the difficulty of each query "
                  "predict; shortfalls count 1 + α times. Higher is less risky."),
    Term("%no", "The share of queries without a relevant document among the first ten, in per cent. Lower is better."),
    Term("<Init", "The share of queries that a ranker makes worse than the initial ranking, in per cent."),
)  # fmt: skip
"""All terms in alphabetical order; terms that start with a symbol are last."""


@cache
def _index_terms() -> dict[str, Term]:
    return {word: term for term in TERMS for word in (term.name, *term.aliases)}


@cache
def build_term_pattern() -> re.Pattern[str]:
    """Return the pattern that finds terms in a text: whole words, the longest first."""
    words = "|".join(re.escape(word) for word in sorted(_index_terms(), key=len, reverse=True))
    return re.compile(rf"(?<![\w.*<%])(?:{words})(?![A-Za-z*(])")


def find_term(word: str) -> Term:
    """Return the term of a word that `build_term_pattern` found."""
    return _index_terms()[word]


def explain_terms(texts: Iterable[str]) -> dict[str, str]:
    """Return term -> meaning for the terms in these texts, in the order of the glossary.

    >>> list(explain_terms(["nDCG@10 after RRF", "p (Holm)"]))
    ['Holm', 'nDCG', 'p', 'RRF']
    """
    found = {find_term(word) for text in texts for word in build_term_pattern().findall(text)}
    return {one.name: one.meaning for one in TERMS if one in found}

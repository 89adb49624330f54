"""Retrieval axioms as measure-and-match tests, named after the axiom: a preference for `first` agrees with it.

Some axioms speak of documents that hardly exist, which differ in one term only. For these the test uses real documents:
the varied quantities differ, and the fixed quantities are equal. LNC2, about a document and its repeated copy, is the
manipulation `duplicate_document`.

Fang, Tao, Zhai. A formal study of information retrieval heuristics. SIGIR 2004. Tao, Zhai. An exploration of proximity
measures in information retrieval. SIGIR 2007. Fang, Zhai. Semantic term matching in axiomatic approaches to information
retrieval. SIGIR 2006. Hagen, Völske, Göring, Stein. Axiomatic result re-ranking. CIKM 2016 (PROX1 to PROX5).
"""

from __future__ import annotations

from dataclasses import dataclass

from shaketable.probes.matched_pairs import MatchedPairs


@dataclass(frozen=True)
class TFC1(MatchedPairs):
    """Prefer more occurrences of the query terms, given equal length."""

    variable: str = "sum_tf"
    control: str = "length"


@dataclass(frozen=True)
class TFC2(MatchedPairs):
    """Prefer more evenly spread occurrences, given equal length, total occurrences and number of distinct terms.

    Each further occurrence of a term adds less than the previous one.
    """

    variable: str = "evenness"
    control: str = "length+sum_tf+coverage"


@dataclass(frozen=True)
class TFC3(MatchedPairs):
    """Prefer more distinct query terms, given equal length and total occurrences."""

    variable: str = "coverage"
    control: str = "length+sum_tf"


@dataclass(frozen=True)
class TDC(MatchedPairs):
    """Prefer terms that are rarer in the collection, given equal length, occurrences and number of distinct terms."""

    variable: str = "rarity"
    control: str = "length+sum_tf+coverage"


@dataclass(frozen=True)
class LNC1(MatchedPairs):
    """Prefer the shorter document, given equal term frequencies."""

    variable: str = "length"
    control: str = "tf"
    fewer: bool = True


@dataclass(frozen=True)
class TFLNC(MatchedPairs):
    """Prefer more occurrences of the query terms, given equal numbers of other words, even in a longer document."""

    variable: str = "tf"
    control: str = "other_words"


@dataclass(frozen=True)
class STMC1(MatchedPairs):
    """Prefer more synonyms of the query words, given equal term frequencies and length."""

    variable: str = "synonyms"
    control: str = "tf+length"


@dataclass(frozen=True)
class STMC2(MatchedPairs):
    """Prefer more query words, given equal totals of query words and their synonyms."""

    variable: str = "sum_tf"
    control: str = "sum_tf_or_synonyms"


@dataclass(frozen=True)
class PROX1(MatchedPairs):
    """Prefer smaller distances between pairs of query terms, given equal term frequencies."""

    variable: str = "distance"
    control: str = "tf"
    fewer: bool = True


@dataclass(frozen=True)
class PROX2(MatchedPairs):
    """Prefer earlier first occurrences of the query terms, given equal term frequencies."""

    variable: str = "all_early"
    control: str = "tf"
    fewer: bool = True


@dataclass(frozen=True)
class PROX3(MatchedPairs):
    """Prefer an earlier exact match of the whole query, given equal term frequencies."""

    variable: str = "phrase"
    control: str = "tf"
    fewer: bool = True


@dataclass(frozen=True)
class PROX4(MatchedPairs):
    """Prefer a smaller window with all query terms, given equal term frequencies."""

    variable: str = "window"
    control: str = "tf"
    fewer: bool = True


@dataclass(frozen=True)
class PROX5(MatchedPairs):
    """Prefer matches that are closer to other matches, given equal term frequencies."""

    variable: str = "surroundings"
    control: str = "tf"
    fewer: bool = True

"""Axioms of retrieval as measure-and-match tests, named after the axiom: a preference for `first` agrees with it.

Where an axiom speaks of documents that hardly exist (which differ in one term and nothing else), the test asks for what
it comes to in real documents: the quantities it speaks of differ, and those it holds fixed are the same. LNC2, which is
about a document and its copy written several times over, is the manipulation `duplicate_document`.

Fang, Tao, Zhai. A formal study of information retrieval heuristics. SIGIR 2004. Tao, Zhai. An exploration of proximity
measures in information retrieval. SIGIR 2007. Fang, Zhai. Semantic term matching in axiomatic approaches to information
retrieval. SIGIR 2006. Hagen, Völske, Göring, Stein. Axiomatic result re-ranking. CIKM 2016 (PROX1 to PROX5).
"""

from __future__ import annotations

from dataclasses import dataclass

from shaketable.probes.matched_pairs import MatchedPairs


@dataclass(frozen=True)
class TFC1(MatchedPairs):
    """Of two documents of one length, the one with more occurrences of the query's terms."""

    variable: str = "sum_tf"
    control: str = "length"


@dataclass(frozen=True)
class TFC2(MatchedPairs):
    """Of two documents with as many occurrences of as many terms, the one whose occurrences are spread more evenly.

    The more of a term there are already, the less one more is worth.
    """

    variable: str = "evenness"
    control: str = "length+sum_tf+coverage"


@dataclass(frozen=True)
class TFC3(MatchedPairs):
    """Of two documents with as many occurrences in as many words, the one with more distinct terms of the query."""

    variable: str = "coverage"
    control: str = "length+sum_tf"


@dataclass(frozen=True)
class TDC(MatchedPairs):
    """Of two documents with as many occurrences of as many terms, the one whose terms are rarer in the collection."""

    variable: str = "rarity"
    control: str = "length+sum_tf+coverage"


@dataclass(frozen=True)
class LNC1(MatchedPairs):
    """Of two documents with the same frequencies, the shorter one."""

    variable: str = "length"
    control: str = "tf"
    fewer: bool = True


@dataclass(frozen=True)
class TFLNC(MatchedPairs):
    """Of two documents that are the same but for occurrences of the query's terms, the one with more, though longer."""

    variable: str = "tf"
    control: str = "other_words"


@dataclass(frozen=True)
class STMC1(MatchedPairs):
    """Of two documents with the same frequencies and one length, the one with more synonyms of the query's words."""

    variable: str = "synonyms"
    control: str = "tf+length"


@dataclass(frozen=True)
class STMC2(MatchedPairs):
    """Of two documents with as many words of the query or synonyms of them, the one with more of the query's own."""

    variable: str = "sum_tf"
    control: str = "sum_tf_or_synonyms"


@dataclass(frozen=True)
class PROX1(MatchedPairs):
    """Of two documents with the same frequencies, the one where pairs of the query's terms stand closer together."""

    variable: str = "distance"
    control: str = "tf"
    fewer: bool = True


@dataclass(frozen=True)
class PROX2(MatchedPairs):
    """Of two documents with the same frequencies, the one where the query's terms come first sooner."""

    variable: str = "all_early"
    control: str = "tf"
    fewer: bool = True


@dataclass(frozen=True)
class PROX3(MatchedPairs):
    """Of two documents with the same frequencies, the one where the query stands word for word sooner."""

    variable: str = "phrase"
    control: str = "tf"
    fewer: bool = True


@dataclass(frozen=True)
class PROX4(MatchedPairs):
    """Of two documents with the same frequencies, the one that has all of the query's terms in fewer words."""

    variable: str = "window"
    control: str = "tf"
    fewer: bool = True


@dataclass(frozen=True)
class PROX5(MatchedPairs):
    """Of two documents with the same frequencies, the one where matches have other matches nearer by."""

    variable: str = "surroundings"
    control: str = "tf"
    fewer: bool = True

"""Presets: lists of probes that reproduce the tables of a paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shaketable.core.protocols import Probe
from shaketable.core.registries import PROBES
from shaketable.core.registry import Registry
from shaketable.nlp.resources import TERRIER_STOPWORDS, find_terrier_stopwords

PAPER_CONTROLS = {
    "relevance": ("length", "tf", "sum_tf", "overlap"),
    "length": ("relevance", "tf", "sum_tf", "overlap"),
    "tf": ("relevance", "length", "overlap"),
    "sum_tf": ("relevance", "length", "overlap"),
    "overlap": ("relevance", "length", "tf", "sum_tf"),
}
"""variable -> controls: the rows of Table 1 of paper 001. TF and Sum-TF cannot control each other."""


@dataclass(frozen=True)
class Abnirml:
    """Tables 1 and 2 of paper 001 as its code makes them: Terrier's terms and stop words, the walk, the raw text.

    `stopwords` is a file of Terrier's stop words, or its name in the resources folder.
    """

    stopwords: str = TERRIER_STOPWORDS

    def list_probes(self) -> Iterator[Probe]:
        """Yield the 18 probes of Table 1 and the nine of Table 2."""
        file = str(find_terrier_stopwords(self.stopwords))
        for variable, controls in PAPER_CONTROLS.items():
            for control in controls:
                yield PROBES.build(f"matched({variable!r}, {control!r}, walk=True, terrier_stopwords={file!r})")
        yield PROBES.build(f"remove_stops_punct(stopwords={file!r}, against='raw')")
        for name in ("lemmatize", "shuffle_words", "shuffle_sentence_words"):
            yield PROBES.build(f"{name}(against='raw')")
        yield PROBES.build("shuffle_prepositions(as_published=True, against='raw')")
        yield PROBES.build("shuffle_sentences(against='raw')")
        for name in ("replace_with_query", "add_queries", "add_nonrelevant_sentence"):
            yield PROBES.build(name)


PRESETS = Registry("probe preset", {"abnirml": "shaketable.probes.presets:Abnirml"})

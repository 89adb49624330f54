"""Terms: each once, found in texts as whole words, explained in sentences."""

from __future__ import annotations

import pytest

from shaketable.report.glossary import TERMS, build_term_pattern, explain_terms, find_term


def test_every_word_is_there_once() -> None:
    words = [word for one in TERMS for word in (one.name, *one.aliases)]
    assert len(words) == len(set(words))
    assert len({one.anchor for one in TERMS}) == len(TERMS)
    names = [one.name.lower() for one in TERMS if one.name[0].isalpha()]
    assert names == sorted(names)


@pytest.mark.parametrize(
    "word",
    "VNAP GeoRisk URisk TRisk T*Risk ZRisk RRF gMAP nDCG RBO LSD ASR CRQ DR_OOD Holm bootstrap MRR t-SNE %no".split(),
)
def test_the_terms_of_the_papers_are_explained(word: str) -> None:
    assert find_term(word).meaning.endswith(".")
    assert len(find_term(word).meaning) > 40
    assert build_term_pattern().findall(f"Its {word}, as printed.") == [word]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nDCG@10 of MAPPED things", ["nDCG"]),
        ("R T*Risk", ["TRisk"]),
        ("help, stop, p and p-value", ["p"]),
        ("intervals that overlap", []),
        ("overlap@10 and RR@100", ["overlap@10", "RR"]),
        ("<Init % against 5 %no@10", ["%no", "<Init"]),
    ],
)
def test_terms_are_whole_words(text: str, found: list[str]) -> None:
    assert sorted(explain_terms([text])) == sorted(found)

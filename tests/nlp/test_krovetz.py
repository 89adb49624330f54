"""Krovetz stemming: by hand with a small dictionary, its laws, and with WordNet as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import BadInput
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.krovetz import Krovetz, select_headwords
from shaketable.nlp.wordnet import read_wordnet
from shaketable.rankers.lexical import BM25
from shaketable.retrieval.inverted_index import open_index

WORDS = frozenset(
    """boat box house pony movie hope hop pass control walk agree die stimulate apply abolish create bake run small
    happy quick simple probable act history relation music bacterium talk crystal govern read capital efficient
    depend real building news""".split()
)
HAND = {
    "boats": "boat", "boxes": "box", "houses": "house", "ponies": "pony", "movies": "movie", "glass": "glass",
    "hoped": "hope", "hopped": "hop", "passed": "pass", "controlled": "control", "walked": "walk", "agreed": "agree",
    "hoping": "hope", "hopping": "hop", "dying": "die", "running": "run", "applied": "apply", "bring": "bring",
    "stimulations": "stimulate", "application": "apply", "abolition": "abolish", "creation": "create",
    "bakers": "bake", "runner": "run", "smaller": "small", "happier": "happy", "creator": "create",
    "happiness": "happy", "quickly": "quick", "happily": "happy", "simply": "simple", "probably": "probable",
    "historical": "history", "relational": "relation", "musical": "music", "bacterial": "bacterium",
    "talkative": "talk", "active": "act", "crystallize": "crystal", "government": "govern", "readable": "read",
    "capitalism": "capital", "historic": "history", "efficiency": "efficient", "dependence": "depend",
    "reality": "real", "building": "building", "buildings": "building", "news": "news",
    # endings that are removed although the word is unknown, and endings that stay
    "blorks": "blork", "blorked": "blorke", "blorking": "blork", "blaping": "blape", "blorkness": "blork",
    "blorkization": "blorkize", "blorkation": "blorkation", "blorker": "blorker", "blorkment": "blorkment",
    "unblorked": "unblorked", "blorkously": "blorkous",
    # what is no word of English
    "b52s": "b52s", "été": "été", "Boats": "Boats", "as": "as", "": "", "boat's": "boat's",
}  # fmt: skip


@pytest.mark.parametrize("word", HAND)
def test_by_hand(word: str) -> None:
    assert Krovetz(WORDS)(word) == HAND[word]


@given(st.text(), st.frozensets(st.text(alphabet="abeinsgdry", min_size=1), max_size=20))
def test_laws(word: str, words: frozenset[str]) -> None:
    stem = Krovetz(words)
    assert all(stem(known) == known for known in words)
    assert stem(word) == word or word.isalpha()


def wordnet_folder(folder: Path, **words: dict[str, int]) -> Path:
    """Write a WordNet of these words and numbers of senses."""
    folder.mkdir(parents=True)
    for pos in ("noun", "verb", "adj", "adv"):
        lines = [
            f"{word.replace(' ', '_')} {pos[0]} {n} 0 {n} 0 {' '.join(['00000001'] * n)}"
            for word, n in words.get(pos, {}).items()
        ]
        (folder / f"index.{pos}").write_text("  1 a licence\n" + "".join(f"{line}  \n" for line in lines))
        (folder / f"data.{pos}").touch()
    return folder


def test_headwords_by_hand(tmp_path: Path) -> None:
    """Forms of other words have no entry, unless they have senses enough, or are another part of speech as well."""
    folder = wordnet_folder(
        tmp_path / "wordnet",
        noun={"boat": 2, "boats": 1, "build": 1, "building": 4, "mooring": 2, "layer": 1, "shyness": 1, "sail boat": 1},
        verb={"build": 3, "moor": 1, "use": 5, "lay": 2},
        adj={"used": 2, "shy": 1, "lay": 1, "new": 1, "likely": 1, "like": 1, "newer": 1},
        adv={"newly": 1, "likely": 1},
    )
    found = select_headwords(read_wordnet(folder))
    assert {"boat", "build", "building", "moor", "use", "shy", "layer", "new", "likely", "during", "something"} <= found
    assert not found & {"boats", "mooring", "used", "shyness", "newly", "newer", "sail boat"}


def test_a_dictionary_is_needed_and_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv("NLTK_DATA", raising=False)
    model = BM25(stemmer="krovetz")  # a value; nothing is looked for yet
    boats = Collection("boats", MemoryCorpus({"d": Doc("many boats")}), {})
    with pytest.raises(BadInput, match="WordNet is in none of"):
        model.open(boats)
    names, stems = [], []
    for i, nouns in enumerate(({"boat": 1}, {"boat": 1, "boats": 9})):
        wordnet_folder(tmp_path / str(i) / "corpora" / "wordnet", noun=nouns)
        monkeypatch.setenv("NLTK_DATA", str(tmp_path / str(i)))
        names.append(open_index(boats.docs, model.analyzer).fingerprint)
        stems.append(model.analyzer("boats"))
    assert stems == [["boat"], ["boats"]]
    assert len(set(names)) == 2, "an index that was made with another dictionary must not be used"


def test_other_tokenizers_are_named_as_before() -> None:
    assert Analyzer().fingerprint == repr(Analyzer())


def test_a_ranker_with_the_words_of_paper_000(monkeypatch: pytest.MonkeyPatch, shared_data: Path) -> None:
    """White space, lower case, Krovetz: search and scores of loose texts agree."""
    monkeypatch.setenv("NLTK_DATA", str(shared_data / "nltk_data"))
    texts = {"d1": "Stimulates e-mail", "d2": "stimulate it, often", "d3": "a stimulus"}
    docs = {docno: Doc(text) for docno, text in texts.items()}
    ranker = BM25(stemmer="krovetz", split="space").open(Collection("c", MemoryCorpus(docs), {}))
    (found,) = ranker.search(["stimulating"], 10)
    assert set(found) == {"d1", "d2"}
    scores = ranker.score([Slate("stimulating", tuple(docs.values()))])[0]
    assert dict(zip(docs, scores.tolist(), strict=True)) == pytest.approx({**dict.fromkeys(docs, 0.0), **found})
    assert ranker.search(["e-mail", "mail"], 10)[1] == {}
    assert set(ranker.search(["e-mail"], 10)[0]) == {"d1"}


def test_wordnet_as_it_is(monkeypatch: pytest.MonkeyPatch, shared_data: Path) -> None:
    """Words of which Lemur's stemmer, which has another dictionary, makes the same."""
    monkeypatch.setenv("NLTK_DATA", str(shared_data / "nltk_data"))
    stem = Analyzer(stemmer="krovetz", stopwords="none")
    same = {
        "utilities": "utility", "stemming": "stem", "quickly": "quick", "walked": "walk", "hoping": "hope",
        "hopping": "hop", "agreed": "agree", "boats": "boat", "classes": "class", "dies": "die", "family": "family",
        "families": "family", "university": "university", "july": "july", "liver": "liver", "number": "number",
        "during": "during", "building": "building", "business": "business", "programming": "program",
        "microcomputers": "microcomputer", "slipstreams": "slipstream", "supersonically": "supersonic",
    }  # fmt: skip
    assert {word: stem(word)[0] for word in same} == same

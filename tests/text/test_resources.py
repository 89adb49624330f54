"""Resources: what is found, what is not and where it was looked for, and what is wrong with broken ones."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.errors import BadInput
from shaketable.text import misspellings, neighbours
from shaketable.text.distance import damerau_levenshtein
from shaketable.text.inflection import ending_on, lemmas
from shaketable.text.keyboard import NEAR_KEYS
from shaketable.text.resources import resources
from shaketable.text.stopwords import ENGLISH
from shaketable.text.thesaurus import bundled
from shaketable.text.wordnet import read_wordnet
from shaketable.text.words import NLTK, parts


@pytest.fixture(autouse=True)
def nothing_around(tmp_path, monkeypatch):
    for name in ("NLTK_DATA", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_what_comes_with_the_package_is_there_and_the_rest_has_advice(home: Path):
    found = {r.name: r for r in resources()}
    assert [r.name for r in found.values() if r.found] == ["thesaurus", "misspellings"]
    assert all(r.advice and str(home / "resources") in r.where for r in found.values() if not r.found)
    assert "facebook/m2m100_418M" in found


def test_what_is_put_there_is_found(home: Path, tmp_path: Path, monkeypatch):
    (home / "resources" / "corpora" / "wordnet").mkdir(parents=True)
    (home / "resources" / "corpora" / "wordnet" / "index.noun").touch()
    (home / "resources" / "counterfitted-neighbors.json").touch()
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    (tmp_path / "hf" / "hub" / "models--facebook--m2m100_418M").mkdir(parents=True)
    found = {r.name for r in resources() if r.found}
    assert {"wordnet", "counter-fitted neighbours", "facebook/m2m100_418M"} <= found


def test_the_table_of_misspellings_is_clean():
    """No slip is the word itself or another word that is known, none stands for two words, all are near."""
    table = misspellings.bundled()
    slips = [slip for wrong in table.values() for slip in wrong]
    assert len(table) > 1_500
    assert len(slips) == len(set(slips))
    assert not set(slips) & (set(table) | set(bundled()) | ENGLISH | NLTK)
    assert all(damerau_levenshtein(right, slip) <= 3 for right, wrong in table.items() for slip in wrong)


@pytest.mark.parametrize("text", ["receive", "receive>", ">recieve", "receive>receive", "a>b a>c", "a>b,,c"])
def test_broken_misspellings(text, tmp_path: Path):
    (tmp_path / "m.txt").write_text(f"# remark\n{text}\n")
    with pytest.raises(BadInput, match=r"m\.txt:2: .*write right>wrong,wrong"):
        misspellings.read_misspellings(tmp_path / "m.txt")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("n.json", "[1, 2]", "must hold one object"),
        ("n.json", '{"a": 1}', "must hold one object"),
        ("n.json", "{", "is not JSON"),
        ("v.txt", "boat 1 2\ntea 1\n", "v.txt:2: every word must have the same count"),
        ("v.txt", "boat 1 x\n", "v.txt:1: a line is a word and its numbers"),
        ("v.txt", "boat 1 nan\n", "finite"),
        ("v.txt", "", "holds no vectors"),
    ],
)
def test_broken_neighbours(name, text, message, tmp_path: Path):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=message):
        neighbours.neighbours(str(tmp_path / name))


def test_a_file_that_is_not_there():
    with pytest.raises(BadInput, match="there is no such file"):
        neighbours.neighbours("nowhere.txt")


def test_gzipped_vectors_and_zero_vectors(tmp_path: Path):
    with gzip.open(tmp_path / "v.txt.gz", "wt") as out:
        out.write("boat 1 0\nship 1 0\nnothing 0 0\n")
    near = neighbours.neighbours(str(tmp_path / "v.txt.gz"))
    assert near.near("boat", 5, 0.5) == ["ship"]
    assert near.near("nothing", 5, 0.5) == near.near("unknown", 5, 0.5) == []


def test_neighbours_agree_with_a_plain_computation(tmp_path: Path):
    rng = np.random.default_rng(0)
    matrix, words = rng.normal(size=(30, 4)), [f"w{i}" for i in range(30)]
    rows = [f"{word} {' '.join(map(str, row))}" for word, row in zip(words, matrix, strict=True)]
    (tmp_path / "v.txt").write_text("\n".join(rows))
    near = neighbours.neighbours(str(tmp_path / "v.txt"))
    for i, word in enumerate(words):
        cosine = matrix @ matrix[i] / np.linalg.norm(matrix, axis=1) / np.linalg.norm(matrix[i])
        expected = [words[j] for j in np.argsort(-cosine) if j != i and cosine[j] >= 0.3][:5]
        assert near.near(word, 5, 0.3) == expected


@pytest.mark.parametrize("make", ["empty", "text"])
def test_broken_wordnet(make, tmp_path: Path):
    path = tmp_path / "wordnet.zip"
    if make == "empty":
        zipfile.ZipFile(path, "w").close()
    else:
        path.write_text("hello")
    with pytest.raises(BadInput, match="is not a whole WordNet"):
        read_wordnet(path)


def test_the_real_wordnet(shared_data: Path, tmp_path: Path):
    """Known senses; a folder and a zip are the same."""
    path = shared_data / "nltk_data" / "corpora" / "wordnet.zip"
    words = read_wordnet(path)
    assert words.synonyms("car")[:4] == ("auto", "automobile", "machine", "motorcar")
    assert words.synonyms("quickly")[0] == "rapidly"
    assert words.synonyms("hot dog", "noun")[:1] == ("hotdog",)
    assert words.synonyms("xyzzy") == ()
    assert "car" in words
    assert "xyzzy" not in words
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    assert read_wordnet(tmp_path / "wordnet") == words


@given(st.text("abc", max_size=7), st.text("abc", max_size=7), st.integers(0, 4))
def test_distance_agrees_with_the_textbook(left, right, limit):
    def textbook(a: str, b: str) -> int:
        d = {(i, j): i + j for i in range(len(a) + 1) for j in range(len(b) + 1) if not i or not j}
        for i in range(1, len(a) + 1):
            for j in range(1, len(b) + 1):
                d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
                if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                    d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)
        return d[len(a), len(b)]

    assert damerau_levenshtein(left, right) == textbook(left, right)
    assert damerau_levenshtein(left, right, limit) == min(textbook(left, right), limit + 1)


def test_keys_touch_each_other():
    assert all(key in NEAR_KEYS[other] for key, near in NEAR_KEYS.items() for other in near)
    assert set(NEAR_KEYS) == set("abcdefghijklmnopqrstuvwxyz")
    assert set(NEAR_KEYS["g"]) == set("tyfhvb")


@pytest.mark.parametrize(
    ("lemma", "ending", "form"),
    [
        ("city", "s", "cities"),
        ("toy", "s", "toys"),
        ("church", "s", "churches"),
        ("information", "s", None),
        ("stop", "ed", "stopped"),
        ("open", "ed", "opened"),
        ("refer", "ed", "referred"),
        ("use", "ed", "used"),
        ("try", "ed", "tried"),
        ("go", "ed", None),
        ("make", "ing", "making"),
        ("die", "ing", "dying"),
        ("see", "ing", "seeing"),
        ("fix", "ing", "fixing"),
        ("get rid of", "ing", None),
        ("", "s", None),
    ],
)
def test_endings(lemma, ending, form):
    assert ending_on(lemma, ending) == form
    if form:
        assert (lemma, ending) in lemmas(form)


@pytest.mark.parametrize("word", ["", "s", "glass", "is", "東京s", "ing", "ed"])
def test_words_without_an_ending(word):
    assert list(lemmas(word)) == []


@given(st.text(max_size=30))
def test_parts_make_the_token_again(token):
    found = parts(token)
    assert found is None or "".join(found) == token

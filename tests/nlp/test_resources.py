"""Resources: what is found, what is not and where it was looked for, and what is wrong with broken ones."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.errors import BadInput
from shaketable.nlp import embedding_neighbours, misspellings, resources, wordnet
from shaketable.nlp.edit_distance import damerau_levenshtein
from shaketable.nlp.inflection import add_ending, find_lemmas
from shaketable.nlp.keyboard import ADJACENT_KEYS
from shaketable.nlp.resources import list_resources
from shaketable.nlp.stopwords import ENGLISH_STOPWORDS
from shaketable.nlp.thesaurus import read_bundled_thesaurus, read_thesaurus
from shaketable.nlp.wordnet import read_wordnet
from shaketable.nlp.words import NLTK_STOPWORDS, split_token


@pytest.fixture(autouse=True)
def nothing_around(tmp_path, monkeypatch):
    for name in ("NLTK_DATA", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_bundled_resources_exist_and_others_have_advice(home: Path, monkeypatch):
    monkeypatch.setattr(resources, "find_spec", lambda name: None)  # the package of the extra offline
    found = {r.name: r for r in list_resources()}
    assert [r.name for r in found.values() if r.available] == ["thesaurus", "misspellings"]
    assert all(r.advice and str(home / "resources") in r.location for r in found.values() if not r.available)
    assert "facebook/m2m100_418M" in found


def test_installed_resources_are_found(home: Path, tmp_path: Path, monkeypatch):
    (home / "resources" / "corpora" / "wordnet").mkdir(parents=True)
    (home / "resources" / "corpora" / "wordnet" / "index.noun").touch()
    (home / "resources" / "counterfitted-neighbors.json").touch()
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    (tmp_path / "hf" / "hub" / "models--facebook--m2m100_418M").mkdir(parents=True)
    found = {r.name for r in list_resources() if r.available}
    assert {"wordnet", "counter-fitted neighbours", "facebook/m2m100_418M"} <= found


def test_the_table_of_misspellings_is_clean():
    """No slip is the word itself or another word that is known, none stands for two words, all are near."""
    table = misspellings.read_bundled_misspellings()
    slips = [slip for wrong in table.values() for slip in wrong]
    assert len(table) > 1_500
    assert len(slips) == len(set(slips))
    assert not set(slips) & (set(table) | set(read_bundled_thesaurus()) | ENGLISH_STOPWORDS | NLTK_STOPWORDS)
    assert all(damerau_levenshtein(right, slip) <= 3 for right, wrong in table.items() for slip in wrong)


@pytest.mark.parametrize("text", ["receive", "receive>", ">recieve", "receive>receive", "a>b a>c", "a>b,,c"])
def test_broken_misspellings(text, tmp_path: Path):
    (tmp_path / "m.txt").write_text(f"# remark\n{text}\n")
    with pytest.raises(BadInput, match=r"m\.txt:2: .*write right>wrong,wrong"):
        misspellings.read_misspellings(tmp_path / "m.txt")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("n.json", "[1, 2]", "must have one JSON object"),
        ("n.json", '{"a": 1}', "must have one JSON object"),
        ("n.json", "{", "is not JSON"),
        ("n.json", '{"a": [1]}', "must have one JSON object"),
        ("n.json", '{"a": [["b"]]}', "must have one JSON object"),
        ("n.json", "[" * 100_000, "nested too deeply"),
        ("n.json", '{"a": ' + "1" * 5000 + "}", "is not valid JSON"),
        ("n.json.gz", "{}", "is not a complete gzip file"),
        ("v.txt.gz", "boat 1", "is not a complete gzip file"),
        ("v.txt", "boat 1_5 2\n", "v.txt:1: a line must be a word and its numbers"),
        ("v.txt", "boat \u0661 2\n", "v.txt:1: a line must be a word and its numbers"),
        ("v.txt", "boat 1\t 2\n", "v.txt:1: a line must be a word and its numbers"),
        ("v.txt", "boat 1e39 2\n", "finite"),
        ("v.txt", "boat 1e999 2\n", "finite"),
        ("v.txt", "boat 1 2\ntea 1\n", "v.txt:2: 'tea' has 1 numbers where the words before it have 2"),
        ("v.txt", "boat 1 x\n", "v.txt:1: a line must be a word and its numbers"),
        ("v.txt", "boat 1 nan\n", "finite"),
        ("v.txt", "", "holds no vectors"),
    ],
)
def test_broken_neighbours(name, text, message, tmp_path: Path):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=message):
        embedding_neighbours.open_neighbours(str(tmp_path / name))


def test_a_file_that_is_not_there():
    with pytest.raises(BadInput, match="there is no such file"):
        embedding_neighbours.open_neighbours("nowhere.txt")


def test_gzipped_vectors_and_zero_vectors(tmp_path: Path):
    with gzip.open(tmp_path / "v.txt.gz", "wt") as out:
        out.write("boat 1 0\nship 1 0\nnothing 0 0\n")
    near = embedding_neighbours.open_neighbours(str(tmp_path / "v.txt.gz"))
    assert near.find_nearest("boat", 5, 0.5) == ["ship"]
    assert near.find_nearest("nothing", 5, 0.5) == near.find_nearest("unknown", 5, 0.5) == []


def test_numbers_whose_squares_are_infinite(tmp_path: Path):
    (tmp_path / "v.txt").write_text("boat 1e38 0\nship 1e-38 0\ntea 0 3e38\nboat 0 1\n")
    near = embedding_neighbours.open_neighbours(str(tmp_path / "v.txt"))
    assert near.find_nearest("boat", 5, 0.5) == ["ship"]
    assert near.find_nearest("tea", 5, 0.5) == []


def test_half_a_character_among_neighbours(tmp_path: Path):
    (tmp_path / "n.json").write_text(r'{"a\ud800": ["b", "\udc00"]}')
    assert embedding_neighbours.open_neighbours(str(tmp_path / "n.json")).find_nearest("a\ufffd", 5, 0) == [
        "b",
        "\ufffd",
    ]


def test_neighbours_agree_with_a_plain_computation(tmp_path: Path):
    rng = np.random.default_rng(0)
    matrix, words = rng.normal(size=(30, 4)), [f"w{i}" for i in range(30)]
    rows = [f"{word} {' '.join(map(str, row))}" for word, row in zip(words, matrix, strict=True)]
    (tmp_path / "v.txt").write_text("\n".join(rows))
    near = embedding_neighbours.open_neighbours(str(tmp_path / "v.txt"))
    for i, word in enumerate(words):
        cosine = matrix @ matrix[i] / np.linalg.norm(matrix, axis=1) / np.linalg.norm(matrix[i])
        expected = [words[j] for j in np.argsort(-cosine) if j != i and cosine[j] >= 0.3][:5]
        assert near.find_nearest(word, 5, 0.3) == expected


@pytest.mark.parametrize("make", ["empty", "text"])
def test_broken_wordnet(make, tmp_path: Path):
    path = tmp_path / "wordnet.zip"
    if make == "empty":
        zipfile.ZipFile(path, "w").close()
    else:
        path.write_text("hello")
    with pytest.raises(BadInput, match="is not a complete WordNet"):
        read_wordnet(path)


DATA = "00000000 03 n 02 car 0 auto_mobile(a) 0 001 @ 00000000 n 0000 | a machine\n"
INDEX = "  1 a licence\ncar n 1 1 @ 1 0 00000000\n"


def small_wordnet(folder: Path, index: str = INDEX, data: bytes = DATA.encode()) -> Path:
    folder.mkdir()
    for pos in ("noun", "verb", "adj", "adv"):
        (folder / f"index.{pos}").write_text(index)
        (folder / f"data.{pos}").write_bytes(data)
    return folder


def test_a_small_wordnet(tmp_path: Path):
    words = read_wordnet(small_wordnet(tmp_path / "w"))
    assert words.find_synonyms("car") == ("auto mobile",)
    assert words.find_synonyms("\ud800") == ()
    assert "\ud800" not in words


@pytest.mark.parametrize(
    ("index", "data"),
    [
        ("car n\n", DATA.encode()),
        ("car n x 1 @ 1 0 00000000\n", DATA.encode()),
        ("car n 0 1 @ 1 0 00000000\n", DATA.encode()),
        ("car n -1 1 @ 1 0 00000000\n", DATA.encode()),
        ("car n 99 1 @ 1 0 00000000\n", DATA.encode()),
        ("car n 1 1 @ 1 0 99999999\n", DATA.encode()),
        ("car n 1 1 @ 1 0 00000007\n", DATA.encode()),
        ("car n 1 1 @ 1 0 -0000003\n", DATA.encode()),
        (f"car n 1 1 @ 1 0 {'9' * 5000}\n", DATA.encode()),
        (INDEX, b""),
        (INDEX, b"|"),
        (INDEX, DATA.replace("|", "").encode()),
        (INDEX, DATA.replace("02", "zz").encode()),
        (INDEX, DATA.encode().replace(b"auto", b"\xff\xfe")),
    ],
    ids=range(14),
)
def test_a_damaged_wordnet_is_one_sentence(index: str, data: bytes, tmp_path: Path):
    path = small_wordnet(tmp_path / "w", index, data)
    with pytest.raises(BadInput, match="is damaged where the noun 'car' should be") as caught:
        read_wordnet(path).find_synonyms("car")
    assert str(caught.value).startswith(f"{path}: ")


def test_a_zip_of_wordnet_that_is_cut_scrambled_or_vast(tmp_path: Path, monkeypatch):
    folder = small_wordnet(tmp_path / "w")
    whole = tmp_path / "whole.zip"
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in folder.iterdir():
            archive.writestr(f"wordnet/{path.name}", path.read_bytes() * 50)
    content = whole.read_bytes()
    for number, damaged in enumerate(
        [content[:100], content[:60] + b"\xff" * 40 + content[100:], content.replace(b"\x08\0", b"\x63\0")]
    ):
        (tmp_path / f"{number}.zip").write_bytes(damaged)
        with pytest.raises(BadInput, match="is not a complete WordNet"):
            read_wordnet(tmp_path / f"{number}.zip")
    monkeypatch.setattr(wordnet, "MAX_BYTES", 100)
    for path in (whole, folder):
        with pytest.raises(BadInput, match="WordNet has far fewer than 100"):
            read_wordnet.__wrapped__(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("noun: a, b\nnuon: a, b\n", "t.txt:2: a group starts with one of"),
        ("noun a, b\n", "t.txt:1: a group starts with one of"),
        ("noun: a\n", "t.txt:1: a group has at least two words"),
        ("noun: a,, b\n", "t.txt:1: a group has at least two words"),
        ("noun: a > \n", "t.txt:1: a group has at least two words"),
        ("noun: a, b\0\n", "t.txt:1: has the control character"),
        ("noun: a, b\rnoun: c, d\r", "t.txt:1: has a carriage return"),
    ],
)
def test_a_damaged_thesaurus(text, message, tmp_path: Path):
    (tmp_path / "t.txt").write_text(text, newline="")
    with pytest.raises(BadInput, match=message):
        read_thesaurus(tmp_path / "t.txt")


def test_the_real_wordnet(shared_data: Path, tmp_path: Path):
    """Known senses; a folder and a zip are the same."""
    path = shared_data / "nltk_data" / "corpora" / "wordnet.zip"
    words = read_wordnet(path)
    assert words.find_synonyms("car")[:4] == ("auto", "automobile", "machine", "motorcar")
    assert words.find_synonyms("quickly")[0] == "rapidly"
    assert words.find_synonyms("hot dog", "noun")[:1] == ("hotdog",)
    assert words.find_synonyms("xyzzy") == ()
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
    assert all(key in ADJACENT_KEYS[other] for key, near in ADJACENT_KEYS.items() for other in near)
    assert set(ADJACENT_KEYS) == set("abcdefghijklmnopqrstuvwxyz")
    assert set(ADJACENT_KEYS["g"]) == set("tyfhvb")


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
    assert add_ending(lemma, ending) == form
    if form:
        assert (lemma, ending) in find_lemmas(form)


@pytest.mark.parametrize("word", ["", "s", "glass", "is", "東京s", "ing", "ed"])
def test_words_without_an_ending(word):
    assert list(find_lemmas(word)) == []


@given(st.text(max_size=30))
def test_parts_make_the_token_again(token):
    found = split_token(token)
    assert found is None or "".join(found) == token

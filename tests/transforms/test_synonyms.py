"""Synonyms: from the thesaurus, from WordNet, from neighbours, in the right form or not at all."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from shaketable.api.vary import vary
from shaketable.core.errors import BadInput
from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import make_item_rng
from shaketable.nlp.synonyms import ThesaurusSynonyms
from shaketable.nlp.thesaurus import read_bundled_thesaurus
from shaketable.transforms.synonyms import SynSwap, WordEmbedSynSwap, WordNetSynSwap, substitute_synonyms
from tests.transforms.scripted import Scripted


def test_the_nearest_synonym_of_one_word():
    """Of the two words the second is drawn first; it is not known, so the other gives way."""
    assert (
        SynSwap().apply("the quick xyzzy", Scripted(1, 0), TransformContext())
        == f"the {read_bundled_thesaurus()['quick']['adj'][0]} xyzzy"
    )


def test_any_synonym():
    new = {SynSwap("random").apply("quick", make_item_rng(seed), TransformContext()) for seed in range(200)}
    assert new == {word for words in read_bundled_thesaurus()["quick"].values() for word in words}


def test_a_synonym_takes_the_case():
    quick = read_bundled_thesaurus()["quick"]["adj"][0]
    assert SynSwap().apply("Quick? QUICK!", Scripted(0), TransformContext()) == f"{quick.capitalize()}? QUICK!"
    assert SynSwap().apply("Quick? QUICK!", Scripted(1), TransformContext()) == f"Quick? {quick.upper()}!"


def test_stop_words_and_unknown_words_stay():
    assert SynSwap().apply("how many of the xyzzy", make_item_rng(0), TransformContext()) is None


@pytest.mark.parametrize("choice", ["nearest", "random"])
def test_a_synonym_has_the_part_of_speech_of_the_replaced_word(choice):
    """The thesaurus has "find" as a noun (discovery) and as a verb (discover)."""
    find = read_bundled_thesaurus()["find"]
    assert {"noun", "verb"} <= set(find)
    for text, part in (("how to find xyzzy", "verb"), ("the find of xyzzy", "noun")):
        new = {SynSwap(choice).apply(text, make_item_rng(seed), TransformContext()) for seed in range(60)}
        assert new <= {text.replace("find", other) for other in find[part]}


def test_no_synonym_that_the_query_has_already(tmp_path: Path):
    path = tmp_path / "near.json"
    path.write_text(json.dumps({"big": ["large", "huge"], "large": ["big"], "period": ["times"]}))
    swap = WordEmbedSynSwap(file=str(path))
    assert {swap.apply("big large house", make_item_rng(seed), TransformContext()) for seed in range(30)} == {
        "huge large house"
    }
    assert swap.apply("a period of time", make_item_rng(0), TransformContext()) is None
    assert swap.apply("big and big", Scripted(0), TransformContext()) == "large and big"


@pytest.mark.parametrize("name", ["properties", "pupils"])
def test_plurals_are_english_or_not_made(name):
    """ "possessions" is a plural already, and "schoolchilds" is not a word."""
    new = {SynSwap("random").apply(name, make_item_rng(seed), TransformContext()) for seed in range(60)}
    assert not new & {"possessionses", "schoolchilds"}


@pytest.mark.parametrize("make", [SynSwap, WordNetSynSwap, WordEmbedSynSwap])
def test_choices_are_named(make):
    with pytest.raises(BadInput, match=r"choice is .* or random, not 'worst'"):
        make("worst")


INDEX = {
    "noun": "car n 1 1 @ 1 1 00000000\nauto n 1 1 @ 1 0 00000000\n",
    "verb": "drive v 1 1 @ 1 1 00000000\nmotor v 1 1 @ 1 1 00000000\n",
    "adj": "durable a 1 0 1 1 00000000\n",
    "adv": "fast r 1 0 1 1 00000000\n",
}
DATA = {
    "noun": "00000000 06 n 03 car 0 Auto 0 motor_car 0 000 | four wheels\n",
    "verb": "00000000 38 v 02 drive 0 motor 0 000 01 + 02 00 | go by car\n",
    "adj": "00000000 00 a 02 durable 0 lasting(p) 0 000 | long\n",
    "adv": "00000000 02 r 01 fast 0 000 | quick\n",
}


@pytest.fixture
def small_wordnet(tmp_path: Path, monkeypatch) -> Path:
    """Write a WordNet of five words as a ZIP file like that of NLTK."""
    folder = tmp_path / "nltk" / "corpora"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "wordnet.zip", "w") as archive:
        for kind, files in (("index", INDEX), ("data", DATA)):
            for pos, text in files.items():
                archive.writestr(f"wordnet/{kind}.{pos}", text)
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nltk"))
    return folder / "wordnet.zip"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the car", "the auto"),
        ("cars", "autos"),
        ("motoring", "driving"),
        ("motored", None),  # "drived" is no English
        ("durable", "lasting"),
        ("fast", None),
        ("it is", None),
    ],
)
def test_wordnet_by_hand(text, expected, small_wordnet):
    assert WordNetSynSwap().apply(text, make_item_rng(0), TransformContext()) == expected


def test_wordnet_does_not_double_a_word(small_wordnet):
    assert WordNetSynSwap().apply("auto car", Scripted(1), TransformContext()) == "auto motor car"


def test_a_random_synonym_may_be_two_words(small_wordnet):
    new = {WordNetSynSwap("random").apply("car", make_item_rng(seed), TransformContext()) for seed in range(50)}
    assert new == {"auto", "motor car"}


def test_a_missing_wordnet_names_the_searched_paths(monkeypatch, tmp_path, home):
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(BadInput) as error:
        WordNetSynSwap().apply("car", make_item_rng(0), TransformContext())
    for place in (tmp_path / "nowhere", tmp_path / "nltk_data", home / "resources"):
        assert f"{place}/corpora/wordnet.zip" in str(error.value)


def test_the_papers_example_with_the_real_wordnet(shared_data, monkeypatch):
    """Table 3: "long lasting" for "durable"; as a random synonym, of the code, not as the first."""
    monkeypatch.setenv("NLTK_DATA", str(shared_data / "nltk_data"))
    new = {WordNetSynSwap("random").apply("durable", make_item_rng(seed), TransformContext()) for seed in range(100)}
    assert {"lasting", "long-lasting"} <= new
    assert WordNetSynSwap().apply("durable", make_item_rng(0), TransformContext()) == "lasting"


def test_variations_do_not_depend_on_the_folder_of_the_file(tmp_path: Path):
    queries = {str(number): "medical ships" for number in range(20)}
    found = []
    for name in ("one", "two"):
        path = tmp_path / name / "near.json"
        path.parent.mkdir()
        path.write_text(json.dumps({"medical": ["medicinal", "medic", "clinical"], "ships": ["boats", "vessels"]}))
        swap = WordEmbedSynSwap("random", file=str(path))
        found.append([one.text for one in vary(queries, swap).variations])
    assert found[0] == found[1]
    assert len(set(found[0])) > 2


def test_lists_of_neighbours(tmp_path: Path):
    path = tmp_path / "near.json"
    path.write_text(json.dumps({"medical": ["medicinal", "medic", "clinical"]}))
    nearest = WordEmbedSynSwap(file=str(path))
    assert (
        nearest.apply("durable Medical equipment", make_item_rng(0), TransformContext())
        == "durable Medicinal equipment"
    )
    two = WordEmbedSynSwap("random", neighbours=2, file=str(path))
    assert {two.apply("medical", make_item_rng(seed), TransformContext()) for seed in range(50)} == {
        "medicinal",
        "medic",
    }


def test_vectors_give_neighbours_above_the_threshold(home: Path):
    """Cosines with "boat" = (1, 0): ship 0.96, vessel 0.8, tea 0."""
    folder = home / "resources"
    folder.mkdir(parents=True)
    (folder / "counter-fitted-vectors.txt").write_text("boat 2 0\ntea 0 1\nvessel 0.8 0.6\nship 0.96 0.28\n")
    assert WordEmbedSynSwap().apply("boat", make_item_rng(0), TransformContext()) == "ship"
    loose = WordEmbedSynSwap("random", threshold=0.79)
    assert {loose.apply("boat", make_item_rng(seed), TransformContext()) for seed in range(50)} == {"ship", "vessel"}
    assert WordEmbedSynSwap(threshold=0.97).apply("boat", make_item_rng(0), TransformContext()) is None


def test_missing_neighbours_name_the_searched_paths(home: Path):
    with pytest.raises(BadInput, match=r"counterfitted-neighbors\.json") as error:
        WordEmbedSynSwap().apply("boat", make_item_rng(0), TransformContext())
    assert str(home / "resources") in str(error.value)


def test_words_give_way_to_synonyms_at_random():
    source, text = ThesaurusSynonyms(), "The QUICK boat, a Boat; it is said: buy!"
    able = [word for word in ("quick", "boat", "said", "buy") if source.lookup(word)]
    assert len(able) > 2
    for seed in range(20):
        for count in (0, 1, 2, 20):
            new = substitute_synonyms(text, count, source, make_item_rng(seed, "x"))
            before, after = text.split(), new.split()
            changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
            assert len(changed) == min(count, sum(bool(source.lookup(word.strip(",;:!").lower())) for word in before))
            for old, fresh in changed:
                assert fresh.strip(",;:!").lower() in source.lookup(old.strip(",;:!").lower())
                assert old.isupper() == fresh.isupper()
                assert old[-1].isalpha() or old[-1] == fresh[-1]
    first = {substitute_synonyms(text, 1, source, make_item_rng(seed, "x")) for seed in range(50)}
    assert len(first) > 3

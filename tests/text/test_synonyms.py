"""Sources of synonyms: laws that all of them keep, and each by example."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.errors import BadInput
from shaketable.registry import SYNONYMS
from shaketable.text import counterfitting
from shaketable.text.forms import plurals, verb_forms
from shaketable.text.synonyms import SINGLE, Counterfitted, Listed, Thesaurus, WordNet, inflected
from shaketable.text.thesaurus import bundled
from tests.text.test_resources import DATA, INDEX, small_wordnet

VECTORS = "boat 2 0\ntea 0 1\nvessel 0.8 0.6\nship 0.96 0.28\nBoat 1 0.01\nmotor_boat 1 0\n3 1 0\nlife-boat 0.9 0.1\n"
LISTS = {"boat": ["BOAT", "ship", "motor boat", "Ship", "u2", "life-boat", "vessel"], "ship": []}


def everything(folder: Path) -> list:
    """A source of each kind, of files in a folder."""
    (folder / "v.txt").write_text(VECTORS)
    (folder / "n.json").write_text(json.dumps(LISTS))
    (folder / "mine.tsv").write_text("boat\tship\tBoat\tvessel\nship\tboat\n")
    (folder / "groups.txt").write_text("noun: boat, ship, motor boat\nverb: boat > sail\n")
    path = small_wordnet(folder / "wordnet", INDEX + "boat n 1 1 @ 1 0 00000000\n")
    return [
        Thesaurus(),
        WordNet(str(path)),
        Counterfitted(path=str(folder / "v.txt")),
        Counterfitted(path=str(folder / "n.json")),
        Listed(str(folder / "mine.tsv")),
        Listed(str(folder / "groups.txt")),
    ]


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> list:
    return everything(tmp_path_factory.mktemp("sources"))


FORMS = [*bundled(), *plurals(), *verb_forms(), "boat", "boats", "Boat", "ship", "car", "cars"]
WORDS = st.one_of(st.sampled_from(FORMS), st.sampled_from(FORMS).map(lambda w: w + "s"), st.text(max_size=8))


@given(word=WORDS)
def test_laws(sources, word):
    """Never the word itself; single words in lower case, each once; the same whoever asks, in whatever case, again."""
    for source in sources:
        found = source.of(word)
        assert word.lower() not in found
        assert len(set(found)) == len(found)
        assert all(other == other.lower() and SINGLE.fullmatch(other) for other in found)
        assert found == source.of(word) == source.of(word.lower()) == type(source)(**vars_of(source)).of(word)


def vars_of(source) -> dict:
    return {name: getattr(source, name) for name in source.__dataclass_fields__}


def test_every_source_has_a_text(sources):
    for source in sources:
        assert SYNONYMS.build(SYNONYMS.spec(source)) == source
    assert SYNONYMS.build("counterfitted(0.7, 50)") == Counterfitted(threshold=0.7, count=50)


def test_the_thesaurus_has_something_for_most_of_its_words():
    assert sum(bool(Thesaurus().of(word)) for word in bundled()) > 0.95 * len(bundled())


@pytest.mark.parametrize(
    ("word", "some"),
    [
        ("quick", "fast"),
        ("cities", "towns"),
        ("bought", "purchased"),  # buy, purchase
        ("purchased", "bought"),
        ("Children", "kids"),
        ("kids", "children"),
        ("starting", "beginning"),
    ],
)
def test_the_form_of_a_word_is_kept(word, some, tmp_path: Path):
    groups = tmp_path / "g.txt"
    groups.write_text(
        "adj: quick, fast\nnoun: city, town\nverb: buy, purchase\nnoun: child, kid\nverb: start, begin, commence\n"
    )
    assert some in Listed(str(groups)).of(word)


def test_a_form_that_may_be_either_of_two_is_not_made(tmp_path: Path):
    """ "started" may be "began" or "begun"; "began" is "started", and of "begun" nothing else is known."""
    groups = tmp_path / "g.txt"
    groups.write_text("verb: start, begin, commence\nverb: rise, arise\n")
    source = Listed(str(groups))
    assert source.of("started") == ("commenced",)
    assert source.of("began") == source.of("begun") == ("started", "commenced")
    assert (source.of("rose"), source.of("risen"), source.of("arisen")) == (("arose",), ("arisen",), ("risen",))


def test_regular_endings_alone():
    def of(word, parts):
        return [("verb", "purchase")] if word == "buy" else []

    assert inflected("bought", of) == (("verb", "purchased"),)
    assert inflected("bought", of, odd=False) == ()
    assert inflected("buys", of, odd=False) == (("verb", "purchases"),)


def test_wordnet_by_hand(tmp_path: Path):
    """Two senses of "car", the frequent one first; what is more than one word is left out."""
    more = f"{len(DATA):08} 03 n 03 car 0 Railcar 0 railway_car 0 000 | on rails\n"
    first = DATA.replace("n 02 car 0 auto_mobile(a) 0", "n 02 car 0 auto(a) 0       ")
    assert len(first) == len(DATA)
    path = small_wordnet(tmp_path / "w", f"car n 2 1 @ 2 0 00000000 {len(DATA):08}\n", (first + more).encode())
    assert WordNet(str(path)).of("car") == ("auto", "railcar")
    assert WordNet(str(path)).of("cars") == ("autos", "railcars")
    assert WordNet(str(path)).of("unknown") == ()


def test_the_real_wordnet(shared_data, monkeypatch):
    monkeypatch.setenv("NLTK_DATA", str(shared_data / "nltk_data"))
    assert WordNet().of("durable")[0] == "lasting"
    assert "automobiles" in WordNet().of("cars")


def test_vectors_by_hand(tmp_path: Path):
    """Cosines with "boat": ship 0.96, life-boat 0.994, vessel 0.8, tea 0."""
    (tmp_path / "v.txt").write_text(VECTORS)
    path = str(tmp_path / "v.txt")
    assert Counterfitted(path=path).of("boat") == ("life-boat", "ship", "vessel")
    assert Counterfitted(threshold=0.9, path=path).of("boat") == ("life-boat", "ship")
    assert Counterfitted(count=4, path=path).of("boat") == ("life-boat",), "what is no word counts too"
    assert Counterfitted(path=path).note == ""


def test_lists_have_no_threshold(tmp_path: Path):
    (tmp_path / "n.json").write_text(json.dumps(LISTS))
    source = Counterfitted(threshold=1, path=str(tmp_path / "n.json"))
    assert source.of("boat") == ("ship", "life-boat", "vessel")
    assert "threshold does not apply" in source.note


def fill(folder: Path) -> dict[str, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "glove.4d.txt": "boat 1 0 0 0\nship 0.8 0.6 0 0\ntea 0 0 1 0\ncoffee 0 0 1 0.1\n",
        "synonyms.tsv": "word1\tword2\nboat\tship\n",
        "one-antonyms.tsv": "tea coffee\n",
        "two-antonyms.txt": "boat tea\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    return {name: folder / name for name in files}


def test_vectors_are_fitted_where_there_are_none_that_are(home: Path):
    """Tea and coffee are near until they are said to be antonyms."""
    there = home / "resources"
    fill(there)
    assert Counterfitted().of("boat") == ("ship",)
    assert Counterfitted().of("tea") == ()
    assert len(list((home / "counterfitted").iterdir())) == 1
    (there / "counterfitted-neighbors.json").write_text('{"boat": ["raft"]}')
    assert Counterfitted().of("boat") == ("ship",), "lists have no similarities, so they come last"
    (there / "one-antonyms.tsv").unlink()
    (there / "two-antonyms.txt").unlink()
    assert Counterfitted().of("boat") == ("raft",)
    (there / "counter-fitted-vectors.txt").write_text("boat 1 0\nyacht 1 0\n")
    assert Counterfitted().of("boat") == ("yacht",)


def test_files_to_fit_are_named(tmp_path: Path, home: Path):
    files = {name: str(path) for name, path in fill(tmp_path / "there").items()}
    (home / "resources").mkdir(parents=True)
    (home / "resources" / "counter-fitted-vectors.txt").write_text("boat 1 0\nyacht 1 0\n")
    both = os.pathsep.join((files["one-antonyms.tsv"], files["two-antonyms.txt"]))
    one = Counterfitted(vectors=files["glove.4d.txt"], synonyms=files["synonyms.tsv"], antonyms=both)
    assert (one.of("boat"), one.of("tea"), one.note) == (("ship",), (), "")
    two = Counterfitted(
        vectors=files["glove.4d.txt"], synonyms=files["synonyms.tsv"], antonyms=files["two-antonyms.txt"]
    )
    assert two.of("tea") == ("coffee",)


def test_what_was_on_disk_and_is_damaged_is_noted(home: Path):
    fill(home / "resources")
    assert Counterfitted().note == ""
    (kept,) = (home / "counterfitted").iterdir()
    (kept / "words.txt").write_text("boat\n")
    counterfitting._fitted.cache_clear()
    assert "made again" in Counterfitted().note


def test_nothing_to_fit_is_said(home: Path):
    with pytest.raises(BadInput, match="counter-fitting lacks vectors"):
        Counterfitted().of("boat")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Counterfitted(threshold=1.5),
        lambda: Counterfitted(count=0),
        lambda: Counterfitted(path="a.txt", synonyms="b.tsv"),
    ],
)
def test_senseless_settings(make):
    with pytest.raises(BadInput, match="counterfitted: "):
        make()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("boat\tship\nboat\n", r"mine:2: a line is a word and its synonyms, parted by tabs, not 'boat'"),
        ("boat\tship\t\n", r"mine:1: '' is not a single word"),
        ("boat\tmotor ship\n", r"mine:1: 'motor ship' is not a single word"),
        ("boat\tu2\n", r"mine:1: 'u2' is not a single word"),
        ("boat ship\n", r"mine:1: a group starts with one of"),
        ("noun: boat\n", r"mine:1: a group holds at least two words"),
        ("", "mine: holds no words"),
        ("# nothing\n", "mine: holds no words"),
    ],
)
def test_lists_of_the_wrong_shape(text, message, tmp_path: Path):
    (tmp_path / "mine").write_text(text)
    with pytest.raises(BadInput, match=message):
        Listed(str(tmp_path / "mine")).of("boat")


def test_a_list_of_ones_own(tmp_path: Path):
    (tmp_path / "mine").write_text("# mine\nBoat\tShip\tvessel\ntea\tcuppa\nboat\tcraft\tship\n")
    source = Listed(str(tmp_path / "mine"))
    assert (source.of("boat"), source.of("boats"), source.of("ship")) == (("ship", "vessel", "craft"), (), ())

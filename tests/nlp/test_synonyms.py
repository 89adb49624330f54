"""Sources of synonyms: laws that all of them keep, and each by example."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.errors import BadInput
from shaketable.core.registries import SYNONYMS
from shaketable.nlp.irregular_forms import build_irregular_plurals, build_irregular_verb_forms
from shaketable.nlp.synonyms import (
    SINGLE_WORD,
    THRESHOLD_IGNORED,
    CounterfittedSynonyms,
    ListedSynonyms,
    ThesaurusSynonyms,
    WordNetSynonyms,
    find_inflected_synonyms,
)
from shaketable.nlp.thesaurus import read_bundled_thesaurus
from tests.nlp.test_resources import DATA, INDEX, small_wordnet

VECTORS = "boat 2 0\ntea 0 1\nvessel 0.8 0.6\nship 0.96 0.28\nBoat 1 0.01\nmotor_boat 1 0\n3 1 0\nlife-boat 0.9 0.1\n"
LISTS = {"boat": ["BOAT", "ship", "motor boat", "Ship", "u2", "life-boat", "vessel"], "ship": []}


def everything(folder: Path) -> list:
    """Return a synonym source of each type, with files in a folder."""
    (folder / "v.txt").write_text(VECTORS)
    (folder / "n.json").write_text(json.dumps(LISTS))
    (folder / "mine.tsv").write_text("boat\tship\tBoat\tvessel\nship\tboat\n")
    (folder / "groups.txt").write_text("noun: boat, ship, motor boat\nverb: boat > sail\n")
    path = small_wordnet(folder / "wordnet", INDEX + "boat n 1 1 @ 1 0 00000000\n")
    return [
        ThesaurusSynonyms(),
        WordNetSynonyms(str(path)),
        CounterfittedSynonyms(path=str(folder / "v.txt")),
        CounterfittedSynonyms(path=str(folder / "n.json")),
        ListedSynonyms(str(folder / "mine.tsv")),
        ListedSynonyms(str(folder / "groups.txt")),
    ]


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> list:
    return everything(tmp_path_factory.mktemp("sources"))


FORMS = [
    *read_bundled_thesaurus(),
    *build_irregular_plurals(),
    *build_irregular_verb_forms(),
    "boat",
    "boats",
    "Boat",
    "ship",
    "car",
    "cars",
]
WORDS = st.one_of(st.sampled_from(FORMS), st.sampled_from(FORMS).map(lambda w: w + "s"), st.text(max_size=8))


@given(word=WORDS)
def test_laws(sources, word):
    """Never the word itself; single words in lower case, each once; the same for every call and every case."""
    for source in sources:
        found = source.lookup(word)
        assert word.lower() not in found
        assert len(set(found)) == len(found)
        assert all(other == other.lower() and SINGLE_WORD.fullmatch(other) for other in found)
        assert found == source.lookup(word) == source.lookup(word.lower())
        assert found == type(source)(**vars_of(source)).lookup(word)


def vars_of(source) -> dict:
    return {name: getattr(source, name) for name in source.__dataclass_fields__}


def test_every_source_has_a_text(sources):
    for source in sources:
        assert SYNONYMS.build(SYNONYMS.spec(source)) == source
    assert SYNONYMS.build("counterfitted(0.7, 50)") == CounterfittedSynonyms(threshold=0.7, count=50)


def test_the_thesaurus_has_something_for_most_of_its_words():
    assert sum(bool(ThesaurusSynonyms().lookup(word)) for word in read_bundled_thesaurus()) > 0.95 * len(
        read_bundled_thesaurus()
    )


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
    assert some in ListedSynonyms(str(groups)).lookup(word)


def test_a_form_that_may_be_either_of_two_is_not_made(tmp_path: Path):
    """ "started" may be "began" or "begun"; "began" is "started", and of "begun" nothing else is known."""
    groups = tmp_path / "g.txt"
    groups.write_text("verb: start, begin, commence\nverb: rise, arise\n")
    source = ListedSynonyms(str(groups))
    assert source.lookup("started") == ("commenced",)
    assert source.lookup("began") == source.lookup("begun") == ("started", "commenced")
    assert (source.lookup("rose"), source.lookup("risen"), source.lookup("arisen")) == (
        ("arose",),
        ("arisen",),
        ("risen",),
    )


def test_regular_endings_alone():
    def of(word, parts):
        return [("verb", "purchase")] if word == "buy" else []

    assert find_inflected_synonyms("bought", of) == (("verb", "purchased"),)
    assert find_inflected_synonyms("bought", of, irregular=False) == ()
    assert find_inflected_synonyms("buys", of, irregular=False) == (("verb", "purchases"),)


def test_wordnet_by_hand(tmp_path: Path):
    """Two senses of "car", the frequent one first; what is more than one word is left out."""
    more = f"{len(DATA):08} 03 n 03 car 0 Railcar 0 railway_car 0 000 | on rails\n"
    first = DATA.replace("n 02 car 0 auto_mobile(a) 0", "n 02 car 0 auto(a) 0       ")
    assert len(first) == len(DATA)
    path = small_wordnet(tmp_path / "w", f"car n 2 1 @ 2 0 00000000 {len(DATA):08}\n", (first + more).encode())
    assert WordNetSynonyms(str(path)).lookup("car") == ("auto", "railcar")
    assert WordNetSynonyms(str(path)).lookup("cars") == ("autos", "railcars")
    assert WordNetSynonyms(str(path)).lookup("unknown") == ()


def test_the_real_wordnet(shared_data, monkeypatch):
    monkeypatch.setenv("NLTK_DATA", str(shared_data / "nltk_data"))
    assert WordNetSynonyms().lookup("durable")[0] == "lasting"
    assert "automobiles" in WordNetSynonyms().lookup("cars")


def test_vectors_by_hand(tmp_path: Path):
    """Cosines with "boat": ship 0.96, life-boat 0.994, vessel 0.8, tea 0."""
    (tmp_path / "v.txt").write_text(VECTORS)
    path = str(tmp_path / "v.txt")
    assert CounterfittedSynonyms(path=path).lookup("boat") == ("life-boat", "ship", "vessel")
    assert CounterfittedSynonyms(threshold=0.9, path=path).lookup("boat") == ("life-boat", "ship")
    assert CounterfittedSynonyms(count=4, path=path).lookup("boat") == ("life-boat",), "what is no word counts too"
    assert CounterfittedSynonyms(path=path).note == ""


def test_lists_have_no_threshold(tmp_path: Path):
    (tmp_path / "n.json").write_text(json.dumps(LISTS))
    source = CounterfittedSynonyms(threshold=1, path=str(tmp_path / "n.json"))
    assert source.lookup("boat") == ("ship", "life-boat", "vessel")
    assert "threshold does not apply" in source.note


def test_resources_come_before_the_thesaurus(home: Path):
    there = home / "resources"
    there.mkdir(parents=True)
    source = CounterfittedSynonyms(count=2)
    assert (source.files, source.neighbours) == ((), None)
    assert source.lookup("quickly") == ThesaurusSynonyms().lookup("quickly")[:2]
    assert source.note.startswith(f"there are no counter-fitted neighbours ({there}")
    assert source.note.endswith("the synonyms are those of the thesaurus")
    lists, vectors = there / "counterfitted-neighbors.json", there / "counter-fitted-vectors.txt"
    lists.write_text('{"boat": ["raft"]}')
    assert CounterfittedSynonyms().lookup("boat") == ("raft",)
    assert CounterfittedSynonyms().note == f"the synonyms are from {lists}; {THRESHOLD_IGNORED}"
    vectors.write_text("boat 1 0\nyacht 1 0\n")
    assert CounterfittedSynonyms().lookup("boat") == ("yacht",), "lists have no similarities, so they come last"
    assert CounterfittedSynonyms().note == f"the synonyms are from {vectors}"


def test_a_file_that_is_named_and_not_there_is_not_replaced_by_the_thesaurus(home: Path):
    with pytest.raises(BadInput, match="there is no such file"):
        CounterfittedSynonyms(path="nowhere.txt").lookup("boat")


@pytest.mark.parametrize(
    "make",
    [
        lambda: CounterfittedSynonyms(threshold=1.5),
        lambda: CounterfittedSynonyms(count=0),
    ],
)
def test_senseless_settings(make):
    with pytest.raises(BadInput, match="counterfitted: "):
        make()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("boat\tship\nboat\n", r"mine:2: a line must be a word and its synonyms, separated by tabs, not 'boat'"),
        ("boat\tship\t\n", r"mine:1: '' is not a single word"),
        ("boat\tmotor ship\n", r"mine:1: 'motor ship' is not a single word"),
        ("boat\tu2\n", r"mine:1: 'u2' is not a single word"),
        ("boat ship\n", r"mine:1: a group starts with one of"),
        ("noun: boat\n", r"mine:1: a group has at least two words"),
        ("", "mine: holds no words"),
        ("# nothing\n", "mine: holds no words"),
    ],
)
def test_lists_of_the_wrong_shape(text, message, tmp_path: Path):
    (tmp_path / "mine").write_text(text)
    with pytest.raises(BadInput, match=message):
        ListedSynonyms(str(tmp_path / "mine")).lookup("boat")


def test_a_list_of_ones_own(tmp_path: Path):
    (tmp_path / "mine").write_text("# mine\nBoat\tShip\tvessel\ntea\tcuppa\nboat\tcraft\tship\n")
    source = ListedSynonyms(str(tmp_path / "mine"))
    assert (source.lookup("boat"), source.lookup("boats"), source.lookup("ship")) == (
        ("ship", "vessel", "craft"),
        (),
        (),
    )

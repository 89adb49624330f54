"""Lists that attacks, or chance, had a hand in: what stands in them, by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shaketable.chance import draws_for
from shaketable.data.attacked import write_attacked
from shaketable.data.corpus import MemoryCorpus
from shaketable.data.letor import Letor
from shaketable.errors import BadInput, UnknownName
from shaketable.learners.attacked import Augmented, BesideAttacked, WithAttacked, read_examples, with_synonyms
from shaketable.learners.plan import LISTS, Control, Imitated, Judgements, Lessons, Plan
from shaketable.text.synonyms import Thesaurus
from shaketable.types import Attacked, Collection, Doc, Query

DOCS = {
    "d1": Doc("the quick boat was bought", title="A boat"),
    "d2": Doc("a large house of stone"),
    "d3": Doc("begin to buy a small car"),
    "d4": Doc("the doctor was quick to answer"),
    "d5": Doc("nothing here"),
}
QUERIES = {"q1": Query("quick boat"), "q2": Query("stone house"), "q3": Query("doctor"), "q4": Query("car")}
QRELS = {"q1": {"d1": 2, "d4": 0}, "q2": {"d2": 1}, "q4": {"d3": 1}}
CANDIDATES = {
    "q1": {"d1": 5.0, "d4": 4.0, "d2": 3.0, "d3": 2.0},
    "q2": {"d2": 2.0, "d1": 1.0, "d5": 0.5},
    "q3": {"d4": 2.0, "d1": 1.0},
    "q4": {"d3": 1.0, "d5": 0.5},
}


@pytest.fixture
def collection() -> Collection:
    return Collection("things", MemoryCorpus(DOCS), QUERIES, QRELS, candidates=CANDIDATES)


@pytest.fixture
def lessons(collection: Collection) -> Lessons:
    return Lessons.prepare(collection, ["q1", "q2", "q3"], ["q4"], None, 10, seed=3)


def left(qid: str, docno: str, text: str, **more: str) -> Attacked:
    return Attacked({qid: QUERIES[qid].text}, docno, Doc(text, title=DOCS[docno].title), DOCS[docno], "wsra", **more)


ROWS = [
    left("q1", "d4", "the physician was quick to answer"),
    left("q1", "d2", "a big house of rock"),
    left("q1", "d1", "the fast boat was bought"),  # which is relevant
    left("q3", "d1", "the quick craft was purchased"),
    left("q4", "d5", "nothing there"),  # a query to validate on
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_attacked(ROWS, tmp_path / "left.jsonl")
    return tmp_path / "left.jsonl"


def test_words_give_way_to_synonyms_at_random():
    source, text = Thesaurus(), "The QUICK boat, a Boat; it is said: buy!"
    able = [word for word in ("quick", "boat", "said", "buy") if source.of(word)]
    assert len(able) > 2
    for seed in range(20):
        for count in (0, 1, 2, 20):
            new = with_synonyms(text, count, source, draws_for(seed, "x"))
            before, after = text.split(), new.split()
            changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
            assert len(changed) == min(count, sum(bool(source.of(word.strip(",;:!").lower())) for word in before))
            for old, fresh in changed:
                assert fresh.strip(",;:!").lower() in source.of(old.strip(",;:!").lower())
                assert old.isupper() == fresh.isupper()
                assert old[-1].isalpha() or old[-1] == fresh[-1]
    first = {with_synonyms(text, 1, source, draws_for(seed, "x")) for seed in range(50)}
    assert len(first) > 3


def test_copies_are_lists_of_their_own_with_the_same_labels(lessons: Lessons):
    plain, _ = Judgements().source(lessons, 4)
    source, qrels = Augmented(copies=2, words=3).source(lessons, 4)
    assert qrels == {"q4": {"d3": 1}}
    assert len(source) == 3 * len(plain) == 6
    for turn in range(3):
        for number in range(2):
            lists = [source.draw(number + 2 * copy, turn) for copy in range(3)]
            assert lists[0] == plain.draw(number, turn)
            assert {one.labels for one in lists} == {lists[0].labels}
            assert {(one.name, one.query) for one in lists} == {(lists[0].name, lists[0].query)}
            for copy in lists[1:]:
                for old, new in zip(lists[0].texts, copy.texts, strict=True):
                    apart = sum(a != b for a, b in zip(old.split(), new.split(), strict=True))
                    able = sum(bool(Thesaurus().of(word.lower())) for word in old.split())
                    assert apart == min(3, able)


def test_a_copy_of_a_text_is_the_same_in_every_pass(lessons: Lessons):
    source, _ = Augmented(words=1).source(lessons, 4)
    again, _ = Augmented(words=1).source(lessons, 4)
    copies: dict[tuple[int, str], set[str]] = {}
    for turn in range(6):
        for number in range(len(source)):
            assert source.draw(number, turn) == again.draw(number, turn)
            copy, original = divmod(number, 2)
            for old, new in zip(source.draw(original, turn).texts, source.draw(number, turn).texts, strict=True):
                copies.setdefault((copy, old), set()).add(new)
    assert {len(some) for some in copies.values()} == {1}
    assert any(copies[1, text] != copies[2, text] for copy, text in copies if copy == 1)


def test_copies_may_have_as_many_words_replaced_as_an_attack_changed(lessons: Lessons, tmp_path: Path):
    write_attacked([left("q1", "d2", "a big house of rock"), left("q1", "d4", DOCS["d4"].body)], tmp_path / "a.jsonl")
    source, _ = Augmented(words=0, path=str(tmp_path / "a.jsonl")).source(lessons, 4)
    sample, copy = source.draw(0, 0), source.draw(2, 0)
    apart = {
        sum(a != b for a, b in zip(old.split(), new.split(), strict=True))
        for old, new in zip(sample.texts, copy.texts, strict=True)
    }
    assert apart <= {0, 1, 2}
    assert 2 in apart
    write_attacked([left("q1", "d4", DOCS["d4"].body)], tmp_path / "b.jsonl")
    with pytest.raises(BadInput, match=r"b\.jsonl: has no document that an attack changed"):
        Augmented(words=0, path=str(tmp_path / "b.jsonl")).source(lessons, 4)


def test_attacked_documents_are_negatives_of_lists_that_are_added(lessons: Lessons, path: Path):
    plain, _ = Judgements().source(lessons, 3)
    source, _ = WithAttacked(path=str(path)).source(lessons, 3)
    assert len(plain) == 2
    assert len(source) == 3  # q2 has no attacked document
    drawn = set()
    for turn in range(8):
        assert [source.draw(i, turn) for i in range(2)] == [plain.draw(i, turn) for i in range(2)]
        added = source.draw(2, turn)
        assert added == source.draw(2, turn)
        labels = dict(zip(added.texts, added.labels, strict=True))
        assert added.name == "q1"
        assert labels == {
            DOCS["d1"].text: 2.0,
            "the physician was quick to answer": 0.0,
            "a big house of rock": 0.0,
        }
        drawn.add(added.texts)
    assert len(drawn) > 1
    short, _ = WithAttacked(path=str(path)).source(lessons, 2)
    assert {len(short.draw(2, turn).texts) for turn in range(5)} == {2}


def test_lists_stand_beside_others_before_and_after_the_attack(lessons: Lessons, path: Path):
    plain, _ = Judgements().source(lessons, 3)
    source, _ = BesideAttacked(path=str(path), size=3, attacked=2).source(lessons, 3)
    assert len(source) == len(plain) == 2
    new = {("q1", "d4"): ROWS[0].doc.text, ("q1", "d2"): ROWS[1].doc.text, ("q1", "d1"): ROWS[2].doc.text}
    new |= {("q3", "d1"): ROWS[3].doc.text}
    numbers = {doc.text: docno for docno, doc in DOCS.items()}
    asked = []
    for turn in range(6):
        for number in range(2):
            sample = source.draw(number, turn)
            assert replace(sample, beside=None) == plain.draw(number, turn)
            twins = sample.beside
            qid = {"quick boat": "q1", "doctor": "q3"}[twins.query]
            asked.append(qid)
            docnos = [numbers[text] for text in twins.clean]
            assert len(set(docnos)) == len(docnos) == {"q1": 3, "q3": 2}[qid]
            assert set(docnos) <= CANDIDATES[qid].keys()
            changed = [i for i, (a, b) in enumerate(zip(twins.clean, twins.attacked, strict=True)) if a != b]
            assert len(changed) == {"q1": 2, "q3": 1}[qid]
            assert all(twins.attacked[i] == new[qid, docnos[i]] for i in changed)
    # each pass over the lists without labels has all of them, of whichever query
    assert all(set(asked[i : i + 2]) == {"q1", "q3"} for i in range(0, 12, 2))


def test_what_is_drawn_beside_changes_from_time_to_time(lessons: Lessons, path: Path):
    source, _ = BesideAttacked(path=str(path), size=2, attacked=1).source(lessons, 3)
    assert len({source.draw(0, turn).beside for turn in range(10)}) > 3


def test_only_queries_to_learn_from_are_learned_from(collection: Collection, path: Path):
    assert read_examples(path, collection, ["q1", "q2"]).keys() == {"q1"}
    with pytest.raises(BadInput, match=r"left\.jsonl: has no attacked document of a query to learn from"):
        read_examples(path, collection, ["q2"])


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (replace(ROWS[0], docno="d77"), "things, which has no document 'd77'"),
        (replace(ROWS[0], docno=""), "things, which has no document ''"),
        (replace(ROWS[0], queries={"q77": "quick boat"}), "things, which has no query 'q77' of this text"),
        (replace(ROWS[0], queries={"q1": "slow boat"}), "things, which has no query 'q1' of this text"),
        (replace(ROWS[0], original=Doc("another text")), "things, whose document 'd4' has another text"),
    ],
)
@pytest.mark.parametrize("lists", [WithAttacked, BesideAttacked])
def test_a_file_of_another_collection_is_refused(lessons, tmp_path, row, complaint, lists):
    path = tmp_path / "other.jsonl"
    write_attacked([ROWS[1], row], path)
    with pytest.raises(BadInput) as caught:
        lists(path=str(path)).source(lessons, 3)
    assert str(caught.value) == f"{path}: is not of the collection {complaint}"


def test_senseless_lists(lessons: Lessons, path: Path, tmp_path: Path):
    for text in ("augmented(copies=0)", "augmented(words=-1)", "augmented(words=0)",
                 "beside_attacked(path='x', size=1)", "beside_attacked(path='x', size=5, attacked=6)"):  # fmt: skip
        with pytest.raises(BadInput):
            LISTS.build(text)
    with pytest.raises(UnknownName):
        LISTS.build("augmented(synonyms='tesaurus')")
    with pytest.raises(BadInput, match="only lists from judgements can tell"):
        WithAttacked(Imitated(), path=str(path)).source(lessons, 3)
    with pytest.raises(BadInput, match="there is no such file"):
        BesideAttacked(path=str(tmp_path / "absent.jsonl")).source(lessons, 3)
    write_attacked([ROWS[2]], path)
    with pytest.raises(BadInput, match="no attacked document that is not relevant"):
        WithAttacked(path=str(path)).source(lessons, 3)
    rows = Letor.__new__(Letor)
    for lists in (Augmented(), WithAttacked(path="x"), BesideAttacked(path="x")):
        with pytest.raises(BadInput, match="are for nets"):
            lists.relabelled(rows, 0)


def test_a_plan_is_named_by_what_is_in_its_files(path: Path, tmp_path: Path):
    for make in (
        WithAttacked,
        BesideAttacked,
        lambda path: Augmented(path=path),
        lambda path: Control(WithAttacked(path=path)),
    ):
        plan = Plan(make(path=str(path)))
        write_attacked(ROWS, path)
        name = plan.fingerprint
        assert name == plan.fingerprint
        assert str(path) in plan.spec
        assert LISTS.build(LISTS.spec(plan.lists)) == plan.lists
        write_attacked(ROWS[:2], path)
        assert plan.fingerprint != name
    with pytest.raises(BadInput, match="there is no such file"):
        _ = Plan(WithAttacked(path=str(tmp_path / "absent"))).fingerprint
    assert Plan(about={"defence": "x"}) == Plan()
    assert Plan(about={"defence": "x"}).fingerprint == Plan().fingerprint

"""The training lists that defences add: their content, checked by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shaketable.core.attack_types import AdversarialDocument
from shaketable.core.documents import Collection, Doc, Query
from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.registries import LIST_SOURCES
from shaketable.datasets.adversarial_documents import write_adversarial_documents
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.letor import Letor
from shaketable.defences.adversarial_examples import read_adversarial_examples
from shaketable.defences.adversarial_training import AdversarialSource
from shaketable.defences.data_augmentation import AugmentedSource
from shaketable.defences.piat import PairedSource
from shaketable.nlp.synonyms import ThesaurusSynonyms
from shaketable.training.plan import ImitationSource, JudgementSource, ShuffledLabelSource, TrainingData, TrainingPlan

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
def training_data(collection: Collection) -> TrainingData:
    return TrainingData.prepare(collection, ["q1", "q2", "q3"], ["q4"], None, 10, seed=3)


def make_adversarial(qid: str, docno: str, text: str, **more: str) -> AdversarialDocument:
    return AdversarialDocument(
        {qid: QUERIES[qid].text}, docno, Doc(text, title=DOCS[docno].title), DOCS[docno], "wsra", **more
    )


ROWS = [
    make_adversarial("q1", "d4", "the physician was quick to answer"),
    make_adversarial("q1", "d2", "a big house of rock"),
    make_adversarial("q1", "d1", "the fast boat was bought"),  # which is relevant
    make_adversarial("q3", "d1", "the quick craft was purchased"),
    make_adversarial("q4", "d5", "nothing there"),  # a query to validate on
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_adversarial_documents(ROWS, tmp_path / "left.jsonl")
    return tmp_path / "left.jsonl"


def test_copies_are_lists_of_their_own_with_the_same_labels(training_data: TrainingData):
    plain, _ = JudgementSource().open_samples(training_data, 4)
    source, qrels = AugmentedSource(copies=2, words=3).open_samples(training_data, 4)
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
                    able = sum(bool(ThesaurusSynonyms().lookup(word.lower())) for word in old.split())
                    assert apart == min(3, able)


def test_a_copy_of_a_text_is_the_same_in_every_pass(training_data: TrainingData):
    source, _ = AugmentedSource(words=1).open_samples(training_data, 4)
    again, _ = AugmentedSource(words=1).open_samples(training_data, 4)
    copies: dict[tuple[int, str], set[str]] = {}
    for turn in range(6):
        for number in range(len(source)):
            assert source.draw(number, turn) == again.draw(number, turn)
            copy, original = divmod(number, 2)
            for old, new in zip(source.draw(original, turn).texts, source.draw(number, turn).texts, strict=True):
                copies.setdefault((copy, old), set()).add(new)
    assert {len(some) for some in copies.values()} == {1}
    assert any(copies[1, text] != copies[2, text] for copy, text in copies if copy == 1)


def test_copies_may_have_as_many_words_replaced_as_an_attack_changed(training_data: TrainingData, tmp_path: Path):
    write_adversarial_documents(
        [make_adversarial("q1", "d2", "a big house of rock"), make_adversarial("q1", "d4", DOCS["d4"].body)],
        tmp_path / "a.jsonl",
    )
    source, _ = AugmentedSource(words=0, path=str(tmp_path / "a.jsonl")).open_samples(training_data, 4)
    sample, copy = source.draw(0, 0), source.draw(2, 0)
    apart = {
        sum(a != b for a, b in zip(old.split(), new.split(), strict=True))
        for old, new in zip(sample.texts, copy.texts, strict=True)
    }
    assert apart <= {0, 1, 2}
    assert 2 in apart
    write_adversarial_documents([make_adversarial("q1", "d4", DOCS["d4"].body)], tmp_path / "b.jsonl")
    with pytest.raises(BadInput, match=r"b\.jsonl: has no document that an attack changed"):
        AugmentedSource(words=0, path=str(tmp_path / "b.jsonl")).open_samples(training_data, 4)


def test_attacked_documents_are_negatives_of_lists_that_are_added(training_data: TrainingData, path: Path):
    plain, _ = JudgementSource().open_samples(training_data, 3)
    source, _ = AdversarialSource(path=str(path)).open_samples(training_data, 3)
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
    short, _ = AdversarialSource(path=str(path)).open_samples(training_data, 2)
    assert {len(short.draw(2, turn).texts) for turn in range(5)} == {2}


def test_lists_stand_beside_others_before_and_after_the_attack(training_data: TrainingData, path: Path):
    plain, _ = JudgementSource().open_samples(training_data, 3)
    source, _ = PairedSource(path=str(path), size=3, attacked=2).open_samples(training_data, 3)
    assert len(source) == len(plain) == 2
    new = {("q1", "d4"): ROWS[0].doc.text, ("q1", "d2"): ROWS[1].doc.text, ("q1", "d1"): ROWS[2].doc.text}
    new |= {("q3", "d1"): ROWS[3].doc.text}
    numbers = {doc.text: docno for docno, doc in DOCS.items()}
    asked = []
    for turn in range(6):
        for number in range(2):
            sample = source.draw(number, turn)
            assert replace(sample, attack_pair=None) == plain.draw(number, turn)
            twins = sample.attack_pair
            qid = {"quick boat": "q1", "doctor": "q3"}[twins.query]
            asked.append(qid)
            docnos = [numbers[text] for text in twins.clean]
            assert len(set(docnos)) == len(docnos) == {"q1": 3, "q3": 2}[qid]
            assert set(docnos) <= CANDIDATES[qid].keys()
            changed = [i for i, (a, b) in enumerate(zip(twins.clean, twins.attacked, strict=True)) if a != b]
            assert len(changed) == {"q1": 2, "q3": 1}[qid]
            assert all(twins.attacked[i] == new[qid, docnos[i]] for i in changed)
    # each pass over the lists without labels has all lists of all queries
    assert all(set(asked[i : i + 2]) == {"q1", "q3"} for i in range(0, 12, 2))


def test_unlabelled_lists_differ_between_passes(training_data: TrainingData, path: Path):
    source, _ = PairedSource(path=str(path), size=2, attacked=1).open_samples(training_data, 3)
    assert len({source.draw(0, turn).attack_pair for turn in range(10)}) > 3


def test_only_queries_to_learn_from_are_learned_from(collection: Collection, path: Path):
    assert read_adversarial_examples(path, collection, ["q1", "q2"]).keys() == {"q1"}
    with pytest.raises(BadInput, match=r"left\.jsonl: has no attacked document for the training queries"):
        read_adversarial_examples(path, collection, ["q2"])


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (replace(ROWS[0], docno="d77"), "things, which has no document 'd77'"),
        (replace(ROWS[0], docno=""), "things, which has no document ''"),
        (replace(ROWS[0], queries={"q77": "quick boat"}), "things, which has no query 'q77' with this text"),
        (replace(ROWS[0], queries={"q1": "slow boat"}), "things, which has no query 'q1' with this text"),
        (replace(ROWS[0], original=Doc("another text")), "things, whose document 'd4' has another text"),
    ],
)
@pytest.mark.parametrize("lists", [AdversarialSource, PairedSource])
def test_a_file_of_another_collection_is_refused(training_data, tmp_path, row, complaint, lists):
    path = tmp_path / "other.jsonl"
    write_adversarial_documents([ROWS[1], row], path)
    with pytest.raises(BadInput) as caught:
        lists(path=str(path)).open_samples(training_data, 3)
    assert str(caught.value) == f"{path}: does not belong to the collection {complaint}"


def test_senseless_lists(training_data: TrainingData, path: Path, tmp_path: Path):
    for text in ("augmented(copies=0)", "augmented(words=-1)", "augmented(words=0)",
                 "paired(path='x', size=1)", "paired(path='x', size=5, attacked=6)"):  # fmt: skip
        with pytest.raises(BadInput):
            LIST_SOURCES.build(text)
    with pytest.raises(UnknownName):
        LIST_SOURCES.build("augmented(synonyms='tesaurus')")
    with pytest.raises(BadInput, match="so this defence needs lists made from judgements"):
        AdversarialSource(ImitationSource(), path=str(path)).open_samples(training_data, 3)
    with pytest.raises(BadInput, match="there is no such file"):
        PairedSource(path=str(tmp_path / "absent.jsonl")).open_samples(training_data, 3)
    write_adversarial_documents([ROWS[2]], path)
    with pytest.raises(BadInput, match="no attacked document that is not relevant"):
        AdversarialSource(path=str(path)).open_samples(training_data, 3)
    rows = Letor.__new__(Letor)
    for lists in (AugmentedSource(), AdversarialSource(path="x"), PairedSource(path="x")):
        with pytest.raises(BadInput, match="are for neural nets"):
            lists.relabel(rows, 0)


def test_the_name_of_a_plan_depends_on_file_contents(path: Path, tmp_path: Path):
    for make in (
        AdversarialSource,
        PairedSource,
        lambda path: AugmentedSource(path=path),
        lambda path: ShuffledLabelSource(AdversarialSource(path=path)),
    ):
        plan = TrainingPlan(make(path=str(path)))
        write_adversarial_documents(ROWS, path)
        name = plan.fingerprint
        assert name == plan.fingerprint
        assert str(path) in plan.spec
        assert LIST_SOURCES.build(LIST_SOURCES.spec(plan.lists)) == plan.lists
        write_adversarial_documents(ROWS[:2], path)
        assert plan.fingerprint != name
    with pytest.raises(BadInput, match="there is no such file"):
        _ = TrainingPlan(AdversarialSource(path=str(tmp_path / "absent"))).fingerprint
    assert TrainingPlan(card_extras={"defence": "x"}) == TrainingPlan()
    assert TrainingPlan(card_extras={"defence": "x"}).fingerprint == TrainingPlan().fingerprint

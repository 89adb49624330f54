"""Constraints: the original always passes, a violation never, and other texts of a batch have no effect."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shaketable.attacks import constraints
from shaketable.attacks.constraints import open_constraints
from shaketable.attacks.goals import Promote
from shaketable.attacks.insertion import QueryInsertion
from shaketable.attacks.runner import run_attacks
from shaketable.core.attack_types import AttackCase, TargetRanking
from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput, MissingExtra
from shaketable.core.registries import CONSTRAINTS
from shaketable.core.seeding import make_item_rng
from shaketable.rankers.lexical import BM25
from shaketable.rankers.similarity import make_encoder_similarity
from tests.attacks.setups import cases_on, knowledge_of, load_sample, target_for
from tests.nlp.tiny_gpt import tiny_gpt

SAMPLE = load_sample()
CAUSAL = "fluency(model='GPT')"
EVERY = (
    "most_words(most=3)",
    "same_length",
    "part_of_speech",
    "similarity",
    "fluency(most=1.1)",
    "no_query_terms",
    CAUSAL,
)


def open_constraint(text: str):
    if text.startswith("similarity") and make_encoder_similarity() is None:
        pytest.skip("the extra neural is not installed")
    if "GPT" in text:
        pytest.importorskip("torch")
        text = text.replace("GPT", str(tiny_gpt()))
    (check,) = open_constraints([text], knowledge_of(SAMPLE))
    return check


def case_of(doc: Doc, *queries: str) -> AttackCase:
    lists = tuple(TargetRanking(f"q{i}", query, ("d",), (doc,)) for i, query in enumerate(queries or ("nothing",)))
    return AttackCase("d", doc, lists, Promote(), (1,) * len(lists))


def verdicts(text: str, before: Doc | str, *after: Doc | str, queries: tuple[str, ...] = ()) -> list[bool]:
    docs = [doc if isinstance(doc, Doc) else Doc(doc) for doc in (before, *after)]
    (answer,) = open_constraint(text)([(case_of(docs[0], *queries), docs[1:])])
    return list(answer)


def change_words(doc: Doc, number: int) -> Doc:
    """Replace, shuffle or add words of the sample."""
    words, draws = doc.body.split(), make_item_rng(0, "changed", doc.body, number)
    others = " ".join(other.body for _, other in list(SAMPLE.docs.items())[:5]).split()
    for _ in range(number):
        words[draws.randbelow(len(words))] = draws.choice(others)
    return replace(doc, body=" ".join(words + others[: number % 3]))


@pytest.mark.parametrize("text", EVERY)
def test_the_original_passes_and_batches_equal_single_checks(text):
    check = open_constraint(text)
    count = 3 if text == CAUSAL else 12
    docs = [replace(doc, body=" ".join(doc.body.split()[:40])) for _, doc in list(SAMPLE.docs.items())[:count]]
    queries = [query.text for query in SAMPLE.queries.values()]
    questions = [
        (
            case_of(doc, queries[i]),
            [doc, *(change_words(doc, n) for n in (0, 1, 3, 6, 10)), replace(doc, body=f"{doc.body} {queries[i]}")],
        )
        for i, doc in enumerate(docs)
    ]
    together = [list(answer) for answer in check(questions)]
    assert all(answer[0] for answer in together)
    assert {good for answer in together for good in answer} == {True, False}, "both are to be seen here"
    assert [list(answer) for answer in check(questions[::-1])] == together[::-1]
    fresh = open_constraint(text)
    assert [[fresh([(case, [doc])])[0][0] for doc in docs] for case, docs in questions] == together
    assert [list(answer) for answer in check([(case, []) for case, _ in questions])] == [[]] * count
    assert list(check([])) == []


@pytest.mark.parametrize("text", EVERY)
def test_empty_texts_are_texts(text):
    check = open_constraint(text)
    answers = check([(case_of(Doc("")), [Doc(""), Doc("a boat")]), (case_of(Doc("a boat")), [Doc(""), Doc("a boat")])])
    assert answers[0][0]
    assert answers[1][1]


def test_same_length():
    before = Doc("A red boat, in a storm!", title="Two boats")
    after = [
        Doc("A blue ship - in a storm!", title="Some ships"),
        Doc("A very red boat, in a storm!", title="Two boats"),
        Doc("red boat, in a storm!", title="Two boats"),
        Doc("A red boat, in storm!", title="The two boats"),
    ]
    assert verdicts("same_length", before, *after) == [True, False, False, False]


def test_part_of_speech():
    before = Doc("The old dog slept in the garden. He didn't bark.", title="Dogs")
    after = {
        "The old cat slept in the garden. He didn't bark.": True,
        "The old quickly slept in the garden. He didn't bark.": False,
        "THE old dog slept in the Garden. He didn't bark.": True,
        "The old dog slept in the garden. He wasn't bark.": True,
        "The old dog slept in the garden. He the bark.": False,
        "The very old dog slept in the garden. He didn't bark.": False,
        "The old dog slept under the garden. He didn't bark.": True,
    }
    docs = [Doc(body, title="Dogs") for body in after]
    assert verdicts("part_of_speech", before, *docs) == list(after.values())
    assert verdicts("part_of_speech", before, replace(before, title="Cats"), replace(before, title="The")) == [
        True,
        False,
    ]


def test_a_full_tag_cache_does_not_change_results(monkeypatch):
    before, after = "The dog slept. The cat sat.", ["The hen slept. The cat sat.", "The hen slept. The the sat."]
    monkeypatch.setattr(constraints, "MAX_CACHED_SENTENCES", 1)
    assert verdicts("part_of_speech", before, *after) == [True, False]
    check = open_constraint("part_of_speech")
    for _ in range(3):
        assert check([(case_of(Doc(before)), [Doc(text)]) for text in after]) == [[True], [False]]


def test_a_word_is_tagged_in_its_sentence():
    """ "run" is a noun after "the" and a verb after "to": the position decides."""
    before = Doc("He wanted to sleep. The race was long.")
    assert verdicts("part_of_speech", before, "He wanted to run. The race was long.") == [True]
    assert verdicts("part_of_speech", before, "He wanted to sleep. The run was long.") == [True]


def test_similarity_by_meaning():
    before = "The doctor gave the sick child some medicine and told her to rest at home for a week."
    good = "The physician gave the sick child some medicine and told her to rest at home for a week."
    bad = "The parliament gave the volcanic guitar some medicine and told her to rest at home for a week."
    assert verdicts("similarity", before, good, bad) == [True, False]
    assert verdicts("similarity(least=-1)", before, good, bad, "Bananas.") == [True] * 3
    assert verdicts("similarity(least=1)", before, good) == [False]


def test_similarity_looks_around_each_change_and_the_worst_one_counts():
    similarity = make_encoder_similarity()
    if similarity is None:
        pytest.skip("the extra neural is not installed")
    start, end = "The harbour was quiet that night and all ships lay still", "while the moon rose over the old town"
    filler = " ".join(f"Line {i} of the log says that nothing happened at all." for i in range(9))
    before = f"{start} {filler} {end}"
    one = before.replace("quiet", "carnivorous")
    two = one.replace("old town", "old city")
    words, new = before.split(), two.split()
    first = similarity([" ".join(words[:10])], [" ".join(new[:10])])[0]  # 7 words after the fourth, none more before
    last = similarity([" ".join(words[-8:])], [" ".join(new[-8:])])[0]
    assert first < last
    limit = round((first + last) / 2, 3)
    assert verdicts(f"similarity(least={limit})", before, one, two, before.replace("old town", "old city")) == [
        False, False, True,
    ]  # fmt: skip
    assert verdicts(f"similarity(least={limit}, window=0)", before, one, two) == [True, True]


def test_similarity_of_added_words():
    first, last = "The ship left the harbour in the morning.", "It came back at night with a load of fish."
    before, added = f"{first} {last}", f"{first} Cheap casino bonus codes online now. {last}"
    assert verdicts("similarity(least=0.8)", before, added, before) == [False, True]


def test_without_an_encoder_the_message_names_the_extra(monkeypatch):
    monkeypatch.setattr(constraints, "make_encoder_similarity", lambda: None)
    with pytest.raises(MissingExtra, match=r"the constraint similarity needs .*shaketable\[neural\]"):
        open_constraints(["similarity"], knowledge_of(SAMPLE))


def test_fluency_is_a_ratio_of_perplexities():
    knowledge = knowledge_of(SAMPLE)
    doc = next(doc for _, doc in SAMPLE.docs.items() if len(doc.body.split()) > 30)
    after = change_words(doc, 6)
    model = constraints.open_language_model("ngrams", knowledge)
    low, high = model.perplexity([doc.text, after.text])
    ratio = high / low
    assert ratio > 1.01
    for most, fine in ((ratio * 1.01, True), (ratio / 1.005, False)):
        (check,) = open_constraints([f"fluency(most={most})"], knowledge)
        assert check([(case_of(doc), [after])]) == [[fine]]


def test_a_causal_model_refuses_words_in_disorder():
    before = "The river rose quickly after three days of heavy rain."
    good, bad = (
        "The river rose rapidly after three days of heavy rain.",
        "rain three The heavy quickly of after rose days river.",
    )
    assert verdicts(CAUSAL, before, good, bad) == [True, False]


def test_a_language_model_that_is_not_here():
    pytest.importorskip("torch")
    with pytest.raises(BadInput, match="there is no checkpoint 'nobody/gpt'"):
        open_constraints(["fluency(model='nobody/gpt')"], knowledge_of(SAMPLE))


def test_no_query_terms():
    before = "the oak is a tree with leaves"
    after = {
        "the oak is a tree with leaves and the sea": True,
        "the oak is a tree with leaves and trees": False,
        "OAK, the oak is a tree with leaves": False,
        "a tree is the oak with leaves": True,
        "the shrub is a shrub": True,
        "the oak is an oak with leaves": False,
    }
    assert verdicts("no_query_terms", before, *after, queries=("the oak trees",)) == list(after.values())
    assert verdicts("no_query_terms", before, "a boat", queries=("oak", "boats")) == [False]
    assert verdicts("no_query_terms", before, "the the the", queries=("the",)) == [True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("similarity(least=2)", "least should be a cosine"),
        ("similarity(window=-1)", "window should be 0 or more"),
        ("fluency(most=0.5)", "most should be a number, 1 or more"),
        ("fluency(model='')", "model should be ngrams, or the folder or the name of a causal language model"),
    ],
)
def test_settings_that_make_no_sense(text, message):
    with pytest.raises(BadInput, match=message):
        CONSTRAINTS.build(text)


def test_an_attack_under_a_constraint_offers_nothing_else():
    target = target_for(BM25().open(SAMPLE))
    cases = cases_on(SAMPLE, target)
    free = run_attacks(QueryInsertion().open(knowledge_of(SAMPLE)), cases, target)
    bound = run_attacks(QueryInsertion(constraints=("no_query_terms",)).open(knowledge_of(SAMPLE)), cases, target)
    assert any(outcome.doc != case.doc for outcome, case in zip(free, cases, strict=True))
    assert all(outcome.doc == case.doc and not outcome.trials for outcome, case in zip(bound, cases, strict=True))

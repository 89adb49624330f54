"""Lists with noise: what is perturbed, what stays, and a ranker that learns from them and is smoothed."""

from __future__ import annotations

from pathlib import Path

import pytest

from shaketable.data.corpus import MemoryCorpus
from shaketable.data.letor import Letor
from shaketable.errors import BadInput
from shaketable.learners.noisy import Noisy
from shaketable.learners.plan import LISTS, Control, Judgements, Lessons
from shaketable.text.perturbation import sets_for
from shaketable.types import Collection, Doc, Query
from tests.toys import text


@pytest.fixture
def woods() -> Collection:
    docs = {f"d{i}": Doc(text(i)) for i in range(20)}
    queries = {f"q{i}": Query(text(300 + i, 2)) for i in range(8)}
    qrels = {qid: {f"d{i}": 1, f"d{i + 8}": 0} for i, qid in enumerate(queries)}
    return Collection("woods", MemoryCorpus(docs), queries, qrels)


@pytest.fixture
def synonyms(tmp_path) -> str:
    (tmp_path / "trees.tsv").write_text("oak\tash\tbirch\npine\tfir\tlarch\tyew\n")
    return f"listed({str(tmp_path / 'trees.tsv')!r})"


def lessons(woods: Collection, seed: int = 3) -> Lessons:
    return Lessons.prepare(woods, list(woods.queries), [], None, 10, seed)


def test_texts_are_perturbed_once_and_nothing_else_changes(woods, synonyms):
    plain, qrels = Judgements().source(lessons(woods), 4)
    noisy, same = Noisy(synonyms=synonyms).source(lessons(woods), 4)
    sets = sets_for([doc.text for _, doc in woods.docs.items()], synonyms)
    assert (len(noisy), same) == (len(plain), qrels)
    became: dict[str, str] = {}
    for number in range(len(plain)):
        for turn in range(4):
            before, after = plain.draw(number, turn), noisy.draw(number, turn)
            assert (after.name, after.query, after.labels) == (before.name, before.query, before.labels)
            for old, new in zip(before.texts, after.texts, strict=True):
                assert became.setdefault(old, new) == new
                for a, b in zip(old.split(), new.split(), strict=True):
                    assert b in sets.perturbations.get(a, (a,))
    assert sum(old != new for old, new in became.items()) > len(became) / 2
    other, _ = Noisy(synonyms=synonyms).source(lessons(woods, seed=4), 4)
    assert any(other.perturbed(old) != new for old, new in became.items())


def test_it_is_a_value_that_wraps_others_and_says_which_files_it_reads(synonyms, tmp_path):
    lists = Noisy(Control(), synonyms=synonyms, most=5)
    assert LISTS.build(LISTS.spec(lists)) == lists
    assert lists.files == Noisy(Noisy(synonyms=synonyms)).files == (tmp_path / "trees.tsv",)
    assert Noisy().files == ()
    (tmp_path / "v.txt").write_text("oak 1 0\n")
    assert Noisy(synonyms=f"counterfitted(path={str(tmp_path / 'v.txt')!r})").files == (tmp_path / "v.txt",)
    fitted = "counterfitted(vectors='v', synonyms='s', antonyms='a')"
    assert Noisy(synonyms=fitted).files == (Path("v"), Path("s"), Path("a"))
    with pytest.raises(BadInput, match="see no words"):
        lists.relabelled(Letor.__new__(Letor), 0)
    with pytest.raises(BadInput, match="most should be between"):
        Noisy(most=1)

"""Every probe keeps the contract, on the sample."""

from __future__ import annotations

import pytest

from shaketable.data.sample import read_sample
from shaketable.probes.ground import Ground
from shaketable.probes.suite import chosen, name
from shaketable.registry import PROBES
from shaketable.testing import check_probe
from shaketable.text.language import language_tool
from shaketable.text.tokens import Tokenizer


@pytest.fixture(scope="module")
def ground() -> Ground:
    collection = read_sample()
    return Ground(collection, collection.splits["test"][:8], language_tool("light"), Tokenizer(), documents=60)


@pytest.mark.parametrize("probe", chosen(), ids=name)
def test_it_keeps_the_contract(probe, ground):
    check_probe(probe, ground)


def test_every_row_of_the_catalogue_is_in_the_suite():
    specs = {PROBES.spec(probe).partition("(")[0] for probe in chosen()}
    assert specs == set(PROBES.own) - {"pairs"}


def test_of_the_judged_documents_as_many_are_drawn_as_asked_for(ground):
    assert sum(map(len, ground.drawn.values())) == 60
    assert all(set(docs) <= set(ground.judged[qid]) for qid, docs in ground.drawn.items())

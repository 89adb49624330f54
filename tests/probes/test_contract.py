"""Every probe keeps the contract, on the sample."""

from __future__ import annotations

import pytest

from shaketable.core.registries import PROBES
from shaketable.datasets.sample import read_sample
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.parser import open_parser
from shaketable.probes.context import ProbeContext
from shaketable.probes.suite import LANGUAGE_PROBES, format_probe_name, select_probes
from shaketable.testing import check_probe


@pytest.fixture(scope="module")
def context() -> ProbeContext:
    collection = read_sample()
    return ProbeContext(collection, collection.splits["test"][:8], open_parser("light"), Analyzer(), max_documents=60)


@pytest.mark.parametrize("probe", select_probes(), ids=format_probe_name)
def test_it_keeps_the_contract(probe, context):
    check_probe(probe, context)


@pytest.mark.parametrize("language", ["ar", "de", "zh"])
@pytest.mark.parametrize("name", LANGUAGE_PROBES)
def test_a_probe_of_a_language_keeps_the_contract(name, language, context):
    if (name, language) not in {("direction_marks", "de"), ("direction_marks", "zh"), ("normal_forms", "zh")}:
        check_probe(PROBES.build(f"{name}(language={language!r})"), context)


def test_every_row_of_the_catalogue_is_in_the_suite():
    specs = {PROBES.spec(probe).partition("(")[0] for probe in select_probes()}
    assert specs == set(PROBES.builtin_rows) - {"pairs", *LANGUAGE_PROBES}


def test_of_the_judged_documents_as_many_are_drawn_as_asked_for(context):
    assert sum(map(len, context.sampled_documents.values())) == 60
    assert all(set(docs) <= set(context.judged_documents[qid]) for qid, docs in context.sampled_documents.items())

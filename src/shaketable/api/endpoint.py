"""Checks of a ranker before an audit."""

from __future__ import annotations

import re
from pathlib import Path

from shaketable.api.ranker_names import build_models, split_name
from shaketable.core.errors import BadInput, RankerFailed
from shaketable.core.import_object import OBJECT_PATTERN
from shaketable.core.protocols import RecordedRanker
from shaketable.core.registries import ENDPOINT_PATTERN, RANKERS
from shaketable.datasets.known_answers import build_question_collection
from shaketable.datasets.load import FILES_SOURCE
from shaketable.datasets.validation import ValidationCheck
from shaketable.rankers.diagnosis.diagnose import Diagnosis, diagnose_ranker
from shaketable.rankers.http.diagnostics import diagnose_endpoint
from shaketable.rankers.http.reranker import HttpEndpoint
from shaketable.rankers.http.search_diagnostics import diagnose_engine
from shaketable.rankers.http.searcher import SearchEndpoint


def is_endpoint(text: str) -> bool:
    """Return True if a text names an endpoint: an address, http(...), search:URL or search(...).

    >>> is_endpoint("localhost:8080/rerank"), is_endpoint("http(url='https://h/rerank')"), is_endpoint("my-folder/x")
    (True, True, False)
    >>> is_endpoint("search:http://localhost:9200/films")
    True
    """
    return bool(re.fullmatch(rf"{ENDPOINT_PATTERN}|(?:http|search)\(.*\)|search:.+", split_name(text)[1], re.DOTALL))


def is_ranker(text: str) -> bool:
    """Return True if a text names a ranker, and not a collection or a file.

    >>> is_ranker("bm25"), is_ranker("hf:some-folder"), is_ranker("./mine.py:score"), is_ranker("mine=bm25(b=0.5)")
    (True, True, True, True)
    >>> is_ranker("sample"), is_ranker("irds:beir/scifact/test"), is_ranker("my-folder")
    (False, False, False)
    """
    name, spec = split_name(text)
    if is_endpoint(text) or spec.partition("(")[0] in RANKERS or (Path(spec) / "model.json").is_file():
        return True
    is_data = (
        spec.partition("?")[0] == FILES_SOURCE or spec.startswith("irds:") or Path(spec.partition("?")[0]).exists()
    )
    return not is_data and bool(name or re.fullmatch(r"(llm|run|hf|st|t5):.+|" + OBJECT_PATTERN, spec, re.DOTALL))


def examine_ranker(text: str, *, lists: int = 0) -> Diagnosis:
    """Return the diagnosis of a ranker; for an endpoint, also checks of its dialect, latency, noise and limits.

    A search engine cannot score a text that is not in its index, so it gets no questions.
    """
    ((name, model),) = build_models([text]).items()
    if isinstance(model, HttpEndpoint):
        return diagnose_endpoint(model, lists=lists)
    if isinstance(model, SearchEndpoint):
        return Diagnosis(0, 0, 0, (), tuple(diagnose_engine(model)))
    opened = model.open(build_question_collection())
    if isinstance(opened, RecordedRanker) or not callable(getattr(opened, "score", None)):
        raise BadInput(f"{name} cannot score texts, so it cannot answer questions")
    try:
        return diagnose_ranker(opened, name, lists=lists)
    except RankerFailed as error:
        failed = ValidationCheck("the ranker returns scores", "error", 0, 0, (), str(error))
        return Diagnosis(0, 0, 0, (), (failed,))

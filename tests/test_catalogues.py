"""Every parameter of every row of every registry, with invalid values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from shaketable.api.ranker_names import build_models
from shaketable.core.documents import Collection, Doc, Query
from shaketable.core.errors import BadInput, ShaketableError, UnknownName
from shaketable.core.protocols import ChangeMeasure, SpreadMeasure, TransformContext
from shaketable.core.registries import (
    CONSTRAINTS,
    DEFENCES,
    DETECTORS,
    GOALS,
    LEARNERS,
    LIST_SOURCES,
    MEASURES,
    OBJECTIVES,
    PROBES,
    RANKERS,
    RECIPES,
    SYNONYMS,
    TASKS,
    TRANSFORMS,
    WRITERS,
)
from shaketable.core.registry import Registry, matches_type
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.experiment import Experiment
from shaketable.probes.suite import LANGUAGE_PROBES
from shaketable.training.neural import EncoderLearner, NeuralLearner, WordLearner
from tests.cases import check_each
from tests.toys import text

pytestmark = pytest.mark.slow

CATALOGUES = (
    *(RANKERS, LEARNERS, WRITERS, TRANSFORMS, MEASURES, TASKS, PROBES, LIST_SOURCES, OBJECTIVES, SYNONYMS),
    *(RECIPES, GOALS, CONSTRAINTS, DETECTORS, DEFENCES),
)
NEEDED = {
    "http": {"url": "'http://127.0.0.1:9/rerank'"},
    "search": {"url": "'http://127.0.0.1:9/films'"},
    "llm": {"url": "'http://127.0.0.1:9/v1'"},
    "python": {"target": "'tests.toys:Overlap'"},
    "run": {"path": "'a.run'"},
    "saved": {"path": "'folder/model'"},
    "guarded": {"base": "'bm25'"},
    "smoothed": {"base": "'bm25'"},
    "masked": {"base": "'bm25'"},
    "hf": {"name": "'some/model'"},
    "st": {"name": "'some/model'"},
    "t5": {"name": "'some/model'"},
    "onnx": {"folder": "'some/folder'"},
    "lexical": {"ranker": "'bm25'"},
    "function": {"target": "'tests.toys:text'"},
    "teacher": {"ranker": "'bm25'"},
    "pairs": {"path": "'mine.jsonl'"},
    **{name: {"language": "'de'"} for name in LANGUAGE_PROBES},
    "listed": {"path": "'mine.tsv'"},
    "adversarial": {"path": "'mine.jsonl'"},
    "paired": {"path": "'mine.jsonl'"},
}
"""Parameters without a default, and something that they can be."""

TYPES = (
    "None",
    "5",
    "2.5",
    "'nonsense'",
    "True",
    "[]",
    "['x', 3]",
    "[[1, [2]], {'a': [None]}]",
    "(1, 'x')",
    "{}",
    "{'a': 1}",
    "{1, 2}",
    "1j",
    "(1j,)",
    "b'bytes'",
    "...",
)
"""A value of each type that can be written."""

VALUES = (
    *("-1", "0", "10**12", "1e999", "-1e999", "-0.5", "1e-300"),
    *("''", "'nonsense'", "'a b\\n'", "'\\x00'", "'../..'", "'(('"),
    *("()", "(-1,)", "(0,)", "(1000000000000,)", "(1e999,)", "('',)", "('nonsense',)", "('nonsense', 'nonsense')"),
)
"""Values of the right type that make no sense for most parameters."""


def rows() -> Iterator[tuple[Registry, str, dataclasses.Field[Any]]]:
    for catalogue in CATALOGUES:
        for name in catalogue:
            for field in dataclasses.fields(catalogue.get_class(name)):
                if field.init:
                    yield catalogue, name, field


ROWS = list(rows())


def list_fields(catalogue: Registry) -> dict[str, tuple[str, str]]:
    """Return the name of each row and parameter of a registry."""
    return {f"{name}({field.name})": (name, field.name) for registry, name, field in ROWS if registry is catalogue}


def write_spec(name: str, field: str, value: str) -> str:
    given = NEEDED.get(name, {}) | {field: value}
    return f"{name}({', '.join(f'{key}={value}' for key, value in given.items())})"


def read(value: str) -> Any:
    if value == "10**12":
        return 10**12
    import ast

    return ast.literal_eval(value)


def hint(catalogue: Registry, name: str, field: str) -> Any:
    from shaketable.core.registry import _get_type_hints

    return _get_type_hints(catalogue.get_class(name))[field]


def check_refusal(catalogue: Registry, text: str) -> None:
    """Check that building raises one of our errors, in one sentence."""
    with pytest.raises((BadInput, UnknownName)) as caught:
        catalogue.build(text)
    check_one_sentence(caught.value)


def check_one_sentence(error: BaseException) -> None:
    said = str(error)
    assert said
    assert "\n" not in said
    assert len(said) < 1000
    assert "Traceback" not in said


def test_every_parameter_without_a_default_is_known_here():
    for catalogue in CATALOGUES:
        for name in catalogue:
            needed = {
                field.name
                for field in dataclasses.fields(catalogue.get_class(name))
                if field.init and field.default is field.default_factory
            }
            known = {} if catalogue is DEFENCES else NEEDED.get(name, {})  # one of them is called as a ranker is
            assert needed == known.keys(), f"{catalogue.kind} {name}"
            for field in needed:
                with pytest.raises(BadInput, match=f"{name} needs {field}"):
                    catalogue.build(f"{name}()")


@pytest.mark.parametrize("catalogue", CATALOGUES, ids=lambda catalogue: catalogue.kind)
def test_a_value_of_another_type_is_refused_in_one_sentence(catalogue):
    def check(row: tuple[str, str]) -> None:
        wanted = hint(catalogue, *row)
        tried = 0
        for value in TYPES:
            if not matches_type(read(value), wanted):
                check_refusal(catalogue, write_spec(*row, value))
                tried += 1
        assert tried >= len(TYPES) // 2

    check_each(list_fields(catalogue), check)


@pytest.mark.parametrize("catalogue", CATALOGUES, ids=lambda catalogue: catalogue.kind)
def test_a_senseless_value_builds_or_is_refused_in_one_sentence(catalogue):
    def check(row: tuple[str, str]) -> None:
        wanted = hint(catalogue, *row)
        for value in VALUES:
            if not matches_type(read(value), wanted):
                continue
            try:
                catalogue.build(write_spec(*row, value.replace("10**12", str(10**12))))
            except ShaketableError as error:
                check_one_sentence(error)

    check_each(list_fields(catalogue), check)


@pytest.mark.parametrize("catalogue", CATALOGUES, ids=lambda catalogue: catalogue.kind)
@pytest.mark.parametrize(
    "form",
    ["{}(nonsense=1)", "{}(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24)"],
)
def test_parameters_that_there_are_not(catalogue, form):
    for name in catalogue:
        check_refusal(catalogue, form.format(name))


# What was built with a senseless value and is used all the same: it gives a result, or one sentence.


def trees(queries: int = 8) -> Collection:
    docs = {f"d{i:02}": Doc(text(i, 12)) for i in range(12)}
    asked = {f"q{i}": Query(text(500 + i, 3)) for i in range(queries)}
    qrels = {
        qid: {docno: int(len(set(query.text.split()) & set(doc.body.split())) > 1) for docno, doc in docs.items()}
        for qid, query in asked.items()
    }
    return Collection("trees", MemoryCorpus(docs), asked, qrels)


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return Experiment(trees(), build_models(["bm25", "ql"]), depth=12)


def build_invalid(catalogue: Registry, name: str, field: str) -> Iterator[tuple[str, Any]]:
    """Yield the objects that can be built from invalid values."""
    for value in VALUES:
        if matches_type(read(value), hint(catalogue, name, field)):
            text = write_spec(name, field, value.replace("10**12", str(10**12)))
            try:
                yield text, catalogue.build(text)
            except ShaketableError:
                continue


def task_rows() -> list[tuple[str, str]]:
    return [(name, field.name) for catalogue, name, field in ROWS if catalogue is TASKS]


@pytest.mark.parametrize(("name", "field"), task_rows(), ids=lambda value: value)
def test_a_built_task_runs_or_gives_a_reason(experiment, name, field):
    quick: dict[str, dict[str, Any]] = {
        "query_variation": {"transforms": ("drop_letter",)},
        "fusion": {"transforms": ("drop_letter",)},
        "document_attack": {"targets": 1, "any_grade": True, "detectors": ("glyphs",)},
        "probes": {"max_documents": 4},
    }
    for _, task in build_invalid(TASKS, name, field):
        more = {key: value for key, value in quick.get(name, {}).items() if key != field}
        try:
            result = dataclasses.replace(task, **more).run(experiment)
        except ShaketableError as error:
            check_one_sentence(error)
        else:
            assert result.tables


def learner_rows(neural: bool) -> list[tuple[str, str]]:
    """Each parameter once: those that many share at one of them."""
    rows = {name: LEARNERS.get_class(name) for name in LEARNERS}
    families = (NeuralLearner, WordLearner, EncoderLearner, *rows.values())
    chosen: dict[tuple[type[Any], str], tuple[str, str]] = {}
    for catalogue, name, field in ROWS:
        if catalogue is not LEARNERS or issubclass(rows[name], NeuralLearner) is not neural:
            continue
        owners = [cls for cls in families if issubclass(rows[name], cls) and field.name in cls.__dataclass_fields__]
        owner = min(owners, key=lambda cls: len(cls.__mro__))  # the class that defines it
        if field.name != "checkpoint":  # which may be looked for on a hub
            chosen.setdefault((owner, field.name), (name, field.name))
    return list(chosen.values())


def check_learner(learner: Any, folder: Any) -> None:
    collection = trees()
    qids = list(collection.queries)
    try:
        learner.fit(collection, qids[:5], valid=qids[5:], folder=folder, depth=10)
    except ShaketableError as error:
        check_one_sentence(error)
    else:
        assert (folder / "model.json").is_file()


@pytest.mark.parametrize(("name", "field"), learner_rows(neural=False), ids=lambda value: value)
def test_a_built_feature_learner_learns_or_gives_a_reason(tmp_path, name, field):
    if name in ("gbrt", "lambdamart"):
        pytest.importorskip("lightgbm")
    quick = {"gbrt": {"trees": 3}, "lambdamart": {"trees": 3}}
    for number, (_, learner) in enumerate(build_invalid(LEARNERS, name, field)):
        more = {key: value for key, value in quick.get(name, {}).items() if key != field}
        check_learner(dataclasses.replace(learner, **more), tmp_path / str(number))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("torch")
    from tests.rankers.neural.tiny import encoder

    return str(encoder(tmp_path_factory.mktemp("tiny")))


@pytest.mark.parametrize(("name", "field"), learner_rows(neural=True), ids=lambda value: value)
def test_a_built_neural_learner_learns_or_gives_a_reason(tmp_path, checkpoint, name, field):
    import torch

    few = {"steps": 2, "every": 1, "lists": 2, "size": 3, "dim": 4, "layers": (4, 2), "local": 2, "distributed": 2}
    few |= {
        "pretrain": 1,
        "adapt": 1,
        "pairs": 2,
        "filters": 2,
        "query_length": 4,
        "text_length": 16,
        "max_length": 16,
        "checkpoint": checkpoint,
    }
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for number, (_, learner) in enumerate(build_invalid(LEARNERS, name, field)):
            known = {f.name for f in dataclasses.fields(learner)} - {field}
            try:
                learner = dataclasses.replace(learner, **{key: few[key] for key in few if key in known})
            except ShaketableError as error:
                check_one_sentence(error)
            else:
                check_learner(learner, tmp_path / str(number))
    finally:
        torch.set_num_threads(threads)


def writer_rows() -> list[tuple[str, str]]:
    """Each parameter once; a checkpoint may be looked for on a hub."""
    fields = {field.name: name for catalogue, name, field in ROWS if catalogue is WRITERS}
    return [(name, field) for field, name in fields.items() if field != "checkpoint"]


@pytest.mark.parametrize(("name", "field"), writer_rows(), ids=lambda value: value)
def test_a_built_writer_learns_or_gives_a_reason(tmp_path, name, field):
    pytest.importorskip("torch")
    few = {"checkpoint": "", "epochs": 1, "layers": 1, "dim": 8, "source_length": 8, "target_length": 4}
    for number, (_, writer) in enumerate(build_invalid(WRITERS, name, field)):
        settled = dataclasses.replace(writer, **{key: few[key] for key in few if key != field})
        collection = trees()
        try:
            pairs = settled.build_pairs(collection, list(collection.queries), depth=5)
            folder = settled.fit(pairs, tmp_path / str(number))
        except ShaketableError as error:
            check_one_sentence(error)
        else:
            assert (folder / "config.json").is_file()


def objective_rows() -> list[tuple[str, str]]:
    return [(name, field.name) for catalogue, name, field in ROWS if catalogue is OBJECTIVES]


@pytest.mark.parametrize(("name", "field"), objective_rows(), ids=lambda value: value)
def test_a_built_objective_works_or_gives_a_reason(tmp_path, name, field):
    pytest.importorskip("torch")
    few = {"steps": 2, "every": 1, "lists": 2, "size": 3, "dim": 4}
    for number, (objective, _) in enumerate(build_invalid(OBJECTIVES, name, field)):
        learner = dataclasses.replace(LEARNERS.build("knrm"), objective=objective, **few)
        check_learner(learner, tmp_path / str(number))


EDIT_ROWS = [
    (name, field.name)
    for catalogue, name, field in ROWS
    if catalogue is TRANSFORMS and not hasattr(catalogue.get_class(name), "model")  # which may be looked for on a hub
]


@pytest.mark.parametrize(("name", "field"), EDIT_ROWS, ids=lambda value: value)
def test_a_built_transform_works_or_gives_a_reason(name, field):
    for _, edit in build_invalid(TRANSFORMS, name, field):
        for query in ("", "tea", "how to bake good bread", "ab " * 30):
            try:
                changed = edit.apply(query, make_item_rng(0, query), TransformContext(query, query, ("oak", "elm")))
            except ShaketableError as error:
                check_one_sentence(error)
            else:
                assert changed is None or changed.split() != query.split()


MEASURE_ROWS = [(name, field.name) for catalogue, name, field in ROWS if catalogue is MEASURES]


@pytest.mark.parametrize(("name", "field"), MEASURE_ROWS, ids=lambda value: value)
def test_a_built_measure_works_or_gives_a_reason(name, field):
    for _, measure in build_invalid(MEASURES, name, field):
        try:
            if isinstance(measure, ChangeMeasure):
                value = measure.between(["a", "b", "c"], ["c", "a", "d"])
            elif isinstance(measure, SpreadMeasure):
                value = float(measure.over(np.array([0.1, 0.5, 0.9])))
            else:
                value = measure.value({"a": 1}, ["a", "b"])
        except ShaketableError as error:
            check_one_sentence(error)
        else:
            assert not np.isinf(value), "NaN where there is nothing to measure"


MODEL_ROWS = [
    (name, field.name)
    for catalogue, name, field in ROWS
    if catalogue is RANKERS and name not in ("http", "search", "llm", "dense", "hf", "st", "t5", "doct5query")
]


@pytest.mark.parametrize(("name", "field"), MODEL_ROWS, ids=lambda value: value)
def test_a_built_ranker_ranks_or_gives_a_reason(name, field):
    for _, model in build_invalid(RANKERS, name, field):
        try:
            run = Experiment(trees(2), {"x": model}, depth=10).get_run("x")
        except ShaketableError as error:
            check_one_sentence(error)
        else:
            assert run


SYNONYM_ROWS = [(name, field.name) for catalogue, name, field in ROWS if catalogue is SYNONYMS]


@pytest.mark.parametrize(("name", "field"), SYNONYM_ROWS, ids=lambda value: value)
def test_a_built_synonym_source_works_or_gives_a_reason(name, field):
    for _, source in build_invalid(SYNONYMS, name, field):
        try:
            words = source.lookup("boat")
        except ShaketableError as error:
            check_one_sentence(error)
        else:
            assert "boat" not in words


KNOWN_ROWS = [
    (catalogue, name, field.name)
    for catalogue, name, field in ROWS
    if catalogue in (RECIPES, CONSTRAINTS, DETECTORS, GOALS) and name not in ("wsra", "hotflip")  # these train a net
]


def attack_with(kind: Registry, spec: str) -> Any:
    """Return the parts that a task can run alone: recipes, goals, detectors, and constraints of a recipe."""
    how: dict[str, Any] = {"recipes": ("keyword_stuffing",), "targets": 1, "queries": 2, "any_grade": True}
    how["detectors"] = ("glyphs",)
    if kind is RECIPES:
        how["recipes"] = (spec,)
    elif kind is GOALS:
        how["goal"] = spec
    elif kind is DETECTORS:
        how["detectors"] = (spec,)
    else:
        how["recipes"] = (f"greedy(words=2, constraints=({spec!r},))",)
    return TASKS.get_class("document_attack")(**how)


@pytest.mark.parametrize(("kind", "name", "field"), KNOWN_ROWS, ids=[f"{k.kind}-{n}-{f}" for k, n, f in KNOWN_ROWS])
def test_parts_of_attacks_work_or_give_a_reason(experiment, kind, name, field):
    for spec, _ in build_invalid(kind, name, field):
        try:
            result = attack_with(kind, spec).run(experiment)
        except ShaketableError as error:
            check_one_sentence(error)
        else:
            assert len(result.tables["targets"])


def test_there_is_something_to_attack(experiment):
    """Else nothing above would be tried."""
    for kind, spec in (
        (RECIPES, "query_line"),
        (GOALS, "demote"),
        (CONSTRAINTS, "most_words"),
        (DETECTORS, "surprise"),
    ):
        assert len(attack_with(kind, spec).run(experiment).tables["targets"]) == 2, "one for each ranker"

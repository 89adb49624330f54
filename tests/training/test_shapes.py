"""A net and its learner belong together: one name, one set of settings, one default for each."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from pathlib import Path

import pytest

from shaketable.core.registries import LEARNERS
from shaketable.rankers import neural as nets
from shaketable.rankers.neural import shapes
from shaketable.rankers.neural.models import find_net_class
from shaketable.training import neural
from shaketable.training.neural import NeuralLearner


def kinds_in(path: Path) -> list[str]:
    """The `kind`s that the classes of a module are given."""
    assigned = [
        node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.AnnAssign) and node.value
    ]
    return [ast.literal_eval(node.value) for node in assigned if ast.unparse(node.target) == "kind"]


FILES = {
    path.stem: kinds_in(path)
    for path in Path(nets.__file__).parent.glob("*.py")
    if path.stem != "onnx_nets"  # they cannot be trained
}
KINDS = sorted(kind for kinds in FILES.values() for kind in kinds)
CLASSES = [thing for thing in vars(neural).values() if inspect.isclass(thing) and issubclass(thing, NeuralLearner)]
SHAPES = {name: thing for name, thing in vars(shapes).items() if name.endswith("Shape")}


def test_a_file_of_a_net_is_named_by_its_kind():
    assert len(KINDS) >= 10
    assert {name: kinds for name, kinds in FILES.items() if kinds} == {kind: [kind] for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_every_net_has_one_learner_and_one_shape(kind):
    pytest.importorskip("torch")
    net, (learner,) = find_net_class(kind), [one for one in CLASSES if vars(one).get("kind") == kind]
    assert net.kind == kind
    assert LEARNERS.rows[kind] == f"{learner.__module__}:{learner.__name__}"
    assert [shape for shape in SHAPES.values() if shape in learner.__bases__] == [net.shape_class]


def test_every_learner_trains_a_net():
    """One without a net of its own, PROP for instance, is another way to train its parent's."""
    learners = [one for one in CLASSES if "kind" in vars(one)]
    assert {one.kind for one in learners} >= set(KINDS)
    for one in learners:
        assert one.kind in KINDS or any(vars(parent).get("kind") in KINDS for parent in one.__bases__), one


@pytest.mark.parametrize("learner", [one for one in CLASSES if "kind" in vars(one)], ids=lambda one: one.kind)
def test_the_defaults_of_a_learner_are_those_of_the_shape(learner):
    (shape,) = [one for one in SHAPES.values() if issubclass(learner, one)]
    assert learner.__annotations__.keys() & {field.name for field in fields(shape)} == set()
    defaults = {field.name: field.default for field in fields(learner)}
    assert {field.name: defaults[field.name] for field in fields(shape)} == {f.name: f.default for f in fields(shape)}
    assert all(getattr(learner(), f.name) == getattr(shape(), f.name) for f in fields(shape))


@pytest.mark.parametrize("text", ["knrm(kernels=5)", "bert(checkpoint='mine')", "dssm(layers=(8, 4))", "duet(pool=4)"])
def test_settings_of_a_shape_are_written_as_others_are(text):
    assert LEARNERS.spec(LEARNERS.build(text)) == text


def test_positional_parameters_stay_positional():
    assert LEARNERS.build("bert('mine')").checkpoint == "mine"
    assert LEARNERS.build("dssm((8, 4), 'none')").stopwords == "none"
    assert LEARNERS.build("conv_knrm(2, 16, 5, 0.2)").sigma == 0.2
    assert LEARNERS.build("duet(8, 64, 4, 5, 6, 'trigrams')").input == "trigrams"

"""Trees are checked before LightGBM sees them: nothing in their text may end the process, or keep it for ever."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

from shaketable.core.errors import BadInput
from shaketable.core.seeding import ItemRandom, make_item_rng
from shaketable.rankers.ltr import TreePredictor
from tests.processes import in_a_process

lightgbm = pytest.importorskip("lightgbm")

ROWS = np.random.default_rng(0).random((300, 4))
ROWS[::7, 2] = np.nan
ODD = ("-1", "0", "1", "3", "7", "-9", "99999", "-99999", "2147483647", "9" * 30, "1e999", "nan", "inf", "x", "")


def grown(**settings: object) -> lightgbm.Booster:
    params = {"objective": "regression", "verbosity": -1, "num_leaves": 6, "min_data_in_leaf": 5} | settings
    labels = np.nan_to_num(ROWS[:, 0] * ROWS[:, 1] - ROWS[:, 2])
    return lightgbm.train(params, lightgbm.Dataset(ROWS, labels, params=params), 12)


@pytest.fixture(scope="module")
def text() -> str:
    return grown().model_to_string()


@pytest.mark.parametrize("settings", [{}, {"num_leaves": 60}, {"min_gain_to_split": 1e9}, {"max_depth": 1}])
def test_checked_trees_predict_as_they_did(settings):
    booster = grown(**settings)
    trees = TreePredictor(booster.model_to_string())
    assert trees.dims == 4
    assert trees.predict(ROWS).tolist() == booster.predict(ROWS).tolist()


def line(text: str, name: str) -> list[str]:
    """Return the numbers of the first line with this name."""
    (numbers,) = re.findall(rf"^{name}=(.*)$", text, re.MULTILINE)[:1]
    return numbers.split(" ")


def with_line(text: str, name: str, numbers: list[str]) -> str:
    """Replace the numbers of the first line with this name, and correct the size of the tree."""
    old, new = f"\n{name}={' '.join(line(text, name))}\n", f"\n{name}={' '.join(numbers)}\n"
    sizes = line(text, "tree_sizes")
    sizes[0] = str(int(sizes[0]) + len(new) - len(old))
    return text.replace(old, new, 1).replace(f"tree_sizes={line(text, 'tree_sizes')[0]}", f"tree_sizes={sizes[0]}", 1)


@pytest.mark.parametrize(
    ("name", "at", "value", "complaint"),
    [
        ("left_child", 0, "0", "join, form a cycle"),
        ("left_child", 0, "90000", "have a missing child in tree 0"),
        ("right_child", 1, "-7", "have a missing child in tree 0"),
        ("split_feature", 0, "4", "a feature that is not among the 4"),
        ("split_feature", 0, "-1", "a feature that is not among the 4"),
        ("threshold", 2, "nan", "threshold that is not a finite number"),
        ("leaf_value", 0, "1e999", "leaf_value that is not a finite number"),
        ("decision_type", 0, "1", "have an unsupported decision type in tree 0"),
        ("num_leaves", 0, "7", "7 leaves in tree 0, but another number of values"),
        ("num_leaves", 0, "0", "have 0 leaves"),
        ("num_cat", 0, "1", "categorical splits"),
        ("is_linear", 0, "1", "categorical splits or linear leaves"),
        ("max_feature_idx", 0, "5", "have 6 features, but not as many feature_names"),
        ("max_feature_idx", 0, "99999999", "declare 100000000 features"),
        ("num_class", 0, "2", "have num_class 2"),
        ("objective", 0, "binary", "header that no learner of Shaketable writes"),
        ("shrinkage", 0, "", "shrinkage in tree 0 that is not one number"),
    ],
)
def test_what_is_not_in_order_is_refused(text, name, at, value, complaint):
    numbers = line(text, name)
    numbers[at] = value
    with pytest.raises(BadInput, match=f"not trees of a learner of Shaketable: they .*{complaint}"):
        TreePredictor(with_line(text, name, numbers)).predict(ROWS)


def test_lines_that_lightgbm_does_not_write_are_refused(text):
    shrinkage = line(text, "shrinkage")
    with pytest.raises(BadInput, match="have other lines in tree 0 than LightGBM writes"):
        TreePredictor(with_line(text, "shrinkage", [*shrinkage[:-1], f"{shrinkage[-1]}\nextra=1"])).predict(ROWS)


def test_nodes_that_are_their_own_ancestors_are_refused(text):
    """Each node has one parent and the root has none, but two nodes are each other's parent and cannot be reached."""
    left, right = ["-1", "2", "1", "-5", "-6"], ["3", "-2", "-3", "4", "-4"]
    circle = with_line(with_line(text, "left_child", left), "right_child", right)
    with pytest.raises(BadInput, match="branches in tree 0 that join, form a cycle, or are too deep"):
        TreePredictor(circle).predict(ROWS)


@pytest.mark.parametrize("size", [0, 100, 600, 1500, 4000])
def test_a_text_that_was_cut_is_refused(text, size):
    assert len(text) > size
    with pytest.raises(BadInput, match="not trees of a learner of Shaketable"):
        TreePredictor(text[:size]).predict(ROWS)


def mutate(text: str, rng: ItemRandom) -> str:
    """One change: a bit, a cut, a line gone or twice, a number that is another, and then sizes that are right again."""
    end = text.index("end of trees")
    kind = rng.randbelow(6)
    if kind == 0:
        content = bytearray(text, "ascii")
        content[rng.randbelow(end)] ^= 1 << rng.randbelow(8)
        return content.decode("latin-1")
    if kind == 1:
        return text[: rng.randbelow(end)]
    if kind == 2:
        lines = text.split("\n")
        at = rng.randbelow(text[:end].count("\n"))
        return "\n".join(lines[:at] + [lines[at]] * (2 * rng.randbelow(2)) + lines[at + 1 :])
    name = rng.choice(("left_child", "right_child", "split_feature", "decision_type", "threshold", "num_leaves"))
    numbers = line(text, name)
    at = rng.randbelow(len(numbers))
    numbers[at] = rng.choice(ODD) if kind < 5 else str(rng.randbelow(14) - 7)
    return with_line(text, name, numbers)


def fuzz() -> None:
    """Run in a process of its own."""
    text = grown().model_to_string()
    accepted = 0
    for number in range(500):
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        try:
            scores = TreePredictor(mutate(text, make_item_rng(0, "trees", number))).predict(ROWS)
        except BadInput:
            continue
        assert scores.shape == (300,)
        assert np.isfinite(scores).all()
        accepted += 1
    print(f"accepted {accepted}")


def test_no_mutation_ends_the_process_or_keeps_it():
    done = in_a_process("from tests.rankers.test_lightgbm_format import fuzz; fuzz()")
    assert done.returncode == 0, f"at mutation {done.stdout.split()[-1]}: {done.stderr}"
    accepted = int(done.stdout.split()[-1])
    assert 10 < accepted < 250, "some change a threshold only; most must be refused"

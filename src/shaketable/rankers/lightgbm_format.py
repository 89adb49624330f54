"""Validation of boosted trees in LightGBM's text format before LightGBM reads them.

LightGBM does not check its input: it follows a child index out of bounds, loops for ever on a cycle, and ends the
process on a truncated text. This module parses the text, checks it, and writes a new text from the checked fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import BadInput

MAX_FEATURES = 1_000_000
MAX_DEPTH = 10_000
"""Maximum number of splits from the root to a leaf; LightGBM descends by recursion."""
HEADER_FIELDS = {
    "version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "objective", "feature_names",
    "feature_infos", "tree_sizes",
}  # fmt: skip
PREDICTION_FIELDS = (
    "split_feature",
    "threshold",
    "decision_type",
    "left_child",
    "right_child",
    "leaf_value",
    "shrinkage",
)
"""The fields needed for prediction. The other fields describe the training and are dropped."""
STATISTICS_FIELDS = (
    "split_gain", "leaf_weight", "leaf_count", "internal_value", "internal_weight", "internal_count",
)  # fmt: skip
DECISION_TYPES = {missing << 2 | side << 1 for missing in range(3) for side in range(2)}
"""The direction of a missing value; an odd number would be a categorical split, which no learner here makes."""
INTEGERS_PATTERN = re.compile(r"(?:-?[0-9]{1,9}(?: (?=.)|\Z))*")
NUMBERS_PATTERN = re.compile(r"(?:-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?(?: (?=.)|\Z))*")


@dataclass(frozen=True)
class CheckedTrees:
    """Checked trees: the number of features they use, and the text for LightGBM."""

    dims: int
    text: str


def parse_trees(text: str) -> CheckedTrees:
    """Check trees in LightGBM's format and return them; raise an error if they are invalid."""
    head, _, body = text.partition("\n\n")
    header = _parse_header(head)
    dims = _parse_integer(header, "max_feature_idx") + 1
    if not 1 <= dims <= MAX_FEATURES:
        raise _make_error(f"declare {dims} features")
    for name in ("feature_names", "feature_infos"):
        if header.get(name, "").count(" ") + 1 != dims:
            raise _make_error(f"have {dims} features, but not as many {name}")
    trees, at = [], 0
    for number, size in enumerate(_parse_integers(header, "tree_sizes").tolist()):
        if not 0 < size <= len(body) - at:
            raise _make_error(f"end before tree {number} does")
        trees.append(_parse_tree(number, body[at : at + size], dims))
        at += size
    if not trees or not body.startswith("end of trees\n", at):
        raise _make_error("do not end where the header says")
    return CheckedTrees(dims, _format_trees(dims, trees))


def _parse_header(head: str) -> dict[str, str]:
    first, *lines = head.split("\n")
    header = _parse_fields(lines, "the header")
    fixed = {"version": "v4", "num_class": "1", "num_tree_per_iteration": "1"}
    for name, value in fixed.items():
        if header.get(name) != value:
            raise _make_error(f"have {name} {header.get(name)}, but {value} is expected")
    if first != "tree" or not header.keys() <= HEADER_FIELDS or header.get("objective", "regression") != "regression":
        raise _make_error("have a header that no learner of Shaketable writes")
    return header


def _parse_tree(number: int, block: str, dims: int) -> str:
    """Return the text of a tree with the fields needed for prediction only."""
    title, *lines = block.rstrip("\n").split("\n")
    where = f"tree {number}"
    if title != f"Tree={number}":
        raise _make_error(f"have other text where {where} should begin")
    fields = _parse_fields(lines, where)
    if fields.keys() != {"num_leaves", "num_cat", "is_linear", *PREDICTION_FIELDS, *STATISTICS_FIELDS}:
        raise _make_error(f"have other lines in {where} than LightGBM writes")
    if (fields["num_cat"], fields["is_linear"]) != ("0", "0"):
        raise _make_error(f"have categorical splits or linear leaves in {where}, which are not supported")
    leaves = _parse_integer(fields, "num_leaves")
    if leaves < 1:
        raise _make_error(f"have {leaves} leaves in {where}")
    splits = {
        name: _parse_integers(fields, name) for name in ("split_feature", "decision_type", "left_child", "right_child")
    }
    sizes = {name: len(column) for name, column in splits.items()}
    sizes["threshold"] = _count_numbers(fields, "threshold")
    if set(sizes.values()) != {leaves - 1} or _count_numbers(fields, "leaf_value") != leaves:
        raise _make_error(f"have {leaves} leaves in {where}, but another number of values")
    if _count_numbers(fields, "shrinkage") != 1:
        raise _make_error(f"have a shrinkage in {where} that is not one number")
    if ((splits["split_feature"] < 0) | (splits["split_feature"] >= dims)).any():
        raise _make_error(f"use in {where} a feature that is not among the {dims}")
    if not DECISION_TYPES.issuperset(splits["decision_type"].tolist()):
        raise _make_error(f"have an unsupported decision type in {where}")
    _refuse_no_tree(splits["left_child"], splits["right_child"], leaves, where)
    return "\n".join(
        (title, f"num_leaves={leaves}", "num_cat=0", *(f"{name}={fields[name]}" for name in PREDICTION_FIELDS))
    )


def _refuse_no_tree(left: NDArray[np.int64], right: NDArray[np.int64], leaves: int, where: str) -> None:
    """Raise an error unless each node and each leaf is reached from the root once. A leaf's number is ~child."""
    children = np.concatenate([left, right])
    if not ((-leaves <= children) & (children < leaves - 1)).all():
        raise _make_error(f"have a missing child in {where}")
    parents = np.bincount(children[children >= 0], minlength=leaves)
    ends = np.bincount(~children[children < 0], minlength=leaves)
    once = parents[0] == 0 and (parents[1 : leaves - 1] == 1).all() and (leaves == 1 or (ends == 1).all())
    reached, level, depth = 0, np.zeros(min(1, leaves - 1), np.int64), 0
    while once and len(level) and depth < MAX_DEPTH:
        reached += len(level)
        level = np.concatenate([left[level], right[level]])
        level, depth = level[level >= 0], depth + 1
    if not once or reached != leaves - 1:
        raise _make_error(f"have branches in {where} that join, form a cycle, or are too deep")


def _format_trees(dims: int, trees: list[str]) -> str:
    blocks = [f"{tree}\n\n\n" for tree in trees]
    header = {
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": dims - 1,
        "feature_names": " ".join(f"Column_{column}" for column in range(dims)),
        "feature_infos": " ".join(["none"] * dims),
        "tree_sizes": " ".join(str(len(block)) for block in blocks),
    }
    lines = ["tree", *(f"{name}={value}" for name, value in header.items())]
    return "\n".join(lines) + "\n\n" + "".join(blocks) + "end of trees\n"


def _parse_fields(lines: list[str], where: str) -> dict[str, str]:
    pairs = [line.partition("=") for line in lines]
    fields = {name: value for name, _, value in pairs}
    if len(fields) != len(lines) or not all(sign for _, sign, _ in pairs):
        raise _make_error(f"have a line in {where} that is not name=value, or that occurs twice")
    return fields


def _parse_integer(fields: dict[str, str], name: str) -> int:
    found = _parse_integers(fields, name)
    if len(found) != 1:
        raise _make_error(f"do not have a single number in {name}")
    return int(found[0])


def _parse_integers(fields: dict[str, str], name: str) -> NDArray[np.int64]:
    value = fields.get(name, "")
    if not INTEGERS_PATTERN.fullmatch(value):
        raise _make_error(f"have a value in {name} that is not a whole number")
    return np.fromstring(value, np.int64, sep=" ") if value else np.empty(0, np.int64)


def _count_numbers(fields: dict[str, str], name: str) -> int:
    """Return how many numbers a field has; raise an error if one is not finite."""
    value = fields.get(name, "")
    if not NUMBERS_PATTERN.fullmatch(value) or (value and not np.isfinite(np.fromstring(value, sep=" ")).all()):
        raise _make_error(f"have a value in {name} that is not a finite number")
    return value.count(" ") + 1 if value else 0


def _make_error(what: str) -> BadInput:
    return BadInput(f"these are not trees of a learner of Shaketable: they {what}")

"""Docstrings of the public API: each explains its parameters in a numpydoc section."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

import shaketable as st
from shaketable import testing
from shaketable.api import options
from shaketable.api.train import train_writer

SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "Examples")


def list_public() -> Iterator[tuple[str, Any]]:
    for name in st.__all__:
        yield f"st.{name}", getattr(st, name)
    for name, thing in vars(testing).items():
        if not name.startswith("_") and getattr(thing, "__module__", "") == testing.__name__:
            yield f"testing.{name}", thing
    for name, thing in vars(options).items():
        if inspect.isclass(thing) and thing.__module__ == options.__name__:
            yield f"options.{name}", thing
    yield "train_writer", train_writer


PUBLIC = dict(list_public())
FUNCTIONS = {name: thing for name, thing in PUBLIC.items() if inspect.isfunction(thing)}
CLASSES = {name: thing for name, thing in PUBLIC.items() if inspect.isclass(thing)}


def read_section(thing: Any, *titles: str) -> str:
    """Return the text of the first of these sections that the docstring has."""
    found = re.split(r"^(\w+)\n-{3,}$", inspect.getdoc(thing) or "", flags=re.MULTILINE)
    sections = dict(zip(found[1::2], found[2::2], strict=True))
    assert set(sections) <= set(SECTIONS)
    return next((sections[title] for title in titles if title in sections), "")


def list_documented(thing: Any) -> set[str]:
    """Return the names with an indented explanation: "low, high" stands for two names."""
    entries = re.findall(r"^(\S.*)\n {4}\S", read_section(thing, "Parameters", "Attributes"), flags=re.MULTILINE)
    return {name.strip().lstrip("*") for entry in entries for name in entry.partition(" : ")[0].split(",")}


def list_parameters(thing: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]


def list_fields(thing: type) -> list[str]:
    if is_dataclass(thing):
        return [field.name for field in fields(thing) if field.init and not field.name.startswith("_")]
    own = inspect.get_annotations(thing).keys()
    smaller = [inspect.get_annotations(other).keys() for other in vars(options).values() if inspect.isclass(other)]
    inherited = {name for names in smaller if names < own for name in names}  # a TypedDict does not know its bases
    return [name for name in own if name not in inherited]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_explain_their_parameters(name):
    wanted = list_parameters(FUNCTIONS[name])
    assert list_documented(FUNCTIONS[name]) == set(wanted)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name.startswith("st.")])
def test_functions_document_their_return_value_and_have_an_example(name):
    assert read_section(FUNCTIONS[name], "Returns").strip()
    assert ">>> " in read_section(FUNCTIONS[name], "Examples")


@pytest.mark.parametrize("name", [name for name in CLASSES if list_fields(CLASSES[name])])
def test_classes_explain_their_fields(name):
    assert list_documented(CLASSES[name]) == set(list_fields(CLASSES[name]))


def test_the_test_sees_a_missing_parameter():
    def documented_in_part(first: int, second: int) -> None:
        """Do nothing.

        Parameters
        ----------
        first
            The first number.
        """

    assert list_documented(documented_in_part) == {"first"}
    assert list_parameters(documented_in_part) == ["first", "second"]
    assert {"st.audit", "st.train", "testing.check_ranker"} <= FUNCTIONS.keys()
    assert {"st.Experiment", "st.Finding", "options.WorkOptions"} <= CLASSES.keys()

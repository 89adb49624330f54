"""No parser of text that others write takes more than linear time."""

from __future__ import annotations

import re

import pytest

from tests.fuzz.growth import SWEEPS, Sweep, find_super_linear

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("sweep", SWEEPS.values(), ids=list(SWEEPS))
def test_time_grows_with_the_length_only(sweep: Sweep) -> None:
    assert not find_super_linear(sweep)


def test_a_quadratic_parser_is_found() -> None:
    trailing_spaces = re.compile(r"\s+$")
    found = find_super_linear(Sweep("quadratic", trailing_spaces.search, ("a{}a",)), units=(" ", "a"))
    assert found
    assert "' '" in found[0]

from __future__ import annotations

import pytest

from tests.cases import check_each


def test_all_failures_are_listed():
    def check(number: int) -> None:
        assert number % 2, f"{number} is even"

    check_each({"one": 1, "three": 3}, check)
    with pytest.raises(
        pytest.fail.Exception, match=r"2 of 3 cases failed:\ntwo: .*2 is even.*\n(.*\n)*four: .*4 is even"
    ):
        check_each({"one": 1, "two": 2, "four": 4}, check)
    with pytest.raises(pytest.fail.Exception, match="missing: KeyError"):
        check_each({"missing": 1}, lambda case: {}[case])
    with pytest.raises(AssertionError, match="nothing to check"):
        check_each({}, check)

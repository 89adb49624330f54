"""Many small cases in one test: each test costs milliseconds of set-up, which thousands of cases need not pay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest

Case = TypeVar("Case")
MAX_SHOWN = 20


def check_each(cases: Mapping[str, Case], check: Callable[[Case], None]) -> None:
    """Check all cases, and fail with the name and the error of each that failed."""
    assert cases, "there is nothing to check"
    failures = []
    for name, case in cases.items():
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:
            failures.append(f"{name}: {type(error).__name__}: {error}")
    if failures:
        shown = "\n".join(failures[:MAX_SHOWN])
        pytest.fail(f"{len(failures)} of {len(cases)} cases failed:\n{shown}", pytrace=False)

"""Fixtures of the examples in docstrings."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each example an empty cache of its own."""
    monkeypatch.setenv("SHAKETABLE_HOME", str(tmp_path))
    return tmp_path

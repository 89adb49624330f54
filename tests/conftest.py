"""Shared fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def shared_data() -> Path:
    """Real collections that lie beside the repository; a test that needs them is skipped where they are absent."""
    path = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not path.is_dir():
        pytest.skip(f"real data is not at {path}")
    return path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a home of its own, so none sees another's caches."""
    path = tmp_path / "home"
    monkeypatch.setenv("SHAKETABLE_HOME", str(path))
    return path

"""The example notebooks: their cells run, and their stored outputs are what the cells compute."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from examples.execute import execute, list_code, list_notebooks

NOTEBOOKS = list_notebooks()


def simplify(outputs: list[dict[str, Any]]) -> list[str]:
    """Return the texts of outputs without drawings, because fonts differ between machines."""
    texts = ["".join(one.get("text") or one["data"].get("text/html") or one["data"]["text/plain"]) for one in outputs]
    return [re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL) for text in texts]


def test_there_are_two() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["audit-my-reranker", "reproduce-a-table"]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_its_cells_compute(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHAKETABLE_HOME", str(tmp_path / "home"))
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    for cell, outputs in zip(list_code(notebook), execute(notebook), strict=True):
        assert simplify(outputs) == simplify(cell["outputs"]), "".join(cell["source"])

"""The collection that comes with the package: a demonstration, not a benchmark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from shaketable.data.beir import read_beir
from shaketable.types import Collection

FOLDER = Path(__file__).parent / "sample_files"


def read_sample(split: str | None = None) -> Collection:
    """The bundled collection; see `read_beir` for what a split does."""
    return replace(read_beir(FOLDER, split), name="sample")

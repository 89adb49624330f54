"""The collection bundled with the package: a demonstration, not a benchmark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from shaketable.core.documents import Collection
from shaketable.datasets.beir import read_beir

SAMPLE_FOLDER = Path(__file__).parent / "sample_files"


def read_sample(split: str | None = None) -> Collection:
    """Return the bundled collection; see `read_beir` for the meaning of a split."""
    return replace(read_beir(SAMPLE_FOLDER, split), name="sample")

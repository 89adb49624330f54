"""Model folders that others made: each is refused with one sentence, soon, and without filling the memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases import check_each
from tests.processes import in_a_process

pytestmark = pytest.mark.slow

CODE = """
import resource, sys
from shaketable.cli import main
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
for spec in sys.argv[2:]:
    print("CASE", file=sys.stderr, flush=True)
    try:
        main(["rank", "--data", "sample", "--max-queries", "2", "--ranker", spec, "--write-run", sys.argv[1]])
    except SystemExit as end:
        print("ended with", end.code, file=sys.stderr, flush=True)
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
def test_a_hostile_model_folder(tmp_path: Path, file: str) -> None:
    """All of them in one process, because the libraries of models take seconds to load."""
    specs = []
    for number, make in enumerate(HOSTILE.values()):
        folder = tmp_path / f"model{number}"
        folder.mkdir()
        make(folder / file)
        (folder / "modules.json").write_text('[{"type": "a.Transformer", "path": ""}]')
        specs.append(str(folder) if file == "model.json" else f"st:{folder}")
    ended = in_a_process(CODE, tmp_path / "a.run", *specs, timeout=120)
    assert ended.returncode == 0, ended.stderr

    def check(said: str) -> None:
        assert said.endswith("ended with 2\n")
        assert "Traceback" not in said
        assert said.count("shaketable: ") == 1
        assert "root:" not in said

    _, *cases = ended.stderr.split("CASE\n")
    check_each(dict(zip(HOSTILE, cases, strict=True)), check)
    assert not (tmp_path / "a.run").exists()

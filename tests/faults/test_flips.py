"""A bit that flips on the disk, or a file that is cut: each kept file is refused, or made again, and never believed.

`make test` has a part of the damage, `make faults` more than 1,000 flips and cuts.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shaketable.core.errors import BadInput
from shaketable.core.seeding import make_item_rng
from tests.faults.kept_files import KINDS, REFUSED, Kept

pytestmark = pytest.mark.slow
EVERY = os.environ.get("SHAKETABLE_FAULTS") == "every"
SHARE = 1 if EVERY else 1 / 4
SEED = int(os.environ.get("SHAKETABLE_FAULTS_SEED", "0"))
CUT_SHARE = 0.2


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Nets this small are slower on several threads, most of all on a busy machine."""
    try:
        import torch
    except ModuleNotFoundError:
        yield
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def damage(path: Path, *names: object) -> None:
    """Flip a bit of a file, or cut it."""
    rng = make_item_rng(SEED, "flip", *names)
    content = bytearray(path.read_bytes())
    at = rng.randbelow(len(content))
    if rng.random() < CUT_SHARE:
        del content[at:]
    else:
        content[at] ^= 1 << rng.randbelow(8)
    path.unlink()  # a map of the old file stays valid
    path.write_bytes(content)


@pytest.mark.parametrize("make", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_damage_never_changes_a_result(home: Path, tmp_path: Path, monkeypatch, make: Callable[[Path], Kept]) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # no test needs to wait for the disk
    home.mkdir()
    count, outcome = KINDS[make]
    count = max(5, round(count * SHARE))
    kept = make(home)
    if not kept.list_files():
        kept.read()
    shutil.copytree(kept.folder, tmp_path / "whole")
    expected = kept.read()
    outcomes: Counter[str] = Counter()
    for number in range(count):
        shutil.rmtree(kept.folder)
        shutil.copytree(tmp_path / "whole", kept.folder)
        path = make_item_rng(SEED, "file", make.__name__, number).choice(kept.list_files())
        damage(path, make.__name__, number)
        try:
            assert kept.read() == expected, f"damage {number}, in {path.name}"
            outcomes["right"] += 1
        except BadInput as error:
            outcomes["refused" if str(error).startswith(str(kept.folder)) else f"blamed: {error}"] += 1
    print(json.dumps({"kind": make.__name__, "damaged": count, **outcomes}))
    if outcome == REFUSED:
        assert outcomes.keys() <= {"right", "refused"}
        assert outcomes["refused"] > 0.5 * count, "the rest is white space, or about other files"
    else:
        assert outcomes == {"right": count}

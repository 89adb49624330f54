"""A case: the input of a seed, a target and a number, and its outcome."""

from __future__ import annotations

import faulthandler
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from shaketable.core.errors import MAX_MESSAGE_CHARS, ShaketableError
from shaketable.core.seeding import ItemRandom, make_item_rng
from tests.fuzz.damage import DAMAGES, HARMLESS, badly_packed, pack
from tests.fuzz.grammars import Input

SECONDS = 10
VALID, ALTERED = 6, 12
"""Of so many cases in a row one is left valid, and one is altered without harm; the others are damaged."""


@dataclass(frozen=True)
class Target:
    """A reader of untrusted input: from a file (`file` is its name), or from a folder (it is "")."""

    name: str
    grammar: Callable[[ItemRandom], Input]
    read: Callable[[Path], object]
    file: str = ""
    text: bool = True
    """Whether byte order marks, other line ends and gzip change nothing."""


def of_text(parse: Callable[[str], object]) -> Callable[[Path], object]:
    """Return a reader of a file from a reader of a text, for command line input."""
    return lambda path: parse(path.read_bytes().decode("utf-8", "surrogateescape"))


class Hung(BaseException):
    """Not an Exception, so that no reader takes it for a problem of its input."""


@dataclass(frozen=True)
class Failure:
    """A case that ended in neither a value nor a sentence."""

    target: str
    seed: int
    number: int
    what: str


def files_of(target: Target, seed: int, number: int) -> tuple[Mapping[str, bytes], Mapping[str, bytes] | None]:
    """Return the files of a case, and the files that must read the same if there is no damage."""
    rng = make_item_rng(seed, target.name, number)
    made = target.grammar(rng)
    valid = made if isinstance(made, Mapping) else {target.file: made}
    if number % VALID == 0:
        return valid, valid
    chosen = rng.choice(sorted(valid))
    data = valid[chosen]
    if number % ALTERED == 1 and target.text:
        data = rng.choice(HARMLESS)(data)
        if rng.randbelow(2):
            return {**{k: v for k, v in valid.items() if k != chosen}, f"{chosen}.gz": pack(data)}, valid
        return {**valid, chosen: data}, valid
    for _ in range(1 + rng.randbelow(4)):
        data = rng.choice(DAMAGES)(data, rng)
    if target.text and not rng.randbelow(8):
        data = rng.choice([lambda: pack(data), lambda: badly_packed(data, rng)])()
        return {**{k: v for k, v in valid.items() if k != chosen}, f"{chosen}.gz": data}, None
    return {**valid, chosen: data}, None


def outcome(target: Target, seed: int, number: int, folder: Path) -> Failure | None:
    """Read one case; None if it ended as it should. The folder is for its files, and empty again at the end."""
    files, like = files_of(target, seed, number)
    try:
        with _alarm():
            value, refused = _read(target, files, folder)
            if like is not None:
                expected, _ = _read(target, like, folder)
                if refused is not None:
                    raise AssertionError(f"a valid input is refused: {refused}")
                if value != expected:
                    raise AssertionError("what should make no difference makes one")
    except (Exception, Hung):
        return Failure(target.name, seed, number, traceback.format_exc())
    return None


def _read(target: Target, files: Mapping[str, bytes], folder: Path) -> tuple[object, ShaketableError | None]:
    """Return the value of a reader, or its error message."""
    home = folder / "home"
    os.environ["SHAKETABLE_HOME"] = str(home)
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    try:
        return target.read(folder / next(iter(files)) if target.file else folder), None
    except ShaketableError as error:
        said = str(error)
        assert 0 < len(said) <= MAX_MESSAGE_CHARS, "a message has an end"
        assert said.isprintable(), f"a message is one line that any terminal shows: {said!r}"
        left = [path for path in home.rglob("*") if path.is_file()]
        assert not left, f"what is refused leaves nothing behind: {left}"
        return None, error
    finally:
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise Hung(f"took more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    faulthandler.dump_traceback_later(6 * SECONDS, exit=True, file=sys.__stderr__)  # C code hears no alarm
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

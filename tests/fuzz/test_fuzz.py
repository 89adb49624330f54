"""The same cases every time: each ends in a value or in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.cases import Target, files_of, outcome
from tests.fuzz.targets import TARGETS

pytestmark = pytest.mark.slow

CASES = 250


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_a_value_or_a_sentence(target: Target, tmp_path: Path) -> None:
    failures = [failure for number in range(CASES) if (failure := outcome(target, 0, number, tmp_path))]
    assert not failures, f"{len(failures)} of {CASES}, the first: {failures[0]}\n{failures[0].what}"


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_cases_are_distinct_and_always_the_same(target: Target) -> None:
    cases = [repr(files_of(target, 0, number)) for number in range(60)]
    assert cases == [repr(files_of(target, 0, number)) for number in range(60)]
    assert len(set(cases)) > 40


def test_a_reader_that_hangs_crashes_or_babbles_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shaketable.core.errors import ShaketableError
    from tests.fuzz import cases, grammars

    def spin(path: Path) -> None:
        while True:
            pass

    class Babble(ShaketableError):
        def __str__(self) -> str:
            return "two\nlines"

    def babble(path: Path) -> None:
        raise Babble("")

    def litter(path: Path) -> None:
        (path.parent / "home").mkdir()
        (path.parent / "home" / "left").touch()
        raise ShaketableError("no")

    monkeypatch.setattr(cases, "SECONDS", 1)
    for read, what in ((spin, "Hung"), (lambda path: [][1], "IndexError"), (babble, "one line"), (litter, "behind")):
        failure = outcome(Target("toy", grammars.run, read, "a.run"), 0, 2, tmp_path)
        assert failure is not None
        assert what in failure.what
    refuses = outcome(Target("toy", grammars.run, lambda path: litter(path), "a.run"), 0, 0, tmp_path)
    assert refuses is not None, "a valid file must be read"
    assert not list(tmp_path.iterdir())

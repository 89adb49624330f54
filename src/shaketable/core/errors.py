"""What can go wrong, as a small tree. Each message is one sentence a user can act on.

ShaketableError             exit code 2
├── BadInput                a file, a line, a value the user gave
│   └── Damaged             a file that Shaketable wrote and that is not as it was written
├── UnknownName             a name in no registry; says which are near
├── MissingExtra            a library that an optional extra installs
├── RankerFailed            a ranker raised, or returned something that is not scores
└── NotComparable           exit code 3: two results that must not be set side by side
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MAX_QUOTED_CHARS = 200  # characters of a value that a message repeats
MAX_MESSAGE_CHARS = 1000  # characters of a whole message


def quote_value(value: object) -> str:
    """A value as a message repeats it: its `repr`, cut where a reader has seen enough.

    >>> quote_value("a b"), len(quote_value("x" * 5000))
    ("'a b'", 200)
    """
    if isinstance(value, str | bytes):
        value = value[:MAX_QUOTED_CHARS]  # with its quotation marks that is too long already
    try:
        return truncate(repr(value))
    except ValueError:  # Python writes no number of thousands of digits
        return f"a very long {type(value).__name__}"


def truncate(text: str, max_chars: int = MAX_QUOTED_CHARS) -> str:
    """A text that may go on and on, up to where a reader has seen enough."""
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


class ShaketableError(Exception):
    """Base of all errors that are the input's fault, not the program's.

    A message is one line that has an end, whatever it repeats, and any terminal can show it: a character that cannot be
    printed becomes its escape.
    """

    exit_code = 2

    def __init__(self, message: str):
        if not message.isprintable():
            shown = (c if c.isprintable() else repr(c)[1:-1] for c in message[: MAX_MESSAGE_CHARS + 1])
            message = "".join(shown)
        super().__init__(truncate(message, MAX_MESSAGE_CHARS))


@contextmanager
def explain_user_errors(
    what: str, error_class: type[ShaketableError] | None = None, passed_errors: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """A block that runs code of a user's: whatever it raises, an attempt to end the program included, is a sentence.

    A plain KeyboardInterrupt passes: it is somebody at the keyboard, and a subclass of it is the code's own. So does
    what the caller has a better sentence for.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, (ShaketableError, *passed_errors)) or type(error) is KeyboardInterrupt:
            raise
        raise (error_class or BadInput)(f"{what} ({type(error).__name__}: {error})") from error


class BadInput(ShaketableError):
    """Something the user gave cannot be used; says where it stands and what is wrong with it.

    >>> str(BadInput("score 'x' is not a number", "a.run", 3))
    "a.run:3: score 'x' is not a number"
    """

    def __init__(self, message: str, path: str | Path | None = None, line: int | None = None):
        place = (
            ""
            if path is None
            else truncate(str(path), MAX_MESSAGE_CHARS // 2) + (": " if line is None else f":{line}: ")
        )
        super().__init__(place + message)


class Damaged(BadInput):
    """A file that Shaketable wrote has changed since; whatever can be made again is made again."""


class NotApplicable(BadInput):
    """A task has nothing to work on here, as an attack where all lists are short; an audit of several goes on."""


class UnknownName(ShaketableError):
    """A name that no registry holds.

    >>> str(UnknownName("ranker", "bm52", ["bm25", "ql"]))
    "no ranker is called 'bm52'; did you mean bm25?"
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]):
        known = sorted(known)
        near = difflib.get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"
        super().__init__(f"no {kind} is called {quote_value(name)}; {hint}")


class MissingExtra(ShaketableError):
    """A library is not installed; says which extra brings it."""

    def __init__(self, extra: str, purpose: str):
        super().__init__(f"{purpose} needs more than the core install: pip install 'shaketable[{extra}]'")


class RankerFailed(ShaketableError):
    """A ranker raised an error, or what it returned is not one finite score for each text."""


class NotComparable(ShaketableError):
    """Two results differ in what they were measured on, so their difference means nothing."""

    exit_code = 3


class Interrupted(ShaketableError):
    """Somebody at the keyboard stopped the program."""

    exit_code = 130


def check_parameter(owner: str, valid: bool, name: str, should_be: str, value: object) -> None:
    """Refuse a parameter that makes no sense (a NaN is not fine, whatever it is compared with).

    >>> check_parameter("bm25", -1 >= 0, "k1", "a number, 0 or more", -1)
    Traceback (most recent call last):
    shaketable.core.errors.BadInput: bm25: k1 should be a number, 0 or more, not -1
    """
    if not valid:
        raise BadInput(f"{owner}: {name} should be {should_be}, not {value!r}")


def check_ranges(owner: str, thing: object, **bounds: tuple[float, float]) -> None:
    """Refuse parameters of a thing that are not within their bounds, each the least and the most that makes sense.

    >>> from types import SimpleNamespace
    >>> check_ranges("prank", SimpleNamespace(epochs=0), epochs=(1, 10_000))
    Traceback (most recent call last):
    shaketable.core.errors.BadInput: prank: epochs should be between 1 and 10,000, not 0
    """
    for name, (least, most) in bounds.items():
        value: Any = getattr(thing, name)
        check_parameter(owner, least <= value <= most, name, f"between {least:,} and {most:,}", value)

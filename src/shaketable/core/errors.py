"""The exceptions. Each message is one sentence that a user can act on.

ShaketableError             exit code 2
├── BadInput                an invalid file, line or value from the user
│   ├── Damaged             a file that Shaketable wrote and that has changed since
│   └── NotApplicable       a task that has nothing to work on
├── UnknownName             a name in no registry; suggests similar names
├── MissingExtra            a library of an optional extra is not installed
├── RankerFailed            a ranker raised an error or returned invalid scores
│   └── IncompleteAnswer    a ranker returned fewer scores than texts
├── LimitReached            the budget of an audit is used up; the audit ends with what it has
├── NotComparable           exit code 3: two results that must not be compared
└── Interrupted             exit code 130: the user stopped the program
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shaketable.core.redaction import redact

MAX_QUOTED_CHARS = 200  # characters of a value quoted in a message
MAX_MESSAGE_CHARS = 1000  # characters of a whole message
MAX_INSPECTED_CHARS = 1 << 16  # characters of a value that are formatted before it is truncated


def quote_value(value: object) -> str:
    """Return the `repr` of a value, truncated for a message.

    >>> quote_value("a b"), len(quote_value("x" * 5000))
    ("'a b'", 200)
    """
    if isinstance(value, str | bytes):
        value = value[:MAX_INSPECTED_CHARS]
    try:
        return truncate(repr(value))
    except ValueError:  # Python refuses to print integers with thousands of digits
        return f"a very long {type(value).__name__}"


def truncate(text: str, max_chars: int = MAX_QUOTED_CHARS) -> str:
    """Return a text without API keys, truncated to `max_chars` characters."""
    text = redact(text, max_chars)
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


class ShaketableError(Exception):
    """The base class of all errors caused by the input, not by the program.

    Parameters
    ----------
    message
        One sentence that a user can act on. Unprintable characters are escaped, API keys are removed, and a
        long message is truncated.
    """

    exit_code = 2

    def __init__(self, message: str):
        message = redact(message, MAX_MESSAGE_CHARS)
        if not message.isprintable():
            shown = (c if c.isprintable() else repr(c)[1:-1] for c in message[: MAX_MESSAGE_CHARS + 1])
            message = "".join(shown)
        super().__init__(truncate(message, MAX_MESSAGE_CHARS))


@contextmanager
def explain_user_errors(
    what: str, error_class: type[ShaketableError] | None = None, passed_errors: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Convert all errors raised by user code in the block, including SystemExit, to one message.

    A plain KeyboardInterrupt passes, because it comes from the keyboard; a subclass of it is an error of the user code.
    Errors of the classes `passed_errors` pass too.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, (ShaketableError, *passed_errors)) or type(error) is KeyboardInterrupt:
            raise
        raise (error_class or BadInput)(f"{what} ({type(error).__name__}: {error})") from error


class BadInput(ShaketableError):
    """An invalid file, line or value from the user; the message says where it is and what is wrong.

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
    """A file that Shaketable wrote and that has changed since; reproducible files are created again."""


class NotApplicable(BadInput):
    """A task that has nothing to work on, such as an attack on short lists; an audit continues with the other tasks."""


class UnknownName(ShaketableError):
    """A name in no registry.

    >>> str(UnknownName("ranker", "bm52", ["bm25", "ql"]))
    "no ranker is called 'bm52'; did you mean bm25?"
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]):
        known = sorted(known)
        near = difflib.get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"
        super().__init__(f"no {kind} is called {quote_value(name)}; {hint}")


class MissingExtra(ShaketableError):
    """A missing library; the message names the extra that installs it."""

    def __init__(self, extra: str, purpose: str):
        from shaketable.core.extras import format_install_command

        super().__init__(f"{purpose} needs libraries that are not installed: {format_install_command(extra)}")


class RankerFailed(ShaketableError):
    """A ranker that raised an error or did not return one finite score per text."""


class IncompleteAnswer(RankerFailed):
    """A ranker that returned fewer scores than it was given texts."""


class LimitReached(ShaketableError):
    """An error for work that does not fit into the budget of an audit."""


class NotComparable(ShaketableError):
    """Two results that were measured on different data and cannot be compared."""

    exit_code = 3


class Interrupted(ShaketableError):
    """An interruption from the keyboard."""

    exit_code = 130


def check_parameter(owner: str, valid: bool, name: str, should_be: str, value: object) -> None:
    """Raise `BadInput` if a parameter is not valid; write `valid` so that NaN makes it False.

    >>> check_parameter("bm25", -1 >= 0, "k1", "a number, 0 or more", -1)
    Traceback (most recent call last):
    shaketable.core.errors.BadInput: bm25: k1 should be a number, 0 or more, not -1
    """
    if not valid:
        raise BadInput(f"{owner}: {name} should be {should_be}, not {value!r}")


def check_ranges(owner: str, thing: object, **bounds: tuple[float, float]) -> None:
    """Raise `BadInput` if a parameter is outside its bounds (minimum, maximum).

    >>> from types import SimpleNamespace
    >>> check_ranges("prank", SimpleNamespace(epochs=0), epochs=(1, 10_000))
    Traceback (most recent call last):
    shaketable.core.errors.BadInput: prank: epochs should be between 1 and 10,000, not 0
    """
    for name, (least, most) in bounds.items():
        value: Any = getattr(thing, name)
        check_parameter(owner, least <= value <= most, name, f"between {least:,} and {most:,}", value)

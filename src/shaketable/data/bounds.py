"""What an id, a grade, a score and a feature may be: the same for every file, for frames, and for what is in memory.

    ids        1 to 1,000 characters; no white space, no control character, no half of a character
    grades     whole numbers from -127 to 127; what a document gains by its grade is at most 1,023
    scores     numbers of 32 bits, not infinite
    labels     whole numbers from 0 to 31, of LETOR files, whose gain is 2^label - 1
    features   numbered from 1 to 10,000; at most 2^31 cells in a table of rows x features, and where there are more
               than 2^27, at most 100 for each value that is given: the rest are zeros, which take memory all the same

trec_eval says of its judgements that ids have no white space, that files have no NUL and that grades are within ±127,
and relies on it: the library that holds its code ends an id at a NUL, crashes on half a character, and takes time that
grows with the square of the highest grade.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from shaketable.errors import BadInput, quoted
from shaketable.types import Qrels, Run

ID = 1000
GRADE = 127
GAIN = 2**10 - 1
"""Gains of 2^grade - 1 are computed to grade 10: the time of nDCG grows with the square of the highest gain."""
SCORE = float(np.finfo(np.float32).max)
"""Rankings are made in 32 bits, as trec_eval makes them; a score beyond that is infinite."""
LABEL = 31
FEATURES = 10_000
CELLS, FULL, EMPTY = 1 << 31, 1 << 27, 100

CONTROL = bytes({*range(32), 127} - set(b"\t\r\n"))
"""The control characters of ASCII that have no place in a table; those beyond ASCII are looked for in ids."""

VISIBLE = bytes(range(33, 127))
"""What ids are made of nearly always: ASCII without space and control characters."""

_WRONG = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def wrong_with(name: str) -> str:
    """What is wrong with an id, in words; "" if nothing is.

    >>> wrong_with("MARCO_12"), wrong_with("d 1")
    ('', "has ' ' in it")
    """
    if not name:
        return "is empty"
    if len(name) > ID:
        return f"has {len(name):,} characters, more than {ID:,}"
    found = None if name.isprintable() and " " not in name else _WRONG.search(name)
    return f"has {quoted(found.group())} in it" if found else ""


def check_id(name: str, what: str, path: Path | None = None, line: int | None = None) -> None:
    """Refuse an id that cannot be one; `what` says whose it is."""
    if wrong := wrong_with(name):
        raise BadInput(
            f"the {what} {quoted(name)} {wrong}; an id has 1 to {ID:,} characters and none of them is white space or a "
            "control character",
            path,
            line,
        )


def wrong_id(names: Mapping[str, object]) -> str | None:
    """The first of many names that cannot be an id: a few nanoseconds each if there is none."""
    together = "".join(names)
    plain = together.isascii() and not together.encode().translate(None, VISIBLE)
    long = len(together) > ID and max(map(len, names)) > ID
    if plain and not long and "" not in names:
        return None
    return next((name for name in names if wrong_with(name)), None)


def check_ids(names: Mapping[str, object], what: str, path: Path | None = None) -> None:
    """Refuse all of them if one cannot be an id."""
    try:
        wrong = wrong_id(names)
    except TypeError as error:
        strange = next(name for name in names if not isinstance(name, str))
        raise BadInput(f"the {what} {quoted(strange)} is no text", path) from error
    if wrong is not None:
        check_id(wrong, what, path)


def check_grades(grades: Iterable[int], path: Path | None = None, line: int | None = None) -> None:
    """Refuse grades that are no whole numbers within the bounds."""
    for grade in set(grades):
        if not -GRADE <= grade <= GRADE or grade != int(grade):
            message = f"grade {quoted(grade)} is not a whole number from {-GRADE} to {GRADE}"
            raise BadInput(message, path, line)


def check_run(run: Run) -> None:
    """Refuse a run with an id that cannot be one."""
    check_ids(run, "query id")
    for scores in run.values():
        check_ids(scores, "document id")


def check_qrels(qrels: Qrels) -> None:
    """Refuse judgements with an id or a grade that cannot be one."""
    check_ids(qrels, "query id")
    for grades in qrels.values():
        check_ids(grades, "document id")
    check_grades(grade for grades in qrels.values() for grade in set(grades.values()))

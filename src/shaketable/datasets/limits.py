"""Valid ids, grades, scores and features, for files, data frames and objects in memory.

    ids        1 to 1,000 characters; no white space, no control character, no lone surrogate
    grades     whole numbers from -127 to 127; the gain of a grade is at most 1,023
    scores     finite 32-bit numbers
    labels     whole numbers from 0 to 31, of LETOR files, whose gain is 2^label - 1
    features   numbered from 1 to 10,000; at most 2^31 cells in a table of rows x features; above 2^27 cells, at most
               100 cells for each given value, because omitted zeros take memory too

trec_eval requires judgements with ids without white space, files without NUL and grades within ±127. The library that
wraps its code ends an id at a NUL, crashes on a lone surrogate, and takes time quadratic in the highest grade.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from shaketable.core.documents import Qrels, Run
from shaketable.core.errors import BadInput, quote_value

MAX_ID_CHARS = 1000
MAX_GRADE = 127
MAX_GAIN = 2**10 - 1
"""The gain of grade 10 (2^grade - 1); the time of nDCG grows with the square of the highest gain."""
MAX_SCORE = float(np.finfo(np.float32).max)
"""The largest 32-bit score; rankings use 32 bits, as in trec_eval."""
MAX_LABEL = 31
MAX_FEATURES = 10_000
MAX_TABLE_CELLS, UNCHECKED_TABLE_CELLS, MAX_CELLS_PER_VALUE = 1 << 31, 1 << 27, 100

CONTROL_BYTES = bytes({*range(32), 127} - set(b"\t\r\n"))
"""The ASCII control characters that tables must not contain; `describe_id_problem` finds the others in ids."""

VISIBLE_ASCII_BYTES = bytes(range(33, 127))
"""The ASCII characters without space and control characters, which make up most ids."""

_INVALID_ID_CHARACTER = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def describe_id_problem(name: str) -> str:
    """Return a description of the problem with an id; "" if the id is valid.

    >>> describe_id_problem("MARCO_12"), describe_id_problem("d 1")
    ('', "has ' ' in it")
    """
    if not name:
        return "is empty"
    if len(name) > MAX_ID_CHARS:
        return f"has {len(name):,} characters, more than {MAX_ID_CHARS:,}"
    found = None if name.isprintable() and " " not in name else _INVALID_ID_CHARACTER.search(name)
    return f"has {quote_value(found.group())} in it" if found else ""


def check_id(name: str, what: str, path: Path | None = None, line: int | None = None) -> None:
    """Refuse an invalid id; `what` names the type of id in the message."""
    if wrong := describe_id_problem(name):
        raise BadInput(
            f"the {what} {quote_value(name)} {wrong}; an id has 1 to {MAX_ID_CHARS:,} characters and none of them is "
            "white space or a control character",
            path,
            line,
        )


def find_invalid_id(names: Mapping[str, object]) -> str | None:
    """Return the first invalid id; None if all are valid. Valid ids take a few nanoseconds each."""
    together = "".join(names)
    plain = together.isascii() and not together.encode().translate(None, VISIBLE_ASCII_BYTES)
    long = len(together) > MAX_ID_CHARS and max(map(len, names)) > MAX_ID_CHARS
    if plain and not long and "" not in names:
        return None
    return next((name for name in names if describe_id_problem(name)), None)


def check_ids(names: Mapping[str, object], what: str, path: Path | None = None) -> None:
    """Refuse names that include an invalid id."""
    try:
        wrong = find_invalid_id(names)
    except TypeError as error:
        strange = next(name for name in names if not isinstance(name, str))
        raise BadInput(f"the {what} {quote_value(strange)} is not a text", path) from error
    if wrong is not None:
        check_id(wrong, what, path)


def check_grades(grades: Iterable[int], path: Path | None = None, line: int | None = None) -> None:
    """Refuse grades that are not whole numbers within the bounds."""
    for grade in set(grades):
        if not -MAX_GRADE <= grade <= MAX_GRADE or grade != int(grade):
            message = f"grade {quote_value(grade)} is not a whole number from {-MAX_GRADE} to {MAX_GRADE}"
            raise BadInput(message, path, line)


def check_run(run: Run) -> None:
    """Refuse a run with an invalid id."""
    check_ids(run, "query id")
    for scores in run.values():
        check_ids(scores, "document id")


def check_qrels(qrels: Qrels) -> None:
    """Refuse judgements with an invalid id or grade."""
    check_ids(qrels, "query id")
    for grades in qrels.values():
        check_ids(grades, "document id")
    check_grades(grade for grades in qrels.values() for grade in set(grades.values()))

"""Which probes there are to run, by the names and patterns that a user writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from shaketable.errors import UnknownName
from shaketable.registry import PROBES
from shaketable.types import Probe

PAIRS = {
    "relevance": ("length", "tf", "sum_tf", "overlap"),
    "length": ("relevance", "tf", "sum_tf", "overlap"),
    "tf": ("relevance", "length", "overlap"),
    "sum_tf": ("relevance", "length", "overlap"),
    "overlap": ("relevance", "length", "tf", "sum_tf"),
}
"""variable -> controls: the rows of Table 1 of paper 001. TF and Sum-TF cannot control each other."""
MORE_PAIRS = (
    "matched('relevance', 'length', tolerance=3)",
    "matched('relevance', 'overlap', tolerance=0.01)",
    "matched('length', 'overlap', tolerance=0.01)",
    "matched('idf_overlap', 'length')",
    "matched('window', 'tf')",
    "matched('first_match', 'tf')",
    "matched('reading_grade', 'relevance+length')",
    "matched('sentences', 'relevance+length')",
)
"""Rows beyond the paper's: with a tolerance where exact pairs are few, and other characteristics."""
MATCHED = tuple(f"matched({v!r}, {c!r})" for v, controls in PAIRS.items() for c in controls)


def texts() -> list[str]:
    """All probes, as texts: the paper's pairs first, then every other row of the catalogue."""
    rows = [name for name in PROBES.own if name not in NEEDING]
    return [*MATCHED, *MORE_PAIRS, *rows]


NEEDING = ("matched", "pairs")
"""Rows that say nothing without parameters."""


def chosen(patterns: Sequence[str] = ()) -> list[Probe]:
    """The probes whose names match one of the patterns, or that are written out; all of them without a pattern.

    >>> [name(probe) for probe in chosen(["tf-given-*", "prox1"])]
    ['tf-given-relevance', 'tf-given-length', 'tf-given-overlap', 'prox1']
    """
    known = [PROBES.build(text) for text in texts()]
    probes: dict[str, Probe] = {}
    for pattern in patterns or ("*",):
        found = [probe for probe in known if fnmatchcase(name(probe), pattern) or fnmatchcase(row(probe), pattern)]
        if not found and re.search(r"[*?\[]", pattern) and "(" not in pattern:
            raise UnknownName("probe", pattern, [name(probe) for probe in known])
        for probe in found or [PROBES.build(pattern)]:
            probes.setdefault(name(probe), probe)
    return list(probes.values())


def row(probe: Probe) -> str:
    """The name of the probe's row in the catalogue."""
    return PROBES.spec(probe).partition("(")[0]


def title(probe: Probe) -> str:
    """What a table calls a probe.

    >>> title(PROBES.build("matched('tf', 'length')")), title(PROBES.build("prox1"))
    ('TF | Length', 'PROX1')
    """
    named = getattr(probe, "title", "") if row(probe) == "matched" else ""
    text = PROBES.spec(probe)
    if named:
        return str(named)
    plain = text.replace("_", " ").replace("'", "")
    return plain.upper().replace(" ", "-") if probe.strategy == "matching" else plain[:1].upper() + plain[1:]


def name(probe: Probe) -> str:
    """What a rule or a file calls a probe.

    >>> name(PROBES.build("matched('tf', 'length')")), name(PROBES.build("tf_lnc"))
    ('tf-given-length', 'tf-lnc')
    """
    plain = title(probe).lower().replace("|", "given").replace("±", "within")
    return re.sub(r"[^\w.]+", "-", plain).strip("-")

"""Selection of the probes of a run by name, pattern or spec."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.protocols import Probe
from shaketable.core.registries import PROBES
from shaketable.probes.presets import PAPER_CONTROLS, PRESETS

MORE_MATCHED_SPECS = (
    "matched('relevance', 'length', tolerance=3)",
    "matched('relevance', 'overlap', tolerance=0.01)",
    "matched('length', 'overlap', tolerance=0.01)",
    "matched('idf_overlap', 'length')",
    "matched('window', 'tf')",
    "matched('first_match', 'tf')",
    "matched('reading_grade', 'relevance+length')",
    "matched('sentences', 'relevance+length')",
)
"""Pairs beyond the paper's: a tolerance where exact pairs are few, and other characteristics."""
PAPER_MATCHED_SPECS = tuple(f"matched({v!r}, {c!r})" for v, controls in PAPER_CONTROLS.items() for c in controls)


LANGUAGE_PROBES = ("language_pairs", "own_language", "mixed_document", "direction_marks", "normal_forms")
ROWS_NEEDING_PARAMETERS = ("matched", "pairs", *LANGUAGE_PROBES)
"""Rows that need parameters."""


def list_probe_specs() -> list[str]:
    """Return the specs of the built-in probes: the paper's pairs first, then every other row of the registry."""
    rows = [name for name in PROBES.builtin_rows if name not in ROWS_NEEDING_PARAMETERS]
    return [*PAPER_MATCHED_SPECS, *MORE_MATCHED_SPECS, *rows]


def _build_installed_probes() -> tuple[list[Probe], dict[str, str]]:
    """Build the probes that installed packages add; the second value maps a row that cannot be built to the reason."""
    probes, reasons = [], {}
    for name in (name for name in PROBES if name not in PROBES.builtin_rows):
        try:
            probe = PROBES.build(name)
        except BadInput as error:
            reasons[name] = str(error)
            continue
        if isinstance(probe, Probe):
            probes.append(probe)
        else:
            reasons[name] = f"{PROBES.rows[name]} lacks an attribute of a probe (core.protocols.Probe)"
    return probes, reasons


def find_unbuildable_probes(patterns: Sequence[str] = ()) -> dict[str, str]:
    """Return the rows of installed packages that match a pattern but cannot be built, with the reasons."""
    reasons = _build_installed_probes()[1]
    return {name: why for name, why in reasons.items() if any(fnmatchcase(name, one) for one in patterns or ("*",))}


def select_probes(patterns: Sequence[str] = ()) -> list[Probe]:
    """Return the probes whose names match a pattern, and those of a spec or a preset; all probes without a pattern.

    >>> [format_probe_name(probe) for probe in select_probes(["tf-given-*", "prox1"])]
    ['tf-given-relevance', 'tf-given-length', 'tf-given-overlap', 'prox1']
    """
    known = [*map(PROBES.build, list_probe_specs()), *_build_installed_probes()[0]]
    probes: dict[str, Probe] = {}
    for pattern in patterns or ("*",):
        if pattern.partition("(")[0] in PRESETS:
            probes |= {format_probe_name(probe): probe for probe in PRESETS.build(pattern).list_probes()}
            continue
        found = [
            probe
            for probe in known
            if fnmatchcase(format_probe_name(probe), pattern) or fnmatchcase(get_registry_row(probe), pattern)
        ]
        if not found and re.search(r"[*?\[]", pattern) and "(" not in pattern:
            raise UnknownName("probe", pattern, [format_probe_name(probe) for probe in known])
        for probe in found or [PROBES.build(pattern)]:
            probes.setdefault(format_probe_name(probe), probe)
    return list(probes.values())


def get_registry_row(probe: Probe) -> str:
    """Return the name of the probe's row in the registry."""
    return PROBES.spec(probe).partition("(")[0]


def format_probe_title(probe: Probe) -> str:
    """Return the title of a probe in a table.

    >>> format_probe_title(PROBES.build("matched('tf', 'length')")), format_probe_title(PROBES.build("prox1"))
    ('TF | Length', 'PROX1')
    """
    named = getattr(probe, "title", "") if get_registry_row(probe) == "matched" else ""
    text = PROBES.spec(probe)
    if named:
        return str(named)
    plain = text.replace("_", " ").replace("'", "")
    return plain.upper().replace(" ", "-") if probe.strategy == "matching" else plain[:1].upper() + plain[1:]


def format_probe_name(probe: Probe) -> str:
    """Return the name of a probe in a rule or a file.

    >>> format_probe_name(PROBES.build("matched('tf', 'length')")), format_probe_name(PROBES.build("tf_lnc"))
    ('tf-given-length', 'tf-lnc')
    """
    plain = format_probe_title(probe).lower().replace("|", "given").replace("±", "within")
    return re.sub(r"[^\w.]+", "-", plain).strip("-")

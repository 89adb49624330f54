"""Files of rules, such as "fail if the finding nDCG@10 is below 0.4".

    baseline = "audits/main"         # the folder of an earlier audit, for rules on losses

    [[fail_if]]
    finding = "nDCG@10"              # of every ranker under test; ranker = "mine" for one; a star matches any text
    below = 0.4                      # or above; nDCG@10.low is the lower end of the interval, also .high, .p and .n

    [[fail_if]]
    finding = "nDCG@10"
    worse_by = "5 %"                 # than in the baseline; or 0.02; 0 for any loss
    significant = true               # by a paired test over queries

    [[warn_if]]
    facet = "query typos"
    status = "fail"                  # or ["warn", "fail"]

    [[accept]]                       # a known failure of the default gate; it stays visible, and a worse value fails
    facet = "attack"
    ranker = "mine"                  # all rankers if left out
    value = 96.0                     # the number in the cell
    reason = "a detector removes these texts"
    expires = 2030-06-30

The reader reports a mistake before the audit starts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, TypeGuard

from shaketable.core.errors import BadInput, UnknownName, quote_value
from shaketable.measures.facets import FACETS
from shaketable.measures.status import FAIL, STATUSES_WORST_FIRST, WARN, Status
from shaketable.report.default_gate import AcceptedFinding
from shaketable.report.files import read_results
from shaketable.report.gates import (
    FacetStatus,
    FailureStatus,
    Gate,
    GateInput,
    NoRegression,
    Threshold,
    matches_pattern,
    split_statistic,
)
from shaketable.report.toml import read_toml
from shaketable.report.verdict import build_verdict

RULE_STATUSES: Mapping[str, FailureStatus] = {"fail_if": FAIL, "warn_if": WARN}
ACCEPT = "accept"
ACCEPT_KEYS = ("facet", "ranker", "value", "reason", "expires")
RULE_KEYS = ("finding", "facet", "ranker", "below", "above", "worse_by", "significant", "baseline", "status")


def read_rules(path: Path, *, allow_edited: bool = False) -> list[Gate]:
    """Return the gates of a file; `allow_edited` accepts earlier audits whose results.json was edited."""
    tables = read_toml(path)
    known = {*RULE_STATUSES, ACCEPT, "baseline"}
    if strange := tables.keys() - known:
        raise BadInput(str(UnknownName("part of a file of rules", min(strange), known)), path)
    earlier = _require_text(path, "baseline", tables.get("baseline", ""))
    gates: list[Gate] = []
    for kind, status in RULE_STATUSES.items():
        rules = _read_tables(path, tables, kind)
        for number, rule in enumerate(rules, 1):
            where = f"{path}: rule {number} of [[{kind}]]"
            gates.append(_build_gate(where, rule, status, earlier, allow_edited))
    if not gates and not tables.get(ACCEPT):
        raise BadInput("has no rules: write [[fail_if]], [[warn_if]] or [[accept]] before each", path)
    return gates


def read_accepted(rules: Iterable[str | Path | Gate]) -> list[AcceptedFinding]:
    """Return the accepted failures in the files among the rules."""
    files = [Path(rule) for rule in rules if _is_file(rule)]
    return [
        _build_accepted(f"{path}: rule {number} of [[{ACCEPT}]]", rule)
        for path in files
        for number, rule in enumerate(_read_tables(path, read_toml(path), ACCEPT), 1)
    ]


def _read_tables(path: Path, tables: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    rules = tables.get(kind, [])
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise BadInput(f"{kind} should be written [[{kind}]], with two brackets, before each rule", path)
    return rules


def _is_file(rule: object) -> TypeGuard[str | Path]:
    return isinstance(rule, Path) or (isinstance(rule, str) and rule.endswith(".toml"))


def parse_gates(rules: Iterable[str | Path | Gate], *, allow_edited: bool = False) -> list[Gate]:
    """Return the gates of texts such as "nDCG@10>=0.4", files (paths, or texts that end in .toml), and gates.

    >>> parse_gates(["nDCG@10>=0.4"])[0].comparator
    '>='
    """
    gates: list[Gate] = []
    for rule in rules:
        if _is_file(rule):
            gates += read_rules(Path(rule), allow_edited=allow_edited)
        elif isinstance(rule, str):
            gates.append(Threshold.parse(rule))
        elif not isinstance(rule, Path):
            gates.append(rule)
    return gates


def check_rankers(gates: Iterable[Gate], names: Iterable[str]) -> None:
    """Raise an error if a gate names an unknown ranker."""
    known = list(names)
    for gate in gates:
        if gate.ranker and not any(matches_pattern(gate.ranker, name) for name in known):
            raise UnknownName("ranker", gate.ranker, known)


def read_gate_input(folder: str | Path, *, allow_edited: bool = False) -> GateInput:
    """Return the input of gates from the folder of an audit."""
    results, provenance = read_results(Path(folder), allow_edited=allow_edited)
    return GateInput.from_results(results, build_verdict(results, provenance).ranker_verdicts, provenance)


def _build_gate(
    where: str, rule: Mapping[str, Any], failure_status: FailureStatus, baseline_folder: str, allow_edited: bool
) -> Gate:
    if strange := rule.keys() - set(RULE_KEYS):
        raise BadInput(f"{where}: {UnknownName('key of a rule', min(strange), RULE_KEYS)}")
    if ("finding" in rule) == ("facet" in rule):
        raise BadInput(f"{where} should name either a finding or a facet")
    ranker = _require_text(where, "ranker", rule.get("ranker", ""))
    if "facet" in rule:
        _refuse_other_keys(where, rule, "facet", "ranker", "status")
        facet = _require_text(where, "facet", rule["facet"])
        known = [one.name for one in FACETS]
        if not any(matches_pattern(facet, name) for name in known):
            raise BadInput(f"{where}: {UnknownName('facet', facet, known)}")
        return FacetStatus(facet, _parse_statuses(where, rule.get("status")), ranker, failure_status)
    name, part = split_statistic(_require_text(where, "finding", rule["finding"]))
    asked = [key for key in ("below", "above", "worse_by") if key in rule]
    if len(asked) != 1:
        raise BadInput(f"{where} should have one of below, above and worse_by")
    if asked == ["worse_by"]:
        return _build_no_regression(where, rule, failure_status, baseline_folder, ranker, allow_edited)
    _refuse_other_keys(where, rule, "finding", "ranker", *asked)
    bound = _require_number(where, asked[0], rule[asked[0]])
    return Threshold(name, ">=" if asked == ["below"] else "<=", bound, part, ranker, failure_status)


def _build_accepted(where: str, rule: Mapping[str, Any]) -> AcceptedFinding:
    if strange := rule.keys() - set(ACCEPT_KEYS):
        raise BadInput(f"{where}: {UnknownName('key of an accepted failure', min(strange), ACCEPT_KEYS)}")
    if missing := [key for key in ACCEPT_KEYS if key not in rule and key != "ranker"]:
        raise BadInput(f"{where} needs {missing[0]}; docs/gates.md has an example")
    facet = _require_text(where, "facet", rule["facet"])
    if facet not in (known := [one.name for one in FACETS]):
        raise BadInput(f"{where}: {UnknownName('facet', facet, known)}")
    reason = _require_text(where, "reason", rule["reason"])
    if not reason.strip():
        raise BadInput(f"{where}: reason should say why the failure is accepted")
    return AcceptedFinding(
        facet,
        _require_text(where, "ranker", rule.get("ranker", "")),
        _require_number(where, "value", rule["value"]),
        reason,
        _require_date(where, "expires", rule["expires"]),
    )


def _require_date(where: str, key: str, value: Any) -> date:
    if type(value) is date:
        return value
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{where}: {key} should be a date such as 2030-06-30, not {quote_value(value)}") from error


def _build_no_regression(
    where: str,
    rule: Mapping[str, Any],
    failure_status: FailureStatus,
    baseline_folder: str,
    ranker: str,
    allow_edited: bool,
) -> NoRegression:
    _refuse_other_keys(where, rule, "finding", "ranker", "worse_by", "significant", "baseline")
    name = _require_text(where, "finding", rule["finding"])
    if split_statistic(name)[1]:
        raise BadInput(f"{where}: worse_by applies to a value; write finding = {quote_value(split_statistic(name)[0])}")
    folder = _require_text(where, "baseline", rule.get("baseline", baseline_folder))
    if not folder:
        raise BadInput(f'{where} needs the folder of an earlier audit: baseline = "FOLDER"')
    significant = rule.get("significant", False)
    if not isinstance(significant, bool):
        raise BadInput(f"{where}: significant should be true or false, not {quote_value(significant)}")
    base = read_gate_input(folder, allow_edited=allow_edited)
    base.select_findings(name, "*")  # raises now, not after the audit, if the name is unknown
    by, relative = _parse_loss(where, rule["worse_by"])
    return NoRegression(name, base, by, relative, significant, ranker, folder, failure_status)


def _refuse_other_keys(where: str, rule: Mapping[str, Any], *keys: str) -> None:
    if strange := rule.keys() - set(keys):
        raise BadInput(f"{where}: {min(strange)} does not go with {keys[0]} and {keys[-1]}")


def _parse_statuses(where: str, value: Any) -> tuple[Status, ...]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise BadInput(f'{where} should name the status that the facet must not have: status = "fail"')
    for word in words:
        if word not in STATUSES_WORST_FIRST:
            raise BadInput(f"{where}: {UnknownName('status of a facet', word, STATUSES_WORST_FIRST)}")
    return tuple(words)


def _parse_loss(where: str, value: Any) -> tuple[float, bool]:
    """Return the size of a loss, and True if it is a share of the old value.

    >>> _parse_loss("", "5 %"), _parse_loss("", 0.02)
    ((0.05, True), (0.02, False))
    """
    share = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*%", value.strip()) if isinstance(value, str) else None
    if share:
        return float(share[1]) / 100, True
    size = _require_number(where, "worse_by", value)
    if size < 0:
        raise BadInput(f"{where}: worse_by should be 0 or more, not {size:g}")
    return size, False


def _require_number(where: str, key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        example = ', or a share such as "5 %"' if key == "worse_by" else ""
        raise BadInput(f"{where}: {key} should be a number{example}, not {quote_value(value)}")
    return float(value)


def _require_text(where: str | Path, key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{where}: {key} should be a text, not {quote_value(value)}")
    return value

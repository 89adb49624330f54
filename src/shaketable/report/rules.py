"""Rules in a file, which read aloud as what they do: "fail if the finding nDCG@10 is below 0.4".

    baseline = "audits/main"         # the folder of an earlier audit, for rules about what became worse

    [[fail_if]]
    finding = "nDCG@10"              # of every ranker under test; ranker = "mine" for one; a star stands for anything
    below = 0.4                      # or above; nDCG@10.low is the lower end of the interval, also .high, .p and .n

    [[fail_if]]
    finding = "nDCG@10"
    worse_by = "5 %"                 # than in the baseline; or 0.02; 0 for any loss
    significant = true               # by a paired test over queries

    [[warn_if]]
    facet = "query typos"
    called = "breaks"                # or ["shaken", "breaks"]

A mistake is found when the file is read, and not after an audit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from shaketable.errors import BadInput, UnknownName, quoted
from shaketable.measure.facets import FACETS, WORST_FIRST
from shaketable.report.answer import answer
from shaketable.report.files import read_results
from shaketable.report.gates import Bound, Gate, NoLoss, Seen, Severity, Worded, matches, split_part
from shaketable.report.toml import read_toml

KINDS: Mapping[str, Severity] = {"fail_if": "failed", "warn_if": "warned"}
KEYS = ("finding", "facet", "ranker", "below", "above", "worse_by", "significant", "baseline", "called")


def read_rules(path: Path) -> list[Gate]:
    """The gates of a file."""
    tables = read_toml(path)
    if strange := tables.keys() - {*KINDS, "baseline"}:
        raise BadInput(str(UnknownName("part of a file of rules", min(strange), {*KINDS, "baseline"})), path)
    earlier = _text(path, "baseline", tables.get("baseline", ""))
    gates: list[Gate] = []
    for kind, broken in KINDS.items():
        rules = tables.get(kind, [])
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            raise BadInput(f"{kind} should be written [[{kind}]], with two brackets, before each rule", path)
        gates += [_gate(f"{path}: rule {place} of [[{kind}]]", rule, broken, earlier) for place, rule in
                  enumerate(rules, 1)]  # fmt: skip
    if not gates:
        raise BadInput("has no rules: write [[fail_if]] or [[warn_if]] before each", path)
    return gates


def gates_of(rules: Iterable[str | Path | Gate]) -> list[Gate]:
    """The gates of texts such as "nDCG@10>=0.4", of files (a text that ends in .toml is one), and gates themselves.

    >>> gates_of(["nDCG@10>=0.4"])[0].sign
    '>='
    """
    gates: list[Gate] = []
    for rule in rules:
        if isinstance(rule, Path) or (isinstance(rule, str) and rule.endswith(".toml")):
            gates += read_rules(Path(rule))
        else:
            gates.append(Bound.parse(rule) if isinstance(rule, str) else rule)
    return gates


def check_rankers(gates: Iterable[Gate], names: Iterable[str]) -> None:
    """Refuse a rule about a ranker that there is not, before anything is measured."""
    known = list(names)
    for gate in gates:
        if gate.ranker and not any(matches(gate.ranker, name) for name in known):
            raise UnknownName("ranker", gate.ranker, known)


def seen(folder: str | Path) -> Seen:
    """What gates look at in the audit of a folder."""
    results, provenance = read_results(Path(folder))
    return Seen.of(results, answer(results, provenance).standings, provenance)


def _gate(where: str, rule: Mapping[str, Any], broken: Severity, earlier: str) -> Gate:
    if strange := rule.keys() - set(KEYS):
        raise BadInput(f"{where}: {UnknownName('key of a rule', min(strange), KEYS)}")
    if ("finding" in rule) == ("facet" in rule):
        raise BadInput(f"{where} should be about a finding or about a facet, and about one of them")
    ranker = _text(where, "ranker", rule.get("ranker", ""))
    if "facet" in rule:
        _only(where, rule, "facet", "ranker", "called")
        facet = _text(where, "facet", rule["facet"])
        known = [one.name for one in FACETS]
        if not any(matches(facet, name) for name in known):
            raise BadInput(f"{where}: {UnknownName('facet', facet, known)}")
        return Worded(facet, _words(where, rule.get("called")), ranker, broken)
    name, part = split_part(_text(where, "finding", rule["finding"]))
    asked = [key for key in ("below", "above", "worse_by") if key in rule]
    if len(asked) != 1:
        raise BadInput(f"{where} should say one of below, above and worse_by")
    if asked == ["worse_by"]:
        return _no_loss(where, rule, broken, earlier, ranker)
    _only(where, rule, "finding", "ranker", *asked)
    bound = _number(where, asked[0], rule[asked[0]])
    return Bound(name, ">=" if asked == ["below"] else "<=", bound, part, ranker, broken)


def _no_loss(where: str, rule: Mapping[str, Any], broken: Severity, earlier: str, ranker: str) -> NoLoss:
    _only(where, rule, "finding", "ranker", "worse_by", "significant", "baseline")
    name = _text(where, "finding", rule["finding"])
    if split_part(name)[1]:
        raise BadInput(f"{where}: a loss is of a value; write finding = {quoted(split_part(name)[0])}")
    folder = _text(where, "baseline", rule.get("baseline", earlier))
    if not folder:
        raise BadInput(f'{where} needs the folder of an earlier audit: baseline = "FOLDER"')
    significant = rule.get("significant", False)
    if not isinstance(significant, bool):
        raise BadInput(f"{where}: significant should be true or false, not {quoted(significant)}")
    base = seen(folder)
    base.named(name, "*")  # a name that the earlier audit does not have would only be noticed after this one
    by, relative = _size(where, rule["worse_by"])
    return NoLoss(name, base, by, relative, significant, ranker, folder, broken)


def _only(where: str, rule: Mapping[str, Any], *keys: str) -> None:
    if strange := rule.keys() - set(keys):
        raise BadInput(f"{where}: {min(strange)} does not go with {keys[0]} and {keys[-1]}")


def _words(where: str, value: Any) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise BadInput(f'{where} should say what the facet must not be called: called = "breaks"')
    for word in words:
        if word not in WORST_FIRST:
            raise BadInput(f"{where}: {UnknownName('word of a facet', word, WORST_FIRST)}")
    return tuple(words)


def _size(where: str, value: Any) -> tuple[float, bool]:
    """How large a loss is, and whether it is a share of what was there.

    >>> _size("", "5 %"), _size("", 0.02)
    ((0.05, True), (0.02, False))
    """
    share = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", value.strip()) if isinstance(value, str) else None
    if share:
        return float(share[1]) / 100, True
    size = _number(where, "worse_by", value)
    if size < 0:
        raise BadInput(f"{where}: worse_by should be 0 or more, not {size:g}")
    return size, False


def _number(where: str, key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        example = ', or a share such as "5 %"' if key == "worse_by" else ""
        raise BadInput(f"{where}: {key} should be a number{example}, not {quoted(value)}")
    return float(value)


def _text(where: str | Path, key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{where}: {key} should be a text, not {quoted(value)}")
    return value

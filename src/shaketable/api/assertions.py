"""An audit and its gates in one call, for tests of rankers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Unpack

from shaketable.api.audit import Audit, audit
from shaketable.api.options import CollectionLike, ExperimentOptions
from shaketable.api.ranker_names import Rankers, as_list
from shaketable.core.protocols import Task
from shaketable.report.gates import Gate, GateResult
from shaketable.report.rules import parse_gates


def audit_by_rules(
    ranker: Rankers,
    data: CollectionLike,
    rules: str | Path | Gate | Sequence[str | Path | Gate],
    tasks: str | Task | Iterable[str | Task],
    **options: Unpack[ExperimentOptions],
) -> tuple[Audit, list[GateResult]]:
    """Audit a ranker, and return the audit and the results of the rules; without rules, those of the default gate."""
    gates = parse_gates(as_list(rules))
    done = audit(data, ranker, tasks, runs=False, gated=not gates, **options)
    return done, done.evaluate_gates(*gates) if gates else list(done.verdict.gate_results)


def describe_broken_rules(results: Sequence[GateResult]) -> str:
    """Return a message that lists the broken rules; "" if all of them hold."""
    broken = [str(result) for result in results if result.status == "fail"]
    return f"{len(broken)} of {len(results)} rules are broken:\n" + "\n".join(broken) if broken else ""

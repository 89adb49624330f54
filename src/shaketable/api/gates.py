"""Gates of an audit: reading, checks for names that no task reports, and evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Unpack

from shaketable.api.audit import Audit, choose_default_models, open_experiment, prepare_audit
from shaketable.api.dry_experiment import TRAINING_REFUSAL, RequestCount, UntrainedModel, make_dry_experiment
from shaketable.api.languages import add_languages
from shaketable.api.options import CollectionLike, CollectionOptions, ignore_message
from shaketable.api.ranker_names import Rankers, as_list, build_models
from shaketable.core.errors import BadInput, ShaketableError, UnknownName
from shaketable.core.protocols import Model, Task
from shaketable.experiment import Experiment
from shaketable.measures.measure_names import parse_measure
from shaketable.report.default_gate import AcceptedFinding, record_accepted
from shaketable.report.gates import Gate, NoRegression, Threshold, matches_pattern
from shaketable.report.rules import check_rankers, parse_gates, read_accepted
from shaketable.scoring.network_guard import block_network
from shaketable.tasks.runner import run_tasks

REHEARSAL_QUERIES = 5
MIN_NAME_SIMILARITY = 0.7
"""The difflib similarity from which a name counts as a misspelling of another."""


def read_gates(rules: Iterable[str | Path | Gate], rankers: Rankers = ()) -> list[Gate]:
    """Read and return gates; a gate on an unknown ranker is an error."""
    given = list(rules)
    gates = parse_gates(given)
    read_accepted(given)  # a mistake is an error before the audit
    if models := build_models(rankers):
        check_rankers(gates, models)
    return gates


def apply_accepted(audit: Audit, accepted: Sequence[AcceptedFinding]) -> Audit:
    """Return the audit with accepted failures of facets, as of today."""
    return replace(audit, provenance=record_accepted(audit.provenance, accepted, date.today()))


def save_with_gates(audit: Audit, folder: Path, gates: Sequence[Gate], flags: Mapping[str, Any]) -> Audit:
    """Evaluate gates and accepted failures, save the audit with their results and flags, and return it.

    A gate that names no finding is an error, raised after the audit is saved.
    """
    settings = {**audit.settings, **{name: flag for name, flag in flags.items() if flag}} if audit.settings else {}
    audit = apply_accepted(replace(audit, settings=settings), read_accepted(flags.get("rules") or ()))
    try:
        audit = replace(audit, gate_results=tuple(audit.evaluate_gates(*gates)))
    finally:
        audit.save(folder)
    return audit


def check_gate_findings(
    gates: Sequence[Gate],
    data: CollectionLike | Sequence[CollectionLike] = "sample",
    rankers: Rankers = (),
    tasks: str | Task | Iterable[str | Task] = (),
    languages: str | Iterable[str] = (),
    **options: Unpack[CollectionOptions],
) -> None:
    """Refuse gates on findings that `audit` with these arguments does not report, before any ranker runs.

    The tasks run with rankers that make up scores: first on a few queries, which resolves most names in seconds, then
    on all queries, because few queries give fewer findings. A name that the second rehearsal does not report is
    refused, unless a task cannot be rehearsed, because it trains a ranker, and the name resembles no other.
    """
    if not (names := _list_finding_patterns(gates)):
        return
    with block_network():
        models, chosen, first = prepare_audit(data, rankers, tasks)
        max_queries = min(options.get("max_queries") or REHEARSAL_QUERIES, REHEARSAL_QUERIES)
        few_options: CollectionOptions = {**options, "max_queries": max_queries}
        few = open_experiment(first, models, **few_options)
        chosen = add_languages(chosen, languages, few.queries, named=bool(as_list(tasks)))
        wanted = [name for name in names if not (few.qrels and _is_requested_measure(name, chosen))]
        if not few.qrels and (lost := [name for name in names if _is_measure(name.rpartition(".")[2])]):
            remedy = f"and {few.collection.name} has none; add them with --qrels, or leave the rule out"
            raise BadInput(f"a rule refers to {lost[0]}, which needs judgements, {remedy}")
        if not wanted:
            return
        models = dict(few.models) or choose_default_models(
            few, ignore_message, lambda experiment: UntrainedModel("knrm")
        )
        check_rankers(gates, models)
        found, complete = _rehearse(few, models, chosen)
        if wanted := _select_unreported(wanted, found):
            found, complete = _rehearse(open_experiment(first, models, **options), models, chosen)
            for name in _select_unreported(wanted, found):
                if complete or get_close_matches(name, found, cutoff=MIN_NAME_SIMILARITY):
                    raise UnknownName("finding", name, found)


def _list_finding_patterns(gates: Iterable[Gate]) -> list[str]:
    """Return the names and patterns of findings in gates, with the ranker if the gate names one.

    >>> _list_finding_patterns([Threshold.parse("nDCG@10.low>=0.4"), Threshold.parse("drop(*)>=-5")])
    ['nDCG@10', 'drop(*)']
    """
    named = [gate for gate in gates if isinstance(gate, Threshold | NoRegression)]
    return [f"{gate.ranker}.{gate.finding}" if gate.ranker else gate.finding for gate in named]


def _select_unreported(names: Iterable[str], found: set[str]) -> list[str]:
    """Return the names and patterns that match no finding."""
    return [name for name in names if not any(matches_pattern(name, one) for one in found)]


def _is_requested_measure(name: str, tasks: Sequence[Task]) -> bool:
    """Return True if a task computes this measure."""
    return any(name in getattr(task, "measures", ()) for task in tasks)


def _is_measure(name: str) -> bool:
    try:
        parse_measure(name)
    except ShaketableError:
        return False
    return True


def _rehearse(experiment: Experiment, models: Mapping[str, Model], tasks: Sequence[Task]) -> tuple[set[str], bool]:
    """Return the names of the findings that the tasks report, and True if every task could be rehearsed.

    Each finding is there with and without the name of its ranker.
    """
    dry = make_dry_experiment(experiment, models, {name: RequestCount() for name in models})
    names = {measure for task in tasks for measure in getattr(task, "measures", ())}
    complete = True
    for task in tasks:
        try:
            results, _ = run_tasks(dry, [task])
        except ShaketableError as error:  # a task that does not apply here does not apply in the audit either
            complete = complete and isinstance(error, BadInput) and TRAINING_REFUSAL not in str(error)
            continue
        for finding in (one for result in results for one in result.findings):
            names |= {finding.name, f"{finding.ranker}.{finding.name}"}
    return names, complete

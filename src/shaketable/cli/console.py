"""Where words go, and how many: results to stdout, everything else to stderr."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from shaketable.errors import BadInput
from shaketable.files import written_whole
from shaketable.report import cell, clean, escaped

if TYPE_CHECKING:
    from shaketable.door.audit import Audit
    from shaketable.door.plan import Plan
    from shaketable.door.train import TrainedWriter, Training


def stdout(json_target: str | None = None) -> Console:
    """The console for tables; it moves to stderr where stdout is for JSON."""
    return Console(stderr=json_target == "-", highlight=False)


_quiet = False


def is_quiet() -> bool:
    """Are results and errors all that somebody wants to hear?"""
    return _quiet


@contextmanager
def loudness(quiet: bool, verbose: bool) -> Iterator[None]:
    """Say results and errors alone, or also what the package logs (`logging`) of its work."""
    global _quiet
    if quiet and verbose:
        raise BadInput("--quiet and --verbose contradict each other; give one of them")
    log, teller = logging.getLogger("shaketable"), _Teller(logging.INFO)
    before, _quiet = _quiet, quiet
    level = log.level
    if verbose:
        log.setLevel(logging.INFO)
        log.addHandler(teller)
    try:
        yield
    finally:
        _quiet = before
        log.removeHandler(teller)
        log.setLevel(level)


class _Teller(logging.Handler):
    """What is logged, said."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def say(message: str, *, always: bool = False) -> None:
    """A remark on stderr, on one line, without what a terminal would obey: attackers write some of the texts.

    Whoever is `always` said is a part of the result: --quiet does not silence it.
    """
    if always or not _quiet:
        print(" ".join(clean(message).splitlines()), file=sys.stderr)


def show(done: Audit, json_target: str | None) -> None:
    """Print an audit: its results, what was skipped and why, and what rankers remark."""
    from shaketable.report.terminal import show_result

    console = stdout(json_target)
    for result in done.results:
        show_result(console, result)
    for task, reason in done.skipped.items():
        console.print(cell(f"The task {task} was skipped: {reason}."), markup=False)
    for name, remark in done.remarks.items():
        console.print(cell(f"{name}: {remark}"), markup=False)


def show_plan(plan: Plan, json_target: str | None) -> None:
    """Print what an audit would ask of each ranker, what cannot be planned and why, and what it comes to."""
    from shaketable.report.terminal import show_table

    console = stdout(json_target)
    show_table(console, "plan", plan.table())
    for note in plan.notes:
        console.print(cell(note), markup=False)
    for task, reason in plan.skipped.items():
        console.print(cell(f"The task {task} cannot be planned: {reason}."), markup=False)
    console.print(cell(str(plan)), markup=False)
    if json_target:
        emit_json(plan.json(), json_target)


def judge(rules: list[str]) -> Callable[[Audit], bool]:
    """Read the rules now; what is returned says later of an audit whether they hold, each on a line of its own."""
    from shaketable.report.gates import Gate, verdicts

    gates = [Gate.parse(rule) for rule in rules]

    def held(done: Audit) -> bool:
        found = verdicts(gates, done.results)
        for verdict in found:
            say(str(verdict), always=True)
        return all(verdict.held for verdict in found)

    return held


def show_training(done: Training | TrainedWriter, json_target: str | None, page: Path | None) -> None:
    """Print the course of a training and what the model looks at; write the page and the JSON that were asked for."""
    from shaketable.report.page import write_page
    from shaketable.report.terminal import show_table

    for title, table in done.tables().items():
        show_table(stdout(json_target), title, table.head(10) if title != "the course of training" else table)
    for note in done.card.get("notes", ()):
        say(note)
    say(str(done))
    if page:
        write_page(page, str(done), {}, [done.result()], done.json())
    if json_target:
        emit_json(done.json(), json_target)


def emit_json(data: Mapping[str, Any], target: str) -> None:
    """Strict JSON to a file, whole or not at all, or to stdout."""
    text = escaped(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False))
    if target == "-":
        print(text)
        return
    with written_whole(Path(target)) as out:
        out.write(text + "\n")

"""Where words go, and how many: results to stdout, everything else to stderr."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    from shaketable.report.comparison import AuditComparison
    from shaketable.report.gates import Ruling


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
    """Print all tables of an audit, what was skipped and why, and what rankers remark."""
    from shaketable.report.terminal import show_result

    console = stdout(json_target)
    for result in done.results:
        show_result(console, result)
    for task, reason in done.skipped.items():
        console.print(cell(f"The task {task} was skipped: {reason}."), markup=False)
    for name, remark in done.remarks.items():
        console.print(cell(f"{name}: {remark}"), markup=False)


def show_verdict(done: Audit, json_target: str | None, tables: bool = False, table: list[str] | None = None) -> None:
    """Print what an audit comes to; before it all tables, or those that were named."""
    from shaketable.report.terminal import show_table
    from shaketable.report.verdict import show_answer

    found = done.answer()
    console = stdout(json_target)
    named = [done.table(name) for name in table or ()]
    if tables or not (named or found.facets):
        show(done, json_target)
    for name, frame in named:
        show_table(console, name, frame)
    show_answer(console, found)


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
    from shaketable.report.gates import all_held
    from shaketable.report.rules import gates_of

    gates = gates_of(rules)

    def held(done: Audit) -> bool:
        found = done.rulings(*gates)
        for ruling in found:
            say(str(ruling), always=True)
        return all_held(found)

    return held


def show_comparison(found: AuditComparison, target: str | None) -> None:
    """Print what became of a ranker between two audits: the answer, what became worse or better, on which queries."""
    from shaketable.report.comparison import EXPLAINED
    from shaketable.report.terminal import show_table

    console = stdout(target)
    console.print(cell(found.answer), markup=False, style="bold")
    changed = {status: found.brief(status) for status in ("worse", "better")}
    for status, table in changed.items():
        if len(table):
            show_table(console, f"what became {status}", table)
    if any(map(len, changed.values())):
        console.print(cell(EXPLAINED), markup=False, style="dim")
    for title, table in found.worst_queries().items():
        show_table(console, title, table)
    for failure in found.failures:
        console.print(cell(f"new failure: {failure.ranker} on {failure.query!r}: {failure.reason}"), markup=False)
    for line in (*(f"a worse word: {turn}" for turn in found.turns), *found.remarks):
        console.print(cell(line), markup=False)


def emit_rulings(
    done: Audit, found: Sequence[Ruling], junit_to: Path | None, markdown_to: str | None, badge_to: Path | None
) -> bool:
    """What became of gates, for build servers, pull requests and badges as far as asked for; and whether all held."""
    from shaketable.report.ci import badge, junit, summary
    from shaketable.report.gates import all_held

    if junit_to:
        emit_text(junit(found, done.title), str(junit_to))
    if markdown_to:
        emit_text(summary(done.title, done.answer(), found), markdown_to)
    if badge_to:
        emit_json(badge(found), str(badge_to))
    return all_held(found)


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
    emit_text(escaped(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)) + "\n", target)


def emit_text(text: str, target: str) -> None:
    """A text to a file, whole or not at all, or to stdout."""
    if target == "-":
        print(text, end="")
        return
    with written_whole(Path(target)) as out:
        out.write(text)

"""Where words go: results to stdout, everything else to stderr; progress only where somebody watches."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from shaketable.files import written_whole
from shaketable.report import cell, clean, escaped

if TYPE_CHECKING:
    from shaketable.door.audit import Audit
    from shaketable.door.plan import Plan
    from shaketable.door.train import TrainedWriter, Training
    from shaketable.report.gates import Ruling


def stdout(json_target: str | None = None) -> Console:
    """The console for tables; it moves to stderr where stdout is for JSON."""
    return Console(stderr=json_target == "-", highlight=False)


def say(message: str) -> None:
    """A remark on stderr, on one line, without what a terminal would obey: attackers write some of the texts."""
    print(" ".join(clean(message).splitlines()), file=sys.stderr)


def show(done: Audit, json_target: str | None) -> None:
    """Print all tables of an audit, what was skipped and why, and what rankers remark."""
    from shaketable.report.terminal import show_result

    console = stdout(json_target)
    for result in done.results:
        show_result(console, result)
    for task, reason in done.skipped.items():
        console.print(cell(f"{task} was skipped: {reason}"), markup=False)
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
        console.print(cell(f"{task} is not planned: {reason}"), markup=False)
    console.print(cell(str(plan)), markup=False)
    if json_target:
        emit_json(plan.json(), json_target)


def judge(rules: list[str]) -> Callable[[Audit], bool]:
    """Read the rules now; what is returned says later of an audit whether they hold, each on a line of its own."""
    ruled = ruling(rules)

    def held(done: Audit) -> bool:
        found = ruled(done)
        for one in found:
            say(str(one))
        return all(one.status != "failed" for one in found)

    return held


def ruling(rules: list[str]) -> Callable[[Audit], list[Ruling]]:
    """Read the rules now; what is returned says later of an audit what becomes of them."""
    from shaketable.report.gates import Gate

    for rule in rules:
        Gate.parse(rule)
    return lambda done: done.rulings(*rules)


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


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, nothing elsewhere or where there is nothing to do."""
    if total == 0 or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
    from rich.text import Text

    class Words(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(bar.text())

    bar = Bar(what, lambda done: bars.advance(task, done))
    columns = (Words(), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("", total=total)
        yield bar


@dataclass
class Bar:
    """What advances a progress bar, and has the words for it: what `beside` is given is asked whenever it is drawn."""

    what: str
    advance: Callable[[int], None]
    say: Callable[[], str] = str

    def text(self) -> str:
        """What is being done and, where something is out of the ordinary, what it waits for.

        >>> bar = Bar("scoring with mine", print)
        >>> bar.beside(lambda: "3 tried again")
        >>> bar.text()
        'scoring with mine (3 tried again)'
        """
        said = self.say()
        return cell(f"{self.what} ({said})" if said else self.what)

    def beside(self, say: Callable[[], str]) -> None:
        self.say = say

    def __call__(self, done: int) -> None:
        self.advance(done)

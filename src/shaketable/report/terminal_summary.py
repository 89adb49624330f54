"""The verdict of an audit on a terminal: the outcome first, then each ranker by status.

It has at most 25 lines on a wide screen, and up to twice as many on a narrow one, because nothing is cut off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from shaketable.measures.status import FAIL, INCONCLUSIVE, NOT_TESTED, PASS, WARN, Status
from shaketable.report import format_cell, join_names
from shaketable.report.diff import describe_difference
from shaketable.report.gates import GateResult
from shaketable.report.scorecard import FacetCell
from shaketable.report.verdict import DEFAULT_GATE_RULES, FIRST_STAGE, RankerVerdict, Verdict, WorstFinding

MAX_LINES = 24
"""The maximum number of lines on a wide screen; one more line names the report."""
STATUS_STYLES: Mapping[Status, str] = {
    FAIL: "bold red",
    WARN: "yellow",
    INCONCLUSIVE: "dim",
    NOT_TESTED: "dim",
    PASS: "green",
}
OUTCOME_STYLES = {"passed": "bold green", "failed": "bold red", "inconclusive": "bold yellow"}
MAX_RULES_SHOWN = 4
WIDE_SCREEN_COLUMNS = 100
"""The width of a terminal from which the verdict is limited to `MAX_LINES`."""
GATE_REMEDY = "add --gate"


@dataclass(frozen=True)
class _Layout:
    """The parts of a verdict that are shown: cells in full, examples and advice, the first stage, small tests."""

    full_cells: bool
    examples: bool
    advice: bool
    first_stage: bool
    small_tests: bool


LAYOUTS = (
    _Layout(True, True, True, True, True),
    _Layout(True, True, True, False, True),
    _Layout(True, True, False, False, True),
    _Layout(True, True, False, False, False),
    _Layout(True, False, False, False, False),
    _Layout(False, True, False, False, False),
    _Layout(False, False, False, False, False),
)
"""Layouts from the fullest; nothing is cut off inside a sentence, whole parts are left to the report instead."""


def print_verdict(console: Console, verdict: Verdict, *, enforced: bool = True, remedy: str = GATE_REMEDY) -> None:
    """Print the verdict; `enforced` says whether the default gate decides the exit code, `remedy` how it would."""
    for line in render_lines(verdict, console.width, enforced=enforced, remedy=remedy):
        console.print(line, no_wrap=True, overflow="ignore", crop=False)


def render_lines(verdict: Verdict, width: int, *, enforced: bool = True, remedy: str = GATE_REMEDY) -> list[Text]:
    """Return the lines of the verdict in the fullest layout that fits; rankers are left out last."""
    most = MAX_LINES if width >= WIDE_SCREEN_COLUMNS else MAX_LINES * 2
    aside = "" if enforced else f" (not enforced; {remedy})"
    head = [*_render_headline(verdict, width, aside), *_render_rules(verdict.gate_results, width)]
    for layout in LAYOUTS:
        lines = [*head, *_render_body(verdict, verdict.ranker_verdicts, layout, width)]
        if len(lines) <= most:
            return lines
    tested = [one for one in verdict.ranker_verdicts if one.role != FIRST_STAGE]
    lines = [*head, *_render_body(verdict, tested[:1], LAYOUTS[-1], width)]
    for count in range(len(tested) - 1, 0, -1):
        rest = len(tested) - count
        more = Text(f"… and {rest} more ranker{'s' if rest > 1 else ''}, in the report", style="dim")
        lines = [*head, *_render_body(verdict, tested[:count], LAYOUTS[-1], width), more]
        if len(lines) <= most:
            return lines
    return [*lines[: most - 1], Text("… the rest is in the report", style="dim")]


def _render_headline(verdict: Verdict, width: int, not_enforced: str) -> list[Text]:
    word = verdict.outcome.upper()
    aside = not_enforced if verdict.outcome == "failed" else ""
    lines = _wrap_text(f"{word}{aside}: {verdict.headline}" if word else verdict.headline, width)
    lines[0].stylize(OUTCOME_STYLES.get(verdict.outcome, "bold"), 0, len(word))
    return lines


def _render_rules(gate_results: Sequence[GateResult], width: int) -> Iterator[Text]:
    """Render a line for each of the user's rules, and the rules of the default gate that the cells do not show."""
    own = [one for one in gate_results if one.rule not in DEFAULT_GATE_RULES]
    own.sort(key=lambda one: list(STATUS_STYLES).index(one.status))
    for one in own[:MAX_RULES_SHOWN]:
        yield from _render_status_line(one.status, f"{one.rule}: {one.message}", width)
    if (more := len(own) - MAX_RULES_SHOWN) > 0:
        yield Text(f"and {more} more rules, in the report", style="dim")


def _render_body(
    verdict: Verdict, ranker_verdicts: Sequence[RankerVerdict], layout: _Layout, width: int
) -> Iterator[Text]:
    for one in ranker_verdicts:
        if one.facet_cells and (one.role != FIRST_STAGE or layout.first_stage):
            yield from _render_ranker(one, verdict, layout, width)
    for number, worst in enumerate(verdict.worst_findings, 1):
        yield from _render_worst_finding(number, worst, layout, width)
    said = [*verdict.untested, *verdict.cautions, *(verdict.small_tests if layout.small_tests else ())]
    for line in _wrap_text(" ".join(format_cell(text) for text in said), width) if said else ():
        line.stylize("dim")
        yield line


def _render_ranker(one: RankerVerdict, verdict: Verdict, layout: _Layout, width: int) -> Iterator[Text]:
    """Render the name, a line for each facet that fails or warns, and one line each for the other statuses."""
    role = f" ({one.role})" if one.role == FIRST_STAGE else ""
    yield Text(f"{format_cell(one.ranker)}{role}", style="bold")
    by_status = {
        status: [cell for cell in one.facet_cells.values() if cell.status == status] for status in STATUS_STYLES
    }
    for status in (FAIL, WARN):
        cells = by_status[status]
        short = ", ".join(f"{cell.facet} {cell.value} {cell.measure}" for cell in cells)
        for text in [f"{cell.facet} {cell.text}" for cell in cells] if layout.full_cells else filter(None, [short]):
            yield from _render_status_line(status, text, width, indent=2)
    if cells := by_status[INCONCLUSIVE]:
        said = "; ".join(_describe_by_reason(cells)) if layout.full_cells else join_names([c.facet for c in cells])
        yield from _render_status_line(INCONCLUSIVE, said, width, indent=2)
    if cells := by_status[PASS]:
        bounds = [f" ({cell.bound})" if cell.bound and layout.full_cells else "" for cell in cells]
        said = ", ".join(f"{cell.facet} {cell.value}{bound}" for cell, bound in zip(cells, bounds, strict=True))
        yield from _render_status_line(PASS, said, width, indent=2)


def _describe_by_reason(cells: Sequence[FacetCell]) -> Iterator[str]:
    """Describe cells with their reasons; facets that share a reason are named together, without their numbers."""
    by_reason: dict[str, list[FacetCell]] = {}
    for cell in cells:
        by_reason.setdefault(cell.remark or cell.bound, []).append(cell)
    for reason, own in by_reason.items():
        first = own[0]
        said = (
            join_names([cell.facet for cell in own]) if len(own) > 1 else f"{first.facet} {first.value} {first.measure}"
        )
        yield f"{said} ({reason})"


def _render_worst_finding(number: int, worst: WorstFinding, layout: _Layout, width: int) -> Iterator[Text]:
    said = [worst.sentence, *([worst.advice] if layout.advice else [])]
    lines = _wrap_text(f"{number}. {' '.join(said)}", width, indent=3)
    lines[0].stylize("bold", 0, 2)
    yield from lines
    if layout.examples and worst.example is not None:
        before, after = describe_difference(worst.example.before, worst.example.after, width - 13)
        if before != after:
            yield Text(f"   before: {before}", style="dim")
            yield Text(f"   after:  {after}", style="dim")


def _render_status_line(status: Status, text: str, width: int, indent: int = 0) -> list[Text]:
    lines = _wrap_text(f"{' ' * indent}{status}: {text}", width, indent + 2)
    lines[0].stylize(STATUS_STYLES[status], indent, indent + len(status))
    return lines


def _wrap_text(text: str, width: int, indent: int = 0) -> list[Text]:
    """Wrap a text; a word that is wider than the screen is broken, and nothing is left out."""
    lead = len(text) - len(text.lstrip(" "))
    lines = [" " * lead]
    for word in format_cell(text.strip()).split(" "):
        rest = word
        if lines[-1].strip() and cell_len(lines[-1]) + 1 + cell_len(rest) > width:
            lines.append(" " * indent)
        gap = " " if lines[-1].strip() else ""
        while cell_len(lines[-1]) + len(gap) + cell_len(rest) > width and len(rest) > 1:
            room = max(width - cell_len(lines[-1]) - len(gap), 1)
            cut = next((n for n in range(len(rest), 0, -1) if cell_len(rest[:n]) <= room), 1)
            lines[-1] += gap + rest[:cut]
            rest, gap = rest[cut:], ""
            lines.append(" " * indent)
        lines[-1] += gap + rest
    return [Text(line) for line in lines]

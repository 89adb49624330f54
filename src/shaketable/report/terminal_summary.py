"""The verdict of an audit on a terminal, in at most 25 lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from shaketable.measures.facets import get_facet
from shaketable.measures.significance import MIN_QUERIES
from shaketable.measures.status import FAIL, INCONCLUSIVE, NOT_TESTED, PASS, WARN, Status
from shaketable.report import format_cell
from shaketable.report.gates import GateResult
from shaketable.report.verdict import DEFAULT_GATE_RULES, FIRST_STAGE, FacetCell, RankerVerdict, Verdict, WorstFinding

MAX_LINES = 24
"""The maximum number of lines; one more line names the report."""
STATUS_STYLES: Mapping[Status, str] = {
    FAIL: "bold red",
    WARN: "yellow",
    INCONCLUSIVE: "dim",
    NOT_TESTED: "dim",
    PASS: "green",
}
CELL_WIDTH = 12
"""Characters of a cell: "-13.3% warn" above "[-17.5, -9.3]" without its decimals; "inconclusive" takes more."""
NAME_WIDTH = 16
MAX_RULES_SHOWN = 4
WIDE_SCREEN_COLUMNS = 100
"""The width of a terminal from which the verdict is limited to `MAX_LINES`."""
Line = Text


def print_verdict(console: Console, verdict: Verdict) -> None:
    """Print the verdict: gates, a row for each ranker, the worst findings, and the limits of the measurement."""
    for line in render_lines(verdict, console.width):
        console.print(line, no_wrap=True, overflow="ellipsis", crop=True)


LAYOUTS = ((2, 3, 1, 5), (2, 2, 1, 5), (2, 2, 0, 4), (2, 2, 0, 2), (1, 2, 1, 4), (1, 2, 0, 2), (1, 1, 0, 1))
"""Lines for a ranker, for a finding, between parts, and for cautions; intervals are dropped before examples."""


def render_lines(verdict: Verdict, width: int) -> list[Line]:
    """Return the lines of the verdict in the fullest layout that fits; rankers are omitted last."""
    facets, undecided = _select_facets(verdict)
    head = [*_render_headline(verdict, width), *_render_gates(verdict.gate_results, width)]
    most = MAX_LINES if width >= WIDE_SCREEN_COLUMNS else MAX_LINES * 2
    for rows, each, gap, known in LAYOUTS:
        worst = [
            line
            for i, one in enumerate(verdict.worst_findings)
            for line in _render_worst_finding(i + 1, one, width, each)
        ]
        tail = _render_cautions(verdict, facets, undecided, width, known)
        whole = [*head, *_render_scorecard(verdict.ranker_verdicts, facets, width, rows, gap), *worst, *tail]
        if len(whole) <= most:
            return whole
    for count in range(len(verdict.ranker_verdicts) - 1, 0, -1):
        more = Text(f"… and {len(verdict.ranker_verdicts) - count} more rankers, in the report", style="dim")
        whole = [*head, *_render_scorecard(verdict.ranker_verdicts[:count], facets, width, 1, 0), more, *worst, *tail]
        if len(whole) <= most:
            break
    return whole


def _select_facets(verdict: Verdict) -> tuple[list[str], list[str]]:
    """Return the facets with a column, and the facets with too few queries for every ranker."""
    decided: list[str] = []
    undecided: list[str] = []
    for facet in verdict.facets:
        cells = [one.facet_cells[facet] for one in verdict.ranker_verdicts if facet in one.facet_cells]
        few = all(cell.status == INCONCLUSIVE and cell.finding.n < MIN_QUERIES for cell in cells)
        (undecided if few else decided).append(facet)
    return (decided, undecided) if decided else (undecided, decided)


def _render_headline(verdict: Verdict, width: int) -> list[Line]:
    word = {True: "PASS", False: "FAIL", None: ""}[verdict.passed]
    style = "bold green" if verdict.passed else "bold red"
    band = _wrap_text(f"{word}: {verdict.headline}" if word else verdict.headline, width, 2)
    band[0].stylize(style, 0, len(word))
    return band


def _render_gates(gate_results: Sequence[GateResult], width: int) -> Iterator[Line]:
    """Render a line for each of the user's rules, and up to three for the default gate: failures, then warnings."""
    shown: list[tuple[Status, str, int]] = [
        (one.status, f"{one.rule}: {one.message}", 1) for one in gate_results if one.rule not in DEFAULT_GATE_RULES
    ]
    shown.sort(key=lambda entry: list(STATUS_STYLES).index(entry[0]))
    if (more := len(shown) - MAX_RULES_SHOWN) > 0:
        shown = [*shown[:MAX_RULES_SHOWN], (PASS, f"and {more} more, in the report", 1)]
    failed = {one.ranker for one in gate_results if _is_default_rule(one, FAIL)}
    limits: tuple[tuple[Status, int], ...] = ((FAIL, 2), (WARN, 1))
    for status, most in limits:
        by_ranker = {one.ranker: one.message for one in reversed(gate_results) if _is_default_rule(one, status)}
        by_ranker = {name: said for name, said in by_ranker.items() if status == FAIL or name not in failed}
        if by_ranker:
            shown.append((status, " ".join(reversed(by_ranker.values())), most))
    for status, said, most in shown:
        found = _wrap_text(f"{status}: {said}", width, most)
        found[0].stylize(STATUS_STYLES[status], 0, len(status))
        yield from found


def _is_default_rule(one: GateResult, status: str) -> bool:
    return one.rule in DEFAULT_GATE_RULES and one.status == status


def _render_scorecard(
    ranker_verdicts: Sequence[RankerVerdict], facets: Sequence[str], width: int, rows: int, gap: int
) -> list[Line]:
    """Render the scorecard in blocks of facets; each block has one row per ranker, or two with intervals."""
    names = min(NAME_WIDTH, max((cell_len(_format_name(one)) for one in ranker_verdicts), default=0))
    cells = {
        facet: max([CELL_WIDTH, *(_render_cell(one.facet_cells.get(facet)).cell_len for one in ranker_verdicts)])
        for facet in facets
    }
    widths = {facet: max(cells[facet], cell_len(facet)) for facet in facets}
    if folded := sum(widths.values()) + len(widths) > width - names:
        widths = {facet: max(cells[facet], *map(cell_len, facet.split())) for facet in facets}
    found: list[Line] = []
    for block in _split_blocks(facets, widths, width - names):
        found += [Text("")] * gap
        titles = [facet.split() if folded else [facet] for facet in block]
        for words in zip_longest(*titles, fillvalue=""):
            found.append(_render_row(Text(""), [Text(w, style="bold") for w in words], block, names, widths))
        for one in ranker_verdicts:
            row = [one.facet_cells.get(facet) for facet in block]
            found.append(
                _render_row(Text(_format_name(one)), [_render_cell(cell) for cell in row], block, names, widths)
            )
            if rows > 1:
                found.append(_render_row(Text(""), [_render_interval(cell) for cell in row], block, names, widths))
    return [*found, *[Text("")] * gap] if found else []


def _split_blocks(facets: Sequence[str], widths: dict[str, int], room: int) -> Iterator[list[str]]:
    block: list[str] = []
    for facet in facets:
        if block and sum(widths[name] + 1 for name in (*block, facet)) > room:
            yield block
            block = []
        block.append(facet)
    if block:
        yield block


def _render_row(name: Text, cells: Sequence[Text], block: Sequence[str], names: int, widths: dict[str, int]) -> Line:
    line = _fit_width(name, names)
    for facet, text in zip(block, cells, strict=True):
        line.append(" ").append_text(_fit_width(text, widths[facet]))
    return line


def _fit_width(text: Text, width: int) -> Text:
    text = text.copy()
    text.truncate(width, overflow="ellipsis", pad=True)
    return text


def _format_name(one: RankerVerdict) -> str:
    return f"{format_cell(one.ranker)} *" if one.role == FIRST_STAGE else format_cell(one.ranker)


def _render_cell(facet_cell: FacetCell | None) -> Text:
    """Render the number, with its decimals if they fit, and the status."""
    if facet_cell is None:
        return Text(NOT_TESTED, style=STATUS_STYLES[NOT_TESTED])
    value, unit = facet_cell.value.partition(" [")[0], ""
    if value.endswith(" %"):
        value, unit = value.removesuffix(" %"), "%"
    if len(f"{value}{unit} {facet_cell.status}") > CELL_WIDTH:
        value = _shorten_number(value)
    return Text(f"{value}{unit} ").append(facet_cell.status, style=STATUS_STYLES[facet_cell.status])


def _render_interval(facet_cell: FacetCell | None) -> Text:
    if facet_cell is None or " [" not in facet_cell.value:
        return Text("")
    inside = facet_cell.value.partition(" [")[2].removesuffix("]")
    if len(inside) + 2 > CELL_WIDTH:
        inside = ", ".join(map(_shorten_number, inside.split(", ")))
    return Text(f"[{inside}]", style="dim")


def _shorten_number(text: str) -> str:
    """Return a number with fewer decimals: none for a percentage, two for a measure.

    >>> [_shorten_number(text) for text in ("-13.3", "+4.6", "0.493")]
    ['-13', '+5', '0.49']
    """
    whole, _, decimals = text.partition(".")
    if not decimals:
        return text
    signed = "+" if whole.startswith("+") else ""
    kept = 2 if len(decimals) > 1 else 0
    return f"{round(float(text), kept) + 0.0:{signed}.{kept}f}"


def _render_worst_finding(number: int, worst_finding: WorstFinding, width: int, max_lines: int) -> list[Line]:
    advice = f" {worst_finding.advice}" if max_lines > 2 else ""
    found = _wrap_text(f"{number}. {worst_finding.sentence}{advice}", width, max_lines, indent=3)
    found[0].stylize("bold", 0, 2)
    return found


def _render_cautions(
    verdict: Verdict, facets: Sequence[str], undecided_facets: Sequence[str], width: int, max_lines: int
) -> list[Line]:
    """Render the limits of the measurement, and the legend of the columns."""
    shown = [cell for one in verdict.ranker_verdicts for cell in one.facet_cells.values() if cell.facet in facets]
    said = ["*: the first stage."] if any(one.role == FIRST_STAGE for one in verdict.ranker_verdicts) else []
    said += [verdict.worst_slice, *verdict.cautions]
    if undecided_facets:
        said.append(f"Too few queries for a verdict ({MIN_QUERIES} needed): {', '.join(undecided_facets)}.")
    if any(cell.status == INCONCLUSIVE for cell in shown):
        said.append("inconclusive: the loss may be chance, or the ranker has little to lose.")
    said += [f"{format_cell(facet)}: {legend}." for facet in facets if (legend := get_facet(facet).legend)]
    found = _wrap_text(" ".join(text for text in said if text), width, max_lines)
    for line in found:
        line.stylize("dim")
    return found


def _wrap_text(text: str, width: int, max_lines: int, indent: int = 0) -> list[Line]:
    """Wrap the text into at most `max_lines` lines; an ellipsis marks a cut."""
    if not text:
        return []
    found = [""]
    for word in format_cell(text).split(" "):
        if found[-1].strip() and cell_len(found[-1]) + 1 + cell_len(word) > width:
            found.append(" " * indent + word)
        else:
            found[-1] = f"{found[-1]} {word}" if found[-1] else word
    cut = [Text(line) for line in found[:max_lines]]
    if len(found) > max_lines:
        cut[-1].append(" …")
        cut[-1].truncate(width - 1)
        if not cut[-1].plain.endswith("…"):
            cut[-1].append("…")
    for line in cut:
        line.truncate(width, overflow="ellipsis")
    return cut

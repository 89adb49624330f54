"""The answer of an audit on a screen: at most 25 lines, whatever was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from shaketable.measure.facets import BREAKS, SHAKEN, STEADY, UNCLEAR, facet_of
from shaketable.measure.significance import FEWEST_QUERIES
from shaketable.report import NOTHING, cell
from shaketable.report.answer import DEFAULT_GATE, FIRST_STAGE, Answer, Blow, Mark, Standing
from shaketable.report.gates import Ruling

MOST_LINES = 24
"""One more says where the report is."""
STYLES = {STEADY: "green", SHAKEN: "yellow", BREAKS: "bold red", UNCLEAR: "dim"}
STATUS_STYLES = {"failed": "bold red", "warned": "yellow", "held": "green"}
CELL = 12
"""Columns of a mark: "-13% unclear" above "[-17.5, -9.3]" without its decimals."""
NAME = 16
MOST_RULES = 4
WIDE = 100
"""Columns of a screen from which on the answer keeps to `MOST_LINES`."""
Line = Text


def show_answer(console: Console, answer: Answer) -> None:
    """Print the answer: gates, a row for each ranker, the worst findings, and what to know before believing them."""
    for line in lines(answer, console.width):
        console.print(line, no_wrap=True, overflow="ellipsis", crop=True)


LAYOUTS = ((2, 3, 1, 5), (2, 2, 1, 5), (2, 2, 0, 4), (2, 2, 0, 2), (1, 2, 1, 4), (1, 2, 0, 2), (1, 1, 0, 1))
"""Lines for a ranker, for a finding, between parts, and for what to know: intervals give way before examples."""


def lines(answer: Answer, width: int) -> list[Line]:
    """The answer in lines, as full as there is room for; rankers are left out last of all."""
    facets, untold = _columns(answer)
    head = [*_band(answer, width), *_gates(answer.rulings, width)]
    most = MOST_LINES if width >= WIDE else MOST_LINES * 2
    for rows, each, gap, known in LAYOUTS:
        worst = [line for i, blow in enumerate(answer.worst) for line in _blow(i + 1, blow, width, each)]
        tail = _cautions(answer, facets, untold, width, known)
        whole = [*head, *_card(answer.standings, facets, width, rows, gap), *worst, *tail]
        if len(whole) <= most:
            return whole
    for count in range(len(answer.standings) - 1, 0, -1):
        more = Text(f"… and {len(answer.standings) - count} more rankers, in the report", style="dim")
        whole = [*head, *_card(answer.standings[:count], facets, width, 1, 0), more, *worst, *tail]
        if len(whole) <= most:
            break
    return whole


def _columns(answer: Answer) -> tuple[list[str], list[str]]:
    """The facets that have a column, and those of which no ranker has anything but too few queries."""
    told: list[str] = []
    untold: list[str] = []
    for facet in answer.facets:
        marks = [one.marks[facet] for one in answer.standings if facet in one.marks]
        few = all(mark.word == UNCLEAR and mark.finding.n < FEWEST_QUERIES for mark in marks)
        (untold if few else told).append(facet)
    return (told, untold) if told else (untold, told)


def _band(answer: Answer, width: int) -> list[Line]:
    word = {True: "PASSED", False: "FAILED", None: ""}[answer.passed]
    style = "bold green" if answer.passed else "bold red"
    band = _wrapped(f"{word}: {answer.headline}" if word else answer.headline, width, 2)
    band[0].stylize(style, 0, len(word))
    return band


def _gates(rulings: Sequence[Ruling], width: int) -> Iterator[Line]:
    """A line for each of the user's rules, and two for the default gate: who failed, and who is warned."""
    shown: list[tuple[str, str, int]] = [
        (one.status, f"{one.rule}: {one.said}", 1) for one in rulings if one.rule not in DEFAULT_GATE
    ]
    shown.sort(key=lambda entry: list(STATUS_STYLES).index(entry[0]))
    if (more := len(shown) - MOST_RULES) > 0:
        shown = [*shown[:MOST_RULES], ("held", f"and {more} more, in the report", 1)]
    failed = {one.ranker for one in rulings if _default(one, "failed")}
    for status, most in (("failed", 2), ("warned", 1)):
        by_ranker = {one.ranker: one.said for one in reversed(rulings) if _default(one, status)}
        by_ranker = {name: said for name, said in by_ranker.items() if status == "failed" or name not in failed}
        if by_ranker:
            shown.append((status, " ".join(reversed(by_ranker.values())), most))
    for status, said, most in shown:
        found = _wrapped(f"{status}: {said}", width, most)
        found[0].stylize(STATUS_STYLES[status], 0, len(status))
        yield from found


def _default(one: Ruling, status: str) -> bool:
    return one.rule in DEFAULT_GATE and one.status == status


def _card(standings: Sequence[Standing], facets: Sequence[str], width: int, rows: int, gap: int) -> list[Line]:
    """The scorecard: the facets in as many blocks as it takes, and in each a row, or two with intervals, a ranker."""
    names = min(NAME, max((cell_len(_name(one)) for one in standings), default=0))
    widths = {facet: max(CELL, cell_len(facet)) for facet in facets}
    if folded := sum(widths.values()) + len(widths) > width - names:
        widths = {facet: max(CELL, *map(cell_len, facet.split())) for facet in facets}
    found: list[Line] = []
    for block in _blocks(facets, widths, width - names):
        found += [Text("")] * gap
        titles = [facet.split() if folded else [facet] for facet in block]
        for words in zip_longest(*titles, fillvalue=""):
            found.append(_row(Text(""), [Text(w, style="bold") for w in words], block, names, widths))
        for one in standings:
            marks = [one.marks.get(facet) for facet in block]
            found.append(_row(Text(_name(one)), [_told(mark) for mark in marks], block, names, widths))
            if rows > 1:
                found.append(_row(Text(""), [_interval(mark) for mark in marks], block, names, widths))
    return [*found, *[Text("")] * gap] if found else []


def _blocks(facets: Sequence[str], widths: dict[str, int], room: int) -> Iterator[list[str]]:
    block: list[str] = []
    for facet in facets:
        if block and sum(widths[name] + 1 for name in (*block, facet)) > room:
            yield block
            block = []
        block.append(facet)
    if block:
        yield block


def _row(name: Text, cells: Sequence[Text], block: Sequence[str], names: int, widths: dict[str, int]) -> Line:
    line = _fitted(name, names)
    for facet, text in zip(block, cells, strict=True):
        line.append(" ").append_text(_fitted(text, widths[facet]))
    return line


def _fitted(text: Text, width: int) -> Text:
    text = text.copy()
    text.truncate(width, overflow="ellipsis", pad=True)
    return text


def _name(one: Standing) -> str:
    return f"{cell(one.ranker)} *" if one.role == FIRST_STAGE else cell(one.ranker)


def _told(mark: Mark | None) -> Text:
    """The number, with a decimal if there is room for it, and the word."""
    if mark is None:
        return Text(NOTHING, style="dim")
    value, unit = mark.value.partition(" [")[0], ""
    if value.endswith(" %"):
        value, unit = value.removesuffix(" %"), "%"
    if len(f"{value}{unit} {mark.word}") > CELL:
        value = _short(value)
    return Text(f"{value}{unit} ").append(mark.word, style=STYLES.get(mark.word, ""))


def _interval(mark: Mark | None) -> Text:
    if mark is None or " [" not in mark.value:
        return Text("")
    inside = mark.value.partition(" [")[2].removesuffix("]")
    if len(inside) + 2 > CELL:
        inside = ", ".join(map(_short, inside.split(", ")))
    return Text(f"[{inside}]", style="dim")


def _short(text: str) -> str:
    """A number with fewer decimals: none after the point in per cent, two in a measure.

    >>> [_short(text) for text in ("-13.3", "+4.6", "0.493")]
    ['-13', '+5', '0.49']
    """
    whole, _, decimals = text.partition(".")
    if not decimals:
        return text
    signed = "+" if whole.startswith("+") else ""
    places = 2 if len(decimals) > 1 else 0
    return f"{round(float(text), places) + 0.0:{signed}.{places}f}"


def _blow(number: int, blow: Blow, width: int, most: int) -> list[Line]:
    advice = f" {blow.advice}" if most > 2 else ""
    found = _wrapped(f"{number}. {blow.sentence}{advice}", width, most, indent=3)
    found[0].stylize("bold", 0, 2)
    return found


def _cautions(answer: Answer, facets: Sequence[str], untold: Sequence[str], width: int, most: int) -> list[Line]:
    """What to know before any of it is believed, and what the columns are."""
    shown = [mark for one in answer.standings for mark in one.marks.values() if mark.facet in facets]
    said = ["*: the first stage."] if any(one.role == FIRST_STAGE for one in answer.standings) else []
    said += [answer.worst_slice, *answer.cautions]
    if untold:
        said.append(f"Measured on too few queries for a word: {', '.join(untold)}.")
    if any(mark.word == UNCLEAR for mark in shown):
        said.append("unclear: chance, or too little to lose, cannot be ruled out.")
    said += [f"{cell(facet)}: {legend}." for facet in facets if (legend := facet_of(facet).legend)]
    found = _wrapped(" ".join(text for text in said if text), width, most)
    for line in found:
        line.stylize("dim")
    return found


def _wrapped(text: str, width: int, most: int, indent: int = 0) -> list[Line]:
    """The text in at most so many lines; where it ends early, an ellipsis says so."""
    if not text:
        return []
    found = [""]
    for word in cell(text).split(" "):
        if found[-1].strip() and cell_len(found[-1]) + 1 + cell_len(word) > width:
            found.append(" " * indent + word)
        else:
            found[-1] = f"{found[-1]} {word}" if found[-1] else word
    cut = [Text(line) for line in found[:most]]
    if len(found) > most:
        cut[-1].append(" …")
        cut[-1].truncate(width - 1)
        if not cut[-1].plain.endswith("…"):
            cut[-1].append("…")
    for line in cut:
        line.truncate(width, overflow="ellipsis")
    return cut

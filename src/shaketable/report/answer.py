"""The answer of an audit: what is wrong with each ranker, how badly, where, and what to do about it.

Numbers that tasks marked with a facet become words by the table of `measure.facets`; nothing here knows a task. What a
ranker is worth comes first: one that has no order of its own, or a bad one, is never called steady, because it has
nothing to lose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite, isnan
from typing import Any

from shaketable.measure.facets import (
    BREAKS,
    EFFECTIVENESS,
    FACETS,
    GAIN,
    LEVEL,
    OWN_ORDER,
    SHAKEN,
    SHAKES,
    STEADY,
    UNCLEAR,
    WORST_FIRST,
    facet_of,
    judged,
)
from shaketable.measure.significance import FEWEST_QUERIES
from shaketable.report import cell, number
from shaketable.report.gates import Ruling
from shaketable.types import Example, Finding, Result

UNDER_TEST, FIRST_STAGE = "under test", "first stage"
RANKS, NOT_BELOW, NOTHING_BREAKS = "ranks by itself", "is not below the first stage", "no facet breaks"
DEFAULT_GATE = (RANKS, NOT_BELOW, NOTHING_BREAKS)
"""The rules of the default gate, each on every ranker under test."""
OWN_AT_LEAST = 5.0
"""In fewer lists than these, in per cent, an order of its own is an accident."""
YARDSTICK = "the others are compared with it"
LITTLE_TO_LOSE, NOT_ITS_OWN = "it has little to lose", "the order is not its own"
MOST_BLOWS = 3
MOST_TEXT = 60
"""Characters of a query that a sentence shows."""


@dataclass(frozen=True)
class Mark:
    """One cell of the scorecard: a ranker and a facet."""

    facet: str
    word: str
    """steady, shaken, breaks, or unclear: not significant, or on too few queries."""
    value: str
    """As it is shown: "-13.3 % [-17.5, -9.3]"."""
    finding: Finding
    """The number behind it, with values by query where there are some."""
    remark: str = ""


@dataclass(frozen=True)
class Standing:
    """One ranker: a plain sentence, and a mark for each facet that was measured."""

    ranker: str
    role: str
    """under test, or first stage."""
    sentence: str
    marks: Mapping[str, Mark]


@dataclass(frozen=True)
class Blow:
    """One of the worst findings, with a real case where there is one, and what to do about it."""

    sentence: str
    mark: Mark
    ranker: str
    example: Example | None
    advice: str


@dataclass(frozen=True)
class Answer:
    """What an audit comes to, before any table."""

    headline: str
    passed: bool | None
    """Did every gate hold? None if there are none."""
    facets: tuple[str, ...]
    """The columns of the scorecard, in order: only what was measured."""
    standings: tuple[Standing, ...]
    """The rankers under test, then the first stage."""
    worst: tuple[Blow, ...]
    worst_slice: str = ""
    rulings: tuple[Ruling, ...] = ()
    cautions: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        """All of it as plain values; of the findings, which have their values by query elsewhere, only the numbers."""
        plain = asdict(self)
        for mark in [mark for one in plain["standings"] for mark in one["marks"].values()]:
            del mark["finding"]["values"]
        for blow in plain["worst"]:
            del blow["mark"]["finding"]["values"]
        return plain


@dataclass(frozen=True)
class _Judged:
    """A finding of a facet with its word, and how bad it is: 1 is where a ranker breaks."""

    finding: Finding
    word: str
    remark: str
    badness: float

    @property
    def order(self) -> tuple[bool, int, float]:
        """Worst first; what rests on too few queries only where there is nothing else."""
        return self.finding.n < FEWEST_QUERIES, WORST_FIRST.index(self.word), -self.badness


def answer(results: Sequence[Result], provenance: Mapping[str, Any], rulings: Sequence[Ruling] = ()) -> Answer:
    """What the results of an audit come to; `rulings` are those of the user's gates, the default gate's are added."""
    findings = [finding for result in results for finding in result.findings]
    first = str(provenance.get("baseline", ""))
    rankers = [name for name in _rankers(findings, provenance) if name != first]
    cards = {name: _card([one for one in findings if one.ranker == name]) for name in rankers}
    cards |= {first: _card([one for one in findings if one.ranker == first], yardstick=True)} if first else {}
    own = {one.ranker: one for one in findings if one.name == OWN_ORDER}
    standings = tuple(
        Standing(
            name,
            FIRST_STAGE if name == first else UNDER_TEST,
            _sentence(name, marks, own.get(name), name == first, len(cards) == 1),
            {facet: mark.mark for facet, mark in marks.items()},
        )
        for name, marks in cards.items()
    )
    found = {facet for marks in cards.values() for facet in marks}
    facets = [facet.name for facet in FACETS if facet.name in found]
    facets += sorted(found - set(facets))
    every = (*rulings, *(ruling for name in rankers for ruling in _default_gate(name, cards[name], own.get(name))))
    return Answer(
        _headline(standings, every),
        all(ruling.status != "failed" for ruling in every) if every else None,
        tuple(facets),
        standings,
        tuple(_blows({name: card for name, card in cards.items() if not _does_nothing(own.get(name))}, first, results)),
        _worst_slice(findings, [name for name in rankers or [first] if not _does_nothing(own.get(name))]),
        every,
        tuple(_cautions(results, provenance, findings)),
    )


def _rankers(findings: Sequence[Finding], provenance: Mapping[str, Any]) -> list[str]:
    """Their names in the order in which the user gave them."""
    given = provenance.get("rankers", {})
    return [*given, *dict.fromkeys(one.ranker for one in findings if one.ranker not in given)]


@dataclass(frozen=True)
class _Cell:
    """A mark, and the judged number that gave it its word."""

    mark: Mark
    judged: _Judged


def _card(findings: Sequence[Finding], *, yardstick: bool = False) -> dict[str, _Cell]:
    """facet -> what stands for it: the worst of the findings that are marked with it."""
    marked = [one for one in findings if one.facet and isfinite(one.value)]
    names = _ordered(list({one.facet for one in marked}))
    card = {name: _cell(name, [one for one in marked if one.facet == name]) for name in names}
    if yardstick:
        return {name: _as_yardstick(one) if facet_of(name).compared else one for name, one in card.items()}
    own = next((one for one in findings if one.name == OWN_ORDER), None)
    worth = card.get(EFFECTIVENESS)
    if _does_nothing(own):
        return {name: _doubted(one, NOT_ITS_OWN) for name, one in card.items()}
    if worth and worth.mark.word == BREAKS:
        return {name: _doubted(one, LITTLE_TO_LOSE) for name, one in card.items()}
    return card


def _cell(facet: str, findings: Sequence[Finding]) -> _Cell:
    of = facet_of(facet)
    cases = []
    for one in findings:
        scale = of.scale(one)
        word, remark = judged(one, scale)
        badness = scale.loss(one, one.value) / scale.breaks if scale else 0.0
        cases.append(_Judged(one, word, remark, badness))
    scaled = [case for case in cases if of.scale(case.finding)]
    worst = min(scaled or cases, key=lambda case: case.order)
    # where rankers are compared, the number itself is what a reader looks for, and the comparison gives the word
    shown = next((one for one in findings if of.compared and of.scale(one) is None), worst.finding)
    remark = worst.remark
    if of.compared and not scaled:
        remark = "not compared with a first stage"
    elif shown is not worst.finding:
        beside = f"{_value(facet, worst.finding)} beside {cell(worst.finding.against)}"
        remark = f"{beside}, {remark}" if remark else beside
    return _Cell(Mark(facet, worst.word, _value(facet, shown), shown, remark), worst)


def _as_yardstick(one: _Cell) -> _Cell:
    return _Cell(replace(one.mark, word=STEADY, remark=YARDSTICK), replace(one.judged, word=STEADY))


def _doubted(one: _Cell, remark: str) -> _Cell:
    """What would be called steady of a ranker that cannot be."""
    if one.mark.word != STEADY:
        return one
    return _Cell(replace(one.mark, word=UNCLEAR, remark=remark), replace(one.judged, word=UNCLEAR))


def _value(facet: str, finding: Finding) -> str:
    """A number and its interval, as they are shown."""
    scale = facet_of(facet).scale(finding)
    unit = scale.unit if scale else "%" if finding.name.endswith("%") or finding.name.startswith("%") else ""
    sign, decimals = ("+" if unit == "+%" else ""), (1 if unit else 3)

    def shown(value: float) -> str:
        return f"{value + 0.0:{sign}.{decimals}f}" if abs(value) < 10_000 else number(value)

    text = f"{shown(finding.value)}{' %' if unit else ''}"
    if isnan(finding.low) or isnan(finding.high):
        return text
    return f"{text} [{shown(finding.low)}, {shown(finding.high)}]"


def _does_nothing(own: Finding | None) -> bool:
    """Has the ranker no order of its own?"""
    return own is not None and own.value < OWN_AT_LEAST


def _sentence(name: str, card: Mapping[str, _Cell], own: Finding | None, first: bool, alone: bool) -> str:
    """Good or bad, and what shakes it."""
    name = cell(name)
    if _does_nothing(own) and not first:
        return f"{name} has no order of its own: it adds nothing to the first stage, whatever else is said of it."
    worth = card.get(EFFECTIVENESS)
    if first:
        compared = "so that there is nothing to compare it with" if alone else "which the others are compared with"
        start = f"{name} is the first stage, {compared}"
    elif worth is None:
        start = f"How good {name} is was not measured"
    else:
        start = f"{name} {_worth(worth)}"
        if worth.mark.word == BREAKS:
            return f"{start}: what else is steady says nothing, because it has little to lose."
    by = {word: [facet for facet, one in card.items() if one.mark.word == word] for word in WORST_FIRST}
    beside = [facet for facet in _ordered(by[STEADY]) if not facet_of(facet).compared]
    broken, hurt = ([f for f in _ordered(by[word]) if f != EFFECTIVENESS] for word in (BREAKS, SHAKEN))
    parts = [
        f"breaks in {_listed(broken)}" if broken else "",
        f"is shaken in {_listed(hurt)}" if hurt else "",
        f"is steady in {_listed(beside)}" if beside else "",
    ]
    said = _listed([part for part in parts if part])
    return f"{start}; it {said}." if said else f"{start}."


def _worth(one: _Cell) -> str:
    """How good a ranker is beside the first stage, in words."""
    finding = one.judged.finding
    if finding.name != GAIN:
        return "was not compared with a first stage"
    size = f"({finding.value:+.1f} %)"
    if finding.n < FEWEST_QUERIES:
        return f"was measured on {finding.n} queries only, too few to tell how good it is {size}"
    if finding.value < 0 and finding.p < LEVEL:
        return f"is {'far ' if one.mark.word == BREAKS else ''}worse than the first stage {size}"
    if finding.value > 0 and finding.p < LEVEL:
        return f"is better than the first stage {size}"
    return f"cannot be told from the first stage {size}"


def _default_gate(name: str, card: Mapping[str, _Cell], own: Finding | None) -> Iterator[Ruling]:
    """What the default gate says of a ranker under test, as far as it was measured."""
    shown = cell(name)
    if own is not None:
        said = f"{shown} has an order of its own in {own.value:.1f} % of the lists"
        yield Ruling(RANKS, name, "failed" if _does_nothing(own) else "held", f"{said}.")
    worth = card.get(EFFECTIVENESS)
    if worth and worth.judged.finding.name == GAIN:
        finding = worth.judged.finding
        few = finding.n < FEWEST_QUERIES
        below = finding.value < 0 and finding.p < LEVEL and not few
        said = f"{shown} {_worth(worth)}."
        yield Ruling(NOT_BELOW, name, "failed" if below else "warned" if worth.mark.word == UNCLEAR else "held", said)
    scored = {facet: one for facet, one in card.items() if facet_of(facet).scales}
    if scored:
        broken, hurt = ([f for f, one in scored.items() if one.mark.word == word] for word in (BREAKS, SHAKEN))
        verb = "breaks in" if broken else "is shaken in" if hurt else "breaks in none of"
        said = f"{shown} {verb} {_listed(_ordered(broken or hurt or list(scored)))}."
        yield Ruling(NOTHING_BREAKS, name, "failed" if broken else "warned" if hurt else "held", said)


def _headline(standings: Sequence[Standing], rulings: Sequence[Ruling]) -> str:
    """One sentence: who fails, or what shakes those that pass."""
    tested = [one for one in standings if one.role == UNDER_TEST]
    if not any(one.marks for one in standings):
        return "Nothing was measured that an answer could be made of; the tables have what was."
    if not tested:
        return next(one.sentence for one in standings)
    if len(tested) == 1:
        return tested[0].sentence
    failed = list(dict.fromkeys(ruling.ranker for ruling in rulings if ruling.status == "failed"))
    if failed:
        fine = [one.ranker for one in tested if one.ranker not in failed]
        rest = f"; {_listed(fine)} {'passes' if len(fine) == 1 else 'pass'}" if fine else ""
        return f"{_listed(failed)} {'fails' if len(failed) == 1 else 'fail'}{rest}."
    hurt = [one.ranker for one in tested if any(mark.word == SHAKEN for mark in one.marks.values())]
    if hurt:
        return f"No ranker breaks; {_listed(hurt)} {'is' if len(hurt) == 1 else 'are'} shaken."
    return "No ranker breaks or is shaken, as far as was measured."


def _blows(cards: Mapping[str, Mapping[str, _Cell]], first: str, results: Sequence[Result]) -> Iterator[Blow]:
    """The worst findings: of rankers under test before the first stage, of as many facets as there are."""
    bad = [
        one
        for card in cards.values()
        for facet, one in card.items()
        if one.mark.word in (BREAKS, SHAKEN) and (facet == EFFECTIVENESS or not _useless(card))
    ]

    def order(one: _Cell) -> tuple[bool, Any]:
        return one.mark.finding.ranker == first, one.judged.order

    bad.sort(key=order)
    worst = {one.mark.facet: one for one in reversed(bad)}
    others = [one for one in bad if one is not worst[one.mark.facet]]
    for one in sorted([*sorted(worst.values(), key=order), *others][:MOST_BLOWS], key=order):
        facet, finding = one.mark.facet, one.judged.finding
        example = _example(finding, results)
        said = _loss(facet, finding)
        sentence = f"{said}: {_case(example)}." if example else f"{said}."
        yield Blow(sentence, one.mark, finding.ranker, example, facet_of(facet).advice)


def _useless(card: Mapping[str, _Cell]) -> bool:
    """Is a ranker so bad that nothing else is worth a word?"""
    return EFFECTIVENESS in card and card[EFFECTIVENESS].mark.word == BREAKS


def _loss(facet: str, finding: Finding) -> str:
    """What a finding says, as a sentence without its stop."""
    scale = facet_of(facet).scale(finding)
    if scale is None:
        return f"{cell(finding.ranker)}: {facet} is {_value(facet, finding)}"
    inside = finding.name.partition("(")[2].removesuffix(")")
    what = SHAKES.get(inside, inside) or finding.against
    return scale.sentence.format(
        ranker=cell(finding.ranker), loss=scale.loss(finding, finding.value), what=cell(what), of=cell(finding.against)
    )


def _example(finding: Finding, results: Sequence[Result]) -> Example | None:
    """A case of the ranker from the result that has the finding, of the same shake where there is one."""
    inside = finding.name.partition("(")[2].removesuffix(")")
    for result in results:
        if finding in result.findings:
            own = [one for one in result.examples if one.ranker == finding.ranker]
            alike = [one for one in own if inside and one.shake.partition(":")[0] == inside]
            return next(iter(alike), None) if inside else next(iter(own), None)
    return None


def _case(example: Example) -> str:
    """An example in words."""
    query = cell(example.after if len(example.after) <= 4 * MOST_TEXT else example.query, MOST_TEXT)
    parts = [f"'{query}'"]
    if isfinite(example.value_before) and isfinite(example.value_after):
        parts.append(f"goes from {example.value_before:.2f} to {example.value_after:.2f}")
    if example.document and example.place_before and example.place_after != example.place_before:
        after = f"to place {example.place_after}" if example.place_after else "out of the list"
        parts.append(f"document {cell(example.document, 30)} from place {example.place_before} {after}")
    return ", ".join([" ".join(parts[:2]), *parts[2:]])


def _worst_slice(findings: Sequence[Finding], rankers: Sequence[str]) -> str:
    """The part of the queries that is served worst beyond chance, as a sentence; "" if there is none."""
    slices = [
        one
        for one in findings
        if one.where and one.name.startswith("worst slice of ") and one.p < LEVEL and one.ranker in rankers
    ]
    if not slices:
        return ""
    worst = min(slices, key=lambda one: one.p)
    what = cell(worst.name.removeprefix("worst slice of "))
    return (
        f"{cell(worst.ranker)} serves the queries of {cell(worst.where)} worst: the mean {what} is "
        f"{number(worst.value, 3)} [{number(worst.low, 3)}, {number(worst.high, 3)}] over {worst.n} queries."
    )


def _cautions(results: Sequence[Result], provenance: Mapping[str, Any], findings: Sequence[Finding]) -> Iterator[str]:
    """What a reader should know before any of it is believed."""
    collection = provenance.get("collection", {})
    count = int(collection.get("queries", 0))
    if collection.get("source") == "sample":
        yield f"These are numbers of the bundled sample of {count} queries: a demonstration, no benchmark."
    if limit := provenance.get("limit"):
        yield f"Only the first {limit} queries were looked at."
    if 0 < count < FEWEST_QUERIES:
        yield f"There are only {count} queries: fewer than {FEWEST_QUERIES} are called neither steady nor broken."
    if collection and not collection.get("judgements"):
        yield "There are no judgements: the words say how far rankings move, and nothing says how good they are."
    if failures := sum(len(result.failures) for result in results):
        yield f"{failures} times a ranker failed on a query; those cases are not counted."
    skipped: Mapping[str, str] = provenance.get("skipped") or {}
    for why in dict.fromkeys(skipped.values()):
        tasks = [cell(task, MOST_TEXT) for task, reason in skipped.items() if reason == why]
        yield f"Not measured, {cell(why).removesuffix('.')}: {', '.join(tasks)}."
    for name, remark in (provenance.get("remarks") or {}).items():
        yield f"{cell(name)}: {cell(remark).removesuffix('.')}."


def _ordered(facets: Sequence[str]) -> list[str]:
    known = [facet.name for facet in FACETS]
    return sorted(facets, key=lambda name: known.index(name) if name in known else len(known))


def _listed(names: Sequence[str]) -> str:
    """Names in words.

    >>> _listed(["a", "b", "c"])
    'a, b and c'
    """
    shown = [cell(name) for name in names]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)

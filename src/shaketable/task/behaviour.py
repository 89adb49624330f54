"""What does a ranker prefer, of two texts that differ in one thing?

MacAvaney, Feldman, Goharian, Downey, Cohan. ABNIRML: Analyzing the behavior of neural IR models. TACL 2022.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shaketable.errors import BadInput
from shaketable.measure.comparison import weighted_mean
from shaketable.measure.facets import BEHAVIOUR
from shaketable.measure.preference import FEWEST_SAMPLES, LEVEL, Preference, both_right, preference, typical_gap
from shaketable.measure.significance import adjust
from shaketable.probes.drawn import Drawn, Units, draw
from shaketable.probes.ground import Ground
from shaketable.probes.suite import chosen, name, title
from shaketable.probes.wording import stop_words
from shaketable.score.road import Traits
from shaketable.text.language import language_tool
from shaketable.text.tokens import Tokenizer
from shaketable.types import Doc, Example, Figure, Finding, Probe, Result, Slate

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.bench import Bench

Differences = NDArray[np.float64]
ALL = "all"
TABLES = {
    "matching": "measure and match",
    "manipulation": "text manipulation",
    "transfer": "data set transfer",
    "minimal pair": "minimal pairs",
    "own": "your own pairs",
}
"""strategy -> its table."""
PRINTED = ("measure and match", "text manipulation", "data set transfer")
"""Tables 1 to 3 of the paper."""
OWN, STRONGEST = "your pairs, one by one", "the strongest preferences"
SYMMETRIC, SLICED = "tests without a direction", "by slice"
SIGNS = ("positive", "neutral", "negative")
DRAWN = ("test", "ranker", "s", "low", "high", "queries")
MAP, SHARES, EQUAL_TF = "s: ", "shares: ", "relevance at equal TF"
SIDE_BY_SIDE = {
    EQUAL_TF: ("relevance-given-tf",),
    "length and added text": ("length-given-relevance", "length-given-tf", "add-nonrelevant-sentence"),
}
"""Tables of their own: what tells relevance apart from matching words (section 4); and whether a text gains by a
sentence that says nothing of the query or by being longer (section 5 reads the one by the other)."""
STRONG = 5
"""Of each ranker: so many rows of that table."""
CHANCE = 0.25
"""The share of crossed pairs that a coin has right in both directions."""
EXAMPLES = 2
"""Of each ranker and probe: the largest effects."""


@dataclass(frozen=True)
class Behaviour:
    """What a ranker prefers, of two texts that differ in one thing: the behaviour tests of ABNIRML, and others.

    tests        names or patterns of probes, such as "shuffle-*", or their texts; all of them if there is none
    pairs        a file of your own pairs (JSONL with query, a, b, expect)
    delta        the difference in score that counts, for all rankers; otherwise each has its own (3.3)
    gauge        queries on which a ranker's own delta is measured
    documents    judged documents that are manipulated, drawn at random; 0 is all of them
    language     the linguistic tool: light, spacy, or spacy:MODEL
    stopwords    the stop list of what is counted: the index's, or a file with a word on each line
    correction   of p for the number of cells of a table: bonferroni (as in the paper), holm or bh
    high         the lowest grade that counts as high in the breakdown by grade; 0 is the middle of the grades
    """

    tests: tuple[str, ...] = ()
    pairs: str = ""
    delta: float | None = None
    gauge: int = 25
    documents: int = 300
    language: str = "light"
    stopwords: str = "english"
    correction: str = "bonferroni"
    high: int = 0

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True

    def __post_init__(self) -> None:
        adjust([1.0], self.correction)
        if self.delta is not None and self.delta < 0:
            raise BadInput(f"behaviour: delta is 0 or more, not {self.delta}")
        self._probes()

    def _probes(self) -> list[Probe]:
        own = [f"pairs({self.pairs!r})"] if self.pairs else []
        return chosen((*self.tests, *own) if self.tests or not own else own)

    def run(self, bench: Bench) -> Result:
        import pandas as pd

        ground = self._ground(bench)
        skipped = {}
        for probe in self._probes():
            if why := probe.lacking(ground):
                if getattr(probe, "path", ""):  # a file that somebody named: without it nothing may seem to pass
                    raise BadInput(why)
                skipped[name(probe)] = why
        probes = {name(probe): probe for probe in self._probes() if name(probe) not in skipped}
        if not probes:
            whys = "; ".join(f"{key}: {why}" for key, why in skipped.items())
            raise BadInput(f"none of these tests can be done here ({whys})")
        units = Units()
        with bench.road.watch("drawing samples", len(probes), "tests") as advance:
            drawn = {}
            for key, probe in probes.items():
                drawn[key] = draw(probe, ground, units)
                advance(1)
        parts = {key: self._parts(bench, one, probes[key]) for key, one in drawn.items()}
        cells: list[dict[str, Any]] = []
        examples: list[Example] = []
        directions: list[dict[str, Any]] = []
        verdicts: list[dict[str, Any]] = []
        slices: list[dict[str, Any]] = []
        deltas: dict[str, float] = {}
        measured = gauge(bench, self.gauge)
        spoiling = [key for key, probe in probes.items() if getattr(probe, "spoils", False) and len(drawn[key])]
        fooled: list[Finding] = []
        for ranker in bench.scoring:
            deltas[ranker] = measured.delta(ranker) if self.delta is None else self.delta
            differences = scored(bench, ranker, drawn, units)
            fooled += _fooled(bench, ranker, spoiling, drawn, differences, deltas[ranker])
            for key, probe in probes.items():
                for part, at in parts[key].items():
                    row = self._cell(bench, drawn[key], differences[key], at, probe, deltas[ranker])
                    about = {"test": title(probe), "name": key, "strategy": probe.strategy, "documents": part}
                    cells.append(about | {"ranker": ranker} | row)
                slices += _sliced(bench, ranker, title(probe), drawn[key], differences[key], deltas[ranker])
                examples += _largest(ranker, title(probe), drawn[key], differences[key])
                verdicts += _expected(ranker, probe, differences[key], deltas[ranker])
                if (right := _both(drawn[key], differences[key], probe)) is not None:
                    directions.append({"test": title(probe), "ranker": ranker} | right)
        details = self._corrected(pd.DataFrame(cells)) if cells else pd.DataFrame()
        tables = self._tables(details)
        if directions:
            tables["both directions right"] = pd.DataFrame(directions)
        if verdicts:
            tables[OWN] = pd.DataFrame(verdicts)
        if len(strong := _strongest(details)):
            tables = {STRONGEST: strong, **tables}
        if slices:
            tables[SLICED] = pd.DataFrame(slices)
        spoilt = {title(probes[key]) for key in spoiling}
        drawings = _drawn_tables(details)
        tables |= drawings | {"details": details, "left out": _left_out(drawn, skipped, probes)}
        return Result(
            "behaviour",
            "What does the ranker prefer, of two texts that differ in one thing?",
            {key: table for key, table in tables.items() if len(table)},
            tuple(_figures(tables)),
            tuple(self._notes(measured, ground, deltas, probes, skipped)),
            (*_findings(details, directions), *fooled),
            tuple(sorted(examples, key=lambda one: one.shake not in spoilt or one.value_after <= 0)),
            brief=tuple(
                key for key in (STRONGEST, *TABLES.values(), SYMMETRIC, "both directions right", OWN) if key in tables
            ),
            sources={name: f"MacAvaney et al. 2022, Table {number}" for number, name in enumerate(PRINTED, 1)},
        )

    def _ground(self, bench: Bench) -> Ground:
        return Ground(
            bench.collection,
            tuple(bench.queries),
            language_tool(self.language),
            Tokenizer(),
            bench.seed,
            lists=bench.candidates,
            stopwords=None if self.stopwords == "english" else stop_words(self.stopwords),
            documents=self.documents,
        )

    def _parts(self, bench: Bench, drawn: Drawn, probe: Probe) -> dict[str, NDArray[np.bool_]]:
        """Which contrasts count where: all of them, and by the grade of the original.

        Pairs of the user's own of which neither text should be preferred have no direction, and no part in s.
        """
        parts = {ALL: np.ones(len(drawn), dtype=bool)}
        if hasattr(probe, "expectations"):
            parts[ALL] = np.array([one.expect != "same" for one in probe.expectations()], dtype=bool)
        if drawn.docnos and (cut := self._cut(bench)) is not None:
            parts[f"grade below {cut}"] = drawn.grades < cut
            parts[f"grade {cut} and above"] = drawn.grades >= cut
        return parts

    def _cut(self, bench: Bench) -> int | None:
        """The lowest high grade: of grades 0 to 3 it is 2, as in the paper."""
        grades = sorted({grade for of in bench.qrels.values() for grade in of.values()})
        if self.high:
            return self.high
        return (grades[0] + grades[-1] + 1) // 2 if len(grades) > 1 else None

    def _cell(
        self, bench: Bench, drawn: Drawn, d: Differences, at: NDArray[np.bool_], probe: Probe, delta: float
    ) -> dict[str, Any]:
        known = at & ~np.isnan(d)
        qids = [drawn.qids[i] for i in drawn.query[known].tolist()]
        one: Preference = preference(d[known], qids, delta, symmetric=probe.symmetric, seed=bench.seed)
        shares = {"positive": one.positive, "neutral": one.neutral, "negative": one.negative}
        return (
            {"s": one.s, "low": one.low, "high": one.high, "p": one.p if one.claims else np.nan}
            | shares
            | {"mean": one.mean, "median": one.median, "delta": delta, "samples": one.n, "queries": one.queries}
            | {"symmetric": probe.symmetric, "failed": int((at & np.isnan(d)).sum()), "hash": drawn.fingerprint}
        )

    def _corrected(self, details: pd.DataFrame) -> pd.DataFrame:
        """p for the number of cells of its table (3.4)."""
        key = f"p ({self.correction})"
        details[key] = np.nan
        for _, rows in details.groupby("strategy", sort=False).groups.items():
            details.loc[rows, key] = adjust(details.loc[rows, "p"].to_numpy(float), self.correction)
        details["significant"] = details[key] < LEVEL
        return details

    def _tables(self, details: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """A table for each strategy, rankers as columns, like those of the paper."""
        import pandas as pd

        tables: dict[str, pd.DataFrame] = {}
        if not len(details):
            return tables
        directed = {
            called: details["strategy"].eq(strategy) & ~details["symmetric"] for strategy, called in TABLES.items()
        }
        for called, chosen_rows in {**directed, SYMMETRIC: details["symmetric"]}.items():
            rows = details[chosen_rows]
            wide = []
            for (test, part), cells in rows.groupby(["test", "documents"], sort=False):
                row = {"test": test, "documents": part}
                row |= {str(one["ranker"]): shown(one.to_dict()) for _, one in cells.iterrows()}
                wide.append(row | {"samples": int(cells["samples"].max())})
            table = pd.DataFrame(wide)
            if len(table):
                whole = table["documents"] == ALL
                tables[called] = table[whole].drop(columns="documents").reset_index(drop=True)
                if not whole.all():
                    tables[f"{called}, by grade"] = table
        for called, names in SIDE_BY_SIDE.items():
            rows = details[details["name"].isin(names) & (details["documents"] == ALL)]
            if rows["name"].nunique() == len(names):
                tables[called] = rows[["test", "ranker", "s", "low", "high", "samples"]].reset_index(drop=True)
        return tables

    def _notes(
        self,
        measured: Gauge,
        ground: Ground,
        deltas: Mapping[str, float],
        probes: Mapping[str, Probe],
        skipped: Mapping[str, str],
    ) -> Iterator[str]:
        yield (
            "Each number is s, from -1 to +1: the share of pairs of texts in which the ranker prefers the text with "
            "more of what the row names (or the changed text), minus the share in which it prefers the other. For "
            "example, +1 for Prepend query means that it always prefers a text that has the query put before it."
        )
        yield (
            "'samples' are pairs of texts. A row such as TF | Length compares texts that differ in the first (how "
            "often the query's words occur) and agree in the second; 'low' and 'high' are the ends of a 95 % "
            "interval. 'both right' is the share of pairs in which each of two queries is given the text that is "
            "meant for it, and 'one right' that of the single decisions; 'chance' is what a ranker that guesses "
            "reaches. In the table 'details', 'positive', 'neutral' and 'negative' count the pairs in which it "
            "prefers the one text, neither, or the other, and 'hash' names the texts, so that two audits can be seen "
            "to have had the same ones."
        )
        yield (
            f"° marks what may be chance (paired t-test, p of {LEVEL} or more after correction by {self.correction} "
            f"for the cells of a table). A number in parentheses rests on fewer than {FEWEST_SAMPLES} samples and "
            "claims nothing. A number between bars, | |, is of a test without a direction: it is the share of pairs "
            "whose scores differ by more than delta."
        )
        if self.delta is None:
            values = ", ".join(f"{ranker} {delta:.4g}" for ranker, delta in deltas.items())
            yield (
                "A ranker prefers a text if its score is higher by delta or more, which is the median difference "
                f"between neighbours among the first ten documents of the ranker's lists ({measured.said}): {values}."
            )
        yield f"The linguistic tool is {ground.language.name}, and the stop list is {self.stopwords}."
        if skipped:
            many = "1 test was" if len(skipped) == 1 else f"{len(skipped)} tests were"
            yield f"{many} skipped; the table 'left out' says why."
        for probe in probes.values():
            if remark := probe.remark(ground) if hasattr(probe, "remark") else "":
                yield f"{title(probe)}: {remark}."


@dataclass(frozen=True)
class Gauge:
    """Queries on which deltas are measured: others than those of the tests, where the collection has a split."""

    bench: Bench
    qids: tuple[str, ...]
    said: str

    def delta(self, ranker: str) -> float:
        """The typical difference between neighbours in the lists of a ranker."""
        texts = {qid: self.bench.texts[qid] for qid in self.qids}
        lists = self.bench.rerank(ranker, texts, self.bench.candidates)
        return typical_gap(list(scores.values()) for scores in lists.values())


def gauge(bench: Bench, queries: int) -> Gauge:
    """The queries to measure on, at most so many."""
    for split in ("validation", "dev", "train"):
        known = bench.collection.splits.get(split, ())
        if bench.split and split != bench.split and not set(known) & set(bench.queries) and known:
            other = replace(bench.on(bench.collection, split), limit=queries)
            said = f"on {len(other.queries)} queries of the split {split}, none of them tested here"
            return Gauge(other, tuple(other.queries), said)
    some = tuple(bench.queries)[:queries]
    return Gauge(bench, some, f"on {len(some)} of the queries tested here, for want of others")


def scored(bench: Bench, ranker: str, drawn: Mapping[str, Drawn], units: Units) -> dict[str, Differences]:
    """The difference in score of each contrast of each probe; NaN where the ranker failed.

    A pointwise ranker is asked for each distinct pair of all probes once. Any other is shown a list: the candidates of
    the query with the changed text in the place of the original, or, without an original there, the two texts alone,
    in both orders.
    """
    if Traits.of(bench.ranker(ranker), ranker).pointwise:
        scores = unit_scores(bench, ranker, units)
        return {key: scores[one.first] - scores[one.second] for key, one in drawn.items()}
    return _in_lists(bench, ranker, drawn)


def unit_scores(bench: Bench, ranker: str, units: Units) -> Differences:
    """The score of each unit."""
    by_query: dict[str, list[int]] = {}
    for number, (query, _) in enumerate(units.pairs):
        by_query.setdefault(query, []).append(number)
    slates = [Slate(query, tuple(units.pairs[n][1] for n in numbers)) for query, numbers in by_query.items()]
    answers = bench.road.score(bench.ranker(ranker), slates, ranker, bench.origin(ranker))
    scores = np.full(len(units.pairs), np.nan)
    for numbers, answer in zip(by_query.values(), answers, strict=True):
        if answer is not None:
            scores[numbers] = answer
    return scores


def _in_lists(bench: Bench, ranker: str, drawn: Mapping[str, Drawn]) -> dict[str, Differences]:
    slates: dict[Slate, int] = {}

    def asked(slate: Slate, place: int) -> tuple[int, int]:
        return slates.setdefault(slate, len(slates)), place

    wanted: dict[str, list[list[tuple[tuple[int, int], tuple[int, int]]]]] = {}
    for key, one in drawn.items():
        wanted[key] = []
        for i in range(len(one)):
            query, first = one.units.pairs[one.first[i]]
            second = one.units.pairs[one.second[i]][1]
            docs, place = _around(bench, one, i)
            if place >= 0:
                lists = [Slate(query, (*docs[:place], doc, *docs[place + 1 :])) for doc in (first, second)]
                wanted[key].append([(asked(lists[0], place), asked(lists[1], place))])
            else:
                here, there = Slate(query, (first, second)), Slate(query, (second, first))
                wanted[key].append([(asked(here, 0), asked(here, 1)), (asked(there, 1), asked(there, 0))])
    answers = bench.road.score(bench.ranker(ranker), list(slates), ranker, bench.origin(ranker))

    def value(at: tuple[int, int]) -> float:
        answer = answers[at[0]]
        return np.nan if answer is None else float(answer[at[1]])

    return {
        key: np.array([np.mean([value(a) - value(b) for a, b in pairs]) for pairs in lists], dtype=np.float64)
        for key, lists in wanted.items()
    }


def _around(bench: Bench, drawn: Drawn, i: int) -> tuple[list[Doc], int]:
    """The candidates of a contrast's query, and the place of its original among them; -1 if it is not there."""
    docno = drawn.docnos[i] if drawn.docnos else ""
    listed = bench.candidates.get(drawn.qids[drawn.query[i]], {})
    if not docno or docno not in listed:
        return [], -1
    docnos = list(listed)
    return [bench.collection.docs[one] for one in docnos], docnos.index(docno)


def shown(cell: Mapping[Any, Any]) -> str:
    """A cell of a table like the paper's."""
    if not cell["samples"]:
        return "–"
    text = f"|{cell['s']:.2f}|" if cell["symmetric"] else f"{cell['s']:+.2f}"
    text = "0.00" if text in ("+0.00", "-0.00") else text
    if cell["samples"] < FEWEST_SAMPLES:
        return f"({text})"
    return text if cell["symmetric"] or cell["significant"] else f"{text}°"


def _sliced(
    bench: Bench, ranker: str, test: str, drawn: Drawn, d: Differences, delta: float
) -> Iterator[dict[str, Any]]:
    """s by slices of the queries, where a test is about queries of the collection and a slice has samples enough."""
    places = {qid: i for i, qid in enumerate(drawn.qids)}
    signs = np.where(d > delta, 1, 0) - np.where(d < -delta, 1, 0)
    known = ~np.isnan(d)
    total = np.bincount(drawn.query[known], signs[known], len(places))
    count = np.bincount(drawn.query[known], minlength=len(places))
    for sliced_by, parts in bench.slices.items():
        for part, qids in parts.items():
            at = [places[qid] for qid in qids if qid in places]
            if (n := int(count[at].sum())) >= FEWEST_SAMPLES:
                about = {"test": test, "ranker": ranker, "slice": sliced_by, "part": part}
                yield about | {"s": float(total[at].sum() / n), "samples": n, "queries": len(at)}


def _both(drawn: Drawn, d: Differences, probe: Probe) -> dict[str, Any] | None:
    """Of probes that ask two opposite questions of each pair: how often both are answered rightly."""
    if not getattr(probe, "crossed", False) or not len(d):
        return None
    share = both_right(zip(drawn.names(), d.tolist(), strict=True))
    return {"both right": share, "one right": float((d > 0).mean()), "chance": CHANCE, "pairs": len(drawn.qids)}


def _expected(ranker: str, probe: Probe, d: Differences, delta: float) -> list[dict[str, Any]]:
    """Of pairs of the user's own: what was expected, and whether it came out so."""
    rows = []
    for one, difference in zip(getattr(probe, "expectations", tuple)(), d.tolist(), strict=False):
        passed = abs(difference) <= delta if one.expect == "same" else difference > delta
        about = {"id": one.id, "query": one.contrast.query, "expect": one.expect, "ranker": ranker}
        rows.append(about | {"difference": difference, "delta": delta, "passed": bool(passed)})
    return rows


def _largest(ranker: str, test: str, drawn: Drawn, d: Differences) -> list[Example]:
    """The contrasts with the largest effects, each query once."""
    examples: dict[str, Example] = {}
    for i in np.argsort(-np.abs(np.nan_to_num(d)), kind="stable")[: 20 * EXAMPLES].tolist():
        query, first = drawn.units.pairs[drawn.first[i]]
        second = drawn.units.pairs[drawn.second[i]][1]
        if query not in examples and d[i] and len(examples) < EXAMPLES:
            docno = drawn.docnos[i] if drawn.docnos else ""
            examples[query] = Example(ranker, query, test, second.text, first.text, 0.0, float(d[i]), docno)
    return list(examples.values())


def _strongest(details: pd.DataFrame) -> pd.DataFrame:
    """The tests that say most of each ranker, of those that are no matter of chance: the answer before the tables."""
    if not len(details):
        return details
    sure = details[details["significant"] & (details["documents"] == ALL)]
    order = sure["s"].abs().sort_values(ascending=False, kind="stable").index
    sure = sure.loc[order].groupby("ranker", sort=False).head(STRONG)
    names = {ranker: i for i, ranker in enumerate(dict.fromkeys(details["ranker"]))}
    sure = sure.sort_values("ranker", key=lambda column: column.map(names), kind="stable")
    return sure[["ranker", "test", "s", "low", "high", "samples", "queries"]].reset_index(drop=True)


def _left_out(drawn: Mapping[str, Drawn], skipped: Mapping[str, str], probes: Mapping[str, Probe]) -> pd.DataFrame:
    import pandas as pd

    rows: list[dict[str, Any]] = [{"test": key, "reason": why, "cases": None} for key, why in skipped.items()]
    for key, one in drawn.items():
        rows += [{"test": title(probes[key]), "reason": why, "cases": n} for why, n in one.omitted.items()]
    return pd.DataFrame(rows, columns=["test", "reason", "cases"])


def _findings(details: pd.DataFrame, directions: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    corrected = next((column for column in details.columns if column.startswith("p (")), "p")
    for _, row in details.iterrows():
        if row["samples"] >= FEWEST_SAMPLES:
            where = "" if row["documents"] == ALL else str(row["documents"])
            key, n, p = f"{row['name']}.s", int(row["queries"]), float(row[corrected])
            yield Finding(row["ranker"], key, row["s"], row["low"], row["high"], n, p, where=where)
    for one in (one for one in directions if 2 * one["pairs"] >= FEWEST_SAMPLES):
        yield Finding(one["ranker"], f"{one['test']}.both right".lower(), one["both right"], n=one["pairs"])


def _fooled(
    bench: Bench,
    ranker: str,
    spoiling: Sequence[str],
    drawn: Mapping[str, Drawn],
    differences: Mapping[str, Differences],
    delta: float,
) -> Iterator[Finding]:
    """How often the ranker prefers a text that was spoiled, in per cent: each query counts alike, each test within it.

    A coin does it in half of the cases.
    """
    by_test: dict[str, list[float]] = {}
    for key in spoiling:
        d, of = differences[key], drawn[key]
        known = ~np.isnan(d)
        count = np.bincount(of.query[known], minlength=len(of.qids))
        won = np.bincount(of.query[known], d[known] > delta, len(of.qids))
        for qid, n, preferred in zip(of.qids, count.tolist(), won.tolist(), strict=True):
            if n:
                by_test.setdefault(qid, []).append(100 * preferred / n)
    if by_test:
        values = {qid: float(np.mean(shares)) for qid, shares in by_test.items()}
        mean = weighted_mean(values, bench.seed)
        ends = mean.low, mean.high, mean.n
        yield Finding(ranker, "fooled %", mean.value, *ends, better="lower", facet=BEHAVIOUR, values=values)


def _drawn_tables(details: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What figures draw: s by test and ranker for each strategy, and the three shares of each test.

    Cells with few samples are not drawn: a colour would claim what the table does not.
    """
    if not len(details):
        return {}
    whole = details[(details["documents"] == ALL) & (details["samples"] >= FEWEST_SAMPLES)]
    tables = {
        f"{MAP}{TABLES.get(str(strategy), strategy)}": rows[[*DRAWN]].reset_index(drop=True)
        for strategy, rows in whole.groupby("strategy", sort=False)
    }
    for test, rows in whole.groupby("test", sort=False):
        shares = rows[["ranker", "samples", *SIGNS]].melt(["ranker", "samples"], list(SIGNS), "preference", "count")
        shares["share"] = shares["count"] / shares["samples"]
        tables[f"{SHARES}{test}"] = shares
    return tables


def _figures(tables: Mapping[str, pd.DataFrame]) -> Iterator[Figure]:
    """Who tells relevance from matching words; then what each ranker prefers, as a map, and test by test."""
    caption = "-1: always the text with less, or the original. +1: always the text with more, or the changed one."
    for key in tables:
        if key == EQUAL_TF:
            yield Figure(
                "bars",
                key,
                "Which ranker tells a relevant text from one with as many matching words (Relevance | TF)",
                x="ranker",
                y="s",
            )
        elif key.startswith(MAP):
            title = f"What each ranker prefers: {key.removeprefix(MAP)}"
            yield Figure("heatmap", key, title, x="ranker", y="test", color="s", caption=caption)
        elif key.startswith(SHARES):
            title = key.removeprefix(SHARES)
            yield Figure("diverging", key, title, x="ranker", y="share", color="preference", folded=True)

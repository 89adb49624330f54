"""The claims of the papers and what the pages found: docs/evidence/README.md.

python -m evidence.summary        (writes it from claims.toml and the stored rows, at once)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evidence import FOLDER, Rows, prose, table
from evidence._claims import MEASUREMENTS, Claim, ClaimFile, Source, load_claims, read_measurements
from evidence._verdicts import (
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
    REFUTED,
    VERDICTS,
    Measurement,
    Verdict,
    explain_verdict,
    join_verdicts,
    judge,
)
from shaketable.files.atomic import atomic_write

README = FOLDER / "README.md"
TOY, STALE = "†", "‡"
HEAD = ("claim", "in the paper", "true if", "ranker, collection", "ours, 95 % interval", "n", "verdict", "page")


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its measurements, where they come from, and the cases that n counts."""

    claim: Claim
    measured: Sequence[tuple[Measurement, Source]]
    cases: str

    @property
    def verdict(self) -> Verdict:
        """The verdict of all measurements together."""
        return join_verdicts(judge(one, self.claim.side) for one, _ in self.measured)

    @property
    def needs_toys(self) -> bool:
        """True if no measurement is without a toy training."""
        return bool(self.measured) and all(one.training for one, _ in self.measured)


def judge_claims(file: ClaimFile) -> list[JudgedClaim]:
    """Return all claims with what the stored rows have about them."""
    measured = read_measurements(file)
    return [JudgedClaim(one, measured[one.id], file.intervals[one.interval]["cases"]) for one in file.claims]


def build_rows(judged: JudgedClaim) -> Iterator[list[str]]:
    """Yield the row of a claim, and one for each of its measurements if there are several."""
    claim, measured = judged.claim, judged.measured
    said = f"{claim.id} ({claim.where}): “{claim.quote}”"
    head = [escape(text) for text in (said, claim.published, f"{claim.quantity} {claim.side}")]
    found = [_build_cells(judged, *one) for one in measured]
    if len(found) == 1:
        yield [*head, *found[0]]
        return
    count = f"{len(found)} of {claim.planned_count} measured" if found else ""
    yield [*head, count, "", "", f"**{judged.verdict}**", _link(claim.page)]
    for cells in found:
        yield ["", "", "", *cells]


def _build_cells(judged: JudgedClaim, found: Measurement, source: Source) -> list[str]:
    marks = (TOY if found.training else "") + (STALE if source.stale else "")
    verdict, colon, needed = explain_verdict(found, judged.claim.side, judged.cases).partition(":")
    shown = f"**{verdict}**" if len(judged.measured) == 1 else verdict
    about = escape(f"{found.ranker}{marks}, {found.collection}")
    return [about, str(found), f"{found.n:,}", f"{shown}{colon}{needed}", _link(source.page)]


def tabulate_claims(page: str, found: Rows) -> str:
    """Return the table of a page's own claims, with verdicts by the measurements among its rows."""
    file = load_claims()
    measured = [Measurement(**row) for row in found[MEASUREMENTS]]
    rows = []
    for claim in (one for one in file.claims if one.page == page):
        own = [(one, Source(page)) for one in measured if one.claim == claim.id]
        judged = JudgedClaim(claim, own, file.intervals[claim.interval]["cases"])
        rows += [row[:-1] for row in build_rows(judged)]
    return table(HEAD[:-1], rows, numbers=False)


def escape(text: str) -> str:
    """Return a text for a cell of a table in Markdown.

    >>> print(escape("T*-FARO: |r|"))
    T\\*-FARO: \\|r\\|
    """
    return text.replace("|", "\\|").replace("*", "\\*")


def _link(page: str) -> str:
    """Return the name of a page, as a link if the page exists."""
    return f"[{page}]({page}.md)" if (FOLDER / f"{page}.md").exists() else page


def count_verdicts(file: ClaimFile, judged: Sequence[JudgedClaim]) -> str:
    """Return the table of verdicts by paper."""
    papers = {paper: Counter(one.verdict for one in judged if one.claim.paper == paper) for paper in file.papers}
    rows = [[f"{paper}: {file.papers[paper]}", *_list_counts(found)] for paper, found in papers.items()]
    return table(
        ("paper", *VERDICTS, "claims"), [*rows, ["all", *_list_counts(Counter(one.verdict for one in judged))]]
    )


def _list_counts(found: Counter[Verdict]) -> list[int]:
    return [*(found[verdict] for verdict in VERDICTS), found.total()]


def describe_toys(file: ClaimFile, judged: Sequence[JudgedClaim]) -> list[str]:
    """Return which measurements come from toy trainings, and which verdicts stand on nothing else."""
    trainings = Counter(one.training for claim in judged for one, _ in claim.measured)
    total, toys = trainings.total(), trainings.total() - trainings[""]
    alone = [one.claim.id for one in judged if one.needs_toys]
    return [
        prose(f"""{toys} of the {total} measurements are of rankers with a toy training, marked {TOY}. They learned from
        so little that they may show its effects and not those of their kind; they are no evidence about the models of
        the papers. {len(alone)} claims have no other measurement: {", ".join(alone)}."""),
        table(
            ("toy training", "measurements"),
            [[said, trainings[name]] for name, said in file.trainings.items() if trainings[name]],
        ),
    ]


def list_pages(file: ClaimFile) -> str:
    """Return the table of the pages that decide the claims."""
    claims = Counter(one.page for one in file.claims)
    return table(
        ("page", "subject", "replaces", "claims"),
        [
            [name, page["subject"], ", ".join(map(_link, page["replaces"])), claims[name]]
            for name, page in file.pages.items()
        ],
        numbers=False,
    )


def list_bounds(file: ClaimFile) -> str:
    """Return the reasons of bounds that are not the 0 of a sign, and how each interval is obtained."""
    return table(
        ("claim", "true if", "why this bound"),
        [[one.id, escape(f"{one.quantity} {one.side}"), escape(one.reason)] for one in file.claims if one.reason],
        numbers=False,
    )


def render() -> str:
    """Return the text of the page."""
    file = load_claims()
    judged = judge_claims(file)
    found, toys = (Counter(one.verdict for one in some) for some in (judged, [j for j in judged if j.needs_toys]))
    intervals = "; ".join(f"{name}: {way['how']}" for name, way in file.intervals.items())
    parts = [
        "# Which claims of the papers hold",
        prose("""Made by `python -m evidence.summary` from evidence/claims.toml and the rows of all pages; nothing here
        was edited by hand. The tests make this page again. evidence/claims.toml also names the task and the finding
        that measures each claim. Names of rankers and collections are explained at the end."""),
        prose(f"""Of {len(judged)} claims of five papers, {found[HOLDS]} hold, {found[REFUTED]} are refuted,
        {found[INCONCLUSIVE]} are inconclusive and {found[NOT_TESTED]} are not tested. Toy trainings alone decided
        {toys[HOLDS]} of those that hold and {toys[REFUTED]} of the refuted ones, and {toys[INCONCLUSIVE]} of the
        inconclusive ones have no other measurement."""),
        count_verdicts(file, judged),
        "## The rule",
        prose("""A claim says on which side of a bound a number lies. The bounds come from the words and numbers of
        the papers. They were fixed before the pages with real rankers were measured, but the measurements of the
        present pages were known by then. A measurement holds if its 95 % interval lies wholly on the side of the
        claim, is refuted if it lies wholly on the other side, and is inconclusive otherwise. A claim holds if all its
        measurements hold, and is refuted if one of them is; a claim about one family of rankers is measured on
        rankers of that family only. A claim without a measurement with an interval is not tested. Means alone decide
        nothing. One interval was chosen after a first look, which made 001-relevance-bm25 hold
        ([behaviour](behaviour.md)), and so was the length of fused lists, on which 004-fusion-helps depends
        ([query-variation](query-variation.md)). minilm-l12 and bge-small compute in int8, which can change the order
        of lists ([rankers](rankers.md))."""),
        prose("""An inconclusive measurement says about how many queries would decide it if its estimate stays the same:
        n (w / |estimate - bound|)², where w is the distance from the estimate to the end of its interval on the side of
        the bound, 1.96 standard errors. If the estimate equals the bound, no number of queries decides."""),
        prose("""Intervals are not corrected for the number of claims: of twenty measurements whose number is at the
        bound, one is decided wrongly by chance. "a - b" is the difference of two rankers on the same queries. "k of m
        measured" says how many of the planned pairs of ranker and collection have been measured; a verdict is about
        those only."""),
        "## Toy trainings",
        *describe_toys(file, judged),
        prose(f"""{STALE} marks rows of a page that says that its rows, or some of them, are stale, and why."""),
    ]
    for paper, title in file.papers.items():
        rows = [row for one in judged if one.claim.paper == paper for row in build_rows(one)]
        parts += [f"## {paper}: {title}", table(HEAD, rows, numbers=False)]
    rankers = [
        [escape(name), family, escape(said)] for family, some in file.rankers.items() for name, said in some.items()
    ]
    parts += [
        "## Rankers and collections",
        table(("ranker", "family", "what it is"), rankers, numbers=False),
        table(("collection", "what it is"), file.collections.items(), numbers=False),
        "## Bounds other than 0",
        list_bounds(file),
        prose(f"Intervals: {intervals}."),
        "## Pages",
        prose("""These pages are to decide the claims. Until a page exists, the pages that it replaces have the
        numbers."""),
        list_pages(file),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write the page."""
    with atomic_write(README) as out:
        out.write(text := render())
    print(text)


if __name__ == "__main__":
    main()

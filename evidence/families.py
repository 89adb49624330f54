"""Which family of rankers wins which of the five tasks (paper 000, section 7): tables of the other pages, read again.

make evidence PAGE=families        (at once: it reads what the other pages have)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from evidence import FOLDER, Guard, Page, Rows, prose, read_interval, table

FAMILIES = {
    "lexical": ("bm25", "ql", "ql_jm", "rm3"),
    "learning to rank": ("prank", "ranksvm", "lambdamart"),
    "nets": ("dssm", "drmm", "knrm", "duet"),
    "encoders": ("dense", "bert", "colbert"),
}
HEAD = ("task", "measure", *FAMILIES, "wins")


@dataclass(frozen=True)
class Where:
    """A column of a table of a page, and whether more of it is better."""

    task: str
    page: str
    heading: str
    column: str
    more: bool

    @property
    def label(self) -> str:
        return f"{self.column} ({self.heading})" if self.task == "variance" else self.column


WHERE = (
    *(Where("variance", "variance", heading, "VNAP", more=False)
      for heading in ("cranfield, five folds", "rag24, five folds", "bert and colbert, on rag24's own split")),
    Where("query types", "query-type-shift", "Mean drop, in per cent", "another query type", more=True),
    Where("corpora", "corpus-shift", "Mean drop on other corpora, in per cent", "mean drop %", more=True),
    *(Where("query attack", "query-attack", "", attack, more=True) for attack in ("1-char", "2-char", "word")),
    *(Where("competition", "competition", "Figures 6 and 7", measure, more=False) for measure in ("TC", "KT")),
)  # fmt: skip
CLAIMS = {
    "variance": ("encoders", "pre-trained models vary least"),
    "query types": ("lexical", "traditional models lose least on other kinds"),
    "corpora": ("lexical", "traditional models lose least on other corpora"),
    "query attack": ("nets", "nets (DSSM, Duet, Conv-KNRM) lose least under query attack"),
    "competition": ("lexical", "traditional models are steadiest in competitions"),
}
"""What the paper says of each task."""


@dataclass(frozen=True)
class Estimate:
    """A ranker's number, with the ends of its 95 % interval."""

    ranker: str
    value: float
    low: float
    high: float
    cell: str


def read_table(page: str, heading: str) -> list[dict[str, str]]:
    """The first table below a heading of a page, or of the page; a row is column -> cell, and there may be none."""
    text = (FOLDER / f"{page}.md").read_text(encoding="utf-8")
    if heading and f"\n## {heading}\n" not in text:
        return []
    lines = iter(text.partition(f"\n## {heading}\n")[2].splitlines() if heading else text.splitlines())
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in _first_table(lines)]
    return [dict(zip(rows[0], cells, strict=True)) for cells in rows[2:]]


def _first_table(lines: Iterator[str]) -> list[str]:
    first = next(line for line in lines if line.startswith("|"))
    return [first, *takewhile(lambda line: line.startswith("|"), lines)]


def estimates(where: Where) -> dict[str, Estimate]:
    """The best of each family that was measured, by a column."""
    found: dict[str, Estimate] = {}
    rows = {row["ranker"]: row[where.column] for row in read_table(where.page, where.heading)}
    for family, members in FAMILIES.items():
        known = [estimate(name, rows[name]) for name in members if name in rows]
        if known:
            found[family] = (max if where.more else min)(known, key=lambda one: one.value)
    return found


def winners(found: Mapping[str, Estimate], more: bool) -> list[str]:
    """The family whose best is best of all, and those whose best has an interval that overlaps with its interval."""
    sign = 1 if more else -1
    first = max(found.values(), key=lambda one: sign * one.value)
    return [name for name, one in found.items() if one.low <= first.high and first.low <= one.high]


def rows() -> list[list[str]]:
    """A row for each task and measure."""
    lines = []
    for where in WHERE:
        if not (found := estimates(where)):
            continue
        won = winners(found, where.more)
        said = won[0] if len(won) == 1 else f"not to be told: {', '.join(won)}"
        cells = [found[family].cell if family in found else "" for family in FAMILIES]
        lines.append([where.task, where.label, *cells, said])
    return lines


def answer(found: Sequence[Sequence[str]]) -> str:
    """In how many rows one family wins alone."""
    alone = [f"{row[-1]} in {row[0]} ({row[1]})" for row in found if row[-1] in FAMILIES]
    return prose(f"One family wins alone in {len(alone)} of {len(found)} rows: {'; '.join(alone) or 'in none'}.")


def verdicts() -> list[list[str]]:
    """What the paper says of each task, against each of its measures."""
    lines = []
    for task, (family, claim) in CLAIMS.items():
        for where in WHERE:
            if where.task != task:
                continue
            if not (found := estimates(where)):
                continue
            won = winners(found, where.more)
            said = "cannot be told" if family in won else "does not hold"
            if family not in found:
                said = "cannot be told: none was measured"
            elif won == [family]:
                said = "holds"
            lines.append([claim, where.label, said])
    return lines


def estimate(name: str, cell: str) -> Estimate:
    """A cell with its interval, read."""
    return Estimate(name, *read_interval(cell), f"{name} {cell}")


def above(pairs: Sequence[tuple[Estimate, Estimate]]) -> str:
    """Whether the first of each pair lies above the second."""
    clear, against = sum(a.low > b.high for a, b in pairs), sum(a.high < b.low for a, b in pairs)
    said = "holds" if clear == len(pairs) else "does not hold" if against else "cannot be told"
    return f"{said}: told apart for it {clear}, against it {against}, of {len(pairs)}"


def shift_claims() -> list[list[str]]:
    """What 4.4 and 4.5 say of kinds and corpora, beyond families."""
    rows_ = read_table("corpus-shift", "Mean drop on other corpora, in per cent")
    corpora = {row["ranker"]: estimate(row["ranker"], row["mean drop %"]) for row in rows_}
    counts = read_table("corpus-shift", "Cells that fall and rise")
    cells, falls = (sum(int(row[name]) for row in counts) for name in ("cells", "fall"))
    kinds = read_table("query-type-shift", "Mean drop, in per cent")
    single, union, cut = (
        [estimate(row["ranker"], row[column]) for row in kinds] for column in ("another query type", "ALL*", "ALL* cut")
    )
    lost = [one.ranker for one in single if one.high < 0]
    fared = [one.ranker for one in corpora.values() if one.high < 0]
    others = [one for name, one in corpora.items() if name != "knrm"]
    return [
        ["rankers lose on other kinds of queries",
         f"beyond chance {len(lost)} of {len(single)}: {', '.join(lost) or 'none'}; of the others it cannot be told"],
        ["four other kinds teach more than one", above(list(zip(union, single, strict=True)))],
        ["and so do as few queries of four kinds", above(list(zip(cut, single, strict=True)))],
        ["rankers lose on other corpora",
         f"beyond chance {len(fared)} of {len(corpora)}: {', '.join(fared)}; of the others it cannot be told"],
        ["nearly all cells of corpora fall (162 of 176 in the paper)",
         f"{'holds' if falls >= 0.9 * cells else 'does not hold'}: {falls} of {cells}"],
        ["QL loses less than BM25 on other corpora", above([(corpora["ql"], corpora["bm25"])])],
        ["PRank loses less than RankSVM and LambdaMART",
         above([(corpora["prank"], corpora[name]) for name in ("ranksvm", "lambdamart")])],
        ["nets (here knrm) lose more than all others", above([(one, corpora["knrm"]) for one in others])],
    ]  # fmt: skip


def both_shifts() -> list[list[str]]:
    """The mean drop on other kinds of queries and on other corpora, for the rankers that both pages have (4.5.1)."""
    kinds = {
        row["ranker"]: row["another query type"] for row in read_table("query-type-shift", "Mean drop, in per cent")
    }
    corpora = read_table("corpus-shift", "Mean drop on other corpora, in per cent")
    lines = []
    for row in corpora:
        cells = kinds[row["ranker"]], row["mean drop %"]
        kind, corpus = (estimate(row["ranker"], cell) for cell in cells)
        said = "corpora" if corpus.high < kind.low else "kinds" if kind.high < corpus.low else "not to be told"
        lines.append([row["ranker"], *cells, said])
    return lines


def measure() -> Rows:
    return {"winners": rows(), "verdicts": verdicts(), "shifts": shift_claims(), "both shifts": both_shifts()}


def compose(found: Rows) -> list[str]:
    return [
        prose("""Paper 000 ends with five tasks and says which rankers are robust in which. Here stand the same
        tasks as the other pages measured them, on small collections and with small trainings: variance.md,
        query-type-shift.md, corpus-shift.md, query-attack.md and competition.md say how. A cell has the best ranker
        of a family, with its 95 % interval over queries; a family with more rankers has more chances to have a good
        one. A family wins if no other family's best has an interval that overlaps with that of its best; these are
        not paired, so what is told apart is told apart with care. dense is MiniLM as it comes. For VNAP, TC and KT
        lower is better; drops are better the nearer they are to 0 or the further above."""),
        answer(found["winners"]),
        table(HEAD, found["winners"]),
        prose("""A ranker that is not effective has little to lose: dssm reaches half of the others' nDCG@10 on rag24
        (neural.md), and its small drops under query attack are no merit."""),
        "## What the paper says of each task",
        prose("""A claim holds if the family that it names wins alone, it does not hold if that family's best is
        told apart from a better one, and else it cannot be told here."""),
        table(("claim", "measure", "here"), found["verdicts"]),
        "## What it says of shifts",
        prose("""Sections 4.4 and 4.5, by the intervals of query-type-shift.md and corpus-shift.md."""),
        table(("claim", "here"), found["shifts"]),
        "## Kinds of queries and corpora, side by side",
        prose("""Paper 000, 4.5.1: another corpus costs more than another kind of query. Mean drops in per cent; the
        measures are RR@100 and nDCG@10, so that only relative drops can be set side by side."""),
        table(("ranker", "another query type", "another corpus", "costs more"), found["both shifts"]),
    ]


PAGE = Page(
    __file__,
    "Which family of rankers wins which task",
    measure,
    compose,
    (
        Guard("winners", "the first table", rows),
        Guard("verdicts", "the verdicts on tasks", verdicts),
        Guard("shifts", "the verdicts on shifts", shift_claims),
        Guard("both shifts", "the last table", both_shifts),
    ),
)

if __name__ == "__main__":
    PAGE.main()

"""Two audits side by side: whether the new version is worse, in which findings, and on which queries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from shaketable.measure.regression import LEVEL, Drift
from shaketable.measure.significance import FEWEST_QUERIES
from shaketable.report import cell, number
from shaketable.report.files import plain
from shaketable.report.tables import escaped_markdown, markdown
from shaketable.types import Failure

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "shaketable.comparison/1"
Verdict: TypeAlias = Literal["worse", "not worse", "cannot be told"]
ORDER = ("worse", "better", "no difference", "not tested")
MOST_QUERIES = 5
"""Queries that are named of each finding."""
MOST_FINDINGS = 3
"""Findings of which queries are named."""
EFFECTIVENESS = "effectiveness"

EXPLAINED = (
    "'before' and 'after' are the finding in the earlier and in the new audit, and 'change' is their difference, with "
    "its 95 % interval where the finding is a mean over queries. 'p (Holm)' is by Fisher's randomisation test over the "
    "queries that both audits have, corrected for all findings; a finding is worse or better if p is below "
    f"{LEVEL} and there are {FEWEST_QUERIES} queries or more. 'lost by' is the number of queries on which it became "
    "worse."
)


@dataclass(frozen=True)
class Turn:
    """A facet whose word became worse: from steady to breaks, for instance."""

    ranker: str
    facet: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.ranker}'s {self.facet}: from {self.before} to {self.after}"


@dataclass(frozen=True)
class AuditComparison:
    """What became of rankers between two audits.

    `rankers` has the ranker of the earlier audit -> the one that took its place; `failures` are the queries that a
    ranker fails on now and did not before; `texts` has the queries' texts, where they are known.
    """

    base: str
    new: str
    rankers: Mapping[str, str]
    drifts: tuple[Drift, ...]
    failures: tuple[Failure, ...] = ()
    turns: tuple[Turn, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    remarks: tuple[str, ...] = ()

    def of(self, status: str) -> list[Drift]:
        """The findings that became "worse" or "better", the largest effect first, or of another status."""
        some = [drift for drift in self.drifts if drift.status == status]
        return sorted(some, key=lambda drift: -abs(drift.effect)) if status in ORDER[:2] else some

    @property
    def verdict(self) -> Verdict:
        """Worse, not worse, or cannot be told; a query that a ranker newly fails on is worse, whatever tests say."""
        if self.of("worse") or self.failures:
            return "worse"
        return "not worse" if self.of("better") or self.of("no difference") else "cannot be told"

    @property
    def answer(self) -> str:
        """The verdict in a sentence or two."""
        names = " and ".join(dict.fromkeys(self.rankers.values()))
        tested = [drift for drift in self.drifts if drift.status != "not tested"]
        if self.verdict == "worse":
            return f"{names} became worse: {'; '.join(self._reasons(len(tested)))}."
        if self.verdict == "not worse":
            if not any(loss for drift in tested for loss in drift.losses.values()):
                be = "is" if len(self.rankers) == 1 else "are"
                return f"{names} {be} the same as before: no query has another value in any of {len(tested)} findings."
            gained = f", and {len(better)} became better" if (better := self.of("better")) else ""
            held = f"None of the {len(tested)} findings of {names} became significantly worse{gained}."
            return f"{held}{self._ruled_out()}"
        many = max((drift.n for drift in self.drifts), default=0)
        if many:
            return (
                f"It cannot be told whether {names} became worse: the audits have {many} queries in common, and a test "
                f"needs {FEWEST_QUERIES}."
            )
        return f"It cannot be told whether {names} became worse: no finding of both audits has values by query."

    def _reasons(self, tested: int) -> list[str]:
        reasons = []
        if worse := self.of("worse"):
            first = worse[0]
            numbers = f"{number(first.before)} to {number(first.after)}, p = {number(first.corrected)}"
            most = f"first of all {first.new.name} ({numbers})"
            reasons.append(f"{len(worse)} of {tested} findings got significantly worse, {most}")
        if self.failures:
            count = len(self.failures)
            reasons.append(f"it fails on {count} {'query' if count == 1 else 'queries'} that it did not fail on before")
        return reasons

    def _ruled_out(self) -> str:
        """How large a loss of the first measure the interval leaves possible."""
        known = [drift for drift in self.drifts if not math.isnan(drift.high) and drift.status != "not tested"]
        first = next((drift for drift in known if drift.new.facet == EFFECTIVENESS), known[0] if known else None)
        if first is None:
            return ""
        if not any(first.losses.values()):
            return f" {first.new.name} is the same on all {first.n} queries."
        return (
            f" Of {first.new.name}, a loss of more than {number(max(first.high, 0.0))} is unlikely: the 95 % interval "
            f"over {first.n} queries ends there."
        )

    def findings(self, *statuses: str) -> pd.DataFrame:
        """A row for each finding, the worst first; of some statuses only, if these are named."""
        import pandas as pd

        rows = [_row(drift) for status in statuses or ORDER for drift in self.of(status)]
        return pd.DataFrame(rows, columns=list(_COLUMNS))

    def brief(self, *statuses: str) -> pd.DataFrame:
        """The same for a reader: no column for what all rows have in common, and interval and number in one text."""
        import pandas as pd

        rows = []
        for row in self.findings(*statuses).to_dict("records"):
            ends = "" if math.isnan(row["low"]) else f" [{row['low']:+.3f}, {row['high']:+.3f}]"
            rows.append(
                {
                    "ranker": row["ranker"],
                    "finding": row["finding"],
                    "became": row["became"],
                    "before": row["before"],
                    "after": row["after"],
                    "change": f"{row['change']:+.4f}{ends}",
                    "p (Holm)": row["p (Holm)"],
                    "lost by": f"{row['lost by']} of {row['queries']}",
                }
            )
        known = {"ranker": len(self.rankers) == 1, "became": len(statuses) == 1}
        return pd.DataFrame(rows).drop(columns=[name for name, one in known.items() if one and rows])

    def worst_queries(self) -> dict[str, pd.DataFrame]:
        """Of the worst findings, or of the first one where none became worse: the queries that lost most, by title."""
        import pandas as pd

        tables = {}
        for drift in (self.of("worse") or list(self.drifts[:1]))[:MOST_FINDINGS]:
            old, new = drift.old.values, drift.new.values
            rows = [
                (qid, self.texts.get(qid, ""), old[qid], new[qid], new[qid] - old[qid])
                for qid in drift.worst(MOST_QUERIES)
            ]
            if rows:
                title = f"queries that lost most by {_called(drift)} of {drift.new.ranker}"
                tables[title] = pd.DataFrame(rows, columns=["query", "text", "before", "after", "change"])
        return tables

    def markdown(self) -> str:
        """A comment for a pull request: the answer, what became worse and on which queries; the rest folded."""
        parts = [f"### Robustness: {self.verdict}", escaped_markdown(cell(self.answer))]
        worse = self.brief("worse")
        if len(worse):
            parts += ["**What became worse**", markdown(worse)]
        if len(failures := self.failures):
            lines = [f"{one.ranker}: {one.query!r}: {one.reason}" for one in failures[:MOST_QUERIES]]
            parts += [f"**New failures** ({len(failures)})", "\n".join(f"- {escaped_markdown(cell(x))}" for x in lines)]
        if self.turns:
            said = "\n".join(f"- {escaped_markdown(cell(str(turn)))}" for turn in self.turns)
            parts += ["**Facets with a worse word**", said]
        if len(worse):
            tables = self.worst_queries().items()
            parts += [_folded(escaped_markdown(title.capitalize()), markdown(table)) for title, table in tables]
        if len(better := self.brief("better")):
            parts += [_folded(f"What became better ({len(better)})", markdown(better))]
        if len(rest := self.brief(*ORDER[2:])):
            parts += [_folded(f"No significant difference, or not tested ({len(rest)})", markdown(rest))]
        parts += [escaped_markdown(cell(remark)) for remark in self.remarks]
        return "\n\n".join([*parts, f"<sub>{escaped_markdown(EXPLAINED)}</sub>"]) + "\n"

    def json(self) -> dict[str, Any]:
        """All of it as plain values."""
        whole: dict[str, Any] = {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "answer": self.answer,
            "base": self.base,
            "new": self.new,
            "rankers": dict(self.rankers),
            "findings": [
                _row(drift) | {"loss": drift.loss, "losses": dict(sorted(drift.losses.items()))}
                for status in ORDER
                for drift in self.of(status)
            ],
            "new failures": [vars(failure) for failure in self.failures],
            "words": [vars(turn) for turn in self.turns],
            "worst queries": {title: table.to_dict("records") for title, table in self.worst_queries().items()},
            "remarks": list(self.remarks),
        }
        return {key: plain(value) for key, value in whole.items()}


_COLUMNS = (
    *("ranker", "finding", "became", "before", "after", "change", "low", "high", "p (Holm)", "effect size"),
    *("queries", "lost by"),
)
"""Of the table of findings; "lost by" is the number of queries that lost."""


def _row(drift: Drift) -> dict[str, Any]:
    new = drift.new
    rise = new.better == "lower"  # a loss is a rise
    ends = (drift.low, drift.high) if rise else (-drift.high, -drift.low)
    lost: Sequence[float] = [loss for loss in drift.losses.values() if loss > 0]
    values = (
        *(new.ranker, _called(drift), drift.status, drift.before, drift.after, drift.after - drift.before),
        *(*ends, drift.corrected, drift.effect, drift.n, len(lost)),
    )
    return dict(zip(_COLUMNS, values, strict=True))


def _called(drift: Drift) -> str:
    return f"{drift.new.name} ({drift.new.where})" if drift.new.where else drift.new.name


def _folded(title: str, inside: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{inside}\n\n</details>"

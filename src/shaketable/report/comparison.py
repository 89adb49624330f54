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
MOST_QUERIES = 10
"""Queries that are named of each finding."""
MOST_FINDINGS = 3
"""Findings of which queries are named."""
EFFECTIVENESS = "effectiveness"

EXPLAINED = (
    "before, after: the finding in the earlier and in the new audit; change: after minus before; low, high: its 95 % "
    "interval, where the finding is a mean over queries; p: Fisher's randomisation test over the queries that both audits have, "
    f"corrected by Holm for all findings; a finding is worse or better where p is below {LEVEL} and there are "
    f"{FEWEST_QUERIES} queries or more; effect size: the mean loss in standard deviations (above 0: worse)."
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
        return (
            f" Of {first.new.name}, a loss of more than {number(max(first.high, 0.0))} is unlikely: the 95 % interval "
            f"over {first.n} queries ends there."
        )

    def findings(self, *statuses: str) -> pd.DataFrame:
        """A row for each finding, the worst first; of some statuses only, if these are named."""
        import pandas as pd

        rows = [_row(drift) for status in statuses or ORDER for drift in self.of(status)]
        return pd.DataFrame(rows, columns=list(_COLUMNS))

    def queries(self) -> pd.DataFrame:
        """The queries that lost most by the worst findings; by the first finding where none became worse."""
        import pandas as pd

        rows = []
        for drift in (self.of("worse") or list(self.drifts[:1]))[:MOST_FINDINGS]:
            for qid in drift.worst(MOST_QUERIES):
                before, after = drift.old.values[qid], drift.new.values[qid]
                about = {"ranker": drift.new.ranker, "finding": drift.new.name, "query": qid}
                numbers = {"before": before, "after": after, "change": after - before}
                rows.append(about | {"text": self.texts.get(qid, "")} | numbers)
        return pd.DataFrame(rows, columns=["ranker", "finding", "query", "text", "before", "after", "change"])

    def markdown(self) -> str:
        """A comment for a pull request: the answer, what became worse and on which queries; the rest folded."""
        parts = [f"### Robustness: {self.verdict}", escaped_markdown(cell(self.answer))]
        if len(worse := self.findings("worse")):
            parts += ["**What became worse**", markdown(worse)]
        if len(failures := self.failures):
            lines = [f"{one.ranker}: {one.query!r}: {one.reason}" for one in failures[:MOST_QUERIES]]
            parts += [f"**New failures** ({len(failures)})", "\n".join(f"- {escaped_markdown(cell(x))}" for x in lines)]
        if self.turns:
            said = "\n".join(f"- {escaped_markdown(cell(str(turn)))}" for turn in self.turns)
            parts += ["**Facets with a worse word**", said]
        if len(worse) and len(queries := self.queries()):
            parts += [_folded("Queries that lost most", markdown(queries))]
        if len(better := self.findings("better")):
            parts += [_folded(f"What became better ({len(better)})", markdown(better))]
        if len(rest := self.findings(*ORDER[2:])):
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
            "queries": self.queries().to_dict("records"),
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
    where = f" ({new.where})" if new.where else ""
    rise = new.better == "lower"  # a loss is a rise
    ends = (drift.low, drift.high) if rise else (-drift.high, -drift.low)
    lost: Sequence[float] = [loss for loss in drift.losses.values() if loss > 0]
    values = (
        *(new.ranker, f"{new.name}{where}", drift.status, drift.before, drift.after, drift.after - drift.before),
        *(*ends, drift.corrected, drift.effect, drift.n, len(lost)),
    )
    return dict(zip(_COLUMNS, values, strict=True))


def _folded(title: str, inside: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{inside}\n\n</details>"

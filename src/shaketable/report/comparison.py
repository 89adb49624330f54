"""The comparison of two audits: its outcome, and the findings and queries that changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from shaketable.core.results import Failure
from shaketable.measures.facets import EFFECTIVENESS
from shaketable.measures.regression import SIGNIFICANCE_LEVEL, FindingDelta
from shaketable.measures.significance import MIN_QUERIES
from shaketable.measures.status import INCONCLUSIVE
from shaketable.report import format_cell, format_number, format_signed
from shaketable.report.files import to_plain
from shaketable.report.finding_table import FindingTable, correct_change_interval, count_tests
from shaketable.report.first_documents import FirstDocuments
from shaketable.report.notebook import render_comparison, show_page
from shaketable.report.tables import escape_markdown, to_markdown
from shaketable.report.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

COMPARISON_SCHEMA = "shaketable.comparison/3"
ComparisonOutcome: TypeAlias = Literal["worse", "not worse", "inconclusive"]
STATUS_ORDER = ("worse", "better", "no difference", "not tested")
MAX_QUERIES_SHOWN = 5
"""Queries shown for each finding."""
MAX_FINDINGS_SHOWN = 3
"""Findings whose queries are shown."""

DEFAULT_MARGIN_PERCENT = 5.0
"""The default margin: "not worse" means that a larger loss, in per cent of the earlier value, is excluded."""

FINDINGS_TABLE_NOTE = (
    "'before' and 'after' are the finding in the earlier and in the new audit, and 'change' is their difference, with "
    "its 95 % interval where the finding is a mean over queries, corrected like p. 'p (Holm)' is by Fisher's "
    "randomisation test over the queries that both audits have, corrected for all findings; a finding is worse or "
    f"better if p is below {SIGNIFICANCE_LEVEL} and there are {MIN_QUERIES} queries or more. 'lost by' is the number "
    "of queries on which it became worse."
)


@dataclass(frozen=True)
class VerdictChange:
    """A facet whose status became worse, for instance from pass to fail."""

    ranker: str
    facet: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.ranker}'s {self.facet}: from {self.before} to {self.after}"


@dataclass(frozen=True)
class ComparedAudit:
    """One of two audits, as their page shows it: its verdict and the first documents of its rankers."""

    imprint: str
    """The collection, the number of queries, the date and the version."""
    verdict: Verdict
    first_documents: FirstDocuments


@dataclass(frozen=True)
class AuditComparison:
    """The changes of rankers between two audits.

    `rankers` maps rankers of the earlier audit to rankers of the new one. `failures` are the queries on which a ranker
    newly raises an error. `query_texts` has the known texts of queries. The outcome is "not worse" only if the interval
    excludes a loss of effectiveness beyond `margin`, in per cent of the earlier value (a test of non-inferiority).
    `audits` are the earlier and the new audit, for the page.
    """

    base: str
    new: str
    rankers: Mapping[str, str]
    findings: FindingTable[FindingDelta]
    failures: tuple[Failure, ...] = ()
    verdict_changes: tuple[VerdictChange, ...] = ()
    query_texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    remarks: tuple[str, ...] = ()
    margin: float = DEFAULT_MARGIN_PERCENT
    audits: tuple[ComparedAudit, ComparedAudit] | None = field(default=None, repr=False)

    def select_deltas(self, status: str) -> list[FindingDelta]:
        """Return the findings of a status; worse and better findings are sorted by effect, largest first."""
        some = [delta for delta in self.findings if delta.status == status]
        return sorted(some, key=lambda delta: -abs(delta.effect)) if status in STATUS_ORDER[:2] else some

    @property
    def outcome(self) -> ComparisonOutcome:
        """The outcome of the tests.

        It is "worse" if a finding is significantly worse, or a ranker newly raises an error on a query. It is "not
        worse" if no query changed, or if a loss of effectiveness beyond the margin is excluded. Everything else is
        inconclusive.
        """
        if self.select_deltas("worse") or self.failures:
            return "worse"
        if self._is_unchanged:
            return "not worse"
        losses = [self.compute_largest_loss(delta) for delta in self._find_effectiveness()]
        return "not worse" if losses and max(losses) < self.margin else INCONCLUSIVE

    @property
    def _is_unchanged(self) -> bool:
        tested = [delta for delta in self.findings if delta.has_enough_queries]
        return bool(tested) and not any(loss for delta in tested for loss in delta.losses.values())

    def _find_effectiveness(self) -> list[FindingDelta]:
        """Return the first effectiveness measure of each ranker that is a mean over queries."""
        found: dict[str, FindingDelta] = {}
        for delta in self.findings:
            mean = delta.new.facet == EFFECTIVENESS and not delta.new.where and not math.isnan(delta.high)
            if mean and delta.before > 0 and delta.has_enough_queries and not delta.new.name.endswith("%"):
                found.setdefault(delta.new.ranker, delta)
        return list(found.values())

    @staticmethod
    def compute_largest_loss(delta: FindingDelta) -> float:
        """Return the largest loss inside the 95 % interval, in per cent of the earlier value."""
        return 100 * max(delta.high, 0.0) / abs(delta.before)

    @property
    def summary(self) -> str:
        """The outcome in a sentence or two."""
        names = " and ".join(dict.fromkeys(self.rankers.values()))
        tested = [delta for delta in self.findings if delta.status != "not tested"]
        if self.outcome == "worse":
            return f"{names} became worse: {'; '.join(self._describe_losses(len(tested)))}."
        if self._is_unchanged:
            be, count = (
                "is" if len(self.rankers) == 1 else "are",
                sum(delta.has_enough_queries for delta in self.findings),
            )
            return f"{names} {be} the same as before: in {count} findings, no value of any query changed."
        if not tested:
            many = max((delta.n for delta in self.findings), default=0)
            if not many:
                return f"Inconclusive for {names}: no finding of both audits has values by query."
            return f"Inconclusive for {names}: the audits have {many} queries in common; a test needs {MIN_QUERIES}."
        bound = self._describe_possible_loss()
        start = f"{names} is not worse" if self.outcome == "not worse" else f"Inconclusive for {names}"
        return f"{start}: {bound}. None of {len(tested)} findings became significantly worse{self._describe_gains()}."

    @property
    def headline(self) -> str:
        """The outcome in a few words, with the loss that is not excluded."""
        known = self._find_effectiveness()
        if self.outcome != INCONCLUSIVE:
            return self.outcome
        if not known:
            return f"{INCONCLUSIVE}: effectiveness was not compared"
        return f"{INCONCLUSIVE}: a loss of up to {max(map(self.compute_largest_loss, known)):.0f} % is not excluded"

    def _describe_gains(self) -> str:
        """Describe how many findings became better; gains in stability are not claimed if effectiveness fell."""
        better = self.select_deltas("better")
        if not better:
            return ""
        if any(100 * delta.loss / delta.before >= self.margin for delta in self._find_effectiveness()):
            return f"; {len(better)} became more stable, which is no gain because effectiveness fell"
        return f", and {len(better)} became better"

    def _describe_possible_loss(self) -> str:
        """Describe the largest loss of effectiveness inside the 95 % interval, and the margin."""
        known = self._find_effectiveness()
        if not known:
            return "effectiveness was not compared"
        worst = max(known, key=self.compute_largest_loss)
        size, name = self.compute_largest_loss(worst), worst.new.name
        if size < self.margin:
            return f"a loss of {name} beyond {self.margin:g} % is excluded (up to {size:.1f} %, {worst.n} queries)"
        return f"a loss of {name} of up to {size:.0f} % is not excluded (margin {self.margin:g} %, {worst.n} queries)"

    def _describe_losses(self, tested: int) -> list[str]:
        reasons = []
        if worse := self.select_deltas("worse"):
            first = worse[0]
            numbers = (
                f"{format_number(first.before)} to {format_number(first.after)}, p = {format_number(first.corrected_p)}"
            )
            most = f"most of all {first.new.name} ({numbers})"
            reasons.append(f"{len(worse)} of {tested} findings became significantly worse, {most}")
        if self.failures:
            count = len(self.failures)
            reasons.append(f"it fails on {count} {'query' if count == 1 else 'queries'} that it did not fail on before")
        return reasons

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each finding, the worst first, with the columns of `Audit.to_frame` and more."""
        return FindingTable(delta for status in STATUS_ORDER for delta in self.select_deltas(status)).to_frame()

    def _build_rows(self, *statuses: str) -> list[dict[str, Any]]:
        """Return a row for each finding of these statuses, the worst first."""
        tests = count_tests(self.findings)
        return [_build_row(delta, tests) for status in statuses for delta in self.select_deltas(status)]

    def to_brief_frame(self, *statuses: str) -> pd.DataFrame:
        """Return a shorter table without constant columns, with number and interval in one cell."""
        import pandas as pd

        rows = []
        for row in self._build_rows(*(statuses or STATUS_ORDER)):
            ends = "" if math.isnan(row["low"]) else f" [{format_signed(row['low'])}, {format_signed(row['high'])}]"
            rows.append(
                {
                    "ranker": row["ranker"],
                    "finding": row["finding"],
                    "became": row["became"],
                    "before": row["before"],
                    "after": row["after"],
                    "change": f"{format_signed(row['change'], 4)}{ends}",
                    "p (Holm)": row["p (Holm)"],
                    "lost by": f"{row['lost by']} of {row['queries']}",
                }
            )
        known = {"ranker": len(self.rankers) == 1, "became": len(statuses) == 1}
        return pd.DataFrame(rows).drop(columns=[name for name, one in known.items() if one and rows])

    def find_worst_findings(self) -> list[FindingDelta]:
        """Return the worse findings, the worst first, or else the first finding."""
        return self.select_deltas("worse") or list(self.findings[:1])

    def find_worst_queries(self) -> dict[str, pd.DataFrame]:
        """Return title -> table of the largest losses by query, for the worst findings or else the first finding."""
        import pandas as pd

        tables = {}
        for delta in self.find_worst_findings()[:MAX_FINDINGS_SHOWN]:
            old, new = delta.old.values, delta.new.values
            rows = [
                (qid, self.query_texts.get(qid, ""), old[qid], new[qid], new[qid] - old[qid])
                for qid in delta.find_worst_queries(MAX_QUERIES_SHOWN)
            ]
            if rows:
                title = f"queries that lost most by {_format_name(delta)} of {delta.new.ranker}"
                tables[title] = pd.DataFrame(rows, columns=["query", "text", "before", "after", "change"])
        return tables

    def to_html(self) -> str:
        """Return an HTML page without external files: the scorecards, the changes, and the queries with their lists."""
        from shaketable.report.comparison_page import render_comparison_page

        return render_comparison_page(self)

    def show(self) -> Path:
        """Open the page in the browser and return the path of its file, which is in a temporary folder."""
        return show_page(self.to_html())

    def _repr_html_(self) -> str:
        return render_comparison(self)

    def to_markdown(self) -> str:
        """Render a pull request comment: the outcome, the worse findings and their queries; the rest is folded."""
        parts = [f"### Robustness: {escape_markdown(self.headline)}", escape_markdown(format_cell(self.summary))]
        worse = self.to_brief_frame("worse")
        if len(worse):
            parts += ["**What became worse**", to_markdown(worse)]
        if len(failures := self.failures):
            lines = [f"{one.ranker}: {one.query!r}: {one.reason}" for one in failures[:MAX_QUERIES_SHOWN]]
            parts += [
                f"**New failures** ({len(failures)})",
                "\n".join(f"- {escape_markdown(format_cell(x))}" for x in lines),
            ]
        if self.verdict_changes:
            said = "\n".join(f"- {escape_markdown(format_cell(str(change)))}" for change in self.verdict_changes)
            parts += ["**Facets with a worse status**", said]
        if len(worse):
            tables = self.find_worst_queries().items()
            parts += [_fold_details(escape_markdown(title.capitalize()), to_markdown(table)) for title, table in tables]
        if len(better := self.to_brief_frame("better")):
            parts += [_fold_details(f"Better findings ({len(better)})", to_markdown(better))]
        if len(rest := self.to_brief_frame(*STATUS_ORDER[2:])):
            parts += [_fold_details(f"No significant difference, or not tested ({len(rest)})", to_markdown(rest))]
        parts += [escape_markdown(format_cell(remark)) for remark in self.remarks]
        return "\n\n".join([*parts, f"<sub>{escape_markdown(FINDINGS_TABLE_NOTE)}</sub>"]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        tests = count_tests(self.findings)
        whole: dict[str, Any] = {
            "schema": COMPARISON_SCHEMA,
            "outcome": self.outcome,
            "headline": self.headline,
            "margin": self.margin,
            "summary": self.summary,
            "base": self.base,
            "new": self.new,
            "rankers": dict(self.rankers),
            "findings": [
                _build_row(delta, tests) | {"loss": delta.loss, "losses": dict(sorted(delta.losses.items()))}
                for status in STATUS_ORDER
                for delta in self.select_deltas(status)
            ],
            "new_failures": [vars(failure) for failure in self.failures],
            "verdict_changes": [vars(change) for change in self.verdict_changes],
            "worst_queries": {title: table.to_dict("records") for title, table in self.find_worst_queries().items()},
            "remarks": list(self.remarks),
        }
        return {key: to_plain(value) for key, value in whole.items()}


_FINDINGS_COLUMNS = (
    *("ranker", "finding", "became", "before", "after", "change", "low", "high", "p (Holm)", "effect size"),
    *("queries", "lost by"),
)
"""The columns of the table of findings; "lost by" is the number of queries with a loss."""


def _build_row(delta: FindingDelta, tests: int) -> dict[str, Any]:
    ends = correct_change_interval(delta, tests)
    lost: Sequence[float] = [loss for loss in delta.losses.values() if loss > 0]
    values = (
        *(delta.ranker, _format_name(delta), delta.status, delta.before, delta.after, delta.after - delta.before),
        *(*ends, delta.corrected_p, delta.effect, delta.n, len(lost)),
    )
    return dict(zip(_FINDINGS_COLUMNS, values, strict=True))


def _format_name(delta: FindingDelta) -> str:
    return f"{delta.new.name} ({delta.new.where})" if delta.new.where else delta.new.name


def _fold_details(title: str, inside: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{inside}\n\n</details>"

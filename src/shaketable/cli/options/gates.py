"""Flags that decide the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from shaketable.cli.help import Panel
from shaketable.cli.options.groups import make_option, make_repeatable

Require = Annotated[
    list[str] | None,
    make_repeatable(Panel.GATES, "--require", metavar="GATE",
        help="A gate: exit with code 1 unless this holds. Write the name of a number, then >=, <=, > or <, then a "
             "bound. 'nDCG@10>=0.4' applies to every ranker under test, and 'bm25.nDCG@10>=0.4' to one ranker. "
             "'nDCG@10.low>=0.35' tests the lower end of the confidence interval; .high, .p and .n work too."),
]  # fmt: skip
RuleFiles = Annotated[
    list[Path] | None,
    make_repeatable(Panel.GATES, "--rules", metavar="FILE",
        help="A TOML file of gates, in [[fail_if]] and [[warn_if]] tables. docs/gates.md has examples."),
]  # fmt: skip
DefaultGate = Annotated[
    bool,
    make_option(Panel.GATES, "--gate",
        help="Exit with code 1 if a ranker under test fails the default gate: if it only copies the order of the "
             "first stage, is significantly worse than the first stage, or fails a facet of the verdict. "
             "docs/verdict.md has the details."),
]  # fmt: skip
FailOnRegression = Annotated[
    bool,
    make_option(Panel.GATES, "--fail-on-regression",
        help="Exit with code 1 if the new version is significantly worse."),
]  # fmt: skip
Margin = Annotated[
    float,
    make_option(Panel.GATES, "--margin",
        help="The outcome is 'not worse' only if the interval excludes a loss of effectiveness beyond this percentage "
             "of the earlier value.", metavar="PERCENT"),
]  # fmt: skip
AllowMismatch = Annotated[
    list[str] | None,
    make_repeatable(Panel.DATA, "--allow-mismatch", metavar="PART",
        help="Compare the audits even if they differ in this part: data, lists, tasks or seed."),
]  # fmt: skip


@dataclass(frozen=True)
class GateFlags:
    """The gates that an audit must pass."""

    require: Require = None
    rules: RuleFiles = None

    def list_rules(self) -> list[str | Path]:
        """Return all rules: files first, then those of the command line."""
        return [*(self.rules or []), *(self.require or [])]

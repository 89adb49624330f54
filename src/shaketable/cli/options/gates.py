"""Flags that decide the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from shaketable.cli.options.groups import make_repeatable

Require = Annotated[
    list[str] | None,
    make_repeatable("--require", "A gate: end with exit code 1 unless this holds. Write the name of a number, one of "
                    ">=, <=, > and <, and a bound: 'nDCG@10>=0.4' is about the rankers under test, "
                    "'bm25.nDCG@10>=0.4' about one ranker, and 'nDCG@10.low>=0.35' about the lower end of the "
                    "interval (.high, .p and .n are possible too).", metavar="GATE"),
]  # fmt: skip
RuleFiles = Annotated[
    list[Path] | None,
    make_repeatable("--rules", "A TOML file of gates, which are tables called fail_if and warn_if; "
                    "docs/gates.md has examples.", metavar="FILE"),
]  # fmt: skip
DefaultGate = Annotated[
    bool,
    typer.Option("--gate", help="End with exit code 1 if a ranker under test fails the default gate: its order must "
                 "not be that of the first stage, it must not be significantly worse than the first stage, and no "
                 "facet may fail. docs/verdict.md says more."),
]  # fmt: skip
FailOnRegression = Annotated[
    bool, typer.Option("--fail-on-regression", help="End with exit code 1 if the new version is significantly worse.")
]
Margin = Annotated[
    float,
    typer.Option("--margin", help="The loss of effectiveness, in per cent of the earlier value, that has to be "
                 "excluded before the outcome is 'not worse'.", metavar="PERCENT"),
]  # fmt: skip
AllowMismatch = Annotated[
    list[str] | None,
    make_repeatable("--allow-mismatch", "Compare although the two audits differ in this: data, lists, tasks or seed.",
                    metavar="PART"),
]  # fmt: skip


@dataclass(frozen=True)
class GateFlags:
    """The gates that an audit must pass."""

    require: Require = None
    rules: RuleFiles = None

    def list_rules(self) -> list[str | Path]:
        """Return all rules: files first, then those of the command line."""
        return [*(self.rules or []), *(self.require or [])]

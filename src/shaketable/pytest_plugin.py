"""The pytest plugin: the fixture `shaketable_audit`, and a line for each verdict at the end of the session.

pytest loads this module in every session, so it imports nothing of Shaketable before the fixture is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from shaketable.api.audit import Audit

VERDICT_PROPERTY = "shaketable verdict"
"""The name of the test property that holds a verdict; pytest-xdist sends properties from its workers."""


@pytest.fixture
def shaketable_audit(request: pytest.FixtureRequest) -> Callable[..., Audit]:
    """Return a function that audits a ranker, and fails the test if a rule is broken.

    `shaketable_audit(ranker, data="sample", rules=(), tasks=(), **options)` has the parameters of
    `shaketable.testing.assert_robust` and returns the audit. The verdict appears at the end of the session.
    """

    def run(ranker: Any, data: Any = "sample", rules: Any = (), tasks: Any = (), **options: Any) -> Audit:
        from shaketable.api.assertions import audit_by_rules, describe_broken_rules

        __tracebackhide__ = True
        audit, results = audit_by_rules(ranker, data, rules, tasks, **options)
        broken = describe_broken_rules(results)
        kept = sum(result.status != "fail" for result in results)
        said = f"{kept} of {len(results)} rules hold; {audit.verdict.headline}"
        request.node.user_properties.append((VERDICT_PROPERTY, said))
        if broken:
            raise AssertionError(broken)
        return audit

    return run


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the verdicts of the session, one line each; nothing if no test used the fixture."""
    reports = [one for some in terminalreporter.stats.values() for one in some if getattr(one, "when", "") == "call"]
    lines = [
        f"{report.nodeid}: {value}"
        for report in reports
        for name, value in report.user_properties
        if name == VERDICT_PROPERTY
    ]
    if lines:
        terminalreporter.section("shaketable verdicts")
        for line in lines:
            terminalreporter.line(line)

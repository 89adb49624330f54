"""`shaketable demo`: an audit of three rankers on the bundled sample."""

from __future__ import annotations

from pathlib import Path

from shaketable.cli.options.output import BuildServerFlags, OutFolder, VerdictFlags
from shaketable.cli.options.performance import RunFlags


def demo(
    *,
    out: OutFolder = Path("shaketable-audit"),
    shown: VerdictFlags,
    build: BuildServerFlags,
    run: RunFlags,
) -> None:
    """Audit BM25, query likelihood and a no-op ranker on the bundled sample, and print the verdict."""
    import shaketable as st
    from shaketable.cli.console import finish_audit
    from shaketable.report.audit_folder import check_writable

    check_writable(out)
    done = st.demo(**run.to_options())
    done.save(out)
    finish_audit(done, out, False, shown, build)

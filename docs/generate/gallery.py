"""The reports of the gallery: an audit, a comparison of two versions, and a board, made on the bundled sample."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import shaketable as st
from docs.generate.markdown import format_block, join_blocks

LEXICAL_TASKS = "effectiveness first-stage variance risk query-typos document-form probes document-attack".split()
VERSION_TASKS = "effectiveness first-stage query-typos document-form".split()


def count_words(query: str, texts: Sequence[str]) -> list[float]:
    """Count how often the query's words occur; long words count more."""
    words = query.lower().split()
    return [sum(len(word) ** 2 * text.lower().count(word) for word in words) for text in texts]


def count_words_by_length(query: str, texts: Sequence[str]) -> list[float]:
    """Count as `count_words` does, and divide by the length of the text."""
    return [count / (200 + len(text)) for count, text in zip(count_words(query, texts), texts, strict=True)]


@dataclass(frozen=True)
class Report:
    """A report of the gallery: its title, a description, and a command that makes such a report."""

    title: str
    description: str
    command: str


REPORTS = {
    "lexical/report": Report(
        "An audit",
        "BM25 and query likelihood on the bundled sample. The page begins with the verdict and the scorecard. A cell "
        "leads to the tests, the queries and the documents behind it.",
        " \\\n    ".join(
            ["shaketable audit --data sample --ranker bm25 --ranker ql", *(f"--task {task}" for task in LEXICAL_TASKS)]
        ),
    ),
    "comparison": Report(
        "A comparison of two versions",
        "Version 1 counts the words of the query; version 2 divides the count by the length of the text. The page "
        "shows what changed, with intervals, and the lists of the queries that lost most.",
        "shaketable compare version-1 version-2 --html comparison.html",
    ),
    "board": Report(
        "A board of audits",
        "The three audits of this page in one sortable table, with the trend of the ranker that has two versions.",
        "shaketable board lexical version-1 version-2 --html board.html",
    ),
}
"""The reports by file name."""


def render_gallery() -> str:
    """Return the page that shows the reports."""
    intro = (
        "These reports were made from the sample when this site was built. Each is one HTML file that asks no other "
        "host, so you can mail it, attach it to a build or open it from a disk. The previews below run no scripts; "
        "the report itself is interactive. The sample is a demonstration, not a benchmark."
    )
    sections = [
        join_blocks(
            f"## {report.title}",
            f"{report.description} **[Open the report]({name}.html)**",
            format_block("text", report.command),
            # without scripts, because those of a report would scroll this page
            f'<iframe class="report" src="{name}.html" title="{report.title}" sandbox loading="lazy"></iframe>',
        )
        for name, report in REPORTS.items()
    ]
    return join_blocks("# Gallery", intro, *sections) + "\n"


def write_gallery(folder: Path) -> None:
    """Write the reports to a folder: those of three audits, a comparison, and a board that links to the audits."""
    audits = {"lexical": st.audit("sample", ["bm25", "ql"], LEXICAL_TASKS)} | {
        name: st.audit("sample", {"bm25": "bm25", "mine": score}, VERSION_TASKS)
        for name, score in {"version-1": count_words, "version-2": count_words_by_length}.items()
    }
    for name, audit in audits.items():
        audit.save(folder / name)
    comparison = st.compare(folder / "version-1", folder / "version-2")
    (folder / "comparison.html").write_text(comparison.to_html(), encoding="utf-8")
    st.board([folder / name for name in audits]).save(folder / "board.html")
    for name in audits:
        keep_report(folder / name)


def keep_report(folder: Path) -> None:
    """Delete everything in the folder of an audit but its report; the tables and runs are larger."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "report.html":
            path.unlink()

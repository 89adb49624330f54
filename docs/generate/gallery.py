"""The reports of the gallery: an audit, a comparison of two versions, and a board, made on the bundled sample."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

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


REPORTS = {
    "audit": (
        "An audit",
        "BM25 and query likelihood on the bundled sample. The page begins with the verdict and the scorecard; a cell leads to the "
        "tests, the queries and the documents behind it.",
        f"shaketable audit --data sample --ranker bm25 --ranker ql {' '.join(f'--task {task}' for task in LEXICAL_TASKS)}",
    ),
    "comparison": (
        "A comparison of two versions",
        "Version 1 counts the words of the query; version 2 divides the count by the length of the text. The page shows what changed, "
        "with intervals, and the lists of the queries that lost most.",
        "shaketable compare version-1 version-2 --html comparison.html",
    ),
    "board": (
        "A board of audits",
        "The three audits of this page in one sortable table, with the trend of the ranker that has two versions.",
        "shaketable board lexical version-1 version-2 --html board.html",
    ),
}
"""The reports: file name -> title, description, and the command that makes such a report."""


def render_gallery() -> str:
    """Return the page that shows the reports."""
    intro = (
        "These reports were made from the sample when this site was built. Each is one HTML file that asks no other host, so you can "
        "mail it, attach it to a build or open it from a disk. The sample is a demonstration, not a benchmark."
    )
    sections = [
        join_blocks(
            f"## {title}",
            f"{text} **[Open the report]({name}.html)**",
            format_block("text", command),
            f'<iframe class="report" src="{name}.html" title="{title}" loading="lazy"></iframe>',
        )
        for name, (title, text, command) in REPORTS.items()
    ]
    return join_blocks("# Gallery", intro, *sections) + "\n"


def write_gallery(folder: Path) -> None:
    """Write audit.html, comparison.html and board.html to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lexical = st.audit("sample", ["bm25", "ql"], LEXICAL_TASKS)
    versions = [
        st.audit("sample", {"bm25": "bm25", "mine": score}, VERSION_TASKS)
        for score in (count_words, count_words_by_length)
    ]
    with TemporaryDirectory() as name:
        saved = [Path(name) / one for one in ("lexical", "version-1", "version-2")]
        for audit, place in zip([lexical, *versions], saved, strict=True):
            audit.save(place)
        (folder / "audit.html").write_bytes((saved[0] / "report.html").read_bytes())
        (folder / "comparison.html").write_text(st.compare(saved[1], saved[2]).to_html(), encoding="utf-8")
        st.board(saved).save(folder / "board.html")

"""Pages of the repository on the site: their links lead to pages of the site, and docstrings become Markdown."""

from __future__ import annotations

import json

import pytest
from docs.generate.markdown import escape_text, render_entries, render_prose, split_sections
from docs.generate.repository import SiteWriter, render_notebook


@pytest.fixture
def writer(tmp_path) -> SiteWriter:
    return SiteWriter(tmp_path)


@pytest.mark.parametrize(
    ("source", "site_path", "text", "wanted"),
    [
        ("docs/gates.md", "gates.md", "[a](verdict.md#statuses)", "[a](verdict.md#statuses)"),
        ("docs/gates.md", "gates.md", "[a](../CONTRIBUTING.md)", "[a](contributing.md)"),
        ("docs/gates.md", "gates.md", "[a](../README.md)", "[a](index.md)"),
        ("docs/gates.md", "gates.md", "[a](evidence)", "[a](evidence/index.md)"),
        ("docs/gates.md", "gates.md", "[a](evidence/README.md)", "[a](evidence/index.md)"),
        ("docs/gates.md", "gates.md", "[a](ci/rules.toml)", "[a](files/docs/ci/rules.toml.md)"),
        ("docs/gates.md", "gates.md", "[`a`](ci)", "[`a`](files/docs/ci/index.md)"),
        ("docs/gates.md", "gates.md", "[a](../benchmarks/pairs.py)", "[a](files/benchmarks/pairs.py.md)"),
        ("CONTRIBUTING.md", "contributing.md", "[a](docs/gates.md)", "[a](gates.md)"),
        ("docs/evidence/risk.md", "evidence/risk.md", "[a](rows/risk.json)", "[a](rows/risk.json)"),
        ("docs/gates.md", "gates.md", "[a](https://example.org/x.md)", "[a](https://example.org/x.md)"),
        ("docs/gates.md", "gates.md", "[gates.md](gates.md)", "[Compare versions and check gates](gates.md)"),
        ("docs/gates.md", "gates.md", "`[a](ci)`", "`[a](ci)`"),
        ("docs/gates.md", "gates.md", "```text\n[a](ci)\n```", "```text\n[a](ci)\n```"),
    ],
)
def test_links(writer, source, site_path, text, wanted):
    assert writer.rewrite_links(text, source, site_path) == wanted


def test_linked_files_are_shown(writer, tmp_path):
    writer.rewrite_links("[a](ci) [b](images/report.png)", "docs/gates.md", "gates.md")
    assert "[rules.toml](rules.toml.md)" in (tmp_path / "files" / "docs" / "ci" / "index.md").read_text()
    assert "```toml\n" in (tmp_path / "files" / "docs" / "ci" / "rules.toml.md").read_text()
    assert (tmp_path / "images" / "report.png").stat().st_size > 20_000


def test_a_notebook(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["1 + 1"], "outputs": [{"data": {"text/plain": ["2"]}}]},
        {"cell_type": "code", "source": ["a"], "outputs": [{"data": {"text/plain": "A", "text/html": ["<b>A</b>"]}}]},
    ]
    path = tmp_path / "one.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    page = render_notebook(path)
    assert page.startswith("# Title\n\n```python\n1 + 1\n```\n\n```text\n2\n```\n")
    assert page.endswith('```python\na\n```\n\n<div class="output">\n<b>A</b>\n</div>\n')


def test_texts_are_escaped():
    assert escape_text("<b> a_b [c] *d* `e_f|g`") == "&lt;b> a\\_b \\[c\\] \\*d\\* `e_f\\|g`"


def test_a_docstring():
    doc = "Do it.\n\nMore\ntext:\n  a    first\n       line\n  b    second\n\n>>> f()  # doctest: +SKIP\n1"
    prose = render_prose(doc)
    assert prose.startswith("Do it.\n\nMore text:\n\n| name | meaning |")
    assert "| `a` | first line |\n| `b` | second |" in prose
    assert prose.endswith("```pycon\n>>> f()\n1\n```")
    assert "first" not in render_prose(doc, rows=False)


def test_a_numpydoc_section():
    sections = split_sections(
        "Do it.\n\nParameters\n----------\na, b\n    Two\n    names\n**c\n    More.\n\nReturns\n-------\nint\n    A."
    )
    assert list(sections) == ["", "Parameters", "Returns"]
    assert render_entries(sections["Parameters"]) == [("a, b", "Two names"), ("**c", "More.")]

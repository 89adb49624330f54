"""A release is consistent: the package, CITATION.cff and the changelog have the same version and the same date."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

import shaketable

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r"\d+\.\d+\.\d+(\.dev\d+)?")
ENTITY_KEYS, PERSON_KEYS = {"name"}, {"given-names", "family-names", "name-particle"}
REQUIRED_KEYS = {"cff-version", "message", "title", "type", "authors", "version", "license"}
OPTIONAL_KEYS = {"date-released", "keywords", "references"}
REFERENCE_KEYS = {"type", "title", "authors", "year", "journal", "conference", "doi", "notes"}


@pytest.fixture(scope="module")
def citation() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    return read


def is_release() -> bool:
    return ".dev" not in shaketable.__version__


def read_newest_section() -> tuple[str, str]:
    """Return the version and the date of the newest section of the changelog."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## (\S+) \((.+)\)$", text, re.MULTILINE)
    assert first is not None
    return first[1], first[2]


def test_the_version_is_a_release_or_a_development_version():
    assert VERSION.fullmatch(shaketable.__version__)


def test_the_citation_has_the_keys_of_the_format(citation):
    assert set(citation) >= REQUIRED_KEYS
    assert set(citation) <= REQUIRED_KEYS | OPTIONAL_KEYS
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert citation["authors"] == [{"name": "The Shaketable developers"}]
    assert all(isinstance(citation[key], str) and citation[key] for key in ("message", "title", "license"))


def test_the_citation_and_the_changelog_have_the_version_of_the_package(citation):
    version, when = read_newest_section()
    assert citation["version"] == shaketable.__version__
    assert version == shaketable.__version__.partition(".dev")[0]
    assert (when != "unreleased") == is_release()
    if is_release():
        assert citation["date-released"] == date.fromisoformat(when)
    else:
        assert "date-released" not in citation, "a development version has no release date"


def test_the_citation_names_the_papers_as_the_page_for_researchers_does(citation):
    papers = citation["references"]
    assert len(papers) == 5
    page = (ROOT / "docs" / "researcher.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\S+) et al\., (.+?) \((\w+) (\d{4})\) \|", page, re.MULTILINE)
    assert len(rows) == 5
    for paper, (author, title, _, year) in zip(papers, rows, strict=True):
        assert set(paper) <= REFERENCE_KEYS
        assert {"type", "title", "authors", "year", "notes"} <= set(paper)
        assert all(set(person) <= PERSON_KEYS and "family-names" in person for person in paper["authors"])
        assert paper["authors"][0]["family-names"] == author.replace("ç", "c")  # as the paper prints it
        assert paper["title"].lower().startswith(title.lower())
        assert paper["year"] == int(year)
        assert ("journal" in paper) == (paper["type"] == "article")
        assert ("conference" in paper) == (paper["type"] == "conference-paper")


def test_the_changelog_keeps_its_form():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.split(r"^## ", text, flags=re.MULTILINE)[1]
    headings = re.findall(r"^### (.+)$", newest, re.MULTILINE)
    known = ["Before you update", "Added", "Changed", "Renamed", "Removed", "Fixed"]
    assert headings == [heading for heading in known if heading in headings]
    assert {"Before you update", "Added", "Changed", "Fixed"} <= set(headings)

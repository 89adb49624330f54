"""Lists of rankers: every ranker of the papers, and the resources that each lacks on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shaketable.api import listing
from shaketable.api.listing import describe_missing_requirements, list_entries
from shaketable.core import extras
from shaketable.core.extras import format_install_command
from shaketable.core.registries import LEARNERS, RANKERS, TRANSFORMS, WRITERS
from shaketable.nlp.resources import find_hub_cache

PAPERS = {
    "QL": "ql",
    "BM25": "bm25",
    "RM3": "rm3",
    "DocT5Query": "doct5query",
    "PRank": "train prank",
    "RankSVM": "train ranksvm",
    "AdaRank": "train adarank",
    "AFS": "train afs",
    "GBRT": "train gbrt",
    "LambdaMART": "train lambdamart",
    "L-GBM": "train lgbm",
    "DSSM": "train dssm",
    "DRMM": "train drmm",
    "K-NRM": "train knrm",
    "Conv-KNRM": "train conv_knrm",
    "Duet": "train duet",
    "BERT": "train bert",
    "ColBERT": "train colbert",
    "EPIC": "train epic",
    "monoT5": "train monot5",
    "PROP": "train prop",
}
"""The rankers of the papers, and the rows that have them."""
EXPANDER = "castorini/doc2query-t5-base-msmarco"


@pytest.fixture(autouse=True)
def nothing_around(tmp_path, monkeypatch):
    """Hide all models of this machine."""
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def installed(monkeypatch):
    """All libraries are here, or none of an extra."""

    def set_to(*missing: str) -> None:
        gone = {name for extra in missing for name in extras.list_extra_libraries()[extra]}
        for module in (extras, listing):
            monkeypatch.setattr(module, "installed_version", lambda name: None if name in gone else "1.0")

    set_to()
    return set_to


@pytest.mark.parametrize("ranker", PAPERS)
def test_every_ranker_of_the_papers_is_a_row(ranker):
    row, rows = PAPERS[ranker], list_entries("rankers")
    assert ranker.lower() in f"{row} {rows[row]}".lower()
    if row.startswith("train "):
        assert list_entries("learners")[row.removeprefix("train ")] == rows[row]


def test_available_rows_show_only_their_description(installed):
    rows = list_entries("rankers") | list_entries("learners")
    weightless = {"doct5query", "monot5", "train monot5", *WRITERS}
    for name in set(rows) - weightless:
        source = LEARNERS if name.startswith("train ") or name not in RANKERS else RANKERS
        source = LEARNERS if name == "dense" else source  # the later of the two lists
        assert rows[name] == source.summary(name.removeprefix("train ")), name
    assert {name for name, line in rows.items() if "It needs" in line} == weightless


def test_weights_that_are_not_there_and_where_they_would_be(installed, home, tmp_path):
    line = list_entries("rankers")["doct5query"]
    places = [
        EXPANDER,
        home / "resources" / EXPANDER,
        tmp_path / ".cache/huggingface/hub" / "models--castorini--doc2query-t5-base-msmarco",
    ]
    where = ", ".join(map(str, places))
    assert line.startswith(RANKERS.summary("doct5query"))
    assert line.endswith(f"It needs the weights {EXPANDER}, which are not at {where}: hf download {EXPANDER}")


@pytest.mark.parametrize("place", ["here", "resources", "cache"])
def test_weights_that_are_there(installed, home, tmp_path, monkeypatch, place):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cached"))
    folder = {
        "here": tmp_path / EXPANDER,
        "resources": home / "resources" / EXPANDER,
        "cache": tmp_path / "cached" / "models--castorini--doc2query-t5-base-msmarco" / "snapshots" / "0123",
    }[place]
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert "It needs the weights" in list_entries("rankers")["doct5query"], "settings alone are no model"
    (folder / "model.safetensors").write_bytes(b"")
    assert list_entries("rankers")["doct5query"] == RANKERS.summary("doct5query")


def test_an_extra_that_is_not_installed(installed):
    installed("ltr")
    rows = list_entries("learners")
    missing = f"It needs libraries that are not installed (lightgbm): {format_install_command('ltr')}"
    assert rows["gbrt"] == f"{LEARNERS.summary('gbrt')} {missing}"
    assert {name for name, line in rows.items() if "shaketable[ltr]" in line} == {"gbrt", "lambdamart", "lgbm"}
    installed("neural")
    rows = list_entries("rankers")
    neural = {f"train {name}" for name in LEARNERS.rows if LEARNERS.rows[name].startswith("shaketable.training.neural")}
    told = {name for name, line in rows.items() if "pip install 'shaketable[neural]'" in line}
    assert told == neural | {"doct5query", "dense", "hf", "st", "t5"}
    both = rows["doct5query"]
    assert both.index("torch, transformers") < both.index("; it needs the weights")


def test_classes_that_need_an_extra_declare_it():
    """A ranker is listed as lacking torch or LightGBM if its code imports it, and only then."""
    for source, rows in ((RANKERS, RANKERS.builtin_rows), (LEARNERS, LEARNERS.rows), (WRITERS, WRITERS.rows)):
        for name, row in rows.items():
            extra = getattr(source.get_class(name), "extra", "")
            trees = name in ("gbrt", "lambdamart", "lgbm")
            nets = name == "doct5query" or row.partition(":")[0].endswith((".neural", ".neural.models", ".seq2seq"))
            assert extra == ("ltr" if trees else "onnx" if name == "onnx" else "neural" if nets else ""), name


def test_writers_stand_below_the_learners_and_are_marked():
    names = list(list_entries("learners"))
    assert names == [*LEARNERS, *WRITERS]
    assert all(list_entries("learners")[name].startswith("A writer. ") for name in WRITERS)
    assert not any(list_entries("learners")[name].startswith("A writer. ") for name in LEARNERS)


def test_edits_of_documents_are_marked():
    marked = [
        name for name, line in list_entries("transforms").items() if line.startswith("For documents, not queries. ")
    ]
    assert marked == ["add_queries"]
    assert list(list_entries("transforms")) == list(TRANSFORMS)


def test_a_class_of_another_package_lacks_nothing():
    assert describe_missing_requirements(dict) == ""


SETTINGS = [
    {},
    {"XDG_CACHE_HOME": "/x/cache"},
    {"HF_HOME": "~/hf"},
    {"HF_HOME": "$WHERE/hf", "XDG_CACHE_HOME": "/x"},
    {"HUGGINGFACE_HUB_CACHE": "/x/old"},
    {"HF_HUB_CACHE": "~/hub", "HUGGINGFACE_HUB_CACHE": "/x/old", "HF_HOME": "/x/hf"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(settings) or "none")
def test_the_cache_is_where_the_library_of_the_hub_has_it(settings, tmp_path, monkeypatch):
    pytest.importorskip("huggingface_hub")
    known = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "WHERE": "/where"}
    script = "from huggingface_hub.constants import HF_HUB_CACHE; print(HF_HUB_CACHE)"
    out = subprocess.run(
        [sys.executable, "-c", script], env=known | settings, capture_output=True, text=True, check=True
    )
    for name, value in {"WHERE": "/where", **settings}.items():
        monkeypatch.setenv(name, value)
    assert find_hub_cache() == Path(out.stdout.strip())

"""shaketable.toml: the flags of an audit in a file, and the file that an audit leaves, which makes it again."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

import shaketable as st
from shaketable.report.toml import to_toml


def comparable(folder: str) -> dict:
    whole = json.loads((Path(folder) / "results.json").read_text())
    for asked in ("command", "spent"):
        del whole["provenance"][asked]
    return whole


FILE = """
ranker = ["bm25", "mine=ql(mu=500)"]
task = "effectiveness(measures=('AP',))"
depth = 20
require = "AP>=0.1"
"""


def test_flags_in_a_file_and_on_the_command_line(shaketable, folder):
    Path("shaketable.toml").write_text(FILE + f"data = {json.dumps(str(folder))}\n")
    ended = shaketable("audit", "--depth", "30")
    assert ended.code == 0, ended.err
    assert "Settings from shaketable.toml." in ended.err
    about = comparable("shaketable-audit")["provenance"]
    assert about["rankers"] == {"bm25": "bm25", "mine": "ql(mu=500)"}
    assert about["depth"] == 30, "the command line wins"
    Path("shaketable.toml").rename("other.toml")
    ended = shaketable("audit", "--config", "other.toml", "--out", "other")
    assert comparable("other")["provenance"]["depth"] == 20
    assert "pass: AP>=0.1: mine.AP is " in ended.out
    Path("other.toml").write_text(FILE.replace("0.1", "1.1"))
    assert shaketable("audit", "--config", "other.toml", "--data", folder).code == 1


@pytest.mark.parametrize("words", [(), ("--config", "made/shaketable.toml")], ids=["found", "named"])
def test_the_settings_of_an_audit_repeat_it(shaketable, folder, words):
    Path("rules.toml").write_text('[[warn_if]]\nfinding = "nDCG@10"\nbelow = 0.99\n')
    flags = ("--data", folder, "--ranker", "bm25", "--ranker", "mine=ql", "--task", "effectiveness", "--seed", "3")
    first = shaketable("audit", *flags, "--task", "query_typos(draws=2)", "--rules", "rules.toml", "--out", "made")
    assert first.code == 0, first.err
    if not words:
        Path("shaketable.toml").write_text(Path("made/shaketable.toml").read_text())
    again = shaketable("audit", *words, "--out", "again")
    assert again.code == 0, again.err
    assert comparable("again") == comparable("made")
    assert comparable("made")["gate_results"][0]["rule"] == "nDCG@10>=0.99"
    assert Path("again/shaketable.toml").read_text() == Path("made/shaketable.toml").read_text()


def test_default_rankers_are_written_down(shaketable, folder, monkeypatch):
    monkeypatch.setattr("shaketable.api.audit.has_extra", lambda extra: False)
    assert shaketable("audit", "--data", folder, "--task", "agreement", "--out", "made").code == 0
    left = tomllib.loads(Path("made/shaketable.toml").read_text())
    assert left["ranker"][:2] == ["bm25", "ql"]
    assert left["task"] == ["agreement"]


def test_an_audit_of_objects_in_memory_writes_no_settings(folder, tmp_path):
    st.audit(folder, {"mine": lambda query, texts: [1.0] * len(texts)}, "agreement").save(tmp_path / "a")
    assert not (tmp_path / "a" / "shaketable.toml").exists()
    st.audit(folder, {"mine": "ql"}, "agreement").save(tmp_path / "b")
    assert tomllib.loads((tmp_path / "b" / "shaketable.toml").read_text())["ranker"] == ["mine=ql"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("rankers = 'bm25'", "shaketable.toml: no setting is called 'rankers'; did you mean ranker?"),
        ("first_stage = 'bm25'", "no setting is called 'first_stage'; did you mean first-stage?"),
        ("config = 'x.toml'", "no setting is called 'config'"),
        ("depth = 'ten'", "shaketable.toml: depth should be a whole number, not 'ten'"),
        ("depth = 1.5", "depth should be a whole number, not 1.5"),
        ("depth = true", "depth should be a whole number, not True"),
        ("ranker = 3", "ranker should be a text, or a list of such, not 3"),
        ("ranker = ['bm25', 3]", "ranker should be a text, or a list of such"),
        ("split = ['a']", "split should be a text, not ['a']"),
        ("keep-going = 1", "keep-going should be true or false, not 1"),
        ("[audit]\ndepth = 3", "no setting is called 'audit'"),
        ("depth = ", "shaketable.toml: is not a TOML file"),
        ("ranker = 'bm52'", "no ranker is called 'bm52'; did you mean bm25?"),
        ("require = 'good'", "cannot read the rule"),
    ],
)
def test_mistakes(shaketable, text, complaint):
    Path("shaketable.toml").write_text(text)
    assert complaint in shaketable("audit").complaint()
    assert not Path("shaketable-audit").exists()


def test_a_file_that_is_not_there(shaketable):
    assert "absent.toml: there is no such file" in shaketable("audit", "--config", "absent.toml").complaint()


def test_help_does_not_look_at_the_file(shaketable):
    Path("shaketable.toml").write_text("nonsense")
    assert shaketable("audit", "--help").code == 0


def test_written_data_are_read_back():
    texts = [
        'a "quoted" text',
        "back\\slash",
        "tab\tline\nend",
        "ünïcode 薄荷 🙂",
        "\x7f\x00\x1f",
        "",
        "# no comment",
        "'",
    ]
    values = {"a": texts, "n": 3, "x": 0.1, "big": 1e300, "yes": True, "empty": [], "t": texts[0]}
    assert tomllib.loads(to_toml(values)) == values
    assert to_toml({"a": None}) == ""

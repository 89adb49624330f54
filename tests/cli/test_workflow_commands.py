"""Text of others is no command to GitHub's runner, which obeys lines such as ::add-mask::x in the output of a step."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.cli.workflow_commands import ZERO_WIDTH_SPACE, NeutralisedStream
from shaketable.report import escape_controls

PRINTING = """
def score(query, texts):
    print("::error::from a ranker")
    print("  ::add-mask::audit")
    print("a ##[add-mask]b")
    return [float(len(text)) for text in texts]
"""


def find_commands(output: str) -> list[str]:
    """Return the lines that the runner would obey: `::` after blanks, or `##[` anywhere."""
    return [line for line in re.split(r"[\r\n]+", output) if line.lstrip().startswith("::") or "##[" in line]


def run(folder, in_actions: str) -> subprocess.CompletedProcess[str]:
    (folder / "mine.py").write_text(PRINTING)
    words = ["rank", "--ranker", "./mine.py:score", "--max-queries", "1", "--write-run", "a.run"]
    return subprocess.run(
        [sys.executable, "-c", "from shaketable.cli import main; main()", *words],
        cwd=folder,
        env={**os.environ, "GITHUB_ACTIONS": in_actions},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )


def test_output_in_a_workflow_has_no_commands(tmp_path):
    done = run(tmp_path, "true")
    assert find_commands(done.stdout + "\n" + done.stderr) == []
    assert f":{ZERO_WIDTH_SPACE}:error::from a ranker" in done.stdout


def test_output_elsewhere_is_unchanged(tmp_path):
    found = find_commands(run(tmp_path, "").stdout)
    assert set(found) == {"::error::from a ranker", "  ::add-mask::audit", "a ##[add-mask]b"}


@given(st.text(alphabet=":#[ \t\r\nx", max_size=30), st.lists(st.integers(0, 30), max_size=6))
def test_no_division_into_writes_makes_a_command(text, cuts):
    out = io.StringIO(newline="")
    stream = NeutralisedStream(out)
    ends = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    stream.writelines(text[start:stop] for start, stop in pairwise(ends))
    assert find_commands(out.getvalue()) == []
    assert out.getvalue().replace(ZERO_WIDTH_SPACE, "") == text


@pytest.mark.parametrize("text", ["a::b", "x ::y", ":a", "# [", "#[", "nDCG@10: 0.5"])
def test_other_text_is_unchanged(text):
    out = io.StringIO()
    NeutralisedStream(out).write(text)
    assert out.getvalue() == text


def test_json_keeps_its_data():
    data = {"text": "##[add-mask]x \\\\##["}
    escaped = escape_controls(json.dumps(data))
    assert find_commands(escaped) == []
    assert json.loads(escaped) == data

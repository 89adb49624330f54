"""The tool itself: the mutants of a text by hand, a fair draw, and the tests that are chosen."""

from __future__ import annotations

import ast
import json
from pathlib import Path

from tests.mutants.__main__ import ROOT, read_accepted
from tests.mutants.operators import find_mutants
from tests.mutants.selection import RecordedTest, TestMap, draw_mutants, list_mutants, read_calls

CODE = '''
"""A docstring, which no mutant changes."""

LEVEL: float = 0.05


class Row:
    """One field."""

    group: int = 1

    def check(self, name: str, limit=3) -> bool:
        """Return True if it fits."""
        if not name and limit >= 2:
            raise ValueError(f"{name + 'x'} is too long")
        self.log(name)
        return len(name) - 1 < limit
'''


def test_mutants_by_hand():
    found = find_mutants(CODE, "src/m.py", "m")
    made = {(mutant.operator, mutant.place, mutant.before, mutant.after) for mutant in found}
    assert made == {
        ("constant", "m", "0.05", "(1.05)"),
        ("default", "m.Row", "1", "(2)"),
        ("default", "m.Row.check", "3", "(4)"),
        ("condition", "m.Row.check", "not name and limit >= 2", "(not (not name and limit >= 2))"),
        ("boolean", "m.Row.check", "not name and limit >= 2", "(not name or limit >= 2)"),
        ("not", "m.Row.check", "not name", "(name)"),
        ("comparison", "m.Row.check", "limit >= 2", "(limit > 2)"),
        ("comparison", "m.Row.check", "limit >= 2", "(limit < 2)"),
        ("constant", "m.Row.check", "2", "(3)"),
        ("removed statement", "m.Row.check", "raise ValueError(f\"{name + 'x'} is too long\")", "pass"),
        ("removed statement", "m.Row.check", "self.log(name)", "pass"),
        ("return", "m.Row.check", "return len(name) - 1 < limit", "return None"),
        ("comparison", "m.Row.check", "len(name) - 1 < limit", "(len(name) - 1 <= limit)"),
        ("comparison", "m.Row.check", "len(name) - 1 < limit", "(len(name) - 1 >= limit)"),
        ("arithmetic", "m.Row.check", "len(name) - 1", "(len(name) + 1)"),
        ("constant", "m.Row.check", "1", "(2)"),
    }
    for mutant in found:
        changed = mutant.apply(CODE)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(CODE)), mutant.key
        assert changed.replace(mutant.after, "", 1).split() != CODE.split()


def test_mutants_of_lines_that_are_not_ascii():
    (mutant,) = find_mutants('x = ("ü€", 1)\n', "src/m.py", "m")
    assert mutant.apply('x = ("ü€", 1)\n') == 'x = ("ü€", (2))\n'


def test_what_a_debugger_shows_is_no_mutant():
    found = find_mutants("x = field(repr=False, default=2)\n", "src/m.py", "m")
    assert [(mutant.before, mutant.after) for mutant in found] == [("2", "(3)")]


def test_the_draw_is_seeded_and_reaches_every_package():
    first, again, other = (draw_mutants(ROOT, seed, 60) for seed in (1, 1, 2))
    assert first == again != other
    assert len(set(first)) == 60
    packages = {Path(mutant.path).parts[2] for mutant in first}
    assert packages == set(list_mutants(ROOT))


def test_tests_that_call_the_function_are_chosen_and_others_for_constants(tmp_path):
    (tmp_path / "src" / "shaketable").mkdir(parents=True)
    (tmp_path / "src" / "shaketable" / "own.py").write_text("from shaketable.kernels import add\n")
    (tmp_path / "src" / "shaketable" / "kernels.py").write_text("SIZE = 2\n")
    rows = [
        {"test": "tests/test_a.py::test_one", "seconds": 1.0, "passed": True, "calls": ["shaketable.own.run"]},
        {"test": "tests/test_a.py::test_two", "seconds": 100.0, "passed": True, "calls": ["shaketable.own.run"]},
        {"test": "tests/test_a.py::test_five", "seconds": 3.0, "passed": True, "calls": ["shaketable.own.run"]},
        {"test": "tests/test_own.py::test_six", "seconds": 4.0, "passed": True, "calls": []},
        {"test": "tests/test_b.py::test_three", "seconds": 2.0, "passed": True, "calls": ["shaketable.own.stop"]},
        {"test": "tests/test_b.py::test_four", "seconds": 2.0, "passed": False, "calls": ["shaketable.own.run"]},
    ]
    (tmp_path / "gw0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tests = read_calls(tmp_path)
    assert tests[0] == RecordedTest("tests/test_a.py::test_one", 1.0, frozenset({"shaketable.own.run"}))
    assert len(tests) == 5, "a test that failed shows nothing"
    chosen = TestMap(tests, tmp_path)
    inside, constant = (
        find_mutants(code, f"src/shaketable/{name}.py", f"shaketable.{name}")[0]
        for name, code in (("own", "def run():\n    return 1\n"), ("kernels", "SIZE = 2\n"))
    )
    own, first, other = "tests/test_own.py::test_six", "tests/test_a.py::test_one", "tests/test_a.py::test_five"
    assert chosen.select(inside) == ([own, first, other], 8.0), "the slow test does not fit"
    assert set(chosen.select(constant)[0]) == {first, other, "tests/test_b.py::test_three"}
    alone = TestMap([one for one in tests if one.name in (first, "tests/test_b.py::test_three")], tmp_path)
    assert alone.select(inside)[0] == [first, "tests/test_b.py::test_three"], "it may keep its result for later callers"


def test_accepted_survivors_exist_and_have_a_reason():
    keys = {mutant.key for files in list_mutants(ROOT).values() for found in files.values() for mutant in found}
    for mutant, reason in read_accepted().items():
        assert mutant in keys, f"{mutant} is no mutant of the present code"
        assert len(reason.split()) > 3

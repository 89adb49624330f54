"""The disk fails at each code location that changes it: no data are lost or wrong, and a second run succeeds.

Here each distinct site is broken once; `make faults` breaks every single call.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from shaketable.cli.app import app
from tests.faults.jobs import JOBS, Job
from tests.faults.stage import TIMER
from tests.processes import ROOT, SOURCE

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")]
EVERY = os.environ.get("SHAKETABLE_FAULTS") == "every"
"""At every call, as `make faults` asks for; not at each distinct site alone."""
SITES = 50
"""Distinct sites of all jobs together."""


def lines(module: str, *words: object) -> list[dict[str, Any]]:
    """Return the JSON lines that a script of this folder prints."""
    env = os.environ | {"PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-m", f"tests.faults.{module}", *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """All jobs under all faults, once for the tests below."""
    return lines("stage", tmp_path_factory.mktemp("faults"), *(["--every", "--kills", "6"] if EVERY else []))


def of(reports: list[dict[str, Any]], job: Job) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if job.needs and not find_spec(job.needs):
        pytest.skip(f"{job.needs} is not installed")
    mine = [one for one in reports if one["job"] == job.name]
    return mine[0], mine[1:]


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_job_survives_whatever_the_disk_does(reports, job):
    about, trials = of(reports, job)
    wrong = [one for one in trials if one["wrong"]]
    assert not wrong, "\n".join(f"{one['mode']} at call {one['at']} ({one['site']}): {one['wrong']}" for one in wrong)
    assert len(about["sites"]) >= job.sites, about["sites"]
    at_sites = [one for one in trials if one["site"] != str(TIMER)]
    assert len(trials) - len(at_sites) == (6 if EVERY else 1)
    if EVERY:
        assert len(at_sites) == 3 * about["calls"]


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_nothing_has_its_name_before_it_is_on_the_disk(reports, job):
    assert of(reports, job)[0]["hasty"] == []


@pytest.mark.slow
def test_every_site_is_broken_in_every_way(reports):
    sites = {site for one in reports if "sites" in one for site in one["sites"]}
    broken = Counter((one["mode"], one["site"]) for one in reports if "mode" in one)
    assert all(broken[mode, site] for mode in ("kill", "full", "read-only") for site in sites)
    if all(not job.needs or find_spec(job.needs) for job in JOBS):
        assert len(sites) >= SITES, sorted(sites)


@pytest.mark.slow
def test_every_site_of_a_job_that_replaces_files_is_killed_in_such_a_job(reports):
    groups = {job.name for job in JOBS if job.group}
    sites = {site for one in reports if "sites" in one and one["job"] in groups for site in one["sites"]}
    killed = {one["site"] for one in reports if one.get("mode") == "kill" and one["job"] in groups}
    assert sites <= killed


@pytest.mark.slow
def test_every_command_is_killed(reports):
    commands = {command.name or command.callback.__name__.rstrip("_") for command in app.registered_commands}
    names = {one["job"] for one in reports if one.get("mode") == "kill"}
    killed = {job.command[0] for job in JOBS if job.name in names and not callable(job.command)}
    # demo is an audit of the sample; watch counts its looks, so that a second one says something else; view has no end
    assert killed >= commands - {"demo", "watch", "view"}


@pytest.mark.slow
def test_two_audits_at_once(tmp_path):
    count = 6 if EVERY else 3
    rounds = lines("together", tmp_path, count)
    assert len(rounds) == 2 * count
    assert [one for one in rounds if one["wrong"]] == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk here that is always full")
def test_output_to_a_full_disk():
    env = os.environ | {"PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT}", "PYTHONUNBUFFERED": ""}
    command = [sys.executable, "-c", "from shaketable.cli import main; main()", "list"]
    with open("/dev/full", "w") as full:
        for words in (["data"], ["data", "--json", "-"]):
            done = subprocess.run([*command, *words], env=env, stdout=full, stderr=subprocess.PIPE, text=True)
            assert (done.returncode, done.stderr) == (2, "shaketable: a file: No space left on device\n")
        for words in (["data"], ["nothing"]):
            assert subprocess.run([*command, *words], env=env, stdout=full, stderr=full).returncode == 2

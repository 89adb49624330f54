"""Jobs under faults, each in a forked process: everything is imported and compiled once, before.

    python -m tests.faults.stage FOLDER [--every] [--kills N] [--only-kills] [--job NAME]...

One fault of each mode at each distinct site, or with --every at each single call; a kill at each site of each job that
replaces files; and N kills of each job at a random moment, wherever it is then, also inside SQLite. After the fault the
job is done again without one. A line of JSON for each job, and one for each fault, tells what came of it.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shaketable.core.seeding import make_item_rng
from tests.faults.injector import Injector, Site
from tests.faults.jobs import JOBS, Job, do

TIMER = Site("", 0, "timer")
MODES = ("kill", "full", "read-only")
PASSING = re.compile(r".*(seconds|spent|built again|builds it again|damaged).*")
"""Lines of a page that are of one process alone: what it cost, and what it had to repair."""
NUMBERED = re.compile(r"(files-[0-9a-f]{16})-[0-9]+")
"""A second folder of one content, where the first was in use."""
TABLES = (".csv", ".run", ".gz", ".tsv", ".eval", ".tex", ".md", ".txt", ".safetensors", ".bin")
"""What must be the same to the byte wherever a job ends well."""


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    status: int
    said: str

    @property
    def killed(self) -> bool:
        return os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGKILL

    @property
    def code(self) -> int | None:
        return os.WEXITSTATUS(self.status) if os.WIFEXITED(self.status) else None

    @property
    def sentences(self) -> list[str]:
        return [line for line in self.said.splitlines() if line.startswith("shaketable: ")]


def run(job: Job, folder: Path, injector: Injector | None = None, note: Path | None = None) -> Ended:
    """Run a job in a separate process, in a folder with its initial files."""
    return begin(job, folder, injector, note).wait()


@dataclass(frozen=True)
class Running:
    """A process that does a job."""

    pid: int
    said: Path

    def wait(self) -> Ended:
        _, status = os.waitpid(self.pid, 0)
        return Ended(status, self.said.read_text(errors="replace"))


def begin(
    job: Job, folder: Path, injector: Injector | None = None, note: Path | None = None, name: str = ""
) -> Running:
    """Begin a job in a process of its own."""
    said = folder.parent / f"{name or folder.name}.said"
    said.touch()  # a process may be killed before it says anything
    if (child := os.fork()) == 0:
        code = 99
        try:
            _enter(folder, said)
            if injector:
                injector.install()
            try:
                _call_as_command(job.command) if callable(job.command) else _main(job.command)
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 0
            if note and injector:
                note.write_text(json.dumps({"calls": [vars(s) for s in injector.calls], "hasty": injector.hasty}))
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(Exception):
                sys.stderr.flush()
            os._exit(code)

    return Running(child, said)


def _main(words: Sequence[str]) -> None:
    from shaketable.cli import main

    main(list(words))


def _call_as_command(function: Callable[[], None]) -> None:
    """Call a function and end the process like a command."""
    from shaketable.core.errors import ShaketableError

    try:
        function()
    except ShaketableError as error:
        print(f"shaketable: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def _enter(folder: Path, said: Path) -> None:
    os.chdir(folder)
    os.environ["SHAKETABLE_HOME"] = str(folder / "home")
    handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for stream in (1, 2):
        os.dup2(handle, stream)
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, buffering=1)  # noqa: SIM115
    sys.argv[1:] = ["job"]  # an audit writes down how it was called


def snapshot(folder: Path) -> dict[str, Any]:
    """Return the files of a folder by name, with their content without times and costs."""
    place = re.compile(re.escape(str(folder.parent)) + r"/[\w-]+")  # wherever it was made
    return {
        NUMBERED.sub(r"\1", path.relative_to(folder).as_posix()): _content(path, place)
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith(("-wal", "-shm", "-journal")) and ".damaged-" not in path.name
    }


def _content(path: Path, place: re.Pattern[str]) -> Any:
    if path.is_dir():
        return "folder"
    if path.suffix == ".sqlite":
        db = sqlite3.connect(path)
        try:
            rows = sorted(db.execute("SELECT key, value FROM kept"))
        except sqlite3.DatabaseError as error:
            return str(error)
        finally:
            db.close()
        return hashlib.sha256(repr(rows).encode()).hexdigest()
    raw = path.read_bytes()
    if path.suffix in (".json", ".html", ".toml"):
        return _timeless(path.name, NUMBERED.sub(r"\1", place.sub("", raw.decode())))
    return hashlib.sha256(raw).hexdigest()


def _timeless(name: str, text: str) -> Any:
    if name.endswith(".html"):
        return hashlib.sha256(PASSING.sub("", text).encode()).hexdigest()
    try:
        return json.loads(text, object_hook=_without_times)
    except ValueError:  # cut off while it was being staged, or settings
        return text


def _without_times(entry: dict[str, Any]) -> dict[str, Any]:
    for name in ("seconds", "spent", "checksum", "blake2b", "bytes", "remarks", "cautions"):  # what was repaired
        entry.pop(name, None)
    return entry


def leftovers(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return the unexpected files."""
    return [name for name in found if name not in wanted and any(part.startswith(".") for part in name.split("/"))]


def find_mixed(found: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any], group: str) -> list[str]:
    """Return files of a group that are neither all old nor all new, although they are read together.

    A model is read by its model.json, and files that this does not list are ignored. An audit is read by its report
    and its results, and all tables are there as long as one of these is; while both are away, the tables may be a part
    of the old ones or a part of the new ones.
    """
    ours = {name for name in old.keys() | new.keys() if name.startswith(f"{group}/") and old.get(name) != new.get(name)}
    ours = {name for name in ours if "folder" not in (old.get(name), new.get(name))} - {f"{group}/manifest.json"}
    if not ours or any(all(found.get(name) == side.get(name) for name in ours) for side in (old, new)):
        return []
    there = ours & found.keys()
    sides = [side for side in (old, new) if all(side.get(name) == found[name] for name in there)]
    if (model := f"{group}/model.json") in found:
        sides = [side for side in (old, new) if side.get(model) == found[model]]
        return [] if any(all(found.get(n) == side[n] for n in ours & side.keys()) for side in sides) else sorted(there)
    read_by = {f"{group}/report.html", f"{group}/results.json"}
    whole = [side for side in sides if all(found.get(n) == side[n] for n in (ours & side.keys()) - read_by)]
    return sorted(there) if not sides or (there & read_by and not whole) else []


@dataclass(frozen=True)
class Trial:
    """A fault, and the data to check its outcome."""

    job: Job
    mode: str
    at: int
    site: Site
    template: Path
    old: Mapping[str, Any]
    new: Mapping[str, Any]
    folder: Path

    def wrong(self) -> Iterator[str]:
        """Yield the violations of the guarantees as sentences."""
        ended = self.suffer()
        found = snapshot(self.folder)
        yield from self._ending(ended, found)
        yield from (f"a mixture: {name}" for name in find_mixed(found, self.old, self.new, self.job.group or "?"))
        yield from (f"neither old nor new: {name}" for name in self._strange(found))
        again = run(self.job, self.folder)
        if again.code != 0:
            yield f"done again, it ends with {again.code}: {again.said[-400:]}"
            return
        found = snapshot(self.folder)
        for name in sorted((found.keys() | self.new.keys()) - {*self.job.varies}):
            if found.get(name) != self.new.get(name):
                known = "another one" if name in self.new else "left over"
                yield f"done again, {name} is {known if name in found else 'not there'}"

    def suffer(self) -> Ended:
        """Do the job with the fault."""
        shutil.copytree(self.template, self.folder)
        return run(self.job, self.folder, Injector(self.folder, self.mode, self.at))

    def _ending(self, ended: Ended, found: Mapping[str, Any]) -> Iterator[str]:
        if "Traceback" in ended.said:
            yield f"a traceback: {ended.said[-600:]}"
        if self.mode == "kill":
            if not ended.killed:
                yield f"it was not killed (status {ended.status})"
        elif ended.code == 0:
            for name in self.new:
                if name.endswith(TABLES) and not name.startswith("home/") and found.get(name) != self.new[name]:
                    yield f"it ended well, and {name} is not as it should be"
        elif ended.code != 2 or len(ended.sentences) != 1 or ended.said.splitlines()[-1] != ended.sentences[0]:
            yield f"it ended with {ended.code}: {ended.said[-400:]}"
        if self.mode == "full" and self.site.call not in ("unlink", "rmdir", "rename"):
            yield from (f"left behind: {name}" for name in leftovers(found, self.new))

    def _strange(self, found: Mapping[str, Any]) -> Iterator[str]:
        """Yield the names of files whose content is neither the old nor the new one."""
        for name, content in found.items():
            hidden = any(part.startswith(".") for part in name.split("/"))
            known = [side[name] for side in (self.old, self.new) if name in side]
            if known and not hidden and name.endswith(TABLES) and content not in known:
                yield name


@dataclass(frozen=True)
class TimedKill(Trial):
    """A kill after `at` milliseconds, or earlier if the job is done by then."""

    def suffer(self) -> Ended:
        wait_s = self.at / 1000
        while True:
            shutil.copytree(self.template, self.folder)
            running = begin(self.job, self.folder)
            time.sleep(wait_s)
            with suppress(ProcessLookupError):
                os.kill(running.pid, signal.SIGKILL)  # it is not waited for yet, so the number is still its own
            ended = running.wait()
            if ended.killed:
                return ended
            shutil.rmtree(self.folder)
            wait_s /= 2


@dataclass(frozen=True)
class Prepared:
    """A job with its initial files, its expected files, and the code locations that change the disk."""

    job: Job
    root: Path
    old: Mapping[str, Any]
    new: Mapping[str, Any]
    calls: Sequence[Site]
    hasty: Sequence[str]
    seconds: float

    @classmethod
    def of(cls, job: Job, root: Path) -> Prepared:
        template, whole, note = root / "before", root / "whole", root / "note.json"
        template.mkdir(parents=True)
        ended = run(Job("prepare", job.prepare), template)
        assert ended.code == 0, (job.name, ended.said)
        shutil.copytree(template, whole)
        started = time.perf_counter()
        ended = run(job, whole, Injector(whole), note)
        seconds = time.perf_counter() - started
        assert ended.code == 0, (job.name, ended.said)
        told = json.loads(note.read_text())
        calls = [Site(**call) for call in told["calls"]]
        return cls(job, root, snapshot(template), snapshot(whole), calls, told["hasty"], seconds)

    def first(self) -> dict[Site, int]:
        """The number of the first call from each site."""
        numbers: dict[Site, int] = {}
        for number, site in enumerate(self.calls, 1):
            numbers.setdefault(site, number)
        return numbers

    def trials(self, numbers: Iterable[int], modes: Sequence[str] = MODES) -> list[Trial]:
        return [
            Trial(self.job, mode, at, self.calls[at - 1], self.root / "before", self.old, self.new,
                  self.root / f"{mode}-{at}")
            for at in numbers
            for mode in modes
        ]  # fmt: skip

    def timed_kills(self, count: int) -> list[Trial]:
        """Kills at random moments, the same ones for each number."""
        moments = [make_item_rng(0, "kill", self.job.name, number).random() for number in range(count)]
        return [
            TimedKill(self.job, "kill", 1 + int(1000 * self.seconds * moment), TIMER, self.root / "before", self.old,
                      self.new, self.root / f"timed-{number}")
            for number, moment in enumerate(moments)
        ]  # fmt: skip


def chosen(jobs: Sequence[Prepared], every: bool) -> Iterator[Trial]:
    """Return a fault of each mode at every call, or one per site and a kill at each site of jobs that replace files.

    A site that several jobs share is broken in the one with the fewest calls and initial files, which is mostly the
    quickest, and killed in the first of those that replace files.
    """
    seen: set[Site] = set()
    killed_in_group: set[Site] = set()
    for one in sorted(jobs, key=lambda one: (len(one.calls), len(one.old))):
        if every:
            yield from one.trials(range(1, len(one.calls) + 1))
        else:
            first = one.first()
            yield from one.trials(n for site, n in first.items() if site not in seen)
            if one.job.group:  # a kill is what may leave a mixture of old and new files
                known = seen - killed_in_group
                yield from one.trials((n for site, n in first.items() if site in known), ("kill",))
                killed_in_group |= set(first)
        seen |= set(one.calls)


def run_in_processes(trials: Sequence[Trial], root: Path, hands: int) -> Iterator[str]:
    """Run the trials in several processes; return one line for each."""
    children = {}
    for hand in range(hands):
        notes = root / f"told-{hand}"
        if (child := os.fork()) == 0:
            with notes.open("w") as out:
                for trial in trials[hand::hands]:
                    try:
                        wrong = list(trial.wrong())
                    except Exception:
                        wrong = [traceback.format_exc()]
                    shutil.rmtree(trial.folder, ignore_errors=True)
                    told = {"job": trial.job.name, "mode": trial.mode, "at": trial.at, "site": str(trial.site)}
                    out.write(json.dumps(told | {"wrong": wrong}) + "\n")
            os._exit(0)
        children[child] = notes
    for child, notes in children.items():
        os.waitpid(child, 0)
        yield from notes.read_text().splitlines()


def warm(jobs: Sequence[Job], root: Path) -> None:
    """Import and compile all that jobs need, here, so that no fork has to."""
    import contextlib

    sys.modules["vl_convert"] = None  # type: ignore[assignment]  # threads of its own, which no fork has; no plots
    with suppress(ImportError):
        import torch

        torch.set_num_threads(1)
    here = os.getcwd()
    for number, job in enumerate(jobs):
        (folder := root / f"warm-{number}").mkdir(parents=True)
        os.chdir(folder)
        os.environ["SHAKETABLE_HOME"] = str(folder / "home")
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            _forget()
            job.prepare()
            do(job.command)
        os.chdir(here)
    shutil.rmtree(root)
    _forget()
    gc.collect()
    gc.freeze()


def _forget() -> None:
    """Clear the cache of open indexes, as in a new process."""
    from shaketable.retrieval import inverted_index

    inverted_index._open_indexes.clear()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", action="store_true", help="break every single call")
    parser.add_argument("--kills", type=int, default=1, help="kills of each job at random moments")
    parser.add_argument("--only-kills", action="store_true", help="no faults at sites")
    parser.add_argument("--job", action="append", help="only this job")
    parser.add_argument("--hands", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    root = arguments.folder.resolve()
    wanted = [job for job in JOBS if not arguments.job or job.name in arguments.job]
    jobs = [job for job in wanted if not job.needs or find_spec(job.needs)]
    warm(jobs, root / "warm")
    ready = [Prepared.of(job, root / f"job-{number}") for number, job in enumerate(jobs)]
    for one in ready:
        sites = sorted(map(str, one.first()))
        print(
            json.dumps({"job": one.job.name, "calls": len(one.calls), "sites": sites, "hasty": one.hasty}), flush=True
        )
    trials = [] if arguments.only_kills else list(chosen(ready, arguments.every))
    trials += [trial for one in ready for trial in one.timed_kills(arguments.kills)]
    for line in run_in_processes(trials, root, arguments.hands):
        print(line, flush=True)


if __name__ == "__main__":
    main()

"""The pages of the documentation as steps that a test can run.

A page is read from top to bottom, as a reader follows it in an empty folder:

- a code block after "Save this as `NAME`:" is a file to save;
- each line of a block of `sh` is a command, and its exit code is 0 unless its comment says "exit code N";
- another block of `python` is run;
- a block of `text` is output or a template: it is shown, not run.
"""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from shaketable.cli import main

ROOT = Path(__file__).parents[1]
PAGES = {"README": ROOT / "README.md"} | {path.stem: path for path in sorted((ROOT / "docs").glob("*.md"))}
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"\bas `([\w-]+\.\w+)`:$")
CHECKOUT_TOOLS = ("make", "pip")
"""Commands that belong to a checkout of the project; a page for users has them only for the installation."""
SHELL_OPERATORS = {"|", ">", ">>", "<", ";", "&&", "||"}
SERVER_START_S = 30


@dataclass(frozen=True)
class Step:
    """One step of a page: `name` is the name of a file."""

    kind: Literal["file", "python", "command", "text"]
    text: str
    name: str = ""


def read_steps(page: Path) -> list[Step]:
    """Return the steps of a page in order."""
    text = page.read_text(encoding="utf-8")
    steps = []
    for block in BLOCK.finditer(text):
        language, code = block["language"], block["code"]
        paragraph = " ".join(text[: block.start()].rstrip().rpartition("\n\n")[2].split())
        named = FILE_NAME.search(paragraph)
        if language == "sh":
            lines = code.replace("\\\n", " ").splitlines()
            steps += [Step("command", line) for line in lines if line.strip() and not line.startswith("#")]
        elif language == "text":
            steps.append(Step("text", code))
        elif named:
            steps.append(Step("file", code, named[1]))
        elif language == "python":
            steps.append(Step("python", code))
    return steps


def find_free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class PageRunner:
    """A reader that follows a page in a folder.

    `ports` replaces the port numbers of the pages by free ones in files and commands, so that tests can run side by
    side. Commands of Shaketable run in this process, which saves the time to start Python.
    """

    folder: Path
    ports: dict[str, str] = field(default_factory=dict)
    servers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def run(self, step: Step) -> int:
        """Run a step and return its exit code."""
        text = step.text
        for documented, port in self.ports.items():
            text = text.replace(f":{documented}", f":{port}").replace(f", {documented}", f", {port}")
        if step.kind == "file":
            (self.folder / step.name).write_text(text, encoding="utf-8")
        elif step.kind == "python":
            exec(compile(text, step.name or "page", "exec"), {"__name__": "__main__"})  # noqa: S102
        elif step.kind == "command":
            return self.run_command(text)
        return 0

    def run_command(self, line: str) -> int:
        words = shlex.split(line, comments=True)
        assert not SHELL_OPERATORS & {*words}, f"a command of a page must need no shell: {line}"
        if words[0] == "shaketable":
            return run_shaketable(words[1:])
        if words[0] in CHECKOUT_TOOLS:
            return run_in_checkout(words)
        assert words[0] == "python", f"a page runs shaketable, python, make and pip only: {line}"
        if words[-1] == "&":
            self.start_server([sys.executable, *words[1:-1]])
            return 0
        return subprocess.run([sys.executable, *words[1:]], cwd=self.folder).returncode

    def start_server(self, command: list[str]) -> None:
        """Start a program and wait until one of the ports answers."""
        self.servers.append(subprocess.Popen(command, cwd=self.folder))
        end = time.monotonic() + SERVER_START_S
        while not any(is_open(int(port)) for port in self.ports.values()):
            assert time.monotonic() < end, f"{command} does not listen"
            assert self.servers[-1].poll() is None, f"{command} has ended"
            time.sleep(0.05)

    def stop(self) -> None:
        for server in self.servers:
            server.terminate()
            server.wait()


def is_open(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def run_shaketable(words: list[str]) -> int:
    """Run a command line and return its exit code."""
    try:
        main(words)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def run_in_checkout(words: list[str]) -> int:
    """Check a command of the installation without running it: the target of `make`, the extras of `pip`."""
    if words[0] == "make":
        return subprocess.run(["make", "--dry-run", *words[1:]], cwd=ROOT, stdout=subprocess.DEVNULL).returncode
    extras = re.findall(r"\.\[([\w,]+)\]", " ".join(words))
    known = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wrong = [extra for some in extras for extra in some.split(",") if not re.search(rf"^{extra} = ", known, re.M)]
    return len(wrong) if "-e" in words else 1  # there is no release yet: pip installs the checkout


def expected_exit_code(line: str) -> int:
    """Return the exit code that the comment of a command promises; 0 without one."""
    promised = re.search(r"#.*exit code (\d+)", line)
    return int(promised[1]) if promised else 0

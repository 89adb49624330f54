"""Where words go: results to stdout, everything else to stderr; progress only where somebody watches."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from shaketable.files import written_whole


def stdout(json_target: str | None = None) -> Console:
    """The console for tables; it moves to stderr where stdout is for JSON."""
    return Console(stderr=json_target == "-", highlight=False)


def say(message: str) -> None:
    """A remark on stderr."""
    print(message, file=sys.stderr)


def emit_json(data: Mapping[str, Any], target: str) -> None:
    """Strict JSON to a file, whole or not at all, or to stdout."""
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    if target == "-":
        print(text)
        return
    with written_whole(Path(target)) as out:
        out.write(text + "\n")


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, nothing elsewhere or where there is nothing to do."""
    if total == 0 or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task(what, total=total)
        yield lambda done: bars.advance(bar, done)

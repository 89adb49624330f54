"""The command line: parse, call, print."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

INTERNAL = 70
"""The exit code of a mistake of ours (EX_SOFTWARE): never 1, which says that a gate failed."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. An error that is the input's fault is one sentence on stderr and exit code 2 (or its own)."""
    from shaketable.cli.app import app
    from shaketable.errors import ShaketableError

    try:
        given = None if arguments is None else list(arguments)
        code = app(args=given, prog_name="shaketable", standalone_mode=False)
        sys.stdout.flush()  # here, and not after all is over, where nobody can say that the disk is full
    except ShaketableError as error:
        _end(str(error), error.exit_code)
    except KeyboardInterrupt:
        _end("stopped", 130)
    except BrokenPipeError:  # whoever read our output has seen enough
        _leave(0)
    except OSError as error:
        _end(f"{error.filename or 'a file'}: {error.strerror or error}", 2)
    except SystemExit as end:  # so typer leaves where it has completed a word, and where nobody reads on
        _leave(0 if isinstance(end.__context__, BrokenPipeError) else int(end.code or 0))
    except BaseException as error:
        if hasattr(error, "format_message"):  # what typer says of words that it cannot parse
            _show(error)
            _leave(2)
        _end(f"a mistake of ours ({type(error).__name__}); {_noted(error)}", INTERNAL)
    _leave(code if isinstance(code, int) else 0)


def _show(error: Any) -> None:
    """What typer says, without what a terminal would obey."""
    from io import StringIO

    from shaketable.report import clean

    error.show(said := StringIO())
    with suppress(OSError):
        print(clean(said.getvalue()), end="", file=sys.stderr)


def _end(sentence: str, code: int) -> None:
    from shaketable.cli.console import say

    with suppress(OSError):  # there may be no room for it either
        say(f"shaketable: {sentence}")
    _leave(code)


def _leave(code: int) -> None:
    """Exit with this code; what can no longer be written must not make the interpreter exit with another."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except OSError:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    sys.exit(code)


def _noted(error: BaseException) -> str:
    """Where the traceback was written, for whoever is going to repair it."""
    import tempfile
    import traceback

    try:
        handle, path = tempfile.mkstemp(prefix="shaketable-error-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as out:
            out.write("".join(traceback.format_exception(error)))
    except OSError:
        return f"its traceback could not be written: {error}"
    return f"please report what is in {path}"

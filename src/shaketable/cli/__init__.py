"""The command line: `main` runs a command and turns errors into messages and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

INTERNAL_ERROR_EXIT_CODE = 70
"""The exit code of an internal error (EX_SOFTWARE); exit code 1 means that a gate failed."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. An input error prints one sentence to stderr and exits with 2, or with the code of the error."""
    from shaketable.cli.app import app
    from shaketable.core.errors import ShaketableError

    try:
        given = None if arguments is None else list(arguments)
        code = app(args=given, prog_name="shaketable", standalone_mode=False)
        sys.stdout.flush()  # report a full disk now
    except ShaketableError as error:
        _exit_with_message(str(error), error.exit_code)
    except KeyboardInterrupt:
        _exit_with_message("stopped", 130)
    except BrokenPipeError:  # the reader closed the output
        _exit_with_code(0)
    except OSError as error:
        _exit_with_message(f"{error.filename or 'a file'}: {error.strerror or error}", 2)
    except SystemExit as end:  # from typer, after completion or a closed output
        _exit_with_code(0 if isinstance(end.__context__, BrokenPipeError) else int(end.code or 0))
    except BaseException as error:
        if hasattr(error, "format_message"):  # a usage error of typer
            _print_usage_error(error)
            _exit_with_code(2)
        message = f"internal error ({type(error).__name__}); {_save_traceback(error)}"
        _exit_with_message(message, INTERNAL_ERROR_EXIT_CODE)
    _exit_with_code(code if isinstance(code, int) else 0)


def _print_usage_error(error: Any) -> None:
    """Print a usage error without control sequences."""
    from io import StringIO

    from shaketable.report import clean

    error.show(said := StringIO())
    with suppress(OSError):
        print(clean(said.getvalue()), end="", file=sys.stderr)


def _exit_with_message(sentence: str, code: int) -> None:
    from shaketable.cli.console import notify

    with suppress(OSError):  # the disk may be full
        notify(f"shaketable: {sentence}")
    _exit_with_code(code)


def _exit_with_code(code: int) -> None:
    """Exit with this code, even if the output is closed."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except OSError:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    sys.exit(code)


def _save_traceback(error: BaseException) -> str:
    """Write the traceback to a file and return a sentence that names the file."""
    import tempfile
    import traceback

    from shaketable.core.redaction import redact

    try:
        handle, path = tempfile.mkstemp(prefix="shaketable-error-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as out:
            out.write(redact("".join(traceback.format_exception(error))))
    except OSError:
        return f"its traceback could not be written: {error}"
    return f"please report it with the traceback in {path}"

"""The command line: `main` runs a command and turns errors into messages and exit codes."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

INTERNAL_ERROR_EXIT_CODE = 70
"""The exit code of an internal error (EX_SOFTWARE); exit code 1 means that a gate failed."""
CLOSED_OUTPUT_EXIT_CODE = 141
"""The exit code of a gated command whose output was closed (128 + SIGPIPE)."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. An input error prints one sentence to stderr and exits with 2, or with the code of the error.

    Without arguments, those of the program are used, and a gated command runs in a child process (`supervision`).
    """
    from shaketable.cli.supervision import PIPE

    PIPE.open(is_program=arguments is None)
    _configure_streams()
    try:
        code = _run_app(None if arguments is None else list(arguments))
    except BrokenPipeError:  # the reader closed the output, perhaps before a gate was evaluated
        _exit_with_code(CLOSED_OUTPUT_EXIT_CODE if PIPE.descriptor is not None else 0)
    except OSError as error:
        _exit_with_message(f"{error.filename or 'a file'}: {error.strerror or error}", 2)
    except SystemExit as end:  # from typer, after completion or a closed output
        closed = CLOSED_OUTPUT_EXIT_CODE if PIPE.descriptor is not None else 0
        _exit_with_code(closed if isinstance(end.__context__, BrokenPipeError) else int(end.code or 0))
    except BaseException as error:
        if hasattr(error, "format_message"):  # a usage error of typer
            _print_usage_error(error)
            _exit_with_code(2)
        message = f"internal error ({type(error).__name__}); {_save_traceback(error)}"
        _exit_with_message(message, INTERNAL_ERROR_EXIT_CODE)
    _exit_with_code(code)


def _run_app(arguments: list[str] | None) -> int:
    """Run a command and return its exit code; an error of ours or an interrupt ends the program with a message."""
    from shaketable.cli.app import app
    from shaketable.cli.signals import get_interrupt_exit_code, interrupt_on_stop_signals
    from shaketable.core.errors import Interrupted, ShaketableError

    code: object = 0
    try:
        with interrupt_on_stop_signals(), _shorten_our_warnings():
            code = app(args=arguments, prog_name="shaketable", standalone_mode=False)
        sys.stdout.flush()  # report a full disk now
    except Interrupted as error:
        _exit_with_message(str(error), get_interrupt_exit_code())
    except ShaketableError as error:
        _exit_with_message(str(error), error.exit_code)
    except KeyboardInterrupt:
        _exit_with_message("stopped", get_interrupt_exit_code())
    return code if isinstance(code, int) else 0


@contextmanager
def _shorten_our_warnings() -> Iterator[None]:
    """Print a warning on an old name as one line, without the file and the line of our code."""
    import warnings

    from shaketable.core.deprecation import DeprecatedNameWarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, DeprecatedNameWarning):
            from shaketable.cli.console import notify

            notify(f"shaketable: {message}")
        else:
            show_others(message, category, *where, **more)

    show_others = warnings.showwarning
    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = show_others


def _configure_streams() -> None:
    """Read UTF-8, as from files, and write what the encoding of the terminal lacks, as under LC_ALL=C, as escapes."""
    from shaketable.cli.workflow_commands import neutralise_workflow_commands

    codecs.register_error("json_escape", _escape_for_json)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="strict")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="json_escape")
    neutralise_workflow_commands()


def _escape_for_json(error: UnicodeError) -> tuple[str, int]:
    r"""Return escapes such as \u00e9, which keep JSON valid."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2)), error.end


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
    from shaketable.cli.supervision import PIPE

    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except OSError:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    PIPE.write(code)
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

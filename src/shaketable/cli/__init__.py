"""The command line: parse, call, print."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

INTERNAL = 70
"""The exit code of a mistake of ours (EX_SOFTWARE): never 1, which says that a gate failed."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. An error that is the input's fault is one sentence on stderr and exit code 2 (or its own)."""
    from shaketable.cli.app import app
    from shaketable.errors import ShaketableError

    try:
        code = app(args=None if arguments is None else list(arguments), standalone_mode=False)
    except ShaketableError as error:
        _end(str(error), error.exit_code)
    except KeyboardInterrupt:
        _end("stopped; finished scores are kept, run it again to go on", 130)
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep the interpreter from complaining at exit.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        sys.exit(0)
    except OSError as error:
        _end(f"{error.filename or 'a file'}: {error.strerror or error}", 2)
    except SystemExit:  # not ours: `app` returns its code, and only code of the user's leaves like this
        _end("code that you named tried to end the program", 2)
    except BaseException as error:
        if hasattr(error, "format_message"):  # what typer says of words that it cannot parse
            error.show()  # type: ignore[attr-defined]
            sys.exit(2)
        _end(f"a mistake of ours ({type(error).__name__}); {_noted(error)}", INTERNAL)
    sys.exit(code if isinstance(code, int) else 0)


def _end(sentence: str, code: int) -> None:
    from shaketable.cli.console import say

    say(f"shaketable: {sentence}")
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

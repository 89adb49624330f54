"""The command line: parse, call, print."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. An error that is the input's fault is one sentence on stderr and exit code 2 (or its own)."""
    from shaketable.cli.app import app
    from shaketable.errors import ShaketableError

    try:
        app(args=None if arguments is None else list(arguments))
    except ShaketableError as error:
        print(f"shaketable: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("shaketable: stopped; finished scores are kept, run it again to go on", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep the interpreter from complaining at exit.
        sys.stdout = None
        sys.exit(0)

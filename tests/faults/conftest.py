"""Running commands as a user would, as the tests of the command line do."""

from __future__ import annotations

from tests.cli.conftest import shaketable

__all__ = ["shaketable"]

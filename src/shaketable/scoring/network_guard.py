"""A guard that refuses requests to servers during a dry run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shaketable.core.errors import RankerFailed

_active_dry_runs = 0
"""The number of active dry runs in this process."""


@contextmanager
def block_network() -> Iterator[None]:
    """Refuse every request to an endpoint inside the block, in all threads."""
    global _active_dry_runs  # one process, one network
    _active_dry_runs += 1
    try:
        yield
    finally:
        _active_dry_runs -= 1


def check_network_allowed(url: str) -> None:
    """Raise an error during a dry run; call this before every request."""
    if _active_dry_runs:
        raise RankerFailed(f"{url}: a dry run sends no requests")

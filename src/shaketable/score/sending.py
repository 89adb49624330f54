"""Whether anything may be sent to a server: not while somebody plans."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shaketable.errors import RankerFailed

_plans = 0
"""Plans under way in this process."""


@contextmanager
def nothing_sent() -> Iterator[None]:
    """A block in which every request to an endpoint is refused, whoever makes it and in whatever thread."""
    global _plans  # one process, one network
    _plans += 1
    try:
        yield
    finally:
        _plans -= 1


def refuse_in_plans(url: str) -> None:
    """What whoever sends calls first."""
    if _plans:
        raise RankerFailed(f"{url}: a plan sends nothing")

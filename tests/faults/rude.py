"""Rankers of a user's that behave badly, each in a way of its own; their texts are "tests.faults.rude:NAME"."""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from shaketable.core.documents import Collection, Slate


class Stopped(KeyboardInterrupt):
    """A ranker that raises KeyboardInterrupt although the user did not stop it."""


class Beyond(BaseException):
    """No Exception, so that careless code lets it through."""


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise SystemExit(0)


class Leaves:
    name = "leaves"

    def score(self, slates: Sequence[Slate]) -> NoReturn:
        sys.exit(0)


class Stops:
    name = "stops"

    def score(self, slates: Sequence[Slate]) -> NoReturn:
        raise Stopped


class Goes:
    name = "goes"

    def score(self, slates: Sequence[Slate]) -> NoReturn:
        raise Beyond("far")


class Mumbles:
    name = "mumbles"

    def score(self, slates: Sequence[Slate]) -> NoReturn:
        raise Unspeakable


class Complex:
    name = "complex"

    def score(self, slates: Sequence[Slate]) -> list[Any]:
        return [np.arange(len(slate.docs)) * 1j for slate in slates]


class Lazy:
    """Hands out a generator that ends the program half way."""

    name = "lazy"

    def score(self, slates: Sequence[Slate]) -> Any:
        yield np.arange(len(slates[0].docs), dtype=float)
        sys.exit(0)


class Trap:
    """Becomes an array only to end the program."""

    def __array__(self, *arguments: Any, **named: Any) -> NoReturn:
        sys.exit(0)


class Trapped:
    name = "trapped"

    def score(self, slates: Sequence[Slate]) -> list[Any]:
        return [Trap() for _ in slates]


class NeverMade:
    name = "never made"

    def __init__(self) -> None:
        sys.exit(0)

    def score(self, slates: Sequence[Slate]) -> list[Any]:
        return []


class NeverOpened:
    def open(self, collection: Collection) -> NoReturn:
        sys.exit(0)


class Nameless:
    @property
    def name(self) -> str:
        sys.exit(0)

    def score(self, slates: Sequence[Slate]) -> list[Any]:
        return [np.zeros(len(slate.docs)) for slate in slates]


class Marked:
    name = "marked"
    max_concurrency = "many"

    def score(self, slates: Sequence[Slate]) -> list[Any]:
        return [np.zeros(len(slate.docs)) for slate in slates]


class Remarkable:
    name = "remarkable"

    @property
    def remark(self) -> str:
        sys.exit(0)

    def score(self, slates: Sequence[Slate]) -> list[Any]:
        return [np.zeros(len(slate.docs)) for slate in slates]


class Searches:
    name = "searches"

    def score(self, slates: Sequence[Slate]) -> list[Any]:
        return [np.zeros(len(slate.docs)) for slate in slates]

    def search(self, queries: Sequence[str], k: int) -> Any:
        return None


class Gradients:
    """A torch model whose scores still know how they came about; that is no fault."""

    name = "gradients"

    def score(self, slates: Sequence[Slate]) -> list[Any]:
        import torch

        weights = torch.ones(1, requires_grad=True)
        return [weights * torch.tensor([float(len(doc.text)) for doc in slate.docs]) for slate in slates]


class Vanishes:
    """Ends the process at once, with the exit code of success."""

    name = "vanishes"

    def score(self, slates: Sequence[Slate]) -> NoReturn:
        os._exit(0)


class VanishesLater:
    """Ranks, and ends the process with the exit code of success when it would end anyway."""

    name = "vanishes later"

    def score(self, slates: Sequence[Slate]) -> list[Any]:
        atexit.register(os._exit, 0)
        return [np.zeros(len(slate.docs)) for slate in slates]


class Waits:
    """Report the call, and never return."""

    name = "waits"

    def score(self, slates: Sequence[Slate]) -> NoReturn:
        print("asked", file=sys.stderr, flush=True)
        while True:
            time.sleep(1)

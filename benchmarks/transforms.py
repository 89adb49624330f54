"""Queries edited a second of processor time by each rule-based method, and by `vary`, which also judges what came out.

    python benchmarks/transforms.py [--quick]

The peer is TextAttack 0.3.11 as measured on a machine of this kind: 1,480 queries a second for its character edits, 115
for its WordNet swap with WordNet loaded. Goal: fifty times as many, each edit with draws of its own. Queries are made
of words of the bundled thesaurus, nine to a query with function words among them; the best of three rounds counts, and
the first one also gets to know the words. Edits whose resource is not on this machine are named and left out.
"""

from __future__ import annotations

import sys
import time

from quick import judge_limits, parse_quick

from shaketable.core.documents import Query
from shaketable.core.errors import ShaketableError
from shaketable.core.protocols import TransformContext
from shaketable.core.registries import TRANSFORMS
from shaketable.core.seeding import make_item_rng
from shaketable.nlp.thesaurus import read_bundled_thesaurus
from shaketable.transforms.vary import vary

CHARACTERS, WORDNET = 1_480, 115
GOAL = 50
ROUNDS = 3
FRAMES = ("how do the {} {} in a {} {}", "what is the {} {} of {} {} with", "{} {} for {} and the {}")


def queries(count: int) -> list[str]:
    words = sorted(read_bundled_thesaurus())
    made = []
    for number in range(count):
        rng = make_item_rng(0, "query", number)
        made.append(rng.choice(FRAMES).format(*(rng.choice(words) for _ in range(4))))
    return made


def main() -> int:
    quick = parse_quick(__doc__)
    texts = queries(20 if quick else 10_000)
    fast = True
    for name in TRANSFORMS:
        if (
            hasattr(TRANSFORMS.get_class(name), "model") or name == TRANSFORMS.function_adapter
        ):  # by a model, or by a user
            continue
        edit, context = TRANSFORMS.build(name), TransformContext()
        try:
            edit.apply(texts[0], make_item_rng(1), context)  # loads what must be loaded
        except ShaketableError as error:
            print(f"{name:20} left out: {str(error).partition(';')[0]}")
            continue
        speed = 0.0
        for draw in range(ROUNDS):
            started = time.process_time()
            results = [edit.apply(text, make_item_rng(0, name, i, draw), context) for i, text in enumerate(texts)]
            speed = max(speed, len(texts) / (time.process_time() - started))
        peer = WORDNET if name.endswith("syn_swap") else CHARACTERS
        applied = sum(result is not None for result in results) / len(texts)
        ratio = speed / peer
        fast &= ratio >= GOAL
        print(f"{name:20} {speed:>9,.0f}/s, {ratio:6.0f} times {peer:,} (goal {GOAL}); applied to {applied:4.0%}")
    transforms = [TRANSFORMS.build(name) for name in ("char_noise", "random_order_swap", "syn_swap")]
    started = time.process_time()
    made = vary({str(i): Query(text) for i, text in enumerate(texts)}, transforms)
    print(f"vary, with validity  {len(made) / (time.process_time() - started):>9,.0f} variations/s")
    return judge_limits(fast, quick)


if __name__ == "__main__":
    sys.exit(main())

"""Queries per second of each rule-based transform, against TextAttack.

    python benchmarks/transforms.py [--quick]

The peer is TextAttack 0.3.11, measured once on a similar machine: 1,480 queries per second for its character
transformations, and 115 for its WordNet swap with WordNet loaded. Goal: fifty times as many, with a random number
generator for each query. Queries have nine words, of the bundled thesaurus and function words. The best of three rounds
counts, in processor time; the first round also fills the caches. The script names and skips transforms whose resource
is not installed. It also prints the speed of `vary`, which checks the validity of each variation.
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

PEER_CHARACTERS_PER_S, PEER_WORDNET_PER_S = 1_480, 115
MIN_RATIO = 50
ROUNDS = 3
FRAMES = ("how do the {} {} in a {} {}", "what is the {} {} of {} {} with", "{} {} for {} and the {}")


def generate_queries(count: int) -> list[str]:
    """Return random queries with words of the thesaurus."""
    words = sorted(read_bundled_thesaurus())
    queries = []
    for number in range(count):
        rng = make_item_rng(0, "query", number)
        queries.append(rng.choice(FRAMES).format(*(rng.choice(words) for _ in range(4))))
    return queries


def is_rule_based(name: str) -> bool:
    """Return False for transforms of a model or of the user."""
    return not hasattr(TRANSFORMS.get_class(name), "model") and name != TRANSFORMS.function_adapter


def main() -> int:
    quick = parse_quick(__doc__)
    texts = generate_queries(20 if quick else 10_000)
    is_fast = True
    for name in filter(is_rule_based, TRANSFORMS):
        transform, context = TRANSFORMS.build(name), TransformContext()
        try:
            transform.apply(texts[0], make_item_rng(1), context)  # loads its resource
        except ShaketableError as error:
            print(f"{name:20} skipped: {str(error).partition(';')[0]}")
            continue
        speed = 0.0
        for draw in range(ROUNDS):
            started = time.process_time()
            results = [transform.apply(text, make_item_rng(0, name, i, draw), context) for i, text in enumerate(texts)]
            speed = max(speed, len(texts) / (time.process_time() - started))
        peer = PEER_WORDNET_PER_S if name.endswith("syn_swap") else PEER_CHARACTERS_PER_S
        applied = sum(result is not None for result in results) / len(texts)
        ratio = speed / peer
        is_fast &= ratio >= MIN_RATIO
        print(f"{name:20} {speed:>9,.0f} queries/s, ratio to {peer:5,} {ratio:6.0f} (goal {MIN_RATIO})", end="")
        print(f"; applied to {applied:4.0%} of the queries")
    transforms = [TRANSFORMS.build(name) for name in ("char_noise", "random_order_swap", "syn_swap")]
    started = time.process_time()
    variations = vary({str(i): Query(text) for i, text in enumerate(texts)}, transforms)
    print(f"{'vary, with validity':20} {len(variations) / (time.process_time() - started):>9,.0f} variations/s")
    return judge_limits(is_fast, quick)


if __name__ == "__main__":
    sys.exit(main())

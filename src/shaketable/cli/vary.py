"""`shaketable vary`: variations of queries."""

from __future__ import annotations

from shaketable.cli.options.data import Seed
from shaketable.cli.options.output import Json, WriteVariations
from shaketable.cli.options.tasks import Categories, KeepCase, Queries, Transforms, Variants, VariationsPerQuery


def vary(
    queries: Queries = "sample",
    transform: Transforms = None,
    category: Categories = None,
    variants: Variants = None,
    n: VariationsPerQuery = 1,
    write_variations: WriteVariations = "-",
    keep_case: KeepCase = False,
    seed: Seed = 0,
    json_to: Json = None,
) -> None:
    """Generate variations of queries, such as misspellings, and check that they keep the meaning."""
    from shaketable.api import vary as api
    from shaketable.cli.console import emit_json, notify

    how = (transform or (), category or ())
    done = api.vary(queries, how[0], categories=how[1], variants=variants, n=n, seed=seed, lower=not keep_case)
    api.write_variations(done.variations, write_variations)
    for name, reason in done.unavailable.items():
        notify(f"The transform {name} was left out: {reason}")
    total, valid = len(done.queries), sum(variation.valid for variation in done.variations)
    unjudged = sum(not variation.judged for variation in done.variations)
    for name, idle in done.not_applicable.items():
        if idle:
            notify(f"The transform {name} can be applied to {total - idle} of the {total} queries.")
    rest = f", {unjudged} could not be judged" if unjudged else ""
    verb = "is" if valid == 1 else "are"
    notify(f"{len(done.variations)} variations of {total} queries were made; {valid} of them {verb} valid{rest}.")
    if json_to:
        counts = {"queries": total, "variations": len(done.variations), "valid": valid, "not_judged": unjudged}
        more = {"not_applicable": done.not_applicable, "left_out": done.unavailable}
        emit_json({"schema": "shaketable.vary/1"} | counts | more, json_to)

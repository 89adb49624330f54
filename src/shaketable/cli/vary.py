"""`shaketable vary`: queries in, variations out."""

from __future__ import annotations

from typing import Any

from shaketable.cli import options as o


def vary(
    queries: o.Queries = "sample",
    method: o.Methods = None,
    category: o.Categories = None,
    variants: o.Variants = None,
    n: o.Number = 1,
    out: o.VariationsOut = "-",
    keep_case: o.KeepCase = False,
    seed: o.Seed = 0,
    json_to: o.Json = None,
) -> None:
    """Make variations of queries, such as misspellings, and say of each whether it still asks for the same."""
    from shaketable.cli.console import emit_json, say
    from shaketable.door.vary import vary as run
    from shaketable.door.vary import write_variations

    which: Any = {"categories": category or (), "variants": variants}
    done = run(queries, method or (), **which, n=n, seed=seed, lower=not keep_case)
    write_variations(done.variations, out)
    for name, reason in done.left_out.items():
        say(f"The method {name} was left out: {reason}")
    total, valid = len(done.queries), sum(variation.valid for variation in done.variations)
    for name, idle in done.not_applicable.items():
        if idle:
            say(f"The method {name} can be applied to {total - idle} of the {total} queries.")
    say(f"{len(done.variations)} variations of {total} queries were made; {valid} of them are valid.")
    if json_to:
        counts = {"queries": total, "variations": len(done.variations), "valid": valid}
        more = {"not_applicable": done.not_applicable, "left_out": done.left_out}
        emit_json({"schema": "shaketable.vary/1"} | counts | more, json_to)

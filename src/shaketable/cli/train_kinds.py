"""`shaketable train-kinds`: queries whose kind is known in, the folder of a model of kinds out."""

from __future__ import annotations

from shaketable.cli import options as o


def train_kinds(
    out: o.KindsOut,
    data: o.Data = "sample",
    split: o.Split = None,
    kinds: o.Kinds = None,
    seed: o.Seed = 0,
    json_to: o.Json = None,
) -> None:
    """Train a model that tells what kind a query is, such as location or numeric, from queries whose kind is known."""
    from shaketable.cli.console import emit_json, say, stdout
    from shaketable.door.train_kinds import train_kinds as run
    from shaketable.report.terminal import show_table

    done = run(data, out, split=split, kinds=kinds, seed=seed)
    show_table(
        stdout(json_to),
        "how many queries of each kind (rows) were taken for each kind (columns), in cross-validation",
        done.confusion.table(),
    )
    if json_to:
        emit_json(done.json(), json_to)
    say(str(done))

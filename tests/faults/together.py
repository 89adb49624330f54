"""Two audits at once, forked from a process that has everything imported and compiled.

    python -m tests.faults.together FOLDER ROUNDS

They share a home, and write into two folders or into one. A line of JSON tells of each round what was not as promised.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.faults.jobs import AUDIT, Job
from tests.faults.stage import Ended, begin, leftovers, run, snapshot, warm

ONE = ("--task", "variance", "--task", "agreement")
OTHER = ("--task", "variance", "--task", "risk", "--depth", "4")


def audit(words: tuple[str, ...], out: str) -> Job:
    return Job(out, (*AUDIT, *words, "--out", out))


def below(found: Mapping[str, Any], out: str) -> dict[str, Any]:
    """Return the files of a folder by name."""
    return {name.removeprefix(f"{out}/"): content for name, content in found.items() if name.startswith(f"{out}/")}


def wrong(ended: list[Ended], found: Mapping[str, Any], allowed: Mapping[str, list[dict[str, Any]]]) -> Iterator[str]:
    """Return violations: each folder must hold one complete audit; at most one process may be refused."""
    refused = [one for one in ended if one.code != 0]
    if len(refused) > 1 or any(one.code != 2 or len(one.sentences) != 1 for one in refused):
        yield f"they ended with {[(one.code, one.said[-300:]) for one in ended]}"
    for out, wholes in allowed.items():
        if below(found, out) not in wholes:
            differing = [{n for n in {*whole, *below(found, out)} if whole.get(n) != below(found, out).get(n)}
                         for whole in wholes]  # fmt: skip
            yield f"{out} is no whole audit: {[sorted(names)[:5] for names in differing]}"
    yield from (f"left over: {name}" for name in leftovers(found, {}))


def main() -> None:
    root, rounds = Path(sys.argv[1]).resolve(), int(sys.argv[2])
    apart, shared = (audit(ONE, "a"), audit(OTHER, "b")), (audit(ONE, "c"), audit(OTHER, "c"))
    warm([*apart], root / "warm")
    template = root / "before"
    template.mkdir(parents=True)
    assert run(Job("prepare", apart[0].prepare), template).code == 0
    whole = []
    for number, job in enumerate(apart):
        shutil.copytree(template, folder := root / f"alone-{number}")
        assert run(job, folder).code == 0
        whole.append(below(snapshot(folder), job.name))
    for number in range(rounds):
        for jobs, allowed in ((apart, {"a": whole[:1], "b": whole[1:]}), (shared, {"c": whole})):
            shutil.copytree(template, folder := root / "round")
            ends = [begin(job, folder, name=str(place)) for place, job in enumerate(jobs)]
            ended = [end.wait() for end in ends]
            told = {"round": number, "folders": list(allowed), "wrong": [*wrong(ended, snapshot(folder), allowed)]}
            print(json.dumps(told), flush=True)
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()

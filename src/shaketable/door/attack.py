"""How easily does a document buy a rank? Attacks on the documents of a ranker's lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shaketable.data.attacked import write_attacked
from shaketable.door.audit import Audit, Say, audit
from shaketable.door.names import several
from shaketable.files import check_file
from shaketable.score.executor import Executor
from shaketable.task.substitution import QUICK, Substitution
from shaketable.types import Collection, Watch, unwatched


def attack(
    data: str | Path | Collection = "sample",
    rankers: Any = (),
    recipes: str | tuple[str, ...] | list[str] = QUICK,
    *,
    goal: str = "promote",
    targets: int = 9,
    queries: int = 0,
    group: int = 1,
    budget: int | None = None,
    attacked: str | Path | None = None,
    any_grade: bool = False,
    language: str = "light",
    out: str | Path | None = None,
    split: str | None = None,
    candidates: str | Path | None = None,
    first_stage: str = "bm25",
    depth: int = 100,
    limit: int | None = None,
    seed: int = 0,
    keep_going: bool = False,
    watch: Watch = unwatched,
    say: Say = lambda message: None,
    executor: Executor | None = None,
) -> Audit:
    """Attack the documents of rankers' lists, as an audit of that task alone; `out` is a file for the changed ones.

    `attacked` is such a file, from another ranker or from other people: its texts are tried as they are.

    `st.attack(rankers="bm25", recipes="keyword_stuffing")["substitution"].tables["attack"]` tells how many climbed.
    """
    if out is not None:
        check_file(Path(out))
    task = Substitution(
        recipes=tuple(several(recipes)),
        goal=goal,
        targets=targets,
        queries=queries,
        group=group,
        budget=budget,
        attacked=str(attacked) if attacked else "",
        any_grade=any_grade,
        language=language,
    )
    where: Any = {"split": split, "candidates": candidates, "first_stage": first_stage, "depth": depth, "limit": limit}
    how: Any = {"seed": seed, "keep_going": keep_going, "watch": watch, "say": say, "executor": executor}
    done = audit(data, rankers, [task], **where, **how, runs=False)
    if out is not None:
        write_attacked(done["substitution"].attacked, Path(out))
    return done


def written(done: Audit, out: Path) -> str:
    """What is in the file for changed documents, in words."""
    count = len(done["substitution"].attacked)
    return (
        f"{count} changed documents are in {out}."
        if count
        else f"No document was changed for the better, so {out} is empty."
    )

"""What does a ranker prefer? Behaviour tests, of the papers and of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shaketable.door.audit import Audit, Say, audit
from shaketable.door.names import several
from shaketable.score.executor import Executor
from shaketable.task.behaviour import OWN, Behaviour
from shaketable.types import Collection, Watch, unwatched


def probe(
    data: str | Path | Collection = "sample",
    rankers: Any = (),
    tests: str | tuple[str, ...] | list[str] = (),
    *,
    pairs: str | Path | None = None,
    delta: float | None = None,
    documents: int = 0,
    language: str = "light",
    stopwords: str = "english",
    correction: str = "bonferroni",
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
    """The behaviour tests alone, as an audit: all of them, those whose names match, or the pairs of a file.

    `st.probe(rankers="bm25", tests="shuffle-*")["behaviour"].tables["text manipulation"]` is the table of the paper.
    """
    task = Behaviour(
        tests=tuple(several(tests)),
        pairs=str(pairs) if pairs else "",
        delta=delta,
        documents=documents,
        language=language,
        stopwords=stopwords,
        correction=correction,
    )
    where: Any = {"split": split, "candidates": candidates, "first_stage": first_stage, "depth": depth, "limit": limit}
    how: Any = {"seed": seed, "keep_going": keep_going, "watch": watch, "say": say, "executor": executor}
    return audit(data, rankers, [task], **where, **how)


def failed_pairs(done: Audit) -> int:
    """How many pairs of the user's own did not come out as expected, over all rankers."""
    verdicts = done["behaviour"].tables.get(OWN)
    return 0 if verdicts is None else int((~verdicts["passed"]).sum())

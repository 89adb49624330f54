"""`attack`: adversarial changes to the documents of a ranker's lists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from shaketable.api.audit import Audit, audit
from shaketable.api.options import CollectionLike, ExperimentOptions, ignore_message
from shaketable.api.ranker_names import Rankers, as_list
from shaketable.datasets.adversarial_documents import write_adversarial_documents
from shaketable.files.atomic import check_file_writable
from shaketable.tasks.document_attack import DocumentAttack


def attack(
    data: CollectionLike = "sample",
    rankers: Rankers = (),
    recipes: str | Sequence[str] = (),
    *,
    goal: str = "promote",
    targets: int = 9,
    attacked_queries: int = 0,
    group: int = 1,
    max_trials: int | None = None,
    adversarial_documents: str | Path | None = None,
    any_grade: bool = False,
    parser: str = "light",
    write_documents: str | Path | None = None,
    **options: Unpack[ExperimentOptions],
) -> Audit:
    """Run the task document-attack alone and return its audit; the default is a panel of cheap recipes.

    `write_documents` is a file for the changed documents. `adversarial_documents` is such a file, from an attack on
    another ranker or from another source; the attack tries its texts without a search. The attack samples
    `attacked_queries` queries from those that `max_queries` leaves; 0 takes all of them.

    `st.attack(rankers="bm25", recipes="keyword_stuffing")["document-attack"].tables["attack"]` has the success rates.
    """
    if write_documents is not None:
        check_file_writable(Path(write_documents))
    chosen = tuple(as_list(recipes))
    panel = DocumentAttack()
    task = DocumentAttack(
        recipes=chosen or panel.recipes,
        trials=0 if chosen else panel.trials,
        list_trials=0 if chosen else panel.list_trials,
        goal=goal,
        targets=targets,
        queries=attacked_queries,
        group=group,
        max_trials=max_trials,
        adversarial_documents=str(adversarial_documents) if adversarial_documents else "",
        any_grade=any_grade,
        similarity=True,
        parser=parser,
    )
    done = audit(data, rankers, [task], runs=False, **options)
    if write_documents is not None:
        changed = done["document-attack"].attacked
        write_adversarial_documents(changed, Path(write_documents))
        notify = options.get("notify", ignore_message)
        notify(
            f"{len(changed)} changed documents are in {write_documents}."
            if changed
            else f"No document was changed for the better, so {write_documents} is empty."
        )
    return done

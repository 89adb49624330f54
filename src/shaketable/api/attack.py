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
    """Attack rankers: change documents so that they rank higher.

    Parameters
    ----------
    data
        The collection: "sample", a BEIR folder, "irds:ID", or a `Collection`.
    rankers
        One or several rankers, as for `st.audit`.
    recipes
        One or several attack recipes, such as "keyword_stuffing"; by default a panel of cheap recipes.
    goal
        The attacker's goal: "promote", "demote", or "top(k=10)" to bring a document into the top ten.
    targets
        The number of documents to attack in each list. The ranks from 11 on are divided into this many ranges, and one
        document is chosen from each.
    attacked_queries
        The number of queries to attack, chosen at random among those that `max_queries` leaves; 0 means all.
    group
        Optimise each text for this many queries at once.
    max_trials
        The maximum number of texts that a recipe may have scored, for all attacked documents together; by default
        each recipe of the panel has its own small budget.
    adversarial_documents
        A file of changed documents, from another attack or another source. The attack tries them without a search.
    any_grade
        If True, attack relevant documents too.
    parser
        The parser that finds sentences, lemmas and noun phrases: "light", "spacy" or "spacy:MODEL".
    write_documents
        A JSONL file for the changed documents.
    **options
        The options of an experiment, as for `st.audit`.

    Returns
    -------
    Audit
        An audit with the one result "document-attack"; its table "attack" has the success rates.

    Examples
    --------
    >>> import shaketable as st
    >>> done = st.attack(rankers="bm25", recipes="keyword_stuffing")  # doctest: +SKIP
    >>> done["document-attack"].tables["attack"]  # doctest: +SKIP
    """
    if write_documents is not None:
        check_file_writable(Path(write_documents))
    task = build_attack_task(
        recipes,
        goal=goal,
        targets=targets,
        attacked_queries=attacked_queries,
        group=group,
        max_trials=max_trials,
        adversarial_documents=adversarial_documents,
        any_grade=any_grade,
        parser=parser,
    )
    done = audit(data, rankers, [task], runs=False, budget=None, **options)
    if write_documents is not None:
        changed = done["document-attack"].attacked
        write_adversarial_documents(changed, Path(write_documents))
        notify = options.get("notify", ignore_message)
        notify(
            f"{len(changed)} changed documents are in {write_documents}."
            if changed
            else f"No change improved the rank of a document, so {write_documents} is empty."
        )
    return done


def build_attack_task(
    recipes: str | Sequence[str],
    *,
    goal: str,
    targets: int,
    attacked_queries: int,
    group: int,
    max_trials: int | None,
    adversarial_documents: str | Path | None,
    any_grade: bool,
    parser: str,
) -> DocumentAttack:
    """Return the task that `attack` with these arguments runs."""
    chosen = tuple(as_list(recipes))
    panel = DocumentAttack()
    return DocumentAttack(
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

"""The notes on the tables of attacks on documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from shaketable.attacks.surrogate import Surrogate
from shaketable.core.results import Failure
from shaketable.measures.significance import MIN_QUERIES
from shaketable.tasks._attack_panel import PANEL
from shaketable.tasks._attack_tables import CONTROL_COLUMN

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment
    from shaketable.tasks._attack_run import AttackRun

MIN_CLEAN_TEXTS = 99
"""Clean texts needed to measure one false alarm in a hundred (`attacks.detectors.compute_alarm_threshold`)."""


def build_attack_notes(run: AttackRun, experiment: Experiment, tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """Yield notes that explain the tables of an attack run."""
    details = tables["targets"]
    count = details["query"].nunique()
    attacked = len(details.drop_duplicates(["ranker", "document", "query"]))
    yield (
        f"{attacked} documents were attacked, in the lists of {count} queries"
        + (
            f" of {len(experiment.queries)}"
            if count < len(experiment.queries) and not run.adversarial_documents
            else ""
        )
        + (f", with {run.max_trials} trials for each recipe and ranker." if run.max_trials else ".")
    )
    if run.recipes == PANEL and not run.adversarial_documents:
        yield (
            "These are cheap recipes that train nothing, with a few trials each. 'shaketable attack' has stronger "
            "recipes, so a ranker that resists these may still be open to attack."
        )
    yield from _build_column_notes(run, tables)
    if run.adversarial_documents and (details["words"] == 0).any():
        yield (
            "A new text replaces no document, so its rank is compared with the rank of an empty text in the same list. "
            "That rank is arbitrary, so 'into top 10 %' is more informative for it than 'boost'."
        )
    if "detection" in tables:
        yield from _build_detection_notes(tables["detection in full"])
    if count < MIN_QUERIES:
        yield f"There are fewer than {MIN_QUERIES} queries: nothing is marked as significant."
    if not experiment.qrels:
        yield "There are no judgements, so any document may be a target, and RR and nDCG have no value."


def _build_column_notes(run: AttackRun, tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """Yield notes on the columns of the tables of attacks and of damage."""
    better = {"promote": "strictly higher", "demote": "strictly lower"}.get(run.goal, "better for the goal")
    yield (
        ("" if run.adversarial_documents else "A recipe sees the ranks of documents only, never their scores. ")
        + f"A target is a document that is attacked. 'success %' is the percentage of targets that rank {better} "
        "than before, with the ends of its 95 % interval over queries ('low', 'high'); 'boost' is the number of "
        "ranks gained, on average over all targets; 'into top 10 %' is the percentage of the targets from below rank "
        "10 that reach the top ten, and 'top 10 %' that of all targets that are there after the attack; the same goes "
        "for the top five ('top 5 %')."
    )
    yield (
        "'words changed %' is the percentage of a target's words that were changed, and 'similarity' how alike "
        "the texts before and after are, 1 being the same ('sentence similarity' looks at the sentences that "
        "changed); 'trials' is the number of texts that the ranker scored for a target, and 'pairs' the "
        "number of query-document pairs."
    )
    yield (
        "In the table 'damage' all changed documents of a query are in its list at once; 'clean' is before the "
        "attack and 'robust' after it, and 'p' is by a paired t-test. 'LSD' is the mean square of the ranks that "
        "documents moved, 'RLSD' its share of the largest possible value, and 'LMD' the mean number of ranks. "
        "'Kendall' is the share of pairs of documents that changed their order, and 'top change' that of queries "
        "with another document at rank 1."
    )
    yield (
        "The 'robust ranking error' is the share of documents at ranks where documents of another grade belong, "
        "or that an attack brings there; 'natural' is its part before the attack, and 'boundary' the part that the "
        "attack adds, which is a lower bound."
    )
    if CONTROL_COLUMN in tables["attack in full"]:
        yield (
            f"'{CONTROL_COLUMN}' is the percentage of targets that a harmless text of the same length brings into the "
            "top ten too. They do not count in the summary, because the ranker then followed no instruction."
        )


def _build_detection_notes(rows: pd.DataFrame) -> Iterator[str]:
    """Yield notes on the table of detectors, and on rankers with too few clean texts."""
    yield (
        "The table 'detection' has the percentage of the changed texts that each filter catches, if it raises a "
        "false alarm on at most one in a hundred clean texts of these lists. In the full table this is 'caught %', "
        "beside 'false alarms %'."
    )
    if few := list(dict.fromkeys(rows[rows["clean texts"] < MIN_CLEAN_TEXTS]["ranker"])):
        yield (
            f"{', '.join(few)}: the lists have fewer than {MIN_CLEAN_TEXTS} clean texts, too few to measure one "
            "false alarm in a hundred. So every filter catches 0 %, which means nothing; attack the lists of "
            "more queries."
        )


def describe_surrogate(name: str, surrogate: Surrogate) -> str:
    """Return a note on the surrogate of an attack: its cost and its agreement with the ranker."""
    return (
        f"{name}: the attack used a surrogate, a net that learned from the order of {surrogate.list_count} lists of "
        f"queries that are not attacked; they cost {surrogate.pair_count:,} query-document pairs, once. On lists that "
        f"it did not learn from, its order agrees with that of {name} at nDCG@10 {surrogate.agreement:.2f}."
    )


def explain_nothing(notes: Sequence[str], failures: Sequence[Failure], silent: Sequence[Failure]) -> str:
    """Return the reason for an empty result: failed attacks, skipped lists, or earlier failures."""
    if failures:
        return f"every attack failed; the first: {failures[0].reason}"
    why = notes[0] if notes else silent[0].reason if silent else ""
    return "there is no document to attack" + (f": {why.removesuffix('.')}" if why else "")

"""CertDR (Wu et al. 2022), which paper 003 compares with: its ranker under attack, and its certificate.

make evidence PAGE=certdr        (half an hour on one core; models and scores are kept, so it may be cut off)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import isnan
from typing import Any

import numpy as np
import torch

from evidence import Guard, Page, Rows, need_data, prose, table
from evidence.defence import HEAD, OWN, TAU, context, conv, names, rows, task
from shaketable.core.protocols import Model
from shaketable.core.registries import DEFENCES, LEARNERS
from shaketable.defences.perturbation_sets import build_perturbation_sets, find_core_spans
from shaketable.defences.training import plan_defended_training
from shaketable.measures.certificates import CERTIFICATE_CONDITIONS, sampling_margin, substitution_shift
from shaketable.tasks._defence_tables import ALL_QUERIES_COLUMN, BETTER_COLUMN
from shaketable.tasks.certificate import Certificate
from shaketable.tasks.defence import CONDITIONAL_TABLE

QUERIES, TARGETS, CERTIFIED, DEPTH, SAMPLES = 10, 9, 20, 20, 1000
PLACES = (1, 3, 5, 10)
WORDS = (0, 1)
"""How many words of a document an attack may change; 0 is all of them."""
CERTIFYING = (0.6, TAU, 0.7)
TAUS = (0.55, 0.6, 0.65, 0.7, 0.8, 0.9)
SHOWN = [number for number, name in enumerate(HEAD) if name not in (ALL_QUERIES_COLUMN, BETTER_COLUMN)]
"""Columns that ten queries can fill: with so few there is no star."""


def attacked() -> tuple[list[list[str]], list[list[str]]]:
    """Standard training and CertDR, each attacked with the gradients of its net."""
    known = names()
    few = replace(context(), limit=QUERIES)  # a hundred draws of each of 86 lists would take an hour
    texts = known["ST"], known["CertDR"]
    found = task(texts, experiment=few, recipe=OWN, queries=QUERIES, targets=TARGETS)
    conditional = [
        [row["certificate"], str(row["queries"]), str(row["certified queries"])]
        + ["" if isnan(value) else f"{value:.1f}" for key, value in row.items() if "%" in str(key)]
        for row in found.tables[CONDITIONAL_TABLE].to_dict("records")
    ]
    return [[cells[i] for i in SHOWN] for cells in rows(found, known)], conditional


def smoothed(tau: float) -> Model:
    """What CertDR trained, with a thousand draws."""
    how: Any = replace(DEFENCES.build(names()["CertDR"]), tau=tau)
    experiment, learner = context(), LEARNERS.build(conv())
    plan = plan_defended_training(experiment, learner, how, None, "train", None, None, 0, lambda message: None)
    model: Model = how.smoothed(experiment.fit(learner, plan=plan).path, samples=SAMPLES)
    return model


def certified(tau: float, changed: int) -> list[list[str]]:
    """CRQ@K in per cent, a row for each K, for attacks of so many words; 0 is all of them."""
    experiment = replace(context().with_depth(DEPTH), models={"CertDR": smoothed(tau)})
    lists = Certificate(ks=PLACES, queries=CERTIFIED, changed=changed).run(experiment).tables["certified lists"]
    return [
        [f"{tau:g}", str(changed or "all"), str(row["K"]), str(row["short"])]
        + [f"{row[f'CRQ % ({reading})']:.0f}" for reading in CERTIFICATE_CONDITIONS]
        for row in lists.to_dict("records")
    ]


def reach(taus: Sequence[float] = TAUS) -> list[list[str]]:
    """How much of a text there is a certificate about, and how strong an attack within it can be, for each tau."""
    how: Any = DEFENCES.build(names()["CertDR"])
    docs = [doc.text for _, doc in context().collection.docs.items()]
    words = [text[a:b].lower() for text in docs for a, b in find_core_spans(text)]
    lines = []
    for tau in taus:
        sets = build_perturbation_sets(docs, how.synonyms, tau, how.most)
        known = [sets.overlaps[word] for word in words if word in sets.overlaps]
        shifts = [[substitution_shift(sets.find_overlaps(text), changed) for text in docs] for changed in (1, None)]
        lines.append(
            [
                f"{tau:g}",
                f"{100 * len(known) / len(words):.2f}",
                f"{np.mean(known):.3f}",
                *(f"{np.mean(some):.3f}" for some in shifts),
                f"{100 * np.mean(np.equal(shifts[1], 0)):.0f}",
            ]
        )
    return lines


def measure() -> Rows:
    need_data("collections", "rag24")
    torch.set_num_threads(1)
    table_1, conditional = attacked()
    certificates = [row for tau, changed in product(CERTIFYING, WORDS) for row in certified(tau, changed)]
    return {
        "perturbation sets": "published neighbours",
        "attacked": table_1,
        "conditional success": conditional,
        "margin": f"{sampling_margin(SAMPLES):.3f}",
        "certificates": certificates,
        "tau": reach(),
    }


def compose(found: Rows) -> list[str]:
    return [
        prose(f"""conv_knrm on rag24 as in defence.md, trained with words replaced at random by words of their
        perturbation sets ({found["perturbation sets"]}), and smoothed with the same noise. {QUERIES} test queries, one
        seed, {TARGETS} targets in each list of 100; a score is the mean of 100 draws. A surrogate for it would ask
        for 20,000 pairs of 100 draws each, so both rows are attacked with the gradients of the net itself, places
        of the smoothed ranker deciding. The synonyms of the attack are those of defence.md, many more than the
        ranker is smoothed against (below), and of those no certificate says anything."""),
        table([HEAD[i] for i in SHOWN], found["attacked"]),
        "## Conditional success",
        prose("""What paper 003 prints as ASR of CertDR is called conditional success rate, and not defined. By each
        reading of a certificate at place 10: of all targets from below, those that come in; of all targets of
        certified lists, those that rise; of the targets from below place 10 of certified lists, those that come
        in. An empty cell has no such target."""),
        table(
            ("certificate", "queries", "certified", "CSR@10 %", "ASR %, certified", "CSR@10 %, certified"),
            found["conditional success"],
        ),
        "## The certificate",
        prose(f"""The share of {CERTIFIED} queries, in per cent, of whose lists no document below place K can be
        brought among the first K by replacing so many of its words within their sets, which depend on tau (below);
        {SAMPLES:,} draws for each document, lists of BM25's first {DEPTH}. short: queries with K documents or
        fewer, which count as certified, because there is no document to bring in."""),
        f"Readings that allow for draws ask for a margin of {found['margin']} between scores from 0 to 1.",
        table(("tau", "words", "K", "short", *CERTIFICATE_CONDITIONS), found["certificates"]),
        "## What tau decides",
        prose(f"""Words are synonyms where the product of their counter-fitted vectors is above tau; the ranker that
        was attacked has {TAU:g}. covered %: the words of the passages that have a perturbation set. q: the share of
        such a set that stays when a synonym is written, on average. shift: how far the score of a passage can move
        at most, of 1, if one word is replaced, and if all are. immune %: the passages whose score cannot move at
        all. With a low tau the sets of neighbours differ, and nothing can be certified; with a high one all words
        that hang together have one set, every order is certified but for scores that tie (a sigmoid brings many
        near 1), and next to no word is covered. CertDR's own 0.9 comes to that with our vectors, which have 50
        numbers."""),
        table(("tau", "covered %", "q", "shift, one word", "shift, all words", "immune %"), found["tau"]),
    ]


PAGE = Page(
    __file__,
    "CertDR",
    measure,
    compose,
    (
        Guard("margin", "the margin of the draws", lambda: f"{sampling_margin(SAMPLES):.3f}"),
        Guard("tau", "the row of tau 0.7", lambda: reach((0.7,))[0], slow=True),
    ),
)

if __name__ == "__main__":
    PAGE.main()

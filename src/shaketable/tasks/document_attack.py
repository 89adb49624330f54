"""The document attack task: changes documents of a ranker's lists until they rank higher.

Liu et al. Perturbation-invariant adversarial training for neural ranking models. AAAI 2024 (paper 003), section 4; Wu
et al. PRADA. ACM Transactions on Information Systems 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shaketable.tasks._attack_panel import PANEL
from shaketable.tasks._attack_run import AttackRun


@dataclass(frozen=True)
class DocumentAttack(AttackRun):
    """Attacks that change documents to move their ranks: success, cost and damage of each recipe.

    recipes      the recipes to attack with; `shaketable list recipes` shows them all. The worst of them decides the
                 status of a ranker
    goal         promote, demote, or top(k=10)
    targets      documents attacked in each list: ranks from 11 on are cut into this many ranges, one document from
                 each. Paper 003 has nine; an audit has one, because an encoder must read some eighty texts per target
    queries      queries whose lists are attacked, drawn at random; 0 is all of them. A verdict needs twenty, and some
                 lists end before rank 11
    group        number of queries that share one attack text; the attacked documents are then new to the lists
    trials       texts that a ranker scores for each target and recipe; 0 is as many as a recipe needs
    list_trials  the same for rankers whose scores depend on the list, because each trial costs a whole list; 0 is as
                 many as `trials`
    max_trials   texts that a ranker scores for all targets together; None is as many as a recipe needs
    control      for recipes of instructions: try harmless texts of the same length too, and count only the targets
                 that they do not bring into the top ten
    adversarial_documents
                 a file of documents that were changed before: they are scored without a search
    any_grade    attack relevant documents as well, not only those of grade 0 and those without a judgement
    detectors    simple filters; the task shows how many of the successful texts each detects
    similarity   show the similarity of texts before and after, if MiniLM is installed; it reads every changed text
    parser       the parser of texts: light, spacy, or spacy:MODEL
    measure      the effectiveness measure of the lists before and after
    """

    recipes: tuple[str, ...] = PANEL
    trials: int = 40
    list_trials: int = 6
    control: bool = True
    similarity: bool = False

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True
    adaptive: ClassVar[bool] = True

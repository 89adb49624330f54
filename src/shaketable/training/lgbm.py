"""L-GBM: the learned ranker of paper 001 (3.2) that is not a net."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shaketable.rankers.features import PHRASE_COLUMNS
from shaketable.training.lambdamart import LambdaMART


@dataclass(frozen=True)
class LGBM(LambdaMART):
    """L-GBM: LambdaMART on the phrases that query and text share, and on a language model of n-grams.

    Its features depend on word order: see `rankers.phrases`. The settings are those of lambdamart.

    MacAvaney, Feldman, Goharian, Downey, Cohan. ABNIRML: analyzing the behavior of neural IR models. TACL 2022.
    """

    all_feature_names: ClassVar[tuple[str, ...]] = PHRASE_COLUMNS
    """The features that are computed from a collection."""

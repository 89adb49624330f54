"""Does each risk-sensitive objective lower the risk it is made for? On data with a planted group, where that is known.

Run it: python evidence/risk_generator.py. It writes docs/evidence/risk-generator.md and fails if a promise is broken.

Most queries are decided by four signals that the baseline does not see. In a planted group, one query in five, the
baseline is right and the signals mislead; a noisy feature hints at which is which. A model of the mean gives up part of
the group for the others, and there it loses to the baseline.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shaketable.chance import rng_for
from shaketable.data.letor import Letor
from shaketable.measure.risk import geo_risk, t_risk, u_risk
from shaketable.train.fit import Baselines, by_feature
from shaketable.train.lambdamart import LambdaMART
from shaketable.train.ndcg import NDCG

Values = NDArray[np.float64]

DOCS, GROUP, HINT = 25, 0.2, 0.8
BASELINE, OTHERS = 1, (2, 3)
"""The baseline is feature 1; GeoRisk and T*-FARO have two more, a mixture and a ranker of the signals."""
SHARES = {"train": 2000, "valid": 1000, "test": 2000}
SEEDS, DRAWS, LEVEL = 5, 2000, 0.01
LEARNER = LambdaMART(trees=200, leaves=16, early_stop=30, min_docs=50)


def generate(seed: int, queries: int, part: str) -> Letor:
    """Queries of `DOCS` documents, labels 0 to 4; features: baseline, mixture, ranker, four signals, the hint."""
    rng = rng_for(seed, "risk generator", part)
    planted = rng.random(queries) < GROUP
    signals = rng.normal(size=(queries, DOCS, 4))
    baseline = rng.normal(size=(queries, DOCS))
    learned = signals.mean(axis=2) * 2
    group = planted[:, None]
    truth = np.where(group, 1.2 * baseline - 0.5 * learned, 1.2 * learned + 0.3 * baseline)
    truth += 0.5 * rng.normal(size=truth.shape)
    places = np.argsort(np.argsort(-truth, axis=1), axis=1)
    labels = np.select([places < 1, places < 3, places < 6, places < 10], [4, 3, 2, 1], 0)
    noise = rng.normal(size=(2, queries, DOCS))
    hint = np.repeat(planted + HINT * rng.normal(size=queries), DOCS).reshape(queries, DOCS)
    mixture, ranker = 0.7 * baseline + 0.5 * learned + 0.5 * noise[0], learned + 0.7 * noise[1]
    features = np.stack([baseline, mixture, ranker, *np.moveaxis(signals, 2, 0), hint], axis=2).reshape(-1, 8)
    starts = np.arange(queries + 1) * DOCS
    qids = tuple(f"{part}{q}" for q in range(queries))
    docnos = tuple(f"{qid}-{d}" for qid in qids for d in range(DOCS))
    return Letor(features.astype(np.float32), labels.reshape(-1).astype(np.int64), starts, qids, docnos)

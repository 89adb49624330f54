"""Time per tree of each LambdaMART objective, against the built-in lambdarank of LightGBM.

    python benchmarks/lambdamart.py [--quick]

2,000 queries x 100 documents x 136 features; both sides optimise NDCG@10. The limit at 255 leaves is a ratio of 1.3,
and of 1.6 for GeoRisk. The objectives grow their trees in turns, so that load slows all of them equally. The ratio is
that of the medians.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import lightgbm
import numpy as np
from quick import judge_limits, parse_quick

from shaketable.datasets.letor import Letor
from shaketable.training.baselines import Baselines, make_feature_baseline
from shaketable.training.boosted import FIXED_PARAMETERS
from shaketable.training.lambdamart import LambdaMART, make_lightgbm_objective

QUERIES, DOCS, FEATURES = 2000, 100, 136
LEAVES, ROUNDS = (31, 255), 12
LIMITS = {"georisk": 1.6}
LIMIT = 1.3
OBJECTIVES = ("ndcg", "u-cro", "t-saro", "t-faro", "t*-faro", "georisk")


def generate_data(queries: int) -> Letor:
    """Return feature rows with grades 0 to 4."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(queries * DOCS, FEATURES)).astype(np.float32)
    truth = features[:, 0] + features[:, 1] * features[:, 2] + rng.normal(size=len(features))
    labels = np.digitize(truth, [0.1, 1.4, 2.6, 3.4])  # half are 0 and few are 4, as in web search
    names = tuple(str(q) for q in range(queries))
    return Letor(features, labels, np.arange(queries + 1) * DOCS, names, tuple(map(str, range(len(features)))))


def main() -> int:
    quick = parse_quick(__doc__)
    data, rounds = (generate_data(20), 1) if quick else (generate_data(QUERIES), ROUNDS)
    baselines = {
        False: Baselines({"1": make_feature_baseline(1)}),
        True: Baselines({str(i): make_feature_baseline(i) for i in (1, 2, 3, 4)}),
    }
    failed = False
    for leaves in LEAVES:
        with ThreadPoolExecutor() as pool:
            growers: dict[str, Callable[[], object]] = {"built in": prepare_built_in(data, leaves)}
            for objective in OBJECTIVES:
                learner = LambdaMART(objective, 0.0 if objective == "ndcg" else 1.0, leaves=leaves)
                growers[objective] = prepare_ours(data, learner, baselines[objective in ("t*-faro", "georisk")], pool)
            times: dict[str, list[float]] = {name: [] for name in growers}
            for turn in range(rounds + 1):
                for name, grow in growers.items():
                    start = time.perf_counter()
                    grow()
                    if turn:  # the first compiles
                        times[name].append(time.perf_counter() - start)
        own = median(times["built in"])
        print(f"{leaves} leaves: LightGBM's lambdarank {own * 1000:.0f} ms per tree; time relative to it:")
        for name in OBJECTIVES:
            ratio, limit = median(times[name]) / own, LIMITS.get(name, LIMIT)
            is_slow = leaves == max(LEAVES) and ratio > limit
            failed |= is_slow
            remark = f" (limit {limit})" if leaves == max(LEAVES) else ""
            print(f"  {name:8} {ratio:.2f}{remark}{' TOO SLOW' * is_slow}")
    return judge_limits(not failed, quick)


def prepare_built_in(data: Letor, leaves: int) -> Callable[[], object]:
    """Return a function that grows a tree with LightGBM's lambdarank."""
    params = FIXED_PARAMETERS | LambdaMART(leaves=leaves).build_parameters(seed=1)
    params |= {"objective": "lambdarank", "lambdarank_truncation_level": 10, "lambdarank_norm": False}
    booster = lightgbm.Booster(
        params, lightgbm.Dataset(data.features, data.labels, group=data.list_sizes, params=params)
    )
    return booster.update


def prepare_ours(
    data: Letor, learner: LambdaMART, baselines: Baselines, pool: ThreadPoolExecutor
) -> Callable[[], object]:
    """Return a function that grows a tree with the objective of a learner."""
    params = FIXED_PARAMETERS | learner.build_parameters(seed=1)
    objective = make_lightgbm_objective(learner.prepare_objective(data, baselines), pool)
    rows = lightgbm.Dataset(data.features, data.labels, group=data.list_sizes, params=params)
    booster = lightgbm.Booster(params | {"objective": "none"}, rows)
    return lambda: booster.update(fobj=objective)


if __name__ == "__main__":
    sys.exit(main())

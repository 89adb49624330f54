"""Time to generate 2,000 adversarial training examples for a Conv-KNRM, against a limit of 30 minutes.

    python benchmarks/adversaries.py [--quick]

The recipe white_wsra attacks ten documents in each list of 100, for 200 queries. Passages have 60 generated words, of
which the attack changes at most 20, and each word has ten synonyms. The network is untrained, which does not change its
cost. The limit holds on two cores. For comparison, the script also prints the time in which the ranker alone scores the
same number of pairs in batches.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from quick import judge_limits, parse_quick

from attacks import make_collection, write_synonyms
from shaketable.core.documents import Slate
from shaketable.core.registries import LEARNERS
from shaketable.defences.adversarial_examples import ExampleSpec
from shaketable.defences.training import build_example_generator
from shaketable.experiment import Experiment

LIMIT_MINUTES = 30.0


def main() -> int:
    quick = parse_quick(__doc__)
    queries, documents = (1, 2) if quick else (200, 10)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SHAKETABLE_HOME"] = folder
        synonyms = Path(folder) / "synonyms.tsv"
        collection = make_collection(queries + 1, 30) if quick else make_collection(queries + 1)
        write_synonyms(collection, synonyms)
        qids = list(collection.queries)
        qrels = {qid: {f"d{number}": 1} for number, qid in enumerate(qids)}
        collection = replace(collection, qrels=qrels)
        experiment = Experiment(collection, {})
        model = experiment.fit(
            LEARNERS.build("conv_knrm(steps=1, every=1, text_length=100)"), qids[:-1], valid=qids[-1:]
        )
        recipe = f"white_wsra(words=20, synonyms={f'listed({str(synonyms)!r})'!r})"
        generator = build_example_generator(experiment, model, ExampleSpec(recipe, documents, 0), qids[:-1], qids[-1:])
        started = time.perf_counter()
        examples = generator.run(print)
        seconds = time.perf_counter() - started
        ranker = model.open(collection)
        docs = [doc for _, doc in collection.docs.items()][:1000]
        started = time.perf_counter()
        ranker.score([Slate(collection.queries[qids[0]].text, tuple(docs))])
        bare = (time.perf_counter() - started) / len(docs) * examples.cost.pairs
    ratio = seconds / 60 / LIMIT_MINUTES
    print(
        f"{examples.document_count:,} documents, {examples.changed_count:,} with a higher score, "
        f"{examples.cost.pairs:,} pairs scored"
    )
    print(f"time {seconds / 60:.1f} min, limit {LIMIT_MINUTES:g} min, ratio {ratio:.2f}")
    print(f"time of the ranker alone for the same number of pairs {bare / 60:.1f} min")
    return judge_limits(ratio <= 1, quick)


if __name__ == "__main__":
    sys.exit(main())

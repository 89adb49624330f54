"""Adversarial training examples for a Conv-KNRM: how long 2,000 of them take.

    python benchmarks/adversaries.py [--quick]

Passages of 60 generated words, 200 queries, ten documents attacked in each list of 100 by white_wsra, at most 20 words
of each, each word with ten synonyms. The net is untrained, which changes nothing of what it costs. The limit is
30 minutes on two cores. Beside it stands what the ranker alone takes for the pairs that were asked for, in batches.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from quick import judge_limits, parse_quick

from attacks import collection, write_synonyms
from shaketable.core.documents import Slate
from shaketable.core.registries import LEARNERS
from shaketable.defences.adversarial_examples import ExampleSpec
from shaketable.defences.training import build_example_generator
from shaketable.experiment import Experiment

MINUTES = 30.0


def main() -> int:
    quick = parse_quick(__doc__)
    queries, documents = (1, 2) if quick else (200, 10)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SHAKETABLE_HOME"] = folder
        synonyms = Path(folder) / "synonyms.tsv"
        texts = collection(queries + 1, 30) if quick else collection(queries + 1)
        write_synonyms(texts, synonyms)
        qids = list(texts.queries)
        judged = {qid: {f"d{number}": 1} for number, qid in enumerate(qids)}
        texts = type(texts)(texts.name, texts.docs, texts.queries, judged)
        experiment = Experiment(texts, {})
        model = experiment.fit(
            LEARNERS.build("conv_knrm(steps=1, every=1, text_length=100)"), qids[:-1], valid=qids[-1:]
        )
        recipe = f"white_wsra(words=20, synonyms={f'listed({str(synonyms)!r})'!r})"
        making = build_example_generator(experiment, model, ExampleSpec(recipe, documents, 0), qids[:-1], qids[-1:])
        started = time.perf_counter()
        kept = making.run(print)
        seconds = time.perf_counter() - started
        ranker = model.open(texts)
        docs = [doc for _, doc in texts.docs.items()][:1000]
        started = time.perf_counter()
        ranker.score([Slate(texts.queries[qids[0]].text, tuple(docs))])
        alone = (time.perf_counter() - started) / len(docs) * kept.cost.pairs
    share = seconds / 60 / MINUTES
    print(
        f"{kept.document_count:,} documents, {kept.changed_count:,} with a higher score, {kept.cost.pairs:,} pairs "
        "asked for"
    )
    print(f"{seconds / 60:.1f} minutes, {share:.2f} of the limit of {MINUTES:g}; "
          f"the ranker alone takes {alone / 60:.1f} for as many pairs")  # fmt: skip
    return judge_limits(share <= 1, quick)


if __name__ == "__main__":
    sys.exit(main())

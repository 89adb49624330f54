"""Neural scoring against bare forward passes, sentence-transformers' CrossEncoder, and pair-by-pair encoding.

    make models && python -m benchmarks.neural [--quick] [--part PART ...]

Cross-encoder: pairs a second of ms-marco-MiniLM-L-12-v2 (int8 weights, float32 arithmetic) on real passages of rag24.
"Bare" are the forward passes of torch alone, of batches that were tokenised, sorted and padded beforehand. Goals: at
least 1.2 times the pairs of bare, at least those of CrossEncoder.predict, and scores within 1e-5 of bare.
CrossEncoder.predict is measured where sentence-transformers is installed. The three take turns on the same pairs, so
that a busy machine is busy for all. The exit code is 1 if a goal is missed. `--part onnx` compares the int8 ONNX file,
and `--part ways` measures each way to be faster by itself, in processor time of one thread.

monoT5 (a T5 of the size of t5-small, random) and EPIC (minilm; a vector over the vocabulary for each text) against
their own bare passes, in the same way.

Audit: 100 queries in 10 variants with 100 documents each, for dense and colbert, against encoding query and text of
each pair anew, whose cost is measured on some of the pairs and multiplied. Goal: at least 5 times faster.

Small rankers: pairs a second of texts never seen before, and of the same texts again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from weights import MINILM_L12, find_model

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.registries import LEARNERS, RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp import checkpoints
from shaketable.rankers.neural import colbert, dense, epic
from shaketable.rankers.neural.bert import CrossEncoder
from shaketable.rankers.neural.fast_inference import OneDnnLinear
from shaketable.rankers.neural.monot5 import MonoT5
from shaketable.rankers.neural.scoring import TOKENS_PER_BATCH, make_batches, make_ranker
from shaketable.rankers.neural.shapes import BertShape, ColBERTShape, DenseShape, EPICShape, MonoT5Shape
from shaketable.training.seq2seq import train_tokenizer

REAL = Path(__file__).resolve().parents[2] / "shared" / "data" / "collections" / "rag24"
Pairs, Scores = list[tuple[str, str]], NDArray[np.float64]
Score = Callable[[Pairs], Scores]
PEER = "CrossEncoder.predict"
RATIO_GOALS = {"bare": 1.2, PEER: 1.0}
SCORE_GOAL = 1e-5
WAY_TOKENS = (1024, 2048, 4096)
"""Tokens in a batch."""
SENTENCE = "the river of a northern town rises in spring and floods low fields where people graze their animals"


def passages(count: int) -> tuple[list[str], list[str]]:
    """Queries, and texts of 190 words on average: real ones where they are at hand."""
    if REAL.is_dir():
        files = (REAL / "queries.jsonl", REAL / "corpus.jsonl")
        queries, texts = ([json.loads(line)["text"] for line in f.read_text("utf-8").splitlines()] for f in files)
        return queries, texts[:count]
    rng, words = np.random.default_rng(0), SENTENCE.split()
    sizes = rng.normal(190, 60, count).clip(40, 700).astype(int)
    return [" ".join(rng.choice(words, 8)) for _ in range(300)], [" ".join(rng.choice(words, n)) for n in sizes]


def timed(call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def open_contestants(model: Path, onnx: bool) -> dict[str, Score]:
    """Return name -> a function from pairs to scores."""
    found: dict[str, Score] = {}
    for name, spec in (("shaketable", f"hf:{model}"), *([("shaketable, onnx", f"onnx:{model}")] if onnx else [])):
        ranker = RANKERS.build(spec).open(Collection("benchmark", MemoryCorpus({}), {}))
        found[name] = lambda pairs, ranker=ranker: np.concatenate(ranker.score([Slate(q, (Doc(t),)) for q, t in pairs]))
    if not find_spec("sentence_transformers"):
        print("CrossEncoder.predict is not measured: sentence-transformers (group bench) is not installed")
        return found
    from sentence_transformers import CrossEncoder as Peer

    with checkpoints.silence_transformers():
        peer = Peer(str(model), num_labels=1, max_length=512)
    found[PEER] = lambda pairs: peer.predict(pairs, show_progress_bar=False, activation_fn=torch.nn.Identity())
    return found


def make_bare(model: Path) -> Callable[[Pairs], Callable[[], Scores]]:
    """Return a function from pairs to their bare forward passes, which need no more preparation."""
    net = CrossEncoder.from_checkpoint(str(model), BertShape(max_length=0)).eval()

    def prepare(pairs: Pairs) -> Callable[[], Scores]:
        prepared = net.prepare(pairs)
        parts = list(make_batches([row.length for row in prepared], TOKENS_PER_BATCH["cpu"]))
        ready = [net.collate([prepared[i] for i in part]) for part in parts]

        def run() -> Scores:
            scores = np.empty(len(pairs))
            with torch.no_grad():  # the plain net: faster ways to compute apply in inference mode only
                for part, batch in zip(parts, ready, strict=True):
                    scores[part] = net(**batch).numpy()
            return scores

        return run

    return prepare


def cross_encoder(chunks: int, size: int, onnx: bool = False) -> bool:
    """Print speeds and ratios; return True if the goals are met."""
    model = find_model(MINILM_L12)
    if model is None:
        print(f"cross-encoder is not measured: {MINILM_L12} is not built (make models)")
        return False
    queries, texts = passages(chunks * size)
    contestants, bare = open_contestants(model, onnx), make_bare(model)
    warm = [(queries[0], text) for text in texts[:4]]
    for call in (bare(warm), *(partial(score, warm) for score in contestants.values())):
        call()
    spent: dict[str, list[float]] = defaultdict(list)
    worst = 0.0
    for number, start in enumerate(range(0, len(texts), size)):
        pairs = [(queries[(start + i) % len(queries)], text) for i, text in enumerate(texts[start : start + size])]
        turns = {"bare": bare(pairs), **{name: partial(score, pairs) for name, score in contestants.items()}}
        scores: dict[str, Scores] = {}
        for name in list(turns)[:: 1 if number % 2 else -1]:
            started = time.perf_counter()
            scores[name] = turns[name]()
            spent[name].append(time.perf_counter() - started)
        worst = max(worst, float(np.abs(scores["bare"] - scores["shaketable"]).max()))
    words = np.mean([len(text.split()) for text in texts])
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"cross-encoder, {len(texts)} pairs of {words:.0f} words, {torch.get_num_threads()} threads, load {load:.1f}")
    for name, seconds in spent.items():
        print(f"  {name:22}{len(texts) / sum(seconds):8.1f} pairs/s")
    met = worst <= SCORE_GOAL
    for peer, goal in ((name, goal) for name, goal in RATIO_GOALS.items() if name in spent):
        turns_ratio = np.median(np.array(spent[peer]) / np.array(spent["shaketable"]))
        total = sum(spent[peer]) / sum(spent["shaketable"])
        print(f"  ratio to {peer} {total:.3f} (goal {goal}), median of {len(spent[peer])} turns {turns_ratio:.3f}")
        met &= bool(turns_ratio >= goal)
    print(f"  largest difference of a score from bare {worst:.1e} (goal {SCORE_GOAL:.0e})", flush=True)
    return met


WAYS = {
    "plain": (torch.no_grad, nullcontext),
    "first token in the last layer": (torch.inference_mode, nullcontext),
    "linear layers by oneDNN": (torch.no_grad, OneDnnLinear),
    "both": (torch.inference_mode, OneDnnLinear),
}
"""Way -> the contexts of a forward pass; the last layer is shortened in inference mode only."""


def ways(count: int, rounds: int) -> None:
    """Print the speed of each way, relative to the plain one in the largest batches."""
    model = find_model(MINILM_L12)
    if model is None:
        print(f"ways are not measured: {MINILM_L12} is not built (make models)")
        return
    torch.set_num_threads(1)
    queries, texts = passages(count)
    net = CrossEncoder.from_checkpoint(str(model), BertShape(max_length=0)).eval()
    prepared = net.prepare(list(zip(queries, texts, strict=False)))
    best: dict[tuple[str, int], float] = {}
    scores: dict[tuple[str, int], Scores] = {}
    for _, tokens in product(range(rounds), WAY_TOKENS):
        parts = list(make_batches([row.length for row in prepared], tokens))
        ready = [net.collate([prepared[i] for i in part]) for part in parts]
        for name, (guard, mode) in WAYS.items():
            found = np.empty(len(prepared))
            started = time.process_time()
            with guard(), mode():
                for part, batch in zip(parts, ready, strict=True):
                    found[part] = net(**batch).numpy()
            spent = time.process_time() - started
            best[name, tokens], scores[name, tokens] = min(spent, best.get((name, tokens), spent)), found
    print(f"ways, {len(prepared)} pairs, one thread, processor time, relative to plain with {WAY_TOKENS[-1]} tokens")
    base = best["plain", WAY_TOKENS[-1]]
    for name in WAYS:
        worst = max(np.abs(scores[name, tokens] - scores["plain", tokens]).max() for tokens in WAY_TOKENS)
        cells = "".join(f"{base / best[name, tokens]:8.2f}" for tokens in WAY_TOKENS)
        print(f"  {name:32}{cells}  largest difference of a score {worst:.1e}", flush=True)


def against_bare(name: str, ranker, bare, texts: list[str], score, rounds: int) -> None:
    """Texts a second of a ranker and of the bare passes of its net, which take turns on the same texts."""
    spent: dict[str, list[float]] = defaultdict(list)
    size = len(texts) // rounds
    for number in range(rounds):
        some = texts[number * size : (number + 1) * size]
        turns = {"bare": bare(some), "shaketable": lambda some=some: score(ranker, some)}
        for turn in list(turns)[:: 1 if number % 2 else -1]:
            spent[turn].append(timed(turns[turn]))
    ratio = np.median(np.array(spent["bare"]) / np.array(spent["shaketable"]))
    print(f"{name}, {size * rounds} texts, {torch.get_num_threads()} threads")
    for turn, seconds in spent.items():
        print(f"  {turn:22}{size * rounds / sum(seconds):8.1f} texts/s")
    total = sum(spent["bare"]) / sum(spent["shaketable"])
    print(f"  ratio to bare {total:.3f} (goal 0.95), median of {rounds} turns {ratio:.3f}", flush=True)


def small_t5(texts: list[str], folder: Path, quick: bool) -> MonoT5:
    """A T5 of the sizes of t5-small, with random weights and pieces of the texts themselves."""
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = train_tokenizer([*texts, "Query: Document: Relevant: true false " * 50], 500 if quick else 8000)
    sizes = {"d_model": 32, "d_ff": 64, "num_layers": 1} if quick else {}
    torch.manual_seed(0)
    with checkpoints.silence_transformers():
        config = T5Config(vocab_size=32128, decoder_start_token_id=0, **sizes)
        T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return MonoT5.from_checkpoint(str(folder), MonoT5Shape())


def mono_t5(rounds: int, size: int, quick: bool) -> None:
    queries, texts = passages(rounds * size)
    with tempfile.TemporaryDirectory() as folder:
        net, bare_net = small_t5(texts, Path(folder), quick), small_t5(texts, Path(folder), quick).eval()
    ranker = make_ranker("monot5", "benchmark", net, MemoryCorpus({}))

    def bare(some):
        prepared = bare_net.prepare([(queries[0], text) for text in some])
        parts = make_batches([row.length for row in prepared], TOKENS_PER_BATCH["cpu"])
        ready = [bare_net.collate([prepared[i] for i in part]) for part in parts]

        def run() -> None:
            with torch.inference_mode():
                for batch in ready:
                    bare_net(**batch)

        return run

    def score(ranker, some) -> None:
        ranker.score([Slate(queries[0], tuple(map(Doc, some)))])

    score(ranker, texts[:8])
    bare(texts[:8])()
    against_bare("monot5", ranker, bare, texts[: rounds * size], score, rounds)


def epic_texts(rounds: int, size: int) -> None:
    _, texts = passages(rounds * size)
    net, bare_net = (epic.EPIC.from_checkpoint("minilm", EPICShape(max_length=192)).eval() for _ in range(2))
    ranker = make_ranker("epic", "benchmark", net, MemoryCorpus({}))

    def bare(some):
        prepared = bare_net.prepare_texts(some)
        parts = make_batches([row.length for row in prepared], TOKENS_PER_BATCH["cpu"])
        ready = [bare_net.pack([prepared[i] for i in part]) for part in parts]

        def run() -> None:
            with torch.inference_mode():
                for batch in ready:
                    bare_net.encode(**batch)

        return run

    def score(ranker, some) -> None:
        ranker.score([Slate("how are tides made", tuple(map(Doc, some)))])

    score(ranker, texts[:8])
    bare(texts[:8])()
    against_bare("epic", ranker, bare, texts[: rounds * size], score, rounds)


def audit(name: str, net, queries: int, variants: int, docs: int, sample: int) -> None:
    asked, texts = passages(queries * docs)
    rng = np.random.default_rng(0)
    lists = [[Doc(texts[i]) for i in rng.choice(len(texts), docs, replace=False)] for _ in range(queries)]
    slates = [
        Slate(f"{asked[q % len(asked)]} {variant}", tuple(lists[q]))
        for variant in range(variants)
        for q in range(queries)
    ]
    pairs = [(slate.query, doc.text) for slate in slates for doc in slate.docs]
    ranker = make_ranker(name, "benchmark", net, MemoryCorpus({}))

    def naive(few) -> None:
        prepared = net.prepare(few)
        with torch.inference_mode():
            for part in make_batches([row.length for row in prepared], TOKENS_PER_BATCH["cpu"]):
                net(**net.collate([prepared[i] for i in part]))

    naive(pairs[:8])
    some = [pairs[i] for i in rng.choice(len(pairs), min(sample, len(pairs)), replace=False)]
    before = timed(lambda: naive(some[::2]))
    ours = timed(lambda: ranker.score(slates))
    again = timed(lambda: ranker.score(slates))
    after = timed(lambda: naive(some[1::2]))
    by_pairs = (before + after) / len(some) * len(pairs)
    print(f"{name}, {len(pairs)} pairs, {len({text for _, text in pairs})} texts")
    print(f"  ours {ours:.1f} s, once all is encoded {len(pairs) / again:,.0f} pairs/s")
    print(f"  pair by pair {by_pairs:.0f} s (from {len(some)} pairs), ratio {by_pairs / ours:.1f} (goal 5)")


def small(queries: int, docs: int) -> None:
    asked, texts = passages(queries * docs)
    corpus = MemoryCorpus({str(i): Doc(text) for i, text in enumerate(texts)})
    rng = np.random.default_rng(0)
    slates = [Slate(query, tuple(Doc(texts[i]) for i in rng.choice(len(texts), docs))) for query in asked[:queries]]
    pairs = sum(len(slate.docs) for slate in slates)
    print(f"small rankers, {pairs} pairs, {torch.get_num_threads()} threads")
    for kind in ("dssm", "drmm", "knrm", "conv_knrm", "duet", "duet(input='trigrams')"):
        net = LEARNERS.build(kind).build_net(Collection("benchmark", corpus, {}))
        ranker = make_ranker(kind, "benchmark", net, corpus)
        ranker.score([Slate("warm", (Doc("up"),))])
        first, again = (timed(lambda ranker=ranker: ranker.score(slates)) for _ in range(2))
        print(f"  {kind:22}{pairs / first:10,.0f} pairs/s, again {pairs / again:10,.0f} pairs/s", flush=True)


PARTS: dict[str, Callable[[bool], bool | None]] = {
    "cross-encoder": lambda quick: cross_encoder(*((6, 32) if quick else (12, 128))),
    "onnx": lambda quick: cross_encoder(*((4, 16) if quick else (8, 64)), onnx=True),
    "ways": lambda quick: ways(*((16, 2) if quick else (48, 4))),
    "monot5": lambda quick: mono_t5(*((1, 4) if quick else (10, 128)), quick),
    "epic": lambda quick: epic_texts(*((4, 32) if quick else (10, 128))),
    "small": lambda quick: small(*((10, 20) if quick else (100, 100))),
    "dense": lambda quick: audit(
        "dense", dense.BiEncoder.from_checkpoint("minilm", DenseShape(max_length=256)), *AUDIT_SIZES[quick]
    ),
    "colbert": lambda quick: audit(
        "colbert", colbert.ColBERT.from_checkpoint("minilm", ColBERTShape()), *AUDIT_SIZES[quick]
    ),
}
"""Part -> a function of `quick` that returns False if a goal is missed."""
AUDIT_SIZES = {True: (10, 10, 20, 64), False: (100, 10, 100, 512)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS), help="the parts to run")
    options = parser.parse_args()
    results = [PARTS[part](options.quick) for part in options.part]
    return int(False in results)


if __name__ == "__main__":
    sys.exit(main())

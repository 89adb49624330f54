"""Speed of neural rankers, against bare forward passes, CrossEncoder.predict, and pair-by-pair encoding.

    make models && python -m benchmarks.neural [--quick] [--part PART ...]

Cross-encoder: pairs per second of ms-marco-MiniLM-L-12-v2 (int8 weights, float32 arithmetic) on real passages of rag24.
"Bare" are the forward passes of torch alone, on batches that are tokenised, sorted and padded beforehand. Goals: at
least 1.2 times the speed of bare, at least that of CrossEncoder.predict, and scores within 1e-5 of bare. The script
measures CrossEncoder.predict if sentence-transformers is installed. The three take turns on the same pairs, so that
load slows all of them equally. The exit code is 1 if a goal is missed. `--part onnx` compares the int8 ONNX file, and
`--part ways` measures each optimisation by itself, in processor time of one thread.

monoT5 (a random T5 of the size of t5-small) and EPIC (minilm; a vector over the vocabulary for each text): texts per
second against their own bare forward passes, in turns as above.

Audit: dense and colbert score 100 queries in 10 variants with 100 documents each. The peer encodes the query and the
text of each pair separately; its time is extrapolated from some of the pairs. Goal: at least 5 times faster.

Small rankers: pairs per second for new texts and for known texts.
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
TOKENS_PER_WAY_BATCH = (1024, 2048, 4096)
SENTENCE = "the river of a northern town rises in spring and floods low fields where people graze their animals"


def read_passages(count: int) -> tuple[list[str], list[str]]:
    """Return queries and texts of 190 words on average, which are real if the collection is present."""
    if REAL.is_dir():
        files = (REAL / "queries.jsonl", REAL / "corpus.jsonl")
        queries, texts = ([json.loads(line)["text"] for line in f.read_text("utf-8").splitlines()] for f in files)
        return queries, texts[:count]
    rng, words = np.random.default_rng(0), SENTENCE.split()
    sizes = rng.normal(190, 60, count).clip(40, 700).astype(int)
    return [" ".join(rng.choice(words, 8)) for _ in range(300)], [" ".join(rng.choice(words, n)) for n in sizes]


def measure_seconds(call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def open_contestants(model: Path, onnx: bool) -> dict[str, Score]:
    """Return a function from pairs to scores for each contestant."""
    contestants: dict[str, Score] = {}
    for name, spec in (("shaketable", f"hf:{model}"), *([("shaketable, onnx", f"onnx:{model}")] if onnx else [])):
        ranker = RANKERS.build(spec).open(Collection("benchmark", MemoryCorpus({}), {}))
        contestants[name] = lambda pairs, ranker=ranker: np.concatenate(
            ranker.score([Slate(q, (Doc(t),)) for q, t in pairs])
        )
    if not find_spec("sentence_transformers"):
        print("CrossEncoder.predict is not measured: sentence-transformers (group bench) is not installed")
        return contestants
    from sentence_transformers import CrossEncoder as Peer

    with checkpoints.silence_transformers():
        peer = Peer(str(model), num_labels=1, max_length=512)
    contestants[PEER] = lambda pairs: peer.predict(pairs, show_progress_bar=False, activation_fn=torch.nn.Identity())
    return contestants


def make_bare(model: Path) -> Callable[[Pairs], Callable[[], Scores]]:
    """Return a function that prepares pairs and returns their bare forward passes."""
    net = CrossEncoder.from_checkpoint(str(model), BertShape(max_length=0)).eval()

    def prepare(pairs: Pairs) -> Callable[[], Scores]:
        prepared = net.prepare(pairs)
        parts = list(make_batches([row.length for row in prepared], TOKENS_PER_BATCH["cpu"]))
        ready = [net.collate([prepared[i] for i in part]) for part in parts]

        def run() -> Scores:
            scores = np.empty(len(pairs))
            with torch.no_grad():  # our optimisations apply in inference mode only
                for part, batch in zip(parts, ready, strict=True):
                    scores[part] = net(**batch).numpy()
            return scores

        return run

    return prepare


def compare_cross_encoders(chunks: int, size: int, onnx: bool = False) -> bool:
    """Print speeds and ratios; return True if the goals are met."""
    model = find_model(MINILM_L12)
    if model is None:
        print(f"cross-encoder is not measured: {MINILM_L12} is not built (make models)")
        return False
    queries, texts = read_passages(chunks * size)
    contestants, prepare_bare = open_contestants(model, onnx), make_bare(model)
    few = [(queries[0], text) for text in texts[:4]]
    for run in (prepare_bare(few), *(partial(score, few) for score in contestants.values())):
        run()
    spent: dict[str, list[float]] = defaultdict(list)
    worst = 0.0
    for number, start in enumerate(range(0, len(texts), size)):
        pairs = [(queries[(start + i) % len(queries)], text) for i, text in enumerate(texts[start : start + size])]
        turns = {"bare": prepare_bare(pairs), **{name: partial(score, pairs) for name, score in contestants.items()}}
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
    print(f"  largest score difference from bare {worst:.1e} (goal {SCORE_GOAL:.0e})", flush=True)
    return met


WAYS = {
    "plain": (torch.no_grad, nullcontext),
    "first token in the last layer": (torch.inference_mode, nullcontext),
    "linear layers by oneDNN": (torch.no_grad, OneDnnLinear),
    "both": (torch.inference_mode, OneDnnLinear),
}
"""Optimisation -> the contexts of a forward pass; the last layer is shortened in inference mode only."""


def compare_ways(count: int, rounds: int) -> None:
    """Print the speed of each optimisation, relative to none of them with the largest batches."""
    model = find_model(MINILM_L12)
    if model is None:
        print(f"ways are not measured: {MINILM_L12} is not built (make models)")
        return
    torch.set_num_threads(1)
    queries, texts = read_passages(count)
    net = CrossEncoder.from_checkpoint(str(model), BertShape(max_length=0)).eval()
    prepared = net.prepare(list(zip(queries, texts, strict=False)))
    best: dict[tuple[str, int], float] = {}
    scores: dict[tuple[str, int], Scores] = {}
    for _, tokens in product(range(rounds), TOKENS_PER_WAY_BATCH):
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
    most = TOKENS_PER_WAY_BATCH[-1]
    print(f"speed (processor time of one thread, {len(prepared)} pairs) relative to plain with {most} tokens per batch")
    print(f"  {'tokens per batch':32}{''.join(f'{tokens:8}' for tokens in TOKENS_PER_WAY_BATCH)}")
    base = best["plain", most]
    for name in WAYS:
        worst = max(np.abs(scores[name, tokens] - scores["plain", tokens]).max() for tokens in TOKENS_PER_WAY_BATCH)
        cells = "".join(f"{base / best[name, tokens]:8.2f}" for tokens in TOKENS_PER_WAY_BATCH)
        print(f"  {name:32}{cells}  largest score difference {worst:.1e}", flush=True)


def compare_with_bare(name: str, ranker, prepare_bare, texts: list[str], score, rounds: int) -> None:
    """Print the texts per second of a ranker and of the bare forward passes of its network, measured in turns."""
    spent: dict[str, list[float]] = defaultdict(list)
    size = len(texts) // rounds
    for number in range(rounds):
        some = texts[number * size : (number + 1) * size]
        turns = {"bare": prepare_bare(some), "shaketable": lambda some=some: score(ranker, some)}
        for turn in list(turns)[:: 1 if number % 2 else -1]:
            spent[turn].append(measure_seconds(turns[turn]))
    ratio = np.median(np.array(spent["bare"]) / np.array(spent["shaketable"]))
    print(f"{name}, {size * rounds} texts, {torch.get_num_threads()} threads")
    for turn, seconds in spent.items():
        print(f"  {turn:22}{size * rounds / sum(seconds):8.1f} texts/s")
    total = sum(spent["bare"]) / sum(spent["shaketable"])
    print(f"  ratio to bare {total:.3f} (goal 0.95), median of {rounds} turns {ratio:.3f}", flush=True)


def build_t5(texts: list[str], folder: Path, quick: bool) -> MonoT5:
    """Return a random T5 of the size of t5-small, with a tokenizer that is trained on the texts."""
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = train_tokenizer([*texts, "Query: Document: Relevant: true false " * 50], 500 if quick else 8000)
    sizes = {"d_model": 32, "d_ff": 64, "num_layers": 1} if quick else {}
    torch.manual_seed(0)
    with checkpoints.silence_transformers():
        config = T5Config(vocab_size=32128, decoder_start_token_id=0, **sizes)
        T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return MonoT5.from_checkpoint(str(folder), MonoT5Shape())


def compare_monot5(rounds: int, size: int, quick: bool) -> None:
    queries, texts = read_passages(rounds * size)
    with tempfile.TemporaryDirectory() as folder:
        net, bare_net = build_t5(texts, Path(folder), quick), build_t5(texts, Path(folder), quick).eval()
    ranker = make_ranker("monot5", "benchmark", net, MemoryCorpus({}))

    def prepare_bare(some):
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
    prepare_bare(texts[:8])()
    compare_with_bare("monot5", ranker, prepare_bare, texts[: rounds * size], score, rounds)


def compare_epic(rounds: int, size: int) -> None:
    _, texts = read_passages(rounds * size)
    net, bare_net = (epic.EPIC.from_checkpoint("minilm", EPICShape(max_length=192)).eval() for _ in range(2))
    ranker = make_ranker("epic", "benchmark", net, MemoryCorpus({}))

    def prepare_bare(some):
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
    prepare_bare(texts[:8])()
    compare_with_bare("epic", ranker, prepare_bare, texts[: rounds * size], score, rounds)


def compare_bi_encoder(name: str, net, queries: int, variants: int, docs: int, sample: int) -> None:
    """Print the time for all variants of the queries, and that of encoding each pair separately."""
    topics, texts = read_passages(queries * docs)
    rng = np.random.default_rng(0)
    lists = [[Doc(texts[i]) for i in rng.choice(len(texts), docs, replace=False)] for _ in range(queries)]
    slates = [
        Slate(f"{topics[q % len(topics)]} {variant}", tuple(lists[q]))
        for variant in range(variants)
        for q in range(queries)
    ]
    pairs = [(slate.query, doc.text) for slate in slates for doc in slate.docs]
    ranker = make_ranker(name, "benchmark", net, MemoryCorpus({}))

    def encode_pairs(few) -> None:
        prepared = net.prepare(few)
        with torch.inference_mode():
            for part in make_batches([row.length for row in prepared], TOKENS_PER_BATCH["cpu"]):
                net(**net.collate([prepared[i] for i in part]))

    encode_pairs(pairs[:8])
    some = [pairs[i] for i in rng.choice(len(pairs), min(sample, len(pairs)), replace=False)]
    before = measure_seconds(lambda: encode_pairs(some[::2]))
    ours = measure_seconds(lambda: ranker.score(slates))
    cached = measure_seconds(lambda: ranker.score(slates))
    after = measure_seconds(lambda: encode_pairs(some[1::2]))
    peer = (before + after) / len(some) * len(pairs)
    print(f"{name}, {len(pairs)} pairs, {len({text for _, text in pairs})} texts")
    print(f"  shaketable {ours:.1f} s; with cached encodings {len(pairs) / cached:,.0f} pairs/s")
    print(f"  pair by pair {peer:.0f} s (extrapolated from {len(some)} pairs), ratio {peer / ours:.1f} (goal 5)")


def measure_small_rankers(queries: int, docs: int) -> None:
    """Print the pairs per second of each small neural ranker."""
    topics, texts = read_passages(queries * docs)
    corpus = MemoryCorpus({str(i): Doc(text) for i, text in enumerate(texts)})
    rng = np.random.default_rng(0)
    slates = [Slate(query, tuple(Doc(texts[i]) for i in rng.choice(len(texts), docs))) for query in topics[:queries]]
    pairs = sum(len(slate.docs) for slate in slates)
    print(f"small rankers, {pairs} pairs, {torch.get_num_threads()} threads")
    for name in ("dssm", "drmm", "knrm", "conv_knrm", "duet", "duet(input='trigrams')"):
        net = LEARNERS.build(name).build_net(Collection("benchmark", corpus, {}))
        ranker = make_ranker(name, "benchmark", net, corpus)
        ranker.score([Slate("warm", (Doc("up"),))])
        new, known = (measure_seconds(lambda ranker=ranker: ranker.score(slates)) for _ in range(2))
        print(
            f"  {name:24}new texts {pairs / new:9,.0f} pairs/s, known texts {pairs / known:9,.0f} pairs/s", flush=True
        )


PARTS: dict[str, Callable[[bool], bool | None]] = {
    "cross-encoder": lambda quick: compare_cross_encoders(*((6, 32) if quick else (12, 128))),
    "onnx": lambda quick: compare_cross_encoders(*((4, 16) if quick else (8, 64)), onnx=True),
    "ways": lambda quick: compare_ways(*((16, 2) if quick else (48, 4))),
    "monot5": lambda quick: compare_monot5(*((1, 4) if quick else (10, 128)), quick),
    "epic": lambda quick: compare_epic(*((4, 32) if quick else (10, 128))),
    "small": lambda quick: measure_small_rankers(*((10, 20) if quick else (100, 100))),
    "dense": lambda quick: compare_bi_encoder(
        "dense", dense.BiEncoder.from_checkpoint("minilm", DenseShape(max_length=256)), *AUDIT_SIZES[quick]
    ),
    "colbert": lambda quick: compare_bi_encoder(
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

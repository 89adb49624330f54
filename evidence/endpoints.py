"""infinity, a rerank server from pip, serves a cross-encoder that was trained here: are its scores those of our own?

python -m venv ENV; ENV/bin/pip install 'infinity-emb[server,torch]'     (apart, for it wants older packages than we do)
SHAKETABLE_INFINITY=ENV/bin/infinity_emb make evidence PAGE=endpoints    (some minutes; the model is kept)
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from benchmarks.endpoints import measure_laps

import shaketable as st
from evidence import Guard, Page, Rows, prose, table
from shaketable.core.documents import Run, Slate, rank_docnos
from shaketable.core.home import home_folder
from shaketable.core.registries import RANKERS
from shaketable.datasets.load import load
from shaketable.experiment import Experiment
from shaketable.rankers.http.diagnostics import EMPTY_COLLECTION, diagnose_endpoint
from shaketable.rankers.http.reranker import HttpEndpoint
from shaketable.rankers.neural.pretrained_models import find_checkpoint_folder
from shaketable.rankers.saved import SavedModel
from shaketable.scoring.engine import ScoringEngine

SERVER = os.environ.get("SHAKETABLE_INFINITY", "")
LAYERS, LENGTH, DEPTH, QUERIES = 2, 128, 20, 40
TRAINED = f"steps=100, lr=3e-4, size=5, max_length={LENGTH}, last=True"
NAME = "trained-here"
MADE = home_folder() / "evidence" / "endpoints"
TIMED = "latency"
"""A check of the doctor that says something of this machine only."""


def shallow(path: Path) -> Path:
    """A checkpoint with the first layers of MiniLM: to train it takes seconds."""
    from transformers import AutoModel

    whole = find_checkpoint_folder("minilm")
    model = AutoModel.from_pretrained(whole, num_hidden_layers=LAYERS, use_safetensors=True)
    model.save_pretrained(path)
    copy_vocabulary(path)
    return path


def copy_vocabulary(path: Path) -> None:
    """MiniLM's own files, which older packages read as well; the length is what the ranker was trained to read."""
    whole = find_checkpoint_folder("minilm")
    for name in ("tokenizer.json", "vocab.txt", "special_tokens_map.json"):
        shutil.copy(whole / name, path / name)
    settings = json.loads((whole / "tokenizer_config.json").read_text())
    (path / "tokenizer_config.json").write_text(
        json.dumps(settings | {"model_max_length": LENGTH, "max_length": LENGTH})
    )
    written = json.loads((path / "tokenizer.json").read_text())
    (path / "tokenizer.json").write_text(json.dumps(written | {"truncation": None, "padding": None}))


def trained() -> tuple[str, str]:
    """A cross-encoder that `train` leaves, and the same weights as a folder of Hugging Face's."""
    model, exported = MADE / "model", MADE / "hf"
    if not exported.is_dir():
        checkpoint = shallow(MADE / "checkpoint")
        if not (model / "model.json").exists():
            st.train(f"bert({str(checkpoint)!r}, {TRAINED})", "sample", model, overwrite=True)
        net: Any = SavedModel(str(model)).open(EMPTY_COLLECTION)
        net.net.model.save_pretrained(exported)
        copy_vocabulary(exported)
    return f"{model}/", str(exported)


@contextmanager
def infinity(folder: str, *settings: str) -> Iterator[str]:
    """A server on a port that is free; the address of its endpoint."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [SERVER, "v2", "--model-id", folder, "--served-model-name", NAME, "--port", str(port), *settings]
    command += ["--host", "127.0.0.1", "--device", "cpu", "--engine", "torch", "--no-bettertransformer"]
    quiet = os.environ | {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"}
    process = subprocess.Popen(command, env=quiet, stdout=subprocess.DEVNULL, stderr=sys.stderr)
    try:
        for _ in range(600):
            if process.poll() is not None:
                raise SystemExit(f"{SERVER} ended with code {process.returncode}")
            try:
                if httpx.get(f"http://127.0.0.1:{port}/health", timeout=5).is_success:
                    break
            except httpx.HTTPError:
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/rerank"
    finally:
        process.terminate()
        process.wait()


def lists() -> tuple[Experiment, list[Slate]]:
    """The queries of the sample that are tested on, and BM25's first passages for each."""
    experiment = Experiment(
        load("sample"), {"bm25": RANKERS.build("bm25")}, ScoringEngine(), depth=DEPTH, limit=QUERIES, split="test"
    )
    found: Run = experiment.get_run("bm25")
    docs, queries = experiment.collection.docs, experiment.collection.queries
    return experiment, [
        Slate(queries[qid].text, tuple(docs[docno] for docno in rank_docnos(found[qid])[:DEPTH]))
        for qid in sorted(found)
    ]


def scored(spec: str, slates: list[Slate], experiment: Experiment) -> np.ndarray:
    ranker = RANKERS.build(spec).open(experiment.collection)
    answers = ScoringEngine().score(ranker, slates)
    return np.concatenate([np.asarray(one, dtype=np.float64) for one in answers if one is not None])


def sigmoid(scores: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-scores))


def ties(scores: np.ndarray) -> str:
    """Scores that another text of any list has too, at four-byte precision."""
    found = scores.astype(np.float32)
    return f"{100 * (1 - len(np.unique(found)) / len(found)):.1f} %"


def row(name: str, here: np.ndarray, there: np.ndarray) -> list[str]:
    apart = np.abs(here - there)
    return [name, f"{len(here):,}", f"{apart.max():.1e}", f"{apart.mean():.1e}", ties(here), ties(there)]


def versions() -> str:
    """Of what the server runs on, as its own interpreter tells."""
    asked = ("infinity-emb", "torch", "transformers", "sentence-transformers")
    code = "import importlib.metadata as m, sys; print(', '.join(f'{p} {m.version(p)}' for p in sys.argv[1:]))"
    done = subprocess.run([Path(SERVER).with_name("python"), "-c", code, *asked], capture_output=True, text=True)
    return done.stdout.strip()


def settings_row() -> list[str]:
    experiment, slates = lists()
    return [
        f"{len(slates)} queries",
        f"{sum(len(slate.docs) for slate in slates)} pairs",
        f"{len(experiment.qrels)} judged",
    ]


def doctor(url: str) -> list[list[str]]:
    found = diagnose_endpoint(HttpEndpoint(url))
    return [
        [check.check, {"error": "broken"}.get(check.severity, check.severity), seen(check)]
        for check in found.checks
        if not check.check.startswith(TIMED)
    ]


def seen(check: Any) -> str:
    count = f"{check.count}/{check.total}" if check.total else ""
    return "; ".join(filter(None, (count, *check.examples, check.advice if check.severity != "ok" else "")))


def compared(own: str, url: str, sigmoids: str) -> list[list[str]]:
    """What `parity` says of the server, asked in both ways, and of the ranker in this process."""
    rankers = {"in process": own, "logits": url, "sigmoids": sigmoids}
    result = st.parity(rankers, "sample", depth=DEPTH, max_queries=QUERIES)["parity"]
    moved = result.tables["parity"]
    return [
        [str(name), *(_cell(one[name]) for _, one in moved.iterrows())] for name in moved.columns if name != "place"
    ]


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def measure() -> Rows:
    if not SERVER or not Path(SERVER).is_file():
        print("skipped: $SHAKETABLE_INFINITY is to name the program infinity_emb of an environment that has it")
        sys.exit(0)
    os.environ.setdefault("NO_PROXY", "127.0.0.1,localhost")
    own, exported = trained()
    experiment, slates = lists()
    with infinity(exported) as url:
        sigmoids = f"http(url={url!r}, dialect='cohere', model={NAME!r})"
        here, there, plain = (
            scored(own, slates, experiment),
            scored(url, slates, experiment),
            scored(sigmoids, slates, experiment),
        )
        checks, told = doctor(url), compared(own, url, sigmoids)
    return {
        "versions": versions(),
        "settings": [settings_row()],
        "scores": [
            row("logits, by the address alone", here, there),
            row("sigmoids, `dialect='cohere'`", sigmoid(here), plain),
        ],
        "doctor": checks,
        "parity": told,
        "requests in flight": [
            [
                str(lap.max_concurrency),
                str(lap.requests),
                *(f"{taken:.2f} s" for taken in (lap.threads, lap.asynchronous, lap.engine)),
                f"{lap.ratio:.2f}",
            ]
            for lap in measure_laps(8)
        ],
    }


def compose(found: Rows) -> list[str]:
    return [
        prose(f"""infinity from pip ({found["versions"]}) in an environment of its own serves a cross-encoder that was
        trained here: the first {LAYERS} layers of MiniLM, `train bert({TRAINED})` on the
        bundled sample, with its weights saved as Hugging Face's folders have them. The same weights rank in this
        process, from the folder that `train` left. The lists are BM25's first {DEPTH} passages for {QUERIES}
        of the sample's test queries."""),
        table(("queries", "pairs", "judged"), found["settings"]),
        "## Scores of the server and of this process",
        prose("""Given an address alone, infinity is known by its answer and asked for the model's logits; as Cohere
        is asked, it answers with their sigmoid. Ties: scores that another pair has too."""),
        table(
            ("asked for", "pairs", "largest difference", "mean difference", "ties here", "ties there"),
            found["scores"],
        ),
        "## What `shaketable doctor URL` says",
        prose("""An address is all that it is given. Latency is left out: it is that of the machine."""),
        table(("check", "", "found"), found["doctor"]),
        "## What `shaketable parity` says",
        prose("""Each is compared with the ranker in this process. Sigmoids are other numbers than logits, and put
        lists in the same order."""),
        table(("", "logits", "sigmoids"), found["parity"]),
        "## Requests in flight",
        prose("""Another server, which answers after 50 ms, is sent the same lists by httpx in a bare loop, in
        threads or by asyncio, and by the ranker, each answer checked and kept (`benchmarks/endpoints.py`). Seconds
        are of a busy machine; the ratio is to the faster of the bare loops, and its goal is 1.1."""),
        table(
            ("in flight", "requests", "httpx in threads", "httpx by asyncio", "by the ranker", "ratio"),
            found["requests in flight"],
        ),
    ]


PAGE = Page(
    __file__,
    "A real rerank server",
    measure,
    compose,
    (Guard("settings", "the number of queries and pairs", settings_row),),
)

if __name__ == "__main__":
    PAGE.main()

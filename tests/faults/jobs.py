"""Small jobs to run while the disk fails, each with its initial files."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shaketable.cli import main

TREES = {
    "d01": "the oak is a hardwood tree with lobed leaves",
    "d02": "a pine keeps its needles all winter",
    "d03": "willow bark was chewed against pain",
    "d04": "oak timber was used for ships",
    "d05": "the winter was long and the ships stayed home",
    "d06": "larch needles turn yellow and fall in autumn",
    "d07": "the leaves of the birch are eaten by goats",
    "d08": "yew wood made the best bows for archers",
    "d09": "bark of the cork oak is cut every nine years",
    "d10": "maple sap is boiled down to syrup in spring",
    "d11": "an elm may live for several hundred years",
    "d12": "ash wood is tough and used for handles",
}
QUERIES = {
    "q1": ("oak tree leaves", {"d01": 2, "d04": 1, "d07": 0}),
    "q2": ("needles in winter", {"d02": 2, "d06": 1, "d05": 0}),
    "q3": ("bark for pain", {"d03": 2, "d09": 0}),
    "q4": ("wood for bows", {"d08": 2, "d12": 1}),
    "q5": ("syrup in spring", {"d10": 2, "d05": 0}),
    "q6": ("how many years does an elm live", {"d11": 2, "d09": 1}),
}
SPLITS = {"train": ("q1", "q2", "q3"), "dev": ("q4",), "test": ("q5", "q6")}


def collection(folder: Path, packed: bool = False) -> None:
    """Write a BEIR folder of a dozen documents."""
    (folder / "qrels").mkdir(parents=True)
    text = "".join(json.dumps({"_id": docno, "text": body}) + "\n" for docno, body in TREES.items())
    if packed:
        (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    else:
        (folder / "corpus.jsonl").write_text(text)
    rows = [{"_id": qid, "text": body} for qid, (body, _) in QUERIES.items()]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for split, qids in SPLITS.items():
        grades = [f"{qid}\t{docno}\t{grade}\n" for qid in qids for docno, grade in QUERIES[qid][1].items()]
        (folder / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(grades))


Command = Sequence[str] | Callable[[], None]


@dataclass(frozen=True)
class Job:
    """A command, or a function, that runs in a folder which holds what `before` left there.

    `sites` is how many places it changed the disk from when this was last looked at; `group` is the folder whose
    files are all old or all new; `needs` is a library without which it cannot be done; `varies` are files that say what
    had to be repaired, which depends on what was repaired before.
    """

    name: str
    command: Command
    sites: int = 0
    before: tuple[Command, ...] = ()
    group: str = ""
    needs: str = ""
    varies: tuple[str, ...] = ()

    def prepare(self) -> None:
        """Create the initial files in the current folder."""
        collection(Path("trees"))
        for command in self.before:
            do(command)


def do(command: Command) -> None:
    """Run a command in this process; it must succeed."""
    if callable(command):
        command()
        return
    try:
        main(list(command))
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"{command} ended with {end.code}") from end


def write_packed_collection() -> None:
    collection(Path("packed"), packed=True)


def own_notes() -> None:
    Path("out").mkdir(exist_ok=True)
    (Path("out") / "notes.txt").write_text("mine\n")


def damage_files() -> None:
    """Damage stored files."""
    (index,) = Path("home/indexes").iterdir()
    part = index / "postings.docs.bin"
    part.write_bytes(part.read_bytes()[:-4] + b"\xff\xff\xff\x7f")
    for ending in ("-wal", "-shm"):
        Path(f"home/scores.sqlite{ending}").unlink(missing_ok=True)
    whole = bytearray(Path("home/scores.sqlite").read_bytes())
    whole[:4096] = b"\xa5" * 4096
    Path("home/scores.sqlite").write_bytes(whole)


def vectors() -> None:
    """Write the vectors of a collection, with an encoder that counts letters."""
    from shaketable.datasets.load import load
    from shaketable.rankers.neural.vectors import open_vector_store

    def encode(texts: Sequence[str]) -> list[np.ndarray]:
        return [np.bincount([ord(c) % 16 for c in text], minlength=16).astype(np.float32)[None] for text in texts]

    shelf = open_vector_store(load("trees").docs, "letters", encode)
    lists = shelf.search(np.concatenate(encode(["oak tree", "pine"])), 3)
    assert [len(found) for found in lists] == [3, 3]


def another_collection() -> None:
    """Write another collection as a folder."""
    from shaketable.datasets.beir import write_beir
    from shaketable.datasets.load import load

    if Path("copy").is_dir():
        shutil.rmtree("copy")  # in a folder of its own, or not at all
    write_beir(load("trees"), Path("copy"))


def candidates() -> None:
    """Write a run with every document for every query."""
    rows = [f"{qid} Q0 {docno} {rank} {20 - rank} all\n" for qid in QUERIES for rank, docno in enumerate(TREES, 1)]
    Path("all.run").write_text("".join(rows))


AUDIT = ("audit", "--data", "trees", "--ranker", "bm25", "--ranker", "mine=tests.toys:Overlap", "--depth", "5")
AUDIT += ("--budget", "none")  # the measured pace of a ranker is stored, and differs from run to run
SCORES = "".join(f"t{i},{0.1 + i % 3 / 10:.2f},{0.2 + i % 4 / 10:.2f}\n" for i in range(12))


def scores() -> None:
    Path("scores.csv").write_text("topic,a,b\n" + SCORES)


def older_files() -> None:
    """Write the files of an evaluation of other scores."""
    Path("older.csv").write_text("topic,a,b\n" + SCORES.replace("0.20", "0.25"))
    do(("evaluate", "--scores", "older.csv", *EVALUATED))


EVALUATED = ("--csv", "csv", "--markdown", "md", "--latex", "tex", "--html", "page.html", "--json", "all.json")
EVALUATED += ("--per-query", "each")
MODEL = ("--data", "trees", "--depth", "5", "--model", "model", "--overwrite")
LINEAR = ("train", "prank", *MODEL)
TREES_MODEL = ("train", "gbrt(trees=2, leaves=3)", *MODEL)
WRITER = ("train", "doc2query(checkpoint='', dim=8, layers=1, epochs=2, batch=2, lr=0.05)", "--data", "trees")
WRITER += ("--train-split", "all", "--model", "model", "--overwrite")
OLDER_WRITER = (*WRITER, "--seed", "5")
NET = ("train", "dssm(steps=4, every=2, lists=2, size=3, lr=0.2, layers=(8, 4))", *MODEL, "--seed", "11")

TWO_TASKS = ("--task", "effectiveness", "--task", "agreement", "--out", "out")  # tasks with few figures are quick
OLDER_AUDIT = (*AUDIT, "--task", "effectiveness", "--task", "risk", "--seed", "3", "--out", "out")
RANKED = ("rank", "--data", "trees", "--ranker", "ql", "--write-run", "a.run")

OTHER_AUDIT = (*AUDIT, "--task", "effectiveness", "--task", "agreement", "--out", "other", "--seed", "0")
ATTACK = ("attack", "--data", "trees", "--ranker", "mine=tests.toys:Overlap", "--split", "all", "--depth", "12")
ATTACK += ("--candidates", "all.run", "--recipe", "keyword_stuffing", "--targets", "1", "--out", "out")
TWO_RANKERS = ("--data", "trees", "--ranker", "bm25", "--ranker", "mine=tests.toys:Overlap", "--depth", "5")

JOBS = (
    Job("audit", (*AUDIT, *TWO_TASKS, "--json", "all.json"), sites=27),
    Job("audit over an older one", (*AUDIT, *TWO_TASKS), sites=20, before=(OLDER_AUDIT, own_notes), group="out"),
    Job(
        "audit on damaged caches",
        (*AUDIT, "--task", "agreement", "--out", "out"),
        sites=31,
        before=(RANKED, damage_files),
        varies=("out/report.html",),
    ),
    Job("train a linear model", LINEAR, sites=18),
    Job("train trees over a linear model", TREES_MODEL, sites=14, before=(LINEAR,), group="model", needs="lightgbm"),
    Job("train in folds", (*LINEAR, "--folds", "3"), sites=25),
    Job("train a net", NET, sites=29, needs="torch"),
    Job("train a net over a linear model", NET, sites=23, before=(LINEAR,), group="model", needs="torch"),
    Job("train a writer", WRITER, sites=25, needs="torch"),
    Job("train a writer over another one", WRITER, sites=26, before=(OLDER_WRITER,), group="model", needs="torch"),
    Job(
        "rank a packed collection",
        ("rank", "--data", "packed", "--ranker", "bm25", "--write-run", "runs/a.run.gz"),
        sites=19,
        before=(write_packed_collection,),
    ),
    Job("vectors", vectors, sites=12),
    Job(
        "vary",
        ("vary", "trees", "--transform", "char_noise", "--write-variations", "vary/v.tsv", "--json", "v.json"),
        sites=7,
    ),
    Job(
        "evaluate over older files",
        ("evaluate", "--scores", "scores.csv", *EVALUATED),
        sites=7,
        before=(scores, older_files),
    ),
    Job("write a collection", another_collection, sites=13),
    Job("attack", (*ATTACK, "--write-documents", "docs.jsonl"), sites=15, before=(candidates,)),
    Job("probe", ("probe", *TWO_RANKERS, "--probe", "shuffle-*", "--out", "out"), sites=15),
    Job("parity", ("parity", *TWO_RANKERS, "--out", "out"), sites=15),
    Job(
        "compare",
        ("compare", "out", "other", "--json", "c.json", "--summary", "c.md"),
        sites=5,
        before=((*AUDIT, *TWO_TASKS), OTHER_AUDIT),
    ),
    Job(
        "gate",
        ("gate", "out", "--require", "nDCG@10>=0", "--junit", "g.xml", "--summary", "g.md", "--badge", "g.json"),
        sites=5,
        before=((*AUDIT, "--task", "effectiveness", "--out", "out"),),
    ),
    Job("report", ("report", "out"), sites=5, before=((*AUDIT, *TWO_TASKS),)),
    Job("board", ("board", "out", "--html", "b.html"), sites=3, before=((*AUDIT, *TWO_TASKS),)),
    Job("doctor", ("doctor", "trees", "--json", "d.json"), sites=5),
    Job("list", ("list", "rankers", "--json", "l.json"), sites=5),
)

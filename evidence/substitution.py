"""Attacks on documents (paper 003, Table 1, the rows ST): word substitution, its kin, and what simple filters catch.

make evidence PAGE=substitution        (about an hour on two cores; models and scores are kept, so it may be cut off)
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from evidence import DATA, Guard, Page, Rows, line, need_data, prose, table
from evidence._rag24 import ENCODERS, VECTORS, net, open_rag24
from shaketable.core.protocols import Model
from shaketable.core.results import Result
from shaketable.datasets.adversarial_documents import write_adversarial_documents
from shaketable.datasets.load import load
from shaketable.experiment import Experiment
from shaketable.tasks.document_attack import DocumentAttack

CONV = f"conv_knrm(teacher='dense', sentences=400, steps=400, text_length=128, filters=64, vectors={str(VECTORS)!r})"
NEIGHBOURS = DATA / "synonyms" / "counterfitted-neighbors.json"
FITTED = f"path={str(NEIGHBOURS)!r}" if NEIGHBOURS.is_file() else "path=''"
"""The published lists; without them the thesaurus."""
SETTINGS = {
    "paper 003: 20 words, cosine .5, 40 nearest": (20, 0.5, 40),
    "PRADA: 10 words, cosine .7, 50 nearest": (10, 0.7, 50),
    "20 words, cosine .9, 50 nearest": (20, 0.9, 50),
}
"""Words, and which neighbours of a word in the counter-fitted vectors are its synonyms."""
SURROGATE = f"knrm(steps=300, vectors={str(VECTORS)!r})"
READER = "bert(max_length=128, lists=8, size=4, steps=60, every=60)"
QUERIES, FEW, TARGETS = 40, 10, 9
PAPER = {
    "bm25": ("BM25", 56.4, 0.1874, 0.1624, 15.3),
    "conv_knrm": ("ConvKNRM", 95.1, 0.2461, 0.1692, 33.2),
    "bert": ("BERT", 92.1, 0.3831, 0.3225, 32.3),
}
"""Table 1, rows ST: ASR, CleanMRR@10, RobustMRR@10, LSD."""
HEAD = (
    "ranker", "attack", "targets", "success %", "boost", "into top 10 %", "words changed %", "similarity",
    "RR@10 clean", "RR@10 robust", "p", "nDCG@10 clean", "nDCG@10 robust", "LSD", "trials",
)  # fmt: skip
OTHERS = ("greedy", "characters", "homoglyphs", "invisible", "keyword_stuffing", "query_insertion", "query_line",
          "sentence_insertion", "instruction", "template_tokens")  # fmt: skip


def wsra(words: int, threshold: float, count: int, surrogate: str = SURROGATE, more: str = "") -> str:
    """The recipe by a setting of the page."""
    source = f"counterfitted(threshold={threshold}, count={count}, {FITTED})"
    return f"wsra(words={words}, synonyms={source!r}, surrogate={surrogate!r}{more})"


def white(words: int, threshold: float, count: int) -> str:
    return f"white_wsra(words={words}, synonyms={f'counterfitted(threshold={threshold}, count={count}, {FITTED})'!r})"


@dataclass(frozen=True)
class Ground:
    """A collection, and rankers that learned from rag24's train queries."""

    experiment: Experiment

    @classmethod
    def rag24(cls) -> Ground:
        experiment = open_rag24("bm25", "dense")
        return cls(replace(experiment, models={**experiment.models, **trained()}))

    @classmethod
    def dl19(cls) -> Ground:
        home = open_rag24("bm25", "dense")
        collection = load(DATA / "collections" / "dl19")
        return cls(replace(home, collection=collection, models={**home.models, **trained()}, split=None))

    def attack(self, ranker: str, recipes: Sequence[str], queries: int, **more: object) -> Result:
        experiment = self.experiment.with_collection(self.experiment.collection, self.experiment.split)
        alone = replace(experiment, models={ranker: self.experiment.models[ranker]})
        task = DocumentAttack(recipes=tuple(recipes), targets=TARGETS, queries=queries, **more)  # type: ignore[arg-type]
        return task.run(alone)


def trained() -> dict[str, Model]:
    """Return the nets under attack, trained on the train queries of rag24."""
    experiment = open_rag24("bm25")
    return {
        "knrm": experiment.fit(net("knrm"), "train"),
        "conv_knrm": experiment.fit(CONV, "train"),
        "bert": experiment.with_depth(20).fit(ENCODERS["bert"], "train"),
    }


def rows(found: Result, labels: Sequence[str]) -> list[list[str]]:
    """A row for each recipe, in the order of the labels."""
    attack, damage = found.tables["attack in full"], found.tables["damage in full"]
    lines = []
    for label, (_, a), (_, d) in zip(labels, attack.iterrows(), damage.iterrows(), strict=True):
        success = f"{a['success %']:.1f} [{a['success % low']:.1f}, {a['success % high']:.1f}]"
        boost = f"{a['boost']:.1f} [{a['boost low']:.1f}, {a['boost high']:.1f}]"
        cells = [a["ranker"], label, str(int(a["targets"])), success, boost, f"{a['into top 10 %']:.1f}"]
        cells += [f"{a['words changed %']:.1f}", f"{a['similarity']:.3f}"]
        cells += [f"{d['clean RR@10']:.4f}", f"{d['robust RR@10']:.4f}", f"{d['RR@10 p']:.3f}"]
        cells += [f"{d['clean nDCG@10']:.4f}", f"{d['robust nDCG@10']:.4f}", f"{d['LSD']:.1f}", f"{a['trials']:.1f}"]
        lines.append(cells)
        print(line(cells), flush=True)
    return lines


def paper_rows() -> list[list[str]]:
    return [
        [name, f"{asr}", f"{clean:.4f}", f"{robust:.4f}", f"{lsd}"] for name, asr, clean, robust, lsd in PAPER.values()
    ]


def main_rows(context: Ground) -> list[list[str]]:
    """The attack of the paper on each ranker, and BM25 by the documents that were made against conv_knrm."""
    recipes = [wsra(*setting) for setting in SETTINGS.values()]
    found = []
    for ranker in ("conv_knrm", "knrm", "dense"):
        some = len(recipes) if ranker != "dense" else 1
        result = context.attack(ranker, recipes[:some], QUERIES)
        found += rows(result, list(SETTINGS)[:some])
        if ranker == "conv_knrm":
            first = [one for one in result.attacked if one.recipe == recipes[0]]
            found += transferred(context, first)
        if ranker != "dense":
            found += rows(context.attack(ranker, [white(20, 0.5, 40)], QUERIES), ["white box, as paper 003"])
    bert = wsra(20, 0.5, 40, READER, ", rivals=20")
    found += rows(context.attack("bert", [bert], FEW), [f"as paper 003; surrogate on MiniLM, {FEW} queries"])
    return found


def transferred(context: Ground, documents: Sequence[object]) -> list[list[str]]:
    """What documents that were made against another ranker do to BM25."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "attacked.jsonl"
        write_adversarial_documents(documents, path)  # type: ignore[arg-type]
        return rows(
            context.attack("bm25", (), 0, adversarial_documents=str(path)), ["changed texts of conv_knrm, paper 003"]
        )


def kin_rows(context: Ground) -> tuple[list[list[str]], list[list[str]]]:
    """Every other recipe on one ranker, and what filters catch of what it left."""
    recipes = [*OTHERS, f"hotflip(surrogate={SURROGATE!r})", wsra(20, 0.5, 40)]
    constrained = f"greedy(constraints={('part_of_speech', 'similarity(least=0.8)', 'no_query_terms')!r})"
    labels = [*OTHERS, "hotflip", "wsra", "greedy: same part of speech, similarity .8, no query term"]
    found = context.attack("knrm", [*recipes, constrained], 20)
    return rows(found, labels), detected(found.tables["detection in full"], labels)


def detected(frame: pd.DataFrame, labels: Sequence[str]) -> list[list[str]]:
    """A row for each recipe: of its successful texts, the share that each filter catches."""
    lines = []
    for label, (_, part) in zip(labels, frame.groupby("recipe", sort=False), strict=False):
        lines.append([label, *(f"{value:.1f}" for value in part["caught %"]), str(int(part["texts"].iloc[0]))])
    return lines


def poison_rows(context: Ground) -> list[list[str]]:
    """Texts that others wrote for questions of MS MARCO, put among the passages of dl19."""
    lines = []
    path = DATA / "attacks" / "poison" / "msmarco.jsonl"
    for ranker in ("bm25", "knrm", "dense"):
        found = context.attack(ranker, (), 0, adversarial_documents=str(path)).tables["attack in full"]
        for _, row in found.iterrows():
            shares = [f"{row[f'top {k} %']:.1f}" for k in (10, 5)]
            lines.append([ranker, row["recipe"], str(int(row["targets"])), *shares])
    return lines


def measure() -> Rows:
    need_data("collections", "rag24")
    rag24, dl19 = Ground.rag24(), Ground.dl19()
    on_rag24 = main_rows(rag24)
    on_dl19 = main_rows(dl19)
    kin, filters = kin_rows(rag24)
    return {
        "synonyms": "those of the published lists of neighbours in counter-fitted vectors",
        "rag24": on_rag24,
        "dl19": on_dl19,
        "recipes": kin,
        "filters": filters,
        "texts of others": poison_rows(dl19),
    }


def compose(found: Rows) -> list[str]:
    return [
        prose(f"""One document from each of nine ranges of places, [11, 20] to [91, 100], in each ranker's own order
        of BM25's first 100, for {QUERIES} of rag24's test queries; documents of grade 0 and unjudged ones.
        The attack sees places alone. Its surrogate is K-NRM on GloVe, taught by the order of the target's
        lists for 200 other queries (where a collection has too few, sentences out of its passages); its synonyms
        are {found["synonyms"]}. In brackets: 95 % intervals over
        queries. p: paired t-test of RR@10 before and after, not
        corrected. Robust: all nine changed texts stand in the list at once. knrm and bert learned from 215 queries
        (bert reads 64 word pieces, 60 steps); conv_knrm learned from MiniLM's margins in 400 steps, reads 128 words
        and has 64 filters: small trainings, and weaker rankers than the paper's. Words are what stands between
        spaces, and at most so many differ from the original."""),
        "## rag24",
        table(HEAD, found["rag24"]),
        prose("""BM25 is attacked as in the paper, by texts that were made against another ranker, here conv_knrm;
        they stand in the list as they are, whether they are better off or not."""),
        "## dl19, the passages of TREC DL 2019 that were judged",
        prose("""The same rankers, trained on rag24, on 9,139 passages of MS MARCO; all 43 queries are judged, 40
        are attacked, and the attacker's own queries are sentences out of passages."""),
        table(HEAD, found["dl19"]),
        "## Table 1 of paper 003, rows ST",
        prose("""On MS MARCO, 1,000 queries of Dev, with one relevant passage each: RR is on another scale there."""),
        table(("ranker", "ASR", "CleanMRR@10", "RobustMRR@10", "LSD"), paper_rows()),
        "## Every recipe on one ranker",
        prose("""knrm on rag24, 20 of the test queries; the recipes with their defaults, wsra as in paper 003."""),
        table(HEAD, found["recipes"]),
        "## What simple filters would catch",
        prose("""Of the texts that the recipes above left, the share in per cent that a filter catches where it
        raises an alarm at one clean passage in a hundred. spamicity: a word that is repeated more than the
        collection lets expect; surprise: n-grams of the collection that find a stretch of 15 words unlikely;
        glyphs: invisible characters and letters of other alphabets; instructions: a list of
        phrases, written by the same hands as the two recipes that it catches, so that this says little."""),
        table(("recipe", "spamicity", "surprise", "glyphs", "instructions", "texts"), found["filters"]),
        "## Texts that others wrote",
        prose("""PoisonedRAG's texts for 100 questions of MS MARCO, five each, put among BM25's first 100 of dl19's
        passages for that question, one at a time: the share that ends among the first ten and five. None of these
        questions is one of dl19's, so what the texts compete with is seldom relevant, and these shares are upper
        bounds."""),
        table(("ranker", "text", "texts", "top 10 %", "top 5 %"), found["texts of others"]),
    ]


def poison_row() -> list[str]:
    path = DATA / "attacks" / "poison" / "msmarco.jsonl"
    context = Ground(replace(open_rag24("bm25"), collection=load(DATA / "collections" / "dl19"), split=None))
    row = context.attack("bm25", (), 0, adversarial_documents=str(path)).tables["attack in full"].iloc[0]
    return ["bm25", row["recipe"], str(int(row["targets"])), f"{row['top 10 %']:.1f}", f"{row['top 5 %']:.1f}"]


PAGE = Page(
    __file__,
    "Attacks on documents",
    measure,
    compose,
    (Guard("texts of others", "the first row of bm25 among the texts of others", poison_row),),
)

if __name__ == "__main__":
    PAGE.main()

"""Attacks on documents: all together against one after the other, and what the driver and the road add to a ranker.

    python benchmarks/attacks.py [--quick]

Passages of 60 generated words, 40 queries, 9 documents attacked in each list of 100, each word with ten synonyms; all
nets are untrained, which changes nothing of what they cost. All attacks take the lists of the target as known.

Together: attacks a minute of wsra (a K-NRM has the gradients) on a Conv-KNRM, by the driver and the road, against a
plain loop on some of the same documents, which must come to the same successes. The loop attacks one document at a
time: it scores the document's 100 rivals with the K-NRM in one batch, takes three gradients at the document's words,
and scores each trial with a forward pass of its own; the document's place follows from the known scores of the list.
Both score trials in float32 and take gradients in float64. Goal: at least 4 times as many. Ten times is out of reach:
about two thirds of the time are forward passes of the target, and these are less than ten times as fast in batches as
one at a time. The last line of this part says how many times as many there would be if all else cost nothing.

Pairs: bert(minilm) as the target of the same trials, in pairs a second, against the forward passes alone, of batches
that were tokenised, sorted and padded beforehand. Goal: at least 0.9.

Overhead: the same trials on the Conv-KNRM again, nothing known; the time of driver, target and road, with a store on
disk, over the time that the ranker itself takes. Limit: 0.1.

All times are the processor's, all threads together, so that others on the machine do not show.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from generated import zipf_texts
from quick import judge_limits, parse_quick
from torch.nn.functional import normalize

from shaketable.attacks.goals import Promote
from shaketable.attacks.runner import run_attacks
from shaketable.attacks.setup import draw_targets, split_rank_range
from shaketable.attacks.target import Target
from shaketable.attacks.tokenized_document import TokenizedDocument
from shaketable.attacks.wsra import WSRA, WordSubstitution
from shaketable.core.attack_types import AttackCase, RankQuery
from shaketable.core.documents import Collection, Doc, Query, Slate, rank_docnos
from shaketable.core.registries import LEARNERS, SYNONYMS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.rankers.lexical import BM25
from shaketable.rankers.neural.bert import CrossEncoder
from shaketable.rankers.neural.gradients import Gradients
from shaketable.rankers.neural.scoring import TOKENS_PER_BATCH, NeuralRanker, make_batches, make_ranker
from shaketable.rankers.neural.shapes import BertShape
from shaketable.rankers.neural.words import match_words
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store

FASTER, OF_BARE, ADDED = 4.0, 0.9, 0.1
DOCS, WORDS, DEPTH, TARGETS, SYNONYMS_EACH = 2000, (30, 90), 100, 9, 10
SHORT, AT_A_TIME = 20, 8  # the documents of a cross-encoder's lists, and the lists of a turn


def collection(queries: int, documents: int = DOCS) -> Collection:
    """Queries are six words of a document each, from its middle, so that they occur in others, too."""
    texts = list(zipf_texts(0, documents + queries, *WORDS))
    asked = {f"q{i}": Query(" ".join(text.split()[20:26])) for i, text in enumerate(texts[documents:])}
    docs = {f"d{i}": Doc(text) for i, text in enumerate(texts[:documents])}
    return Collection("generated", MemoryCorpus(docs), asked)


def write_synonyms(texts: Collection, path: Path) -> None:
    """A file of synonyms, drawn at random."""
    words = sorted({word for _, doc in texts.docs.items() for word in doc.text.split()})
    rows = np.random.default_rng(0).integers(len(words), size=(len(words), SYNONYMS_EACH)).tolist()
    lines = ("\t".join([word, *(words[i] for i in row)]) for word, row in zip(words, rows, strict=True))
    path.write_text("\n".join(lines) + "\n")


@dataclass(eq=False)
class Timed:
    """A ranker, and the processor's time that it took itself."""

    ranker: NeuralRanker
    seconds: float = 0.0
    pointwise = True

    def __post_init__(self) -> None:
        self.name, self.fingerprint, self.noise = self.ranker.name, self.ranker.fingerprint, self.ranker.noise

    def score(self, slates):
        scores, seconds = timed(lambda: self.ranker.score(slates))
        self.seconds += seconds
        return scores


@dataclass
class Stage:
    """A target, whose lists are known, and the documents to attack in them."""

    target: Target
    cases: list[AttackCase]
    ranker: Timed

    @classmethod
    def of(cls, texts: Collection, ranker: NeuralRanker, store: Path, depth: int = DEPTH) -> Stage:
        engine, timed = ScoringEngine(Store(store)), Timed(ranker)
        target = Target(lambda slates: engine.score(timed, slates), True, ranker.noise)
        found = BM25().open(texts).search([query.text for query in texts.queries.values()], depth)
        orders = {qid: rank_docnos(scores) for qid, scores in zip(texts.queries, found, strict=True)}
        lists = {
            qid: (Slate(texts.queries[qid].text, tuple(texts.docs[docno] for docno in order)), order)
            for qid, order in orders.items()
        }
        target.read_lists(lists)
        drawn = [
            aim
            for pool in target.target_lists.values()
            for aim in draw_targets(pool.target_ranking, {}, split_rank_range(TARGETS, depth), seed=0, any_grade=True)
        ]
        return cls(target, target.build_cases([(aim.docno, aim.doc, [aim.qid]) for aim in drawn], Promote()), timed)


@dataclass
class Noted:
    """An attack whose trials are written down."""

    attack: WordSubstitution
    trials: dict[tuple[str, ...], list[list[Doc]]] = field(default_factory=lambda: defaultdict(list))

    def steps(self, case, draws):
        steps, answer = self.attack.steps(case, draws), None
        while True:
            try:
                wanted = steps.send(answer)
            except StopIteration:
                return
            if isinstance(wanted, RankQuery):
                self.trials[case.key].append(list(wanted.docs))
            answer = yield wanted


@dataclass
class Replayed:
    """The same trials again, and nothing else."""

    trials: dict[tuple[str, ...], list[list[Doc]]]

    def steps(self, case, draws):
        for docs in self.trials[case.key]:
            yield RankQuery(docs)


def timed(call) -> tuple[Any, float]:
    """What a call returns, and the processor's time that it took."""
    started = time.process_time()
    answer = call()
    return answer, time.process_time() - started


def one_by_one(case: AttackCase, target: Target, net, surrogate, attack: WordSubstitution) -> int:
    """The place that a document comes to in a plain loop."""
    settings, query, text = attack.settings, case.query, case.doc.text
    table = surrogate.words.weight.detach()
    (pair,) = surrogate.prepare([(query, text)])
    asked, ids = (torch.from_numpy(numbers)[None] for numbers in (pair.query, pair.text))
    reading = surrogate.align_tokens(text, query)
    types, slots = np.unique(reading.rows[reading.rows >= 0], return_inverse=True)
    at = np.flatnonzero(reading.rows >= 0)
    slot_of = dict(zip(at.tolist(), slots.tolist(), strict=True))
    moved = torch.zeros(len(types), table.shape[1], dtype=torch.float64)

    def slope(moved):
        """The gradient of the loss where the words' vectors have moved."""
        moved = moved.clone().requires_grad_()
        vectors = surrogate.look_up_vectors(ids)[0].detach().index_add(0, torch.from_numpy(at), moved[slots])
        query_vectors = normalize(surrogate.look_up_vectors(asked).detach(), dim=2)
        near = query_vectors @ normalize(vectors[None], dim=2).transpose(1, 2)
        near = near.masked_fill(match_words(asked, ids), 1.0)
        score = surrogate.combine(surrogate.kernels(near, asked != 0, ids != 0))[0, 0]
        loss = (1 - score + rivals).clamp(min=0).sum()
        return torch.autograd.grad(loss, moved)[0]

    with torch.no_grad():
        others = [(query, doc.text) for doc in case.lists[0].get_other_documents(case.docno)[: settings.rivals]]
        rivals = surrogate(**surrogate.collate(surrogate.prepare(others)))
    importance = None
    for _ in range(settings.steps):
        found = slope(moved)
        importance = found.norm(dim=1).tolist() if importance is None else importance
        if not (size := float(found.norm())):
            break
        moved = moved - settings.epsilon / max(1, settings.steps // 2) * found / size
    after = table[torch.from_numpy(types)] + moved

    words: dict[str, list[int]] = {}
    for word in reading.words:
        words.setdefault(text[word.start : word.end], [slot_of[t] for t in word.tokens if t in slot_of])
    matter = {word: max((importance[slot] for slot in some), default=0.0) for word, some in words.items()}
    replacements: dict[str, str] = {}
    for word in sorted(filter(matter.get, matter), key=lambda word: -matter[word])[: settings.words]:
        synonyms = attack.synonyms.lookup(word)
        known = [(s, surrogate.vocabulary.to_ids(s)) for s in synonyms]
        known = [(s, number[0]) for s, number in known if len(number) == 1 and number[0] < len(table)]
        if known:
            cosines = normalize(table[[number for _, number in known]]) @ after[words[word]].mean(0)
            replacements[word] = known[int(cosines.argmax())][0]

    pool = target.target_lists[case.lists[0].qid]
    rest = np.delete(pool.scores, pool.index_by_docno[case.docno])
    wording, changes, best = TokenizedDocument(case.doc), {}, case.ranks[0]
    for word, new in replacements.items():
        offers = []
        for n in range(min(settings.words - len(changes), len(wording.occurrences[word]))):
            more = changes | dict.fromkeys(wording.occurrences[word][: n + 1], new)
            with torch.no_grad():
                score = net(**net.collate(net.prepare([(query, wording.substitute(more).text)]))).item()
            offers.append((1 + int((rest > score).sum()), more))
        if offers and (place := min(offers, key=lambda offer: offer[0]))[0] < best:
            best, changes = place
        if best == 1:
            break
    return best


def together(stage: Stage, net, surrogate, synonyms: Path, every: int) -> tuple[float, Noted]:
    """Attacks a minute over those of the plain loop on some of the documents; and the trials."""
    source = SYNONYMS.build(f"listed({str(synonyms)!r})")
    source.lookup("word")
    attack = WordSubstitution(WSRA(), Gradients(surrogate), source, ())
    noted = Noted(attack)
    stage.ranker.seconds = 0.0
    outcomes, ours = timed(lambda: run_attacks(noted, stage.cases, stage.target))

    doubled = deepcopy(surrogate).double().eval()
    some = range(0, len(stage.cases), every)
    places, theirs = timed(lambda: [one_by_one(stage.cases[i], stage.target, net, doubled, attack) for i in some])
    reached = [outcomes[i].ranks_after[0] for i in some]
    before = [stage.cases[i].ranks[0] for i in some]
    won, plainly = (float(np.mean(np.less(after, before))) for after in (reached, places))
    if won != plainly:
        sys.exit(f"not the same attack: {won:.1%} of the documents climb, {plainly:.1%} in the plain loop")
    trials = sum(outcome.trials for outcome in outcomes)
    fast, slow = 60 * len(outcomes) / ours, 60 * len(places) / theirs
    print(f"wsra on conv_knrm: {len(outcomes)} attacks, {trials:,} trials, {won:.1%} of the documents climb")
    share = stage.ranker.seconds / ours
    print(f"  together             {fast:7,.0f} a minute; {share:.0%} of the time is the target's own")
    alike = np.mean(np.equal(reached, places))
    bound = fast / slow / share
    print(f"  one after the other  {slow:7,.0f} a minute, of {len(places)} attacks; {alike:.1%} end in the same place")
    print(
        f"  {fast / slow:.1f} times as many; {bound:.1f} times if all but the target's own forward passes cost nothing"
    )
    return fast / slow, noted


def pairs(texts: Collection, noted: Noted, folder: Path, turns: int) -> float:
    """Trials of a cross-encoder by the driver, in pairs a second, over its bare forward passes, which take turns."""
    torch.manual_seed(0)
    net, bare_net = (CrossEncoder.from_checkpoint("minilm", BertShape(), fresh=True).eval() for _ in range(2))
    few = Collection("few", texts.docs, dict(list(texts.queries.items())[: AT_A_TIME * turns]))
    stage = Stage.of(few, make_ranker("bert(minilm)", "benchmark", net, texts.docs), folder / "bert.sqlite", SHORT)
    known: dict[str, list[list[list[Doc]]]] = defaultdict(list)
    for (_, qid), trials in noted.trials.items():
        known[qid].append(trials[:2])
    spent: dict[str, list[float]] = defaultdict(list)
    count = 0
    for turn in range(turns):
        qids = list(few.queries)[AT_A_TIME * turn : AT_A_TIME * (turn + 1)]
        cases = [case for case in stage.cases if case.lists[0].qid in qids]
        replayed = Replayed({case.key: known[case.lists[0].qid].pop() for case in cases})
        asked = {(case.query, doc.text) for case in cases for docs in replayed.trials[case.key] for doc in docs}
        prepared = bare_net.prepare(sorted(asked))
        parts = make_batches([row.length for row in prepared], TOKENS_PER_BATCH["cpu"])
        ready = [bare_net.collate([prepared[i] for i in part]) for part in parts]

        def bare(ready=ready) -> None:
            with torch.inference_mode():
                for batch in ready:
                    bare_net(**batch)

        contestants = {
            "bare": bare,
            "driven": lambda cases=cases, replayed=replayed: run_attacks(replayed, cases, stage.target),
        }
        for name in list(contestants)[:: 1 if turn % 2 else -1]:
            spent[name].append(timed(contestants[name])[1])
        count += len(asked)
    print(f"trials of bert(minilm): {count} pairs")
    for name, seconds in spent.items():
        print(f"  {name:10}{count / sum(seconds):8.1f} pairs/s")
    return float(np.median(np.array(spent["bare"]) / np.array(spent["driven"])))


def overhead(stages: Iterable[Stage], noted: Noted) -> float:
    """What is added to a ranker's own time, as a share of it: the median of several times."""
    shares = []
    for stage in stages:
        stage.ranker.seconds = 0.0
        _, whole = timed(lambda stage=stage: run_attacks(Replayed(noted.trials), stage.cases, stage.target))
        shares.append(whole / stage.ranker.seconds - 1)
    trials = sum(len(docs) for some in noted.trials.values() for docs in some)
    print(
        f"the same {trials:,} trials of conv_knrm, {len(shares)} times: added {', '.join(f'{s:.1%}' for s in shares)}"
    )
    return float(np.median(shares))


def main() -> int:
    quick = parse_quick(__doc__)
    torch.manual_seed(0)
    texts = collection(1, 300) if quick else collection(40)
    net, surrogate = (LEARNERS.build(kind).build_net(texts).eval() for kind in ("conv_knrm", "knrm"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_synonyms(texts, folder / "synonyms.tsv")

        def stage(number: int) -> Stage:
            ranker = make_ranker("conv_knrm", "benchmark", net, texts.docs)
            return Stage.of(texts, ranker, folder / f"{number}.sqlite")

        faster, noted = together(stage(0), net, surrogate, folder / "synonyms.tsv", 1 if quick else 4)
        added = overhead((stage(1 + n) for n in range(1 if quick else 3)), noted)
        of_bare = pairs(texts, noted, folder, 1 if quick else 3)
    print(f"together {faster:.1f} x one after the other (goal {FASTER:g})")
    print(f"pairs a second {of_bare:.3f} x bare forward passes (goal {OF_BARE:g})")
    print(f"driver, target and road {added:.3f} x the ranker's own time (limit {ADDED:g})")
    return judge_limits(faster >= FASTER and of_bare >= OF_BARE and added <= ADDED, quick)


if __name__ == "__main__":
    sys.exit(main())

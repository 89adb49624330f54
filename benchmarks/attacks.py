"""Document attacks: speed against a plain loop, speed against bare forward passes, and overhead of runner and engine.

    python benchmarks/attacks.py [--quick]

The script attacks 9 documents in each list of 100, for 40 queries. Passages have 60 generated words, and each word has
ten synonyms. All networks are untrained, which does not change their cost. All attacks know the lists of the target.

Batched against a loop: attacks per minute of wsra (gradients of a K-NRM) on a Conv-KNRM. The attack runner and the
scoring engine are compared with a plain loop on some of the same documents; both must succeed equally often. The loop
attacks one document at a time: it scores the document's 100 rivals with the K-NRM in one batch, takes three gradients
at the document's words, and scores each trial with a forward pass of its own. It computes the document's rank from the
known scores of the list. Both score trials in float32 and take gradients in float64. Goal: a ratio of at least 4. A
ratio of 10 is impossible: forward passes of the target are about two thirds of the time, and batches make them less
than ten times as fast. The last line of this part prints the ratio if everything else cost nothing.

Pairs per second: bert(minilm) as the target of the same trials, against the forward passes alone, on batches that are
tokenised, sorted and padded beforehand. Goal: a ratio of at least 0.9.

Overhead: the same trials on the Conv-KNRM again, with empty caches. It is the time of runner, target and engine, with a
store on disk, beyond the ranker's own time, as a share of that time. Limit: 0.1.

All times are processor time of all threads, so that other programs on the machine do not change them.
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

MIN_SPEED_UP, MIN_RATIO_TO_BARE, MAX_OVERHEAD = 4.0, 0.9, 0.1
DOCS, WORDS_PER_DOC, DEPTH, TARGETS_PER_LIST, SYNONYMS_PER_WORD = 2000, (30, 90), 100, 9, 10
SHORT_DEPTH, LISTS_PER_TURN = 20, 8  # a cross-encoder is slow


def make_collection(queries: int, documents: int = DOCS) -> Collection:
    """Return generated documents and queries; a query is six words from the middle of a further text."""
    texts = list(zipf_texts(0, documents + queries, *WORDS_PER_DOC))
    topics = {f"q{i}": Query(" ".join(text.split()[20:26])) for i, text in enumerate(texts[documents:])}
    docs = {f"d{i}": Doc(text) for i, text in enumerate(texts[:documents])}
    return Collection("generated", MemoryCorpus(docs), topics)


def write_synonyms(collection: Collection, path: Path) -> None:
    """Write a file with random synonyms for each word of the documents."""
    words = sorted({word for _, doc in collection.docs.items() for word in doc.text.split()})
    rows = np.random.default_rng(0).integers(len(words), size=(len(words), SYNONYMS_PER_WORD)).tolist()
    lines = ("\t".join([word, *(words[i] for i in row)]) for word, row in zip(words, rows, strict=True))
    path.write_text("\n".join(lines) + "\n")


@dataclass(eq=False)
class TimedRanker:
    """A ranker that records its own processor time."""

    ranker: NeuralRanker
    seconds: float = 0.0
    pointwise = True

    def __post_init__(self) -> None:
        self.name, self.fingerprint, self.noise = self.ranker.name, self.ranker.fingerprint, self.ranker.noise

    def score(self, slates):
        scores, seconds = measure_cpu_time(lambda: self.ranker.score(slates))
        self.seconds += seconds
        return scores


@dataclass
class AttackSetup:
    """A target with known lists, and the documents to attack in them."""

    target: Target
    cases: list[AttackCase]
    ranker: TimedRanker

    @classmethod
    def build(cls, collection: Collection, ranker: NeuralRanker, store: Path, depth: int = DEPTH) -> AttackSetup:
        engine, timed = ScoringEngine(Store(store)), TimedRanker(ranker)
        target = Target(lambda slates: engine.score(timed, slates), True, ranker.noise)
        found = BM25().open(collection).search([query.text for query in collection.queries.values()], depth)
        orders = {qid: rank_docnos(scores) for qid, scores in zip(collection.queries, found, strict=True)}
        lists = {
            qid: (Slate(collection.queries[qid].text, tuple(collection.docs[docno] for docno in order)), order)
            for qid, order in orders.items()
        }
        target.read_lists(lists)
        ranges = split_rank_range(TARGETS_PER_LIST, depth)
        aims = [
            aim
            for one in target.target_lists.values()
            for aim in draw_targets(one.target_ranking, {}, ranges, seed=0, any_grade=True)
        ]
        return cls(target, target.build_cases([(aim.docno, aim.doc, [aim.qid]) for aim in aims], Promote()), timed)


@dataclass
class RecordingAttack:
    """An attack that records its trials."""

    attack: WordSubstitution
    trials: dict[tuple[str, ...], list[list[Doc]]] = field(default_factory=lambda: defaultdict(list))

    def steps(self, case, draws):
        steps, answer = self.attack.steps(case, draws), None
        while True:
            try:
                request = steps.send(answer)
            except StopIteration:
                return
            if isinstance(request, RankQuery):
                self.trials[case.key].append(list(request.docs))
            answer = yield request


@dataclass
class ReplayAttack:
    """An attack that repeats recorded trials."""

    trials: dict[tuple[str, ...], list[list[Doc]]]

    def steps(self, case, draws):
        for docs in self.trials[case.key]:
            yield RankQuery(docs)


def measure_cpu_time(call) -> tuple[Any, float]:
    """Return the result of a call and its processor time in seconds."""
    started = time.process_time()
    result = call()
    return result, time.process_time() - started


def attack_in_loop(case: AttackCase, target: Target, net, surrogate, attack: WordSubstitution) -> int:
    """Attack one document with a plain loop and return its rank afterwards."""
    settings, query, text = attack.settings, case.query, case.doc.text
    table = surrogate.words.weight.detach()
    (pair,) = surrogate.prepare([(query, text)])
    query_ids, text_ids = (torch.from_numpy(numbers)[None] for numbers in (pair.query, pair.text))
    reading = surrogate.align_tokens(text, query)
    types, slots = np.unique(reading.rows[reading.rows >= 0], return_inverse=True)
    at = np.flatnonzero(reading.rows >= 0)
    slot_of = dict(zip(at.tolist(), slots.tolist(), strict=True))
    shift = torch.zeros(len(types), table.shape[1], dtype=torch.float64)

    def compute_gradient(shift):
        """Return the gradient of the loss at shifted word vectors."""
        shift = shift.clone().requires_grad_()
        vectors = surrogate.look_up_vectors(text_ids)[0].detach().index_add(0, torch.from_numpy(at), shift[slots])
        query_vectors = normalize(surrogate.look_up_vectors(query_ids).detach(), dim=2)
        cosines = query_vectors @ normalize(vectors[None], dim=2).transpose(1, 2)
        cosines = cosines.masked_fill(match_words(query_ids, text_ids), 1.0)
        score = surrogate.combine(surrogate.kernels(cosines, query_ids != 0, text_ids != 0))[0, 0]
        loss = (1 - score + rivals).clamp(min=0).sum()
        return torch.autograd.grad(loss, shift)[0]

    with torch.no_grad():
        others = [(query, doc.text) for doc in case.lists[0].get_other_documents(case.docno)[: settings.rivals]]
        rivals = surrogate(**surrogate.collate(surrogate.prepare(others)))
    importance = None
    for _ in range(settings.steps):
        gradient = compute_gradient(shift)
        importance = gradient.norm(dim=1).tolist() if importance is None else importance
        if not (size := float(gradient.norm())):
            break
        shift = shift - settings.epsilon / max(1, settings.steps // 2) * gradient / size
    after = table[torch.from_numpy(types)] + shift

    words: dict[str, list[int]] = {}
    for word in reading.words:
        words.setdefault(text[word.start : word.end], [slot_of[t] for t in word.tokens if t in slot_of])
    weights = {word: max((importance[slot] for slot in some), default=0.0) for word, some in words.items()}
    replacements: dict[str, str] = {}
    for word in sorted(filter(weights.get, weights), key=lambda word: -weights[word])[: settings.words]:
        synonyms = attack.synonyms.lookup(word)
        known = [(s, surrogate.vocabulary.to_ids(s)) for s in synonyms]
        known = [(s, number[0]) for s, number in known if len(number) == 1 and number[0] < len(table)]
        if known:
            cosines = normalize(table[[number for _, number in known]]) @ after[words[word]].mean(0)
            replacements[word] = known[int(cosines.argmax())][0]

    ranking = target.target_lists[case.lists[0].qid]
    rest = np.delete(ranking.scores, ranking.index_by_docno[case.docno])
    document, changes, best = TokenizedDocument(case.doc), {}, case.ranks[0]
    for word, new in replacements.items():
        trials = []
        for n in range(min(settings.words - len(changes), len(document.occurrences[word]))):
            more = changes | dict.fromkeys(document.occurrences[word][: n + 1], new)
            with torch.no_grad():
                score = net(**net.collate(net.prepare([(query, document.substitute(more).text)]))).item()
            trials.append((1 + int((rest > score).sum()), more))
        if trials and (winner := min(trials, key=lambda trial: trial[0]))[0] < best:
            best, changes = winner
        if best == 1:
            break
    return best


def compare_with_loop(setup: AttackSetup, net, surrogate, synonyms: Path, every: int) -> tuple[float, RecordingAttack]:
    """Return the ratio of attacks per minute to those of the plain loop on every n-th document, and the trials."""
    source = SYNONYMS.build(f"listed({str(synonyms)!r})")
    source.lookup("word")
    attack = WordSubstitution(WSRA(), Gradients(surrogate), source, ())
    recording = RecordingAttack(attack)
    setup.ranker.seconds = 0.0
    outcomes, ours = measure_cpu_time(lambda: run_attacks(recording, setup.cases, setup.target))

    double = deepcopy(surrogate).double().eval()
    some = range(0, len(setup.cases), every)
    loop_ranks, theirs = measure_cpu_time(
        lambda: [attack_in_loop(setup.cases[i], setup.target, net, double, attack) for i in some]
    )
    ranks = [outcomes[i].ranks_after[0] for i in some]
    before = [setup.cases[i].ranks[0] for i in some]
    success, loop_success = (float(np.mean(np.less(after, before))) for after in (ranks, loop_ranks))
    if success != loop_success:
        sys.exit(f"the attacks differ: success rate {success:.1%}, in the plain loop {loop_success:.1%}")
    trials = sum(outcome.trials for outcome in outcomes)
    fast, slow = 60 * len(outcomes) / ours, 60 * len(loop_ranks) / theirs
    print(f"wsra on conv_knrm: {len(outcomes)} attacks, {trials:,} trials, success rate {success:.1%}")
    share = setup.ranker.seconds / ours
    print(f"  batched     {fast:7,.0f} attacks/min; the target's forward passes are {share:.0%} of the time")
    equal = np.mean(np.equal(ranks, loop_ranks))
    bound = fast / slow / share
    print(f"  plain loop  {slow:7,.0f} attacks/min on {len(loop_ranks)} attacks; {equal:.1%} reach the same rank")
    print(f"  ratio {fast / slow:.1f}; {bound:.1f} if everything but the target's forward passes cost nothing")
    return fast / slow, recording


def compare_with_bare(collection: Collection, recording: RecordingAttack, folder: Path, turns: int) -> float:
    """Return the ratio of the trials per second of a cross-encoder to its bare forward passes, measured in turns."""
    torch.manual_seed(0)
    net, bare_net = (CrossEncoder.from_checkpoint("minilm", BertShape(), fresh=True).eval() for _ in range(2))
    few = Collection("few", collection.docs, dict(list(collection.queries.items())[: LISTS_PER_TURN * turns]))
    ranker = make_ranker("bert(minilm)", "benchmark", net, collection.docs)
    setup = AttackSetup.build(few, ranker, folder / "bert.sqlite", SHORT_DEPTH)
    known: dict[str, list[list[list[Doc]]]] = defaultdict(list)
    for (_, qid), trials in recording.trials.items():
        known[qid].append(trials[:2])
    spent: dict[str, list[float]] = defaultdict(list)
    count = 0
    for turn in range(turns):
        qids = list(few.queries)[LISTS_PER_TURN * turn : LISTS_PER_TURN * (turn + 1)]
        cases = [case for case in setup.cases if case.lists[0].qid in qids]
        replay = ReplayAttack({case.key: known[case.lists[0].qid].pop() for case in cases})
        pairs = {(case.query, doc.text) for case in cases for docs in replay.trials[case.key] for doc in docs}
        prepared = bare_net.prepare(sorted(pairs))
        parts = make_batches([row.length for row in prepared], TOKENS_PER_BATCH["cpu"])
        ready = [bare_net.collate([prepared[i] for i in part]) for part in parts]

        def run_bare(ready=ready) -> None:
            with torch.inference_mode():
                for batch in ready:
                    bare_net(**batch)

        contestants = {
            "bare": run_bare,
            "runner": lambda cases=cases, replay=replay: run_attacks(replay, cases, setup.target),
        }
        for name in list(contestants)[:: 1 if turn % 2 else -1]:
            spent[name].append(measure_cpu_time(contestants[name])[1])
        count += len(pairs)
    print(f"trials of bert(minilm): {count} pairs")
    for name, seconds in spent.items():
        print(f"  {name:10}{count / sum(seconds):8.1f} pairs/s")
    return float(np.median(np.array(spent["bare"]) / np.array(spent["runner"])))


def measure_overhead(setups: Iterable[AttackSetup], recording: RecordingAttack) -> float:
    """Return the median time beyond the ranker's own, as a share of the ranker's own."""
    shares = []
    for setup in setups:
        setup.ranker.seconds = 0.0
        replay = ReplayAttack(recording.trials)
        _, whole = measure_cpu_time(lambda setup=setup, replay=replay: run_attacks(replay, setup.cases, setup.target))
        shares.append(whole / setup.ranker.seconds - 1)
    trials = sum(len(docs) for some in recording.trials.values() for docs in some)
    print(f"{trials:,} trials of conv_knrm, {len(shares)} times: overhead {', '.join(f'{s:.1%}' for s in shares)}")
    return float(np.median(shares))


def main() -> int:
    quick = parse_quick(__doc__)
    torch.manual_seed(0)
    collection = make_collection(1, 300) if quick else make_collection(40)
    net, surrogate = (LEARNERS.build(name).build_net(collection).eval() for name in ("conv_knrm", "knrm"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        synonyms = folder / "synonyms.tsv"
        write_synonyms(collection, synonyms)

        def build_setup(number: int) -> AttackSetup:
            ranker = make_ranker("conv_knrm", "benchmark", net, collection.docs)
            return AttackSetup.build(collection, ranker, folder / f"{number}.sqlite")

        speed_up, recording = compare_with_loop(build_setup(0), net, surrogate, synonyms, 1 if quick else 4)
        overhead = measure_overhead((build_setup(1 + n) for n in range(1 if quick else 3)), recording)
        ratio = compare_with_bare(collection, recording, folder, 1 if quick else 3)
    print(f"attacks per minute: {speed_up:.1f} x the plain loop (goal {MIN_SPEED_UP:g})")
    print(f"pairs per second: {ratio:.3f} x bare forward passes (goal {MIN_RATIO_TO_BARE:g})")
    print(f"overhead of runner, target and engine: {overhead:.3f} x the ranker's own time (limit {MAX_OVERHEAD:g})")
    return judge_limits(speed_up >= MIN_SPEED_UP and ratio >= MIN_RATIO_TO_BARE and overhead <= MAX_OVERHEAD, quick)


if __name__ == "__main__":
    sys.exit(main())

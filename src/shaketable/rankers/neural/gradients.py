"""Gradients of a ranking loss with respect to the words of a text, for white-box attacks on a net.

    L(d)  = Σ_{d'} max(0, margin - s(q, d) + s(q, d'))        d' are the texts that d competes with
    G[w]  = ∂L / ∂E[w]                                        w is a token of d, E the embedding table
    I(w)  = ‖G[w]‖

To demote a text, the signs of s change. Gradients are taken at the lookups of the text's tokens and summed over the
positions of a token in the text: the same token in the query or in other texts does not count. With `shared` it does
count, because E is one table; the code of PRADA does so. (Only input lookups count, not an output layer tied to E.)
Either way dropout is off, and the weights do not change.

The result of a contest does not depend on the other contests: a text's own score and gradients come from a batch whose
shape depends on that text alone, in float64 unless the net is a transformer.

Wu, Zhang, Guo, de Rijke, Fan, Cheng. PRADA: practical black-box adversarial attacks against neural ranking models. ACM
Transactions on Information Systems 41(4), 2023. Ebrahimi, Rao, Lowd, Dou. HotFlip: white-box adversarial examples for
text classification. ACL 2018.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import pad

from shaketable.core.errors import BadInput
from shaketable.nlp.analyzer import Memo
from shaketable.nlp.words import find_word_spans
from shaketable.rankers.neural.net import Net, TokenAlignment
from shaketable.rankers.neural.scoring import TOKENS_PER_BATCH, make_batches
from shaketable.rankers.neural.words import WordVectorNet

Numbers = NDArray[np.float64]

MARGIN_TOLERANCE = 1e-9
"""A text that leads by the margin up to this tolerance counts as ahead: batches affect the last digits of scores."""
TEXTS_PER_BATCH = 8
"""Texts per batch with gradients."""
MAX_CACHED_SCORES = 1_000_000
"""Maximum number of cached scores."""


@dataclass(frozen=True)
class RankContest:
    """A text and its competitors for a query: the goal is to rank above them, or, with `demote`, below."""

    query: str
    text: str
    others: tuple[str, ...]
    demote: bool = False

    @property
    def sign(self) -> int:
        """The desired direction of the text's score."""
        return -1 if self.demote else 1


class WordGradients(NamedTuple):
    """Word importances and perturbed vectors of a text, in the order of the text."""

    importance: dict[str, float]
    """I of each word; 0 for a word that is truncated or has no vector of its own."""
    perturbed_vectors: dict[str, Numbers]
    """E' of each word that is read and has a vector: the mean over its tokens, at its first occurrence with any."""


class WordFlip(NamedTuple):
    """A replacement word, and the first-order change of the loss."""

    word: str
    loss_change: float


@dataclass(frozen=True, eq=False)
class _TokenizedContest:
    """A tokenized text: the distinct rows of its tokens, and for each token the index of its row, or -1."""

    contest: RankContest
    reading: TokenAlignment
    distinct_rows: NDArray[np.int64]
    row_indices: NDArray[np.int64]

    @cached_property
    def row_index_tensor(self) -> Tensor:
        return torch.from_numpy(self.row_indices)

    @property
    def token_slice(self) -> slice:
        """The positions of the tokens in their lookup."""
        return slice(self.reading.start, self.reading.start + len(self.row_indices))

    def iter_words(self) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Yield the words of the text in lower case, each with the row indexes of its tokens."""
        text = self.contest.text
        for word in self.reading.words:
            slots = self.row_indices[list(word.tokens)] if word.tokens else self.row_indices[:0]
            yield text[word.start : word.end].lower(), slots[slots >= 0]


class _SingleTokenWords(NamedTuple):
    """Words of one token each, and their embedding rows."""

    words: list[str]
    rows: NDArray[np.int64]


class _TableGradient(NamedTuple):
    """G of the distinct tokens of a text, [k, d], and the norm of all of G."""

    rows: Tensor
    norm: float


class Gradients:
    """The gradients of a net with respect to the words of texts. Words are compared in lower case.

    The importance of a word with several tokens is the maximum over its tokens, and its vector is their mean.
    """

    def __init__(self, net: Net, margin: float = 1.0, shared: bool = False):
        if net.no_gradients_reason:
            raise BadInput(f"there are no gradients with respect to words: {net.no_gradients_reason}")
        self.net = net
        self.margin = margin
        self.shared = shared
        self._uses_float64 = net.family != "transformer"
        self._weights = _copy_weights_as_float64(net) if self._uses_float64 else {}
        self._score_cache: dict[tuple[str, str], float] = {}
        self._row_cache = Memo(self._find_rows)
        self._vector_cache = Memo(self._find_vector)

    def analyze(self, contests: Sequence[RankContest], steps: int = 3, epsilon: float = 45.0) -> list[WordGradients]:
        """Return the importance of the words of each text, and their vectors after `steps` gradient steps.

            E[w] <- E[w] - α · (G / ‖G‖)[w],   α = epsilon / max(1, ⌊steps / 2⌋)

        for all tokens w of the text, with G at the current E. Nothing keeps E' near E. If the text is ahead of all
        others by the margin, G is 0: all importances are 0, and E does not change.
        """
        texts = [self._tokenize_contest(contest) for contest in contests]
        moved = {i: self._make_zero_moves(text) for i, text in enumerate(texts)}
        slopes = self._compute_gradients(texts, moved)
        importance = [slopes[i].rows.norm(dim=1).tolist() for i in moved]
        size = epsilon / max(1, steps // 2)
        for step in range(steps):
            going = [i for i, slope in slopes.items() if slope.norm > 0]
            moved |= {i: moved[i] - size * slopes[i].rows / slopes[i].norm for i in going}
            if step + 1 < steps:
                slopes = self._compute_gradients(texts, {i: moved[i] for i in going})
        return [self._summarize_words(text, importance[i], moved[i]) for i, text in enumerate(texts)]

    def compute_importance(self, contests: Sequence[RankContest]) -> list[dict[str, float]]:
        """Return I of the words of each text."""
        return [study.importance for study in self.analyze(contests, steps=0)]

    def perturb_vectors(
        self, contests: Sequence[RankContest], steps: int = 3, epsilon: float = 45.0
    ) -> list[dict[str, Numbers]]:
        """Return E' of the words of each text."""
        return [study.perturbed_vectors for study in self.analyze(contests, steps, epsilon)]

    def look_up_vectors(self, words: Sequence[str]) -> Numbers:
        """Return E of each word, the mean over its tokens after a space: [n, d]; NaN for a word without tokens."""
        if not words:
            return np.empty((0, self._embedding_table.shape[1]))
        return np.stack([self._vector_cache[word] for word in words])

    def is_single_token(self, word: str) -> bool:
        """Return True if a word is one token with a vector. Only such words can be flipped."""
        return len(self._row_cache[word]) == 1

    def find_flips(
        self,
        contests: Sequence[RankContest],
        positions: Sequence[Sequence[int]],
        k: int = 10,
        vocabulary: Sequence[str] = (),
    ) -> list[dict[int, list[WordFlip]]]:
        """Return up to k replacements that would lower the loss for each given word of each text, best first.

            ΔL = ∂L/∂e_i · (E[c] - e_i)        e_i is the vector at the position of the word, and only there

        `positions` index the words of `nlp.words.find_word_spans`. The candidates c are the words of `vocabulary`, or
        all words that the net's vocabulary can spell. Only words of one token have flips or are candidates.
        """
        words = self._select_single_token_words(vocabulary) if vocabulary else self._single_token_vocabulary
        texts = [self._tokenize_contest(contest) for contest in contests]
        slopes = self._compute_token_gradients(texts, {i: self._make_zero_moves(text) for i, text in enumerate(texts)})
        found = {i: self._find_text_flips(texts[i], slope, positions[i], k, words) for i, slope in slopes}
        return [found[i] for i in range(len(texts))]

    def _summarize_words(self, text: _TokenizedContest, norms: Sequence[float], moved: Tensor) -> WordGradients:
        table = _to_numpy(self._embedding_table[torch.from_numpy(text.distinct_rows)] + moved)
        study = WordGradients({}, {})
        for word, slots in text.iter_words():
            study.importance[word] = max([study.importance.get(word, 0.0), *(norms[slot] for slot in slots)])
            if word not in study.perturbed_vectors and len(slots):
                study.perturbed_vectors[word] = table[slots].mean(axis=0)
        return study

    def _find_text_flips(
        self, read: _TokenizedContest, slopes: Tensor, positions: Sequence[int], k: int, words: _SingleTokenWords
    ) -> dict[int, list[WordFlip]]:
        table = self._embedding_table
        found: dict[int, list[WordFlip]] = {}
        for place in positions:
            tokens = read.reading.words[place].tokens
            found[place] = []
            if len(tokens) == 1 and (old := int(read.reading.rows[tokens[0]])) >= 0:
                changes = ((table[torch.from_numpy(words.rows)] - table[old]) @ slopes[tokens[0]]).tolist()
                falls = [i for i, change in enumerate(changes) if change < 0 and words.rows[i] != old]
                falls.sort(key=changes.__getitem__)
                found[place] = [WordFlip(words.words[i], changes[i]) for i in falls[:k]]
        return found

    def _tokenize_contest(self, contest: RankContest) -> _TokenizedContest:
        reading = self.net.align_tokens(contest.text, contest.query)
        types = np.unique(reading.rows[reading.rows >= 0])
        return _TokenizedContest(
            contest, reading, types, np.where(reading.rows >= 0, np.searchsorted(types, reading.rows), -1)
        )

    def _compute_gradients(
        self, texts: Sequence[_TokenizedContest], moved: Mapping[int, Tensor]
    ) -> dict[int, _TableGradient]:
        """Return G of the texts in `moved`, which holds the changes of their token vectors from the table."""
        if self.shared:
            return {i: self._compute_table_gradient(texts[i], by) for i, by in moved.items()}
        found: dict[int, _TableGradient] = {}
        for i, places in self._compute_token_gradients(texts, moved):
            slots = texts[i].row_index_tensor.to(places.device)
            rows = torch.zeros_like(moved[i]).index_add(0, slots[slots >= 0], places[slots >= 0])
            found[i] = _TableGradient(rows, float(rows.norm()))
        return {i: found[i] for i in moved}

    def _compute_token_gradients(
        self, texts: Sequence[_TokenizedContest], moved: Mapping[int, Tensor]
    ) -> Iterator[tuple[int, Tensor]]:
        """Yield ∂L/∂e_i for each token of a text: [t, d], meaningless for tokens without a vector of their own.

        Other texts do not depend on e_i, so only s(q, d) contributes.
        """
        yield from ((i, by.new_zeros(len(texts[i].row_indices), by.shape[1])) for i, by in moved.items() if not len(by))
        some = [i for i, by in moved.items() if len(by)]
        for part, batch in self._make_batches([texts[i].contest for i in some]):
            rows = [some[at] for at in part]
            looked_up: list[Tensor] = []

            def change(
                number: int, ids: Tensor, vectors: Tensor, rows: Sequence[int] = rows, seen: list[Tensor] = looked_up
            ) -> Tensor | None:
                if number != texts[rows[0]].reading.lookup:
                    return None
                changed = vectors.detach().clone()
                for row, i in enumerate(rows):
                    slots = texts[i].row_index_tensor.to(vectors.device)
                    changed[row, texts[i].token_slice] += moved[i][slots.clamp(min=0)] * (slots >= 0)[:, None]
                seen.append(changed.requires_grad_())
                return changed

            scores = self._score_batch(batch, change)
            (slopes,) = torch.autograd.grad(scores.sum(), looked_up)
            for i, own, slope in zip(rows, scores.tolist(), slopes, strict=False):
                contest = texts[i].contest
                rivals = int(self._mask_unbeaten(contest, own, self._score_texts(contest.query, contest.others)).sum())
                own_places = slope[texts[i].token_slice]
                yield i, -contest.sign * rivals * own_places if rivals else torch.zeros_like(own_places)

    def _make_batches(self, contests: Sequence[RankContest]) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
        """Yield batches of the texts of contests, each padded to `TEXTS_PER_BATCH` texts of a rounded length.

        So the results of a text depend only on the shape of its batch. A transformer's batches have one text each,
        without padding, because larger ones would save no time.
        """
        prepared = self.net.prepare([(contest.query, contest.text) for contest in contests])
        if not isinstance(self.net, WordVectorNet):
            yield from (([at], self.net.collate([pair])) for at, pair in enumerate(prepared))
            return
        shape, alike = self.net.shape, defaultdict(list)
        for at, pair in enumerate(prepared):
            asked, said = (
                _round_up(len(pair.query), 8, shape.query_length),
                _round_up(len(pair.text), 32, shape.text_length),
            )
            alike[asked, said].append(at)
        for (asked, said), places in alike.items():
            for start in range(0, len(places), TEXTS_PER_BATCH):
                part = places[start : start + TEXTS_PER_BATCH]
                batch = self.net.collate([prepared[at] for at in part])
                yield part, {"query": _pad_batch(batch["query"], asked), "text": _pad_batch(batch["text"], said)}

    def _compute_table_gradient(self, read: _TokenizedContest, moved: Tensor) -> _TableGradient:
        """Return G over all lookups of a token, in the query and in each text that contributes to the loss."""
        contest = read.contest
        mine = torch.from_numpy(read.distinct_rows).to(moved.device)
        rows: list[Tensor] = []
        slopes: list[Tensor] = []
        looked_up: list[tuple[Tensor, Tensor]] = []
        padding = self.net.embedding().padding_idx
        padding = -1 if padding is None else padding  # as in torch, padding has no gradient

        def change(number: int, ids: Tensor, vectors: Tensor) -> Tensor:
            changed = vectors.detach().clone()
            if len(mine):
                slots = torch.searchsorted(mine, ids).clamp(max=len(mine) - 1)
                changed += moved[slots] * (mine[slots] == ids)[..., None]
            looked_up.append((ids, changed.requires_grad_()))
            return changed

        def score_texts(texts: Sequence[str]) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
            looked_up.clear()
            return self._score_pairs([(contest.query, text) for text in texts], change), list(looked_up)

        def add(loss: Tensor, lookups: Sequence[tuple[Tensor, Tensor]]) -> None:
            found = torch.autograd.grad(loss, [vectors for _, vectors in lookups])
            for (ids, _), slope in zip(lookups, found, strict=True):
                counted = ids != padding
                rows.append(ids[counted])
                slopes.append(slope[counted])

        own, lookups = score_texts([contest.text])
        rivals = 0
        for start in range(0, len(contest.others), TEXTS_PER_BATCH):
            scores, those = score_texts(contest.others[start : start + TEXTS_PER_BATCH])
            above = self._mask_unbeaten(contest, own.item(), scores.detach().double().cpu().numpy())
            if above.any():
                add(contest.sign * scores[torch.from_numpy(above)].sum(), those)
            rivals += int(above.sum())
        still = torch.zeros_like(moved)
        if not rivals:
            return _TableGradient(still, 0.0)
        add(-contest.sign * rivals * own.sum(), lookups)
        ids, places = np.unique(torch.cat(rows).cpu().numpy(), return_inverse=True)
        table = moved.new_zeros(len(ids), moved.shape[1])
        table.index_add_(0, torch.from_numpy(places).to(moved.device), torch.cat(slopes))
        _, of_table, of_text = np.intersect1d(ids, read.distinct_rows, return_indices=True)
        still[torch.from_numpy(of_text)] = table[torch.from_numpy(of_table)]
        return _TableGradient(still, float(table.norm()))

    def _mask_unbeaten(self, contest: RankContest, own: float, others: Numbers) -> NDArray[np.bool_]:
        """Return True for the competitors that the text does not beat by the margin; only these add to the loss."""
        left: NDArray[np.bool_] = self.margin - contest.sign * (own - others) > MARGIN_TOLERANCE * (1 + abs(own))
        return left

    def _score_texts(self, query: str, texts: Sequence[str]) -> Numbers:
        """Return the scores of texts, with a cache. A transformer scores them one by one: batches change the digits."""
        if len(self._score_cache) > MAX_CACHED_SCORES:
            self._score_cache.clear()
        fresh = [text for text in dict.fromkeys(texts) if (query, text) not in self._score_cache]
        pairs = [(query, text) for text in fresh]
        lengths = [row.length for row in self.net.prepare(pairs)] if pairs else []
        with torch.no_grad():
            for part in make_batches(lengths, TOKENS_PER_BATCH["cpu"] if self._uses_float64 else 1):
                scores = self._score_pairs([pairs[i] for i in part], None).double().tolist()
                self._score_cache.update(zip([pairs[i] for i in part], scores, strict=True))
        return np.array([self._score_cache[query, text] for text in texts])

    def _score_pairs(
        self, pairs: Sequence[tuple[str, str]], change: Callable[[int, Tensor, Tensor], Tensor | None] | None
    ) -> Tensor:
        """Return the scores of pairs; `change` may replace the looked-up vectors."""
        return self._score_batch(self.net.collate(self.net.prepare(pairs)), change)

    def _score_batch(
        self, batch: Mapping[str, Tensor], change: Callable[[int, Tensor, Tensor], Tensor | None] | None
    ) -> Tensor:
        batch = {name: tensor.to(self._embedding_table.device) for name, tensor in batch.items()}
        with _use_eval_mode(self.net), _hook_lookups(self._embedding_layers if change else [], change):
            scores: Tensor = functional_call(self.net, self._weights, (), batch)
        return scores

    @cached_property
    def _embedding_table(self) -> Tensor:
        """E: [rows, d]."""
        weight = self.net.embedding().weight
        names = [name for name, parameter in self.net.named_parameters() if parameter is weight]
        return self._weights.get(names[0], weight.detach())

    @cached_property
    def _embedding_layers(self) -> list[nn.Module]:
        """The layers that look up vectors in E: T5's encoder and decoder have one each."""
        weight = self.net.embedding().weight
        return [layer for layer in self.net.modules() if isinstance(layer, nn.Embedding) and layer.weight is weight]

    def _make_zero_moves(self, read: _TokenizedContest) -> Tensor:
        """Return zero changes of the token vectors."""
        return self._embedding_table.new_zeros(len(read.distinct_rows), self._embedding_table.shape[1])

    def _find_rows(self, word: str) -> NDArray[np.int64]:
        """Return the rows of a word's tokens after another word: many tokenizers mark the beginning of a word."""
        reading = self.net.align_tokens(f"a {word}")
        rows = reading.rows[[token for found in reading.words[1:] for token in found.tokens]]
        return rows[rows >= 0]

    def _find_vector(self, word: str) -> Numbers:
        rows = _to_numpy(self._embedding_table[torch.from_numpy(self._row_cache[word])])
        return rows.mean(axis=0) if len(rows) else np.full(self._embedding_table.shape[1], np.nan)

    @cached_property
    def _single_token_vocabulary(self) -> _SingleTokenWords:
        return self._select_single_token_words(self.net.decode_vocabulary())

    def _select_single_token_words(self, words: Sequence[str]) -> _SingleTokenWords:
        """Return the single-token words among the given strings."""
        rows = {
            word: self._row_cache[word] for word in dict.fromkeys(words) if find_word_spans(word) == [(0, len(word))]
        }
        whole = {word: row[0] for word, row in rows.items() if len(row) == 1}
        return _SingleTokenWords(list(whole), np.fromiter(whole.values(), np.int64))


def _copy_weights_as_float64(net: Net) -> dict[str, Tensor]:
    """Return a float64 copy of the weights of a net."""
    return {
        name: weight.detach().double()
        for name, weight in (*net.named_parameters(), *net.named_buffers())
        if weight.is_floating_point()
    }


def _to_numpy(rows: Tensor) -> Numbers:
    numbers: Numbers = rows.double().cpu().numpy()
    return numbers


def _round_up(length: int, step: int, most: int) -> int:
    """Return the next multiple of a step, at most `most`.

    >>> _round_up(0, 8, 20), _round_up(8, 8, 20), _round_up(9, 8, 20), _round_up(17, 8, 20)
    (8, 8, 16, 20)
    """
    return min(max(1, -(-length // step)) * step, most)


def _pad_batch(ids: Tensor, length: int) -> Tensor:
    """Return a batch of `TEXTS_PER_BATCH` rows of at least `length` words, padded with 0."""
    return pad(ids, (0, max(0, length - ids.shape[1]), 0, TEXTS_PER_BATCH - ids.shape[0]))


@contextmanager
def _use_eval_mode(net: Net) -> Iterator[None]:
    """Turn off dropout of a net within the context."""
    training = [module for module in net.modules() if module.training]
    net.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def _hook_lookups(
    tables: Sequence[nn.Module], change: Callable[[int, Tensor, Tensor], Tensor | None] | None
) -> Iterator[None]:
    """Call `change` at each lookup within the context, with the lookup's number, the rows, and their vectors."""
    numbers = count()

    def hook(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor | None:
        return change(next(numbers), inputs[0], output) if change else None

    handles = [table.register_forward_hook(hook) for table in tables]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()

"""Gradients with respect to the words of a text: what an attacker who holds a net learns of how to climb past others.

    L(d)  = Σ_{d'} max(0, margin - s(q, d) + s(q, d'))        d' are the texts that d competes with
    G[w]  = ∂L / ∂E[w]                                        w is a token of d, E the table of the tokens' vectors
    I(w)  = ‖G[w]‖

For a text that is to stand below the others, the signs of s change. Gradients are taken where the text's tokens are
looked up, and are added up over the places of a token in the text: what the query and other texts have of the same
token does not count. That it counts is the other choice (`shared`), for E is one table; the code that came with PRADA
does so. (Only reading counts, not an output layer that is tied to E.) Either way dropout is off, and no weight is
touched.

What is said of a contest does not depend on the contests beside it: a text's own score and gradients come from a batch
whose shape depends on that text alone, in float64 unless the net stands on a transformer.

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

from shaketable.errors import BadInput
from shaketable.rankers.nets.net import Net, Reading
from shaketable.rankers.nets.scoring import TOKENS, batches
from shaketable.rankers.nets.words import OnWords
from shaketable.text.tokens import Memo
from shaketable.text.words import spans

Numbers = NDArray[np.float64]

SLACK = 1e-9
"""A text that is ahead by the margin, but for so much of a score, is ahead: batches show in the last digits."""
TOGETHER = 8
"""Texts that are read together where all of them need gradients."""
REMEMBERED = 1_000_000
"""Scores of texts that are remembered."""


@dataclass(frozen=True)
class Contest:
    """A text, and those that it competes with for a query: to stand above them, or, with `down`, below."""

    query: str
    text: str
    others: tuple[str, ...]
    down: bool = False

    @property
    def sign(self) -> int:
        """Which way the text's score should go."""
        return -1 if self.down else 1


class Study(NamedTuple):
    """What gradients say of the words of a text, in the order of the text."""

    importance: dict[str, float]
    """I of each word; 0 for one that is not read or has no vector of its own."""
    perturbed: dict[str, Numbers]
    """E' of each word that is read and has a vector: the mean over its tokens, at the first place that has any."""


class Flip(NamedTuple):
    """A word that may take the place of another, and by how much the loss would change, to the first order."""

    word: str
    change: float


@dataclass(frozen=True, eq=False)
class _Read:
    """A text as a net reads it: the distinct rows of its tokens, and for each token the number of its row, or -1."""

    contest: Contest
    reading: Reading
    types: NDArray[np.int64]
    slots: NDArray[np.int64]

    @cached_property
    def places(self) -> Tensor:
        return torch.from_numpy(self.slots)

    @property
    def read(self) -> slice:
        """Where the tokens are among the vectors that are looked up."""
        return slice(self.reading.start, self.reading.start + len(self.slots))

    def named(self) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """The words of the text in lower case, each with the numbers of its tokens' rows."""
        text = self.contest.text
        for word in self.reading.words:
            slots = self.slots[list(word.tokens)] if word.tokens else self.slots[:0]
            yield text[word.start : word.end].lower(), slots[slots >= 0]


class _Whole(NamedTuple):
    """Words of one token each, and their rows."""

    words: list[str]
    rows: NDArray[np.int64]


class _Slope(NamedTuple):
    """G of the distinct tokens of a text, [k, d], and the norm of all of G."""

    rows: Tensor
    norm: float


class Gradients:
    """What the gradients of a net say of the words of texts. A word is told by its letters, in lower case.

    A word of several tokens matters as much as the one of them that matters most, and has the mean of their vectors.
    """

    def __init__(self, net: Net, margin: float = 1.0, shared: bool = False):
        if net.word_gradients:
            raise BadInput(f"there are no gradients with respect to words: {net.word_gradients}")
        self.net = net
        self.margin = margin
        self.shared = shared
        self._exact = net.family != "transformer"
        self._weights = _doubled(net) if self._exact else {}
        self._scores: dict[tuple[str, str], float] = {}
        self._rows = Memo(self._find_rows)
        self._vectors = Memo(self._find_vector)

    def study(self, contests: Sequence[Contest], steps: int = 3, epsilon: float = 45.0) -> list[Study]:
        """What matters in each text, and where the loss would have its words go, in `steps` steps:

            E[w] <- E[w] - α · (G / ‖G‖)[w],   α = epsilon / max(1, ⌊steps / 2⌋)

        for all tokens w of the text, each time with G at the E that was reached. Nothing keeps E' near E. Where the
        text is ahead of all others by the margin, G is 0: nothing matters, and E stays as it is.
        """
        texts = [self._read(contest) for contest in contests]
        moved = {i: self._still(text) for i, text in enumerate(texts)}
        slopes = self._slopes(texts, moved)
        importance = [slopes[i].rows.norm(dim=1).tolist() for i in moved]
        size = epsilon / max(1, steps // 2)
        for step in range(steps):
            going = [i for i, slope in slopes.items() if slope.norm > 0]
            moved |= {i: moved[i] - size * slopes[i].rows / slopes[i].norm for i in going}
            if step + 1 < steps:
                slopes = self._slopes(texts, {i: moved[i] for i in going})
        return [self._told(text, importance[i], moved[i]) for i, text in enumerate(texts)]

    def importance(self, contests: Sequence[Contest]) -> list[dict[str, float]]:
        """I of the words of each text."""
        return [study.importance for study in self.study(contests, steps=0)]

    def perturbed(self, contests: Sequence[Contest], steps: int = 3, epsilon: float = 45.0) -> list[dict[str, Numbers]]:
        """E' of the words of each text."""
        return [study.perturbed for study in self.study(contests, steps, epsilon)]

    def vectors(self, words: Sequence[str]) -> Numbers:
        """E of each word, the mean over its tokens as they are after a space: [n, d]; NaN for a word without any."""
        if not words:
            return np.empty((0, self._table.shape[1]))
        return np.stack([self._vectors[word] for word in words])

    def one_token(self, word: str) -> bool:
        """Is a word read as one token that has a vector? Only such words can be flipped."""
        return len(self._rows[word]) == 1

    def flips(
        self, contests: Sequence[Contest], marked: Sequence[Sequence[int]], k: int = 10, among: Sequence[str] = ()
    ) -> list[dict[int, list[Flip]]]:
        """For each marked word of each text up to k words that would lower the loss in its place, best first:

            ΔL = ∂L/∂e_i · (E[c] - e_i)        e_i is the vector at the place of the word, and only there

        A word is marked by its number among `text.words.spans`. The words c are those of `among`, or all that the
        net's vocabulary can spell; they and the marked word must be one token each, so a marked word of more than one
        token, or none, has no flips.
        """
        words = self._whole(among) if among else self._vocabulary
        texts = [self._read(contest) for contest in contests]
        slopes = self._at_places(texts, {i: self._still(text) for i, text in enumerate(texts)})
        found = {i: self._flips(texts[i], slope, marked[i], k, words) for i, slope in slopes}
        return [found[i] for i in range(len(texts))]

    def _told(self, text: _Read, norms: Sequence[float], moved: Tensor) -> Study:
        table = _numbers(self._table[torch.from_numpy(text.types)] + moved)
        study = Study({}, {})
        for word, slots in text.named():
            study.importance[word] = max([study.importance.get(word, 0.0), *(norms[slot] for slot in slots)])
            if word not in study.perturbed and len(slots):
                study.perturbed[word] = table[slots].mean(axis=0)
        return study

    def _flips(
        self, read: _Read, slopes: Tensor, places: Sequence[int], k: int, words: _Whole
    ) -> dict[int, list[Flip]]:
        table = self._table
        found: dict[int, list[Flip]] = {}
        for place in places:
            tokens = read.reading.words[place].tokens
            found[place] = []
            if len(tokens) == 1 and (old := int(read.reading.rows[tokens[0]])) >= 0:
                changes = ((table[torch.from_numpy(words.rows)] - table[old]) @ slopes[tokens[0]]).tolist()
                falls = [i for i, change in enumerate(changes) if change < 0 and words.rows[i] != old]
                falls.sort(key=changes.__getitem__)
                found[place] = [Flip(words.words[i], changes[i]) for i in falls[:k]]
        return found

    def _read(self, contest: Contest) -> _Read:
        reading = self.net.reading(contest.text, contest.query)
        types = np.unique(reading.rows[reading.rows >= 0])
        return _Read(contest, reading, types, np.where(reading.rows >= 0, np.searchsorted(types, reading.rows), -1))

    def _slopes(self, texts: Sequence[_Read], moved: Mapping[int, Tensor]) -> dict[int, _Slope]:
        """G of some of the texts, where the vectors of their tokens have `moved` from those of the table."""
        if self.shared:
            return {i: self._slope_of_table(texts[i], by) for i, by in moved.items()}
        found: dict[int, _Slope] = {}
        for i, places in self._at_places(texts, moved):
            slots = texts[i].places.to(places.device)
            rows = torch.zeros_like(moved[i]).index_add(0, slots[slots >= 0], places[slots >= 0])
            found[i] = _Slope(rows, float(rows.norm()))
        return {i: found[i] for i in moved}

    def _at_places(self, texts: Sequence[_Read], moved: Mapping[int, Tensor]) -> Iterator[tuple[int, Tensor]]:
        """∂L/∂e_i for each token of a text: [t, d], of no meaning for those without a vector of their own.

        Other texts do not depend on e_i, so all of it is in s(q, d).
        """
        yield from ((i, by.new_zeros(len(texts[i].slots), by.shape[1])) for i, by in moved.items() if not len(by))
        some = [i for i, by in moved.items() if len(by)]
        for part, batch in self._in_shape([texts[i].contest for i in some]):
            rows = [some[at] for at in part]
            looked_up: list[Tensor] = []

            def change(
                number: int, ids: Tensor, vectors: Tensor, rows: Sequence[int] = rows, seen: list[Tensor] = looked_up
            ) -> Tensor | None:
                if number != texts[rows[0]].reading.lookup:
                    return None
                changed = vectors.detach().clone()
                for row, i in enumerate(rows):
                    slots = texts[i].places.to(vectors.device)
                    changed[row, texts[i].read] += moved[i][slots.clamp(min=0)] * (slots >= 0)[:, None]
                seen.append(changed.requires_grad_())
                return changed

            scores = self._call(batch, change)
            (slopes,) = torch.autograd.grad(scores.sum(), looked_up)
            for i, own, slope in zip(rows, scores.tolist(), slopes, strict=False):
                contest = texts[i].contest
                rivals = int(self._rivals(contest, own, self._scored(contest.query, contest.others)).sum())
                own_places = slope[texts[i].read]
                yield i, -contest.sign * rivals * own_places if rivals else torch.zeros_like(own_places)

    def _in_shape(self, contests: Sequence[Contest]) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
        """Batches of the texts of contests, each of which is filled up to `TOGETHER` texts of a round length.

        The numbers of a text depend on the shape of its batch and on nothing else in it. A transformer's batches have
        one text each, and are not filled up: there they would save no time.
        """
        prepared = self.net.prepare([(contest.query, contest.text) for contest in contests])
        if not isinstance(self.net, OnWords):
            yield from (([at], self.net.collate([pair])) for at, pair in enumerate(prepared))
            return
        shape, alike = self.net.shape, defaultdict(list)
        for at, pair in enumerate(prepared):
            asked, said = _round(len(pair.query), 8, shape.query_length), _round(len(pair.text), 32, shape.text_length)
            alike[asked, said].append(at)
        for (asked, said), places in alike.items():
            for start in range(0, len(places), TOGETHER):
                part = places[start : start + TOGETHER]
                batch = self.net.collate([prepared[at] for at in part])
                yield part, {"query": _filled(batch["query"], asked), "text": _filled(batch["text"], said)}

    def _slope_of_table(self, read: _Read, moved: Tensor) -> _Slope:
        """All that looks up a token counts, in the query and in each text that has a part in the loss."""
        contest = read.contest
        mine = torch.from_numpy(read.types).to(moved.device)
        rows: list[Tensor] = []
        slopes: list[Tensor] = []
        looked_up: list[tuple[Tensor, Tensor]] = []
        padding = self.net.embedding().padding_idx
        padding = -1 if padding is None else padding  # as in torch, it has no gradient

        def change(number: int, ids: Tensor, vectors: Tensor) -> Tensor:
            changed = vectors.detach().clone()
            if len(mine):
                slots = torch.searchsorted(mine, ids).clamp(max=len(mine) - 1)
                changed += moved[slots] * (mine[slots] == ids)[..., None]
            looked_up.append((ids, changed.requires_grad_()))
            return changed

        def scored(texts: Sequence[str]) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
            looked_up.clear()
            return self._forward([(contest.query, text) for text in texts], change), list(looked_up)

        def add(loss: Tensor, lookups: Sequence[tuple[Tensor, Tensor]]) -> None:
            found = torch.autograd.grad(loss, [vectors for _, vectors in lookups])
            for (ids, _), slope in zip(lookups, found, strict=True):
                counted = ids != padding
                rows.append(ids[counted])
                slopes.append(slope[counted])

        own, lookups = scored([contest.text])
        rivals = 0
        for start in range(0, len(contest.others), TOGETHER):
            scores, those = scored(contest.others[start : start + TOGETHER])
            above = self._rivals(contest, own.item(), scores.detach().double().cpu().numpy())
            if above.any():
                add(contest.sign * scores[torch.from_numpy(above)].sum(), those)
            rivals += int(above.sum())
        still = torch.zeros_like(moved)
        if not rivals:
            return _Slope(still, 0.0)
        add(-contest.sign * rivals * own.sum(), lookups)
        ids, places = np.unique(torch.cat(rows).cpu().numpy(), return_inverse=True)
        table = moved.new_zeros(len(ids), moved.shape[1])
        table.index_add_(0, torch.from_numpy(places).to(moved.device), torch.cat(slopes))
        _, of_table, of_text = np.intersect1d(ids, read.types, return_indices=True)
        still[torch.from_numpy(of_text)] = table[torch.from_numpy(of_table)]
        return _Slope(still, float(table.norm()))

    def _rivals(self, contest: Contest, own: float, others: Numbers) -> NDArray[np.bool_]:
        """The others that a text is not past by the margin: each of them has a part in the loss."""
        left: NDArray[np.bool_] = self.margin - contest.sign * (own - others) > SLACK * (1 + abs(own))
        return left

    def _scored(self, query: str, texts: Sequence[str]) -> Numbers:
        """The scores of texts, each asked for once. A transformer reads them one by one: batches would show."""
        if len(self._scores) > REMEMBERED:
            self._scores.clear()
        fresh = [text for text in dict.fromkeys(texts) if (query, text) not in self._scores]
        pairs = [(query, text) for text in fresh]
        lengths = [row.length for row in self.net.prepare(pairs)] if pairs else []
        with torch.no_grad():
            for part in batches(lengths, TOKENS["cpu"] if self._exact else 1):
                scores = self._forward([pairs[i] for i in part], None).double().tolist()
                self._scores.update(zip([pairs[i] for i in part], scores, strict=True))
        return np.array([self._scores[query, text] for text in texts])

    def _forward(
        self, pairs: Sequence[tuple[str, str]], change: Callable[[int, Tensor, Tensor], Tensor | None] | None
    ) -> Tensor:
        """The scores of pairs; `change` may put other vectors in the place of those that are looked up."""
        return self._call(self.net.collate(self.net.prepare(pairs)), change)

    def _call(
        self, batch: Mapping[str, Tensor], change: Callable[[int, Tensor, Tensor], Tensor | None] | None
    ) -> Tensor:
        batch = {name: tensor.to(self._table.device) for name, tensor in batch.items()}
        with _at_rest(self.net), _listening(self._layers if change else [], change):
            scores: Tensor = functional_call(self.net, self._weights, (), batch)
        return scores

    @cached_property
    def _table(self) -> Tensor:
        """E: [rows, d]."""
        weight = self.net.embedding().weight
        names = [name for name, parameter in self.net.named_parameters() if parameter is weight]
        return self._weights.get(names[0], weight.detach())

    @cached_property
    def _layers(self) -> list[nn.Module]:
        """The layers that look vectors up in E: T5's encoder and decoder have one each."""
        weight = self.net.embedding().weight
        return [layer for layer in self.net.modules() if isinstance(layer, nn.Embedding) and layer.weight is weight]

    def _still(self, read: _Read) -> Tensor:
        """Vectors that have not moved."""
        return self._table.new_zeros(len(read.types), self._table.shape[1])

    def _find_rows(self, word: str) -> NDArray[np.int64]:
        """The rows of a word's tokens, behind another word: many tokenizers mark where a word begins."""
        reading = self.net.reading(f"a {word}")
        rows = reading.rows[[token for found in reading.words[1:] for token in found.tokens]]
        return rows[rows >= 0]

    def _find_vector(self, word: str) -> Numbers:
        rows = _numbers(self._table[torch.from_numpy(self._rows[word])])
        return rows.mean(axis=0) if len(rows) else np.full(self._table.shape[1], np.nan)

    @cached_property
    def _vocabulary(self) -> _Whole:
        return self._whole(self.net.spellings())

    def _whole(self, words: Sequence[str]) -> _Whole:
        """What is no word, or is read as more than one token, is left out."""
        rows = {word: self._rows[word] for word in dict.fromkeys(words) if spans(word) == [(0, len(word))]}
        whole = {word: row[0] for word, row in rows.items() if len(row) == 1}
        return _Whole(list(whole), np.fromiter(whole.values(), np.int64))


def _doubled(net: Net) -> dict[str, Tensor]:
    """The weights of a net, as they are now, in float64."""
    return {
        name: weight.detach().double()
        for name, weight in (*net.named_parameters(), *net.named_buffers())
        if weight.is_floating_point()
    }


def _numbers(rows: Tensor) -> Numbers:
    numbers: Numbers = rows.double().cpu().numpy()
    return numbers


def _round(length: int, step: int, most: int) -> int:
    """The next multiple of a step, if that is not too much.

    >>> _round(0, 8, 20), _round(8, 8, 20), _round(9, 8, 20), _round(17, 8, 20)
    (8, 8, 16, 20)
    """
    return min(max(1, -(-length // step)) * step, most)


def _filled(ids: Tensor, length: int) -> Tensor:
    """A batch of `TOGETHER` rows of so many words or more, 0 where there is none."""
    return pad(ids, (0, max(0, length - ids.shape[1]), 0, TOGETHER - ids.shape[0]))


@contextmanager
def _at_rest(net: Net) -> Iterator[None]:
    """A net without dropout, for a while."""
    training = [module for module in net.modules() if module.training]
    net.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def _listening(
    tables: Sequence[nn.Module], change: Callable[[int, Tensor, Tensor], Tensor | None] | None
) -> Iterator[None]:
    """While this lasts, `change` is asked at each lookup: its number, the rows, and their vectors."""
    numbers = count()

    def hook(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor | None:
        return change(next(numbers), inputs[0], output) if change else None

    handles = [table.register_forward_hook(hook) for table in tables]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()

"""Smoothed rankers: the mean score of a text whose words are replaced or masked at random, with a certificate.

    f̄(q, d) = mean over n draws r of σ(f(q, r) / scale)

σ is the logistic function, so scores lie between 0 and 1. Draws are tied to the text and to nothing else: a score is a
function of query and text, whatever stands beside it, and a text is drawn alike for all queries, so that an encoder
reads each draw once. Of the text, only what an attack cannot change is looked at where that is possible: which sets its
words are drawn from, how many words there are. So a substitution within a set that is a whole component changes no
digit of a score, and words are masked in the same places whatever they are.

`SmoothedRanker.shift` bounds what a change of a text can do to the expectation, `drawn_shift` what it can do to the
mean of these very draws; whether that certifies a list is for `measure.certificate` to say.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from shaketable.chance import rng_for
from shaketable.errors import BadInput, check, check_within
from shaketable.measure.certificate import drawn_mask_shift, mask_shift, shift
from shaketable.rankers import folder as folders
from shaketable.registry import RANKERS
from shaketable.score.road import ask
from shaketable.text.perturbation import MOST, TAU, TOKEN, Sets, sets_for
from shaketable.types import Collection, Doc, Model, Ranker, Scores, Slate, fingerprint

KIND = "smoothed"
BASE = "base"
"""The folder, among a saved model's files, of the ranker that is smoothed."""
FORMAT = 1  # raise it when the same settings come to other draws
WINDOW = 8192  # draws that are scored at a time
BOUNDS: Mapping[str, tuple[float, float]] = {"samples": (1, 100_000), "scale": (1e-6, 1e6)}


class Noise(Protocol):
    """What is drawn for a text, and how far a change of the text can move what is drawn."""

    @property
    def fingerprint(self) -> str: ...
    def draws(self, doc: Doc, count: int) -> list[Doc]: ...
    def shift(self, doc: Doc, changed: int | None) -> float: ...
    def drawn_shift(self, doc: Doc, changed: int | None, count: int) -> float: ...


@dataclass(frozen=True)
class Smoothed:
    """CertDR: the mean score of a text each of whose words is replaced by a random one of its perturbation set.

    base        the ranker, by its text or its folder; it must score a text by itself, whatever stands beside it
    samples     draws of each text, n
    synonyms    the source of synonyms; the paper's is "counterfitted"
    tau, most   the least similarity of synonyms, and the most words of a set: see `text.perturbation`
    scale       divides scores before σ: those of BM25 are so high that all would be 1
    seed        another one gives other draws

    Sets are of the words of the collection that the ranker is opened on. No substitution of words by synonyms of these
    sets, up to `changed` of them, moves the expectation by more than `shift`.

    Wu, Zhang, Guo, Chen, Fan, de Rijke, Cheng. Certified robustness to word substitution ranking attack for neural
    ranking models. CIKM 2022.
    """

    base: str
    samples: int = 100
    synonyms: str = "thesaurus"
    tau: float = TAU
    most: int = MOST
    scale: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_within("smoothed", self, **BOUNDS, tau=(-1, 1), most=(2, 10_000))

    def open(self, collection: Collection) -> SmoothedRanker:
        return self.open_on(RANKERS.build(self.base), collection)

    def open_on(self, base: Model, collection: Collection) -> SmoothedRanker:
        """The ranker on a base that is at hand."""
        texts = (doc.text for _, doc in collection.docs.items())
        noise = Substitutions(sets_for(texts, self.synonyms, self.tau, self.most), self.seed)
        return _opened(self, base.open(collection), noise)


@dataclass(frozen=True)
class Masked:
    """RobustMask: the mean score of a text a share of whose words is masked at random, all such choices alike.

    base       the ranker, by its text or its folder; it must score a text by itself, whatever stands beside it
    share      of T words round(share · T) are masked
    samples    draws of each text, n
    scale      divides scores before σ: those of BM25 are so high that all would be 1
    seed       another one gives other draws

    A masked word becomes the mask token of the ranker's own tokenizer, and is left out where there is none. No
    replacement of words by any others, up to `changed` of them, moves the expectation by more than `shift`.

    Liu, Chen, Zhu, Chen, Gong, Lu, Wang. RobustMask: certified robustness against adversarial neural ranking attack via
    randomized masking. 2025. Zeng, Xu, Zheng, Huang. Certified robustness to text adversarial attacks by randomized
    [MASK]. Computational Linguistics 2023.
    """

    base: str
    share: float = 0.3
    samples: int = 100
    scale: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_within("masked", self, **BOUNDS)
        check("masked", 0 <= self.share <= 1, "share", "between 0 and 1", self.share)

    def open(self, collection: Collection) -> SmoothedRanker:
        return self.open_on(RANKERS.build(self.base), collection)

    def open_on(self, base: Model, collection: Collection) -> SmoothedRanker:
        """The ranker on a base that is at hand."""
        ranker = base.open(collection)
        tokenizer = getattr(getattr(ranker, "net", None), "tokenizer", None)
        return _opened(self, ranker, Masks(self.share, getattr(tokenizer, "mask_token", None) or "", self.seed))


def _opened(model: Smoothed | Masked, base: Ranker, noise: Noise) -> SmoothedRanker:
    if getattr(base, "pointwise", False) is not True:
        raise BadInput(
            f"ranker {base.name} does not say that it scores a text by itself (pointwise), whatever stands beside it; "
            "only such a ranker can be smoothed"
        )
    return SmoothedRanker(RANKERS.spec(model), base, noise, model.samples, model.scale)


@dataclass(frozen=True, eq=False)
class Substitutions:
    """Words that are drawn from perturbation sets."""

    sets: Sets
    seed: int = 0

    @property
    def fingerprint(self) -> str:
        return fingerprint("substitutions", self.sets.fingerprint, self.seed)

    def draws(self, doc: Doc, count: int) -> list[Doc]:
        """The document as it is drawn `count` times."""
        rng = rng_for(self.seed, "substitutions", self.sets.pattern(doc.title), self.sets.pattern(doc.body))
        return [_with(doc, *drawn) for drawn in self.sets.draws((doc.title, doc.body), rng, count)]

    def shift(self, doc: Doc, changed: int | None) -> float:
        return shift(self.sets.shares(doc.title, doc.body), changed)

    def drawn_shift(self, doc: Doc, changed: int | None, count: int) -> float:
        """0 where no synonym changes what is drawn; 1 where one does, for then all is drawn anew."""
        return 0.0 if changed == 0 or self.sets.fixed(doc.title, doc.body) else 1.0


@dataclass(frozen=True)
class Masks:
    """Words that are masked: each becomes `token`, or goes with the space before it if that is empty."""

    share: float
    token: str = ""
    seed: int = 0

    @property
    def fingerprint(self) -> str:
        return fingerprint("masks", self.share, self.token, self.seed)

    def kept(self, words: int) -> int:
        """How many of a text's words are not masked."""
        return words - round(self.share * words)

    def draws(self, doc: Doc, count: int) -> list[Doc]:
        """The document as it is drawn `count` times."""
        # space, word, space, ..., word, space
        pieces = [re.split(f"({TOKEN.pattern})", text) for text in (doc.title, doc.body)]
        hidden = self._hidden(sum(len(some) // 2 for some in pieces), count)
        return [_with(doc, *self._masked(pieces, set(places))) for places in hidden.tolist()]

    def _hidden(self, words: int, count: int) -> NDArray[np.int64]:
        """The places of the words that are masked: [count, masked]."""
        order = np.argsort(rng_for(self.seed, "masks", words).random((count, words)), axis=1)
        return order[:, : words - self.kept(words)]

    def _masked(self, pieces: list[list[str]], hidden: set[int]) -> list[str]:
        texts, first = [], 0
        for some in pieces:
            left = []
            for number, (space, word) in enumerate(zip(some[::2], some[1::2], strict=False), first):
                if number not in hidden:
                    left += [space, word]
                elif self.token:
                    left += [space, self.token]
            first += len(some) // 2
            texts.append("".join(left) + some[-1])
        return texts

    def shift(self, doc: Doc, changed: int | None) -> float:
        words = _words(doc)
        return mask_shift(words, self.kept(words), changed)

    def drawn_shift(self, doc: Doc, changed: int | None, count: int) -> float:
        """By how much the masks that are drawn let through what is changed."""
        words = _words(doc)
        kept = np.ones((count, words), dtype=bool)
        np.put_along_axis(kept, self._hidden(words, count), False, axis=1)
        return drawn_mask_shift(kept, changed)


def _words(doc: Doc) -> int:
    return len(TOKEN.findall(doc.title)) + len(TOKEN.findall(doc.body))


def _with(doc: Doc, title: str, body: str) -> Doc:
    return Doc(body, title, doc.url)


@dataclass(frozen=True, eq=False)
class SmoothedRanker:
    """A ranker that asks another one about draws of each text."""

    name: str
    base: Ranker = field(repr=False)
    source: Noise = field(repr=False)
    samples: int
    scale: float = 1.0
    pointwise: ClassVar[bool] = True

    @property
    def fingerprint(self) -> str | None:
        """Names all that scores depend on; nothing if the base does not tell."""
        mark = getattr(self.base, "fingerprint", None)
        return mark and fingerprint(FORMAT, mark, self.source.fingerprint, self.samples, self.scale)

    @property
    def chunk(self) -> int:
        """Pairs to be asked for at once: each is many of the base's."""
        return max(1, WINDOW // self.samples)

    @property
    def noise(self) -> float:
        """σ changes by less than its argument does."""
        return float(getattr(self.base, "noise", 0.0)) * max(1.0, 1 / self.scale)

    @property
    def volatile(self) -> bool:
        return getattr(self.base, "volatile", False) is True

    @property
    def in_flight(self) -> int:
        return int(getattr(self.base, "in_flight", 1))

    @property
    def family(self) -> str:
        return str(getattr(self.base, "family", ""))

    @property
    def remark(self) -> str:
        return str(getattr(self.base, "remark", ""))

    @property
    def counted(self) -> Counter[str]:
        counts: Counter[str] | None = getattr(self.base, "counted", None)
        return Counter() if counts is None else counts

    @property
    def notice(self) -> str:
        return str(getattr(self.base, "notice", ""))

    @property
    def net(self) -> Any:
        """The net that is smoothed, if there is one: who holds the ranker has its gradients, though not those of σ."""
        return getattr(self.base, "net", None)

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        """One array a slate; a draw that comes more than once is asked for once."""
        pairs = [(slate.query, doc) for slate in slates for doc in slate.docs]
        means: list[float] = []
        for start in range(0, len(pairs), self.chunk):
            some = pairs[start : start + self.chunk]
            drawn = [Counter(self.source.draws(doc, self.samples)) for _, doc in some]
            asked = [Slate(query, tuple(draws)) for (query, _), draws in zip(some, drawn, strict=True)]
            for scores, draws in zip(ask(self.base, self.base.name, asked), drawn, strict=True):
                counts = np.array(list(draws.values()), np.float64)
                means.append(float(counts @ logistic(np.asarray(scores, np.float64) / self.scale)) / self.samples)
        ends = np.cumsum([len(slate.docs) for slate in slates])
        return list(np.split(np.array(means, np.float64), ends[:-1])) if slates else []

    def shift(self, doc: Doc, changed: int | None = None) -> float:
        """The most by which the expectation moves if `changed` words of a document change; None: all of them."""
        return self.source.shift(doc, changed)

    def drawn_shift(self, doc: Doc, changed: int | None = None) -> float:
        """The most by which the score itself moves if `changed` words of a document change; None: all of them."""
        return self.source.drawn_shift(doc, changed, self.samples)


def logistic(values: Any) -> Any:
    """1 / (1 + exp(-x)), without an overflow on either side.

    >>> logistic(np.array([0.0, -800.0, 800.0])).tolist()
    [0.5, 0.0, 1.0]
    """
    small = np.exp(-np.abs(values))
    return np.where(values >= 0, 1.0, small) / (1 + small)


def save(
    model: Smoothed | Masked, folder: str | Path, card: Mapping[str, Any] | None = None, *, overwrite: bool = False
) -> None:
    """Write a smoothed ranker into a folder of its own, with a copy of the base where that is a folder itself."""
    base = RANKERS.build(model.base)
    inside = isinstance(base, RANKERS.class_of("saved"))
    about = {
        "kind": KIND,
        "ranker": RANKERS.spec(replace(model, base=f"./{BASE}") if inside else model),
        "card": dict(card or {}),
    }
    folders.write(
        folder, about, (lambda new: _copy(Path(base.path), new / BASE)) if inside else None, overwrite=overwrite
    )


def _copy(folder: Path, new: Path) -> None:
    """Copy a model, whole as it was written, and nothing that lies beside it."""
    stored = folders.opened(folder)
    new.mkdir()
    shutil.copyfile(folder / folders.MODEL, new / folders.MODEL)
    if stored.place:
        shutil.copytree(stored.files, new / stored.place)


def open_folder(folder: str | Path, collection: Collection) -> Ranker:
    """The smoothed ranker in a folder."""
    stored = folders.opened(folder)
    model = RANKERS.build(str(stored.about.get("ranker", "")))
    if not isinstance(model, Smoothed | Masked):
        raise BadInput("does not say how its ranker is smoothed; save the model again", folder)
    inside = f"{BASE}/{folders.MODEL}" in stored.listed
    base = RANKERS.class_of("saved")(str(stored.files / BASE)) if inside else RANKERS.build(model.base)
    return replace(model.open_on(base, collection), name=str(folder))

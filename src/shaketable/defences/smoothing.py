"""Smoothed rankers: the mean score of randomly changed copies of a text, with a certificate.

    f̄(q, d) = mean over n draws r of σ(f(q, r) / scale)

σ is the logistic function, so scores lie between 0 and 1. The random numbers depend on the text alone. So a score is a
function of query and text, and a text has the same draws for all queries; an encoder reads each draw once. If possible,
they depend only on properties that an attack cannot change: the perturbation sets of the words, and the number of
words. So a substitution within a set that is a whole component does not change the score at all, and the masked
positions do not depend on the words.

`SmoothedRanker.bound_mean_shift` bounds the effect of a changed text on the expectation, `bound_sampled_shift` the
effect on the mean of the given draws; `measures.certificates` decides whether that certifies a list.
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

from shaketable.core.documents import Collection, Doc, Scores, Slate, fingerprint
from shaketable.core.errors import BadInput, check_parameter, check_ranges
from shaketable.core.protocols import Model, Ranker
from shaketable.core.registries import RANKERS
from shaketable.core.seeding import make_numpy_rng
from shaketable.defences.perturbation_sets import (
    DEFAULT_TAU,
    MAX_SET_WORDS,
    TOKEN_PATTERN,
    PerturbationSets,
    build_perturbation_sets,
)
from shaketable.measures.certificates import mask_shift, sampled_mask_shift, substitution_shift
from shaketable.rankers import persistence as folders
from shaketable.scoring.validation import call_ranker

KIND = "smoothed"
BASE_FOLDER = "base"
"""The folder of the base ranker among the files of a saved model."""
SAMPLING_VERSION = 1  # raise it when the same settings give other draws
MAX_DRAWS_PER_BATCH = 8192
SETTING_LIMITS: Mapping[str, tuple[float, float]] = {"samples": (1, 100_000), "scale": (1e-6, 1e6)}


class NoiseModel(Protocol):
    """A distribution of changed copies of a text, and bounds on its shift when the text changes."""

    @property
    def fingerprint(self) -> str: ...
    def sample_docs(self, doc: Doc, count: int) -> list[Doc]: ...
    def bound_mean_shift(self, doc: Doc, changed: int | None) -> float: ...
    def bound_sampled_shift(self, doc: Doc, changed: int | None, count: int) -> float: ...


@dataclass(frozen=True)
class SubstitutionSmoothed:
    """CertDR: the mean score of a text each of whose words is replaced by a random word of its perturbation set.

    base        the ranker, as a spec or a folder; it must be pointwise
    samples     draws of each text, n
    synonyms    the source of synonyms; the paper's is "counterfitted"
    tau, most   the least similarity of synonyms, and the most words of a set: see `defences.perturbation_sets`
    scale       divides scores before σ; without it, σ of the high scores of BM25 would always be 1
    seed        the seed of the draws

    The sets consist of words of the collection that the ranker is opened on. No substitution of up to `changed` words
    by synonyms of these sets moves the expectation by more than `bound_mean_shift`.

    Wu, Zhang, Guo, Chen, Fan, de Rijke, Cheng. Certified robustness to word substitution ranking attack for neural
    ranking models. CIKM 2022.
    """

    base: str = field(metadata={"example": "bm25"})
    samples: int = 100
    synonyms: str = "thesaurus"
    tau: float = DEFAULT_TAU
    most: int = MAX_SET_WORDS
    scale: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_ranges("smoothed", self, **SETTING_LIMITS, tau=(-1, 1), most=(2, 10_000))

    def open(self, collection: Collection) -> SmoothedRanker:
        return self.open_on(RANKERS.build(self.base), collection)

    def open_on(self, base: Model, collection: Collection) -> SmoothedRanker:
        """Open the ranker on a given base."""
        texts = (doc.text for _, doc in collection.docs.items())
        noise = SubstitutionNoise(build_perturbation_sets(texts, self.synonyms, self.tau, self.most), self.seed)
        return _build_smoothed_ranker(self, base.open(collection), noise)


@dataclass(frozen=True)
class MaskSmoothed:
    """RobustMask: the mean score of a text with a share of its words masked, chosen uniformly at random.

    base       the ranker, as a spec or a folder; it must be pointwise
    share      of T words round(share · T) are masked
    samples    draws of each text, n
    scale      divides scores before σ; without it, σ of the high scores of BM25 would always be 1
    seed       the seed of the draws

    A masked word becomes the mask token of the ranker's own tokenizer, or is removed if there is none. No replacement
    of up to `changed` words by any others moves the expectation by more than `bound_mean_shift`.

    Liu, Chen, Zhu, Chen, Gong, Lu, Wang. RobustMask: certified robustness against adversarial neural ranking attack via
    randomized masking. 2025. Zeng, Xu, Zheng, Huang. Certified robustness to text adversarial attacks by randomized
    [MASK]. Computational Linguistics 2023.
    """

    base: str = field(metadata={"example": "bm25"})
    share: float = 0.3
    samples: int = 100
    scale: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_ranges("masked", self, **SETTING_LIMITS)
        check_parameter("masked", 0 <= self.share <= 1, "share", "between 0 and 1", self.share)

    def open(self, collection: Collection) -> SmoothedRanker:
        return self.open_on(RANKERS.build(self.base), collection)

    def open_on(self, base: Model, collection: Collection) -> SmoothedRanker:
        """Open the ranker on a given base."""
        ranker = base.open(collection)
        tokenizer = getattr(getattr(ranker, "net", None), "tokenizer", None)
        return _build_smoothed_ranker(
            self, ranker, MaskNoise(self.share, getattr(tokenizer, "mask_token", None) or "", self.seed)
        )


def _build_smoothed_ranker(
    model: SubstitutionSmoothed | MaskSmoothed, base: Ranker, noise: NoiseModel
) -> SmoothedRanker:
    if getattr(base, "pointwise", False) is not True:
        raise BadInput(
            f"ranker {base.name} is not pointwise, so its score of a text may depend on the other texts; only a "
            "pointwise ranker can be smoothed"
        )
    return SmoothedRanker(RANKERS.spec(model), base, noise, model.samples, model.scale)


@dataclass(frozen=True, eq=False)
class SubstitutionNoise:
    """Substitution noise: words are drawn from perturbation sets."""

    sets: PerturbationSets
    seed: int = 0

    @property
    def fingerprint(self) -> str:
        return fingerprint("substitutions", self.sets.fingerprint, self.seed)

    def sample_docs(self, doc: Doc, count: int) -> list[Doc]:
        """Draw `count` changed copies of the document."""
        rng = make_numpy_rng(
            self.seed, "substitutions", self.sets.compute_pattern(doc.title), self.sets.compute_pattern(doc.body)
        )
        return [_replace_texts(doc, *drawn) for drawn in self.sets.sample_texts((doc.title, doc.body), rng, count)]

    def bound_mean_shift(self, doc: Doc, changed: int | None) -> float:
        return substitution_shift(self.sets.find_overlaps(doc.title, doc.body), changed)

    def bound_sampled_shift(self, doc: Doc, changed: int | None, count: int) -> float:
        """Return 0 if no synonym changes the draws; otherwise 1, because all draws change."""
        return 0.0 if changed == 0 or self.sets.has_fixed_pattern(doc.title, doc.body) else 1.0


@dataclass(frozen=True)
class MaskNoise:
    """Masking noise: a masked word becomes `token`; if that is empty, the word and the space before it are removed."""

    share: float
    token: str = ""
    seed: int = 0

    @property
    def fingerprint(self) -> str:
        return fingerprint("masks", self.share, self.token, self.seed)

    def count_unmasked(self, words: int) -> int:
        """Return the number of words of a text that are not masked."""
        return words - round(self.share * words)

    def sample_docs(self, doc: Doc, count: int) -> list[Doc]:
        """Draw `count` changed copies of the document."""
        # space, word, space, ..., word, space
        pieces = [re.split(f"({TOKEN_PATTERN.pattern})", text) for text in (doc.title, doc.body)]
        hidden = self._draw_masked_positions(sum(len(some) // 2 for some in pieces), count)
        return [_replace_texts(doc, *self._mask_texts(pieces, set(positions))) for positions in hidden.tolist()]

    def _draw_masked_positions(self, words: int, count: int) -> NDArray[np.int64]:
        """Draw the positions of the masked words: [count, masked]."""
        order = np.argsort(make_numpy_rng(self.seed, "masks", words).random((count, words)), axis=1)
        return order[:, : words - self.count_unmasked(words)]

    def _mask_texts(self, pieces: list[list[str]], masked_positions: set[int]) -> list[str]:
        texts, first = [], 0
        for some in pieces:
            left = []
            for number, (space, word) in enumerate(zip(some[::2], some[1::2], strict=False), first):
                if number not in masked_positions:
                    left += [space, word]
                elif self.token:
                    left += [space, self.token]
            first += len(some) // 2
            texts.append("".join(left) + some[-1])
        return texts

    def bound_mean_shift(self, doc: Doc, changed: int | None) -> float:
        words = _count_words(doc)
        return mask_shift(words, self.count_unmasked(words), changed)

    def bound_sampled_shift(self, doc: Doc, changed: int | None, count: int) -> float:
        """Return the largest share of draws in which changed words are not masked."""
        words = _count_words(doc)
        kept = np.ones((count, words), dtype=bool)
        np.put_along_axis(kept, self._draw_masked_positions(words, count), False, axis=1)
        return sampled_mask_shift(kept, changed)


def _count_words(doc: Doc) -> int:
    return len(TOKEN_PATTERN.findall(doc.title)) + len(TOKEN_PATTERN.findall(doc.body))


def _replace_texts(doc: Doc, title: str, body: str) -> Doc:
    return Doc(body, title, doc.url)


@dataclass(frozen=True, eq=False)
class SmoothedRanker:
    """A ranker that averages the scores of another ranker over draws of each text."""

    name: str
    base: Ranker = field(repr=False)
    noise_model: NoiseModel = field(repr=False)
    samples: int
    scale: float = 1.0
    pointwise: ClassVar[bool] = True

    @property
    def fingerprint(self) -> str | None:
        """A name for everything that scores depend on; None if the base has none."""
        mark = getattr(self.base, "fingerprint", None)
        return mark and fingerprint(SAMPLING_VERSION, mark, self.noise_model.fingerprint, self.samples, self.scale)

    @property
    def chunk(self) -> int:
        """The pairs per request: each pair is many pairs of the base."""
        return max(1, MAX_DRAWS_PER_BATCH // self.samples)

    @property
    def noise(self) -> float:
        """The noise of the base, scaled: σ changes by less than its argument."""
        return float(getattr(self.base, "noise", 0.0)) * max(1.0, 1 / self.scale)

    @property
    def volatile(self) -> bool:
        return getattr(self.base, "volatile", False) is True

    @property
    def max_concurrency(self) -> int:
        return int(getattr(self.base, "max_concurrency", 1))

    @property
    def family(self) -> str:
        return str(getattr(self.base, "family", ""))

    @property
    def remark(self) -> str:
        return str(getattr(self.base, "remark", ""))

    @property
    def counters(self) -> Counter[str]:
        counts: Counter[str] | None = getattr(self.base, "counters", None)
        return Counter() if counts is None else counts

    @property
    def notice(self) -> str:
        return str(getattr(self.base, "notice", ""))

    @property
    def net(self) -> Any:
        """The net of the base, if there is one; its gradients are not those of the smoothed score."""
        return getattr(self.base, "net", None)

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        """Return one array per slate; equal draws of a text are scored once."""
        pairs = [(slate.query, doc) for slate in slates for doc in slate.docs]
        means: list[float] = []
        for start in range(0, len(pairs), self.chunk):
            some = pairs[start : start + self.chunk]
            drawn = [Counter(self.noise_model.sample_docs(doc, self.samples)) for _, doc in some]
            asked = [Slate(query, tuple(draws)) for (query, _), draws in zip(some, drawn, strict=True)]
            for scores, draws in zip(call_ranker(self.base, self.base.name, asked), drawn, strict=True):
                counts = np.array(list(draws.values()), np.float64)
                means.append(float(counts @ logistic(np.asarray(scores, np.float64) / self.scale)) / self.samples)
        ends = np.cumsum([len(slate.docs) for slate in slates])
        return list(np.split(np.array(means, np.float64), ends[:-1])) if slates else []

    def bound_mean_shift(self, doc: Doc, changed: int | None = None) -> float:
        """Return the largest shift of the expectation if `changed` words of a document change (None: all words)."""
        return self.noise_model.bound_mean_shift(doc, changed)

    def bound_sampled_shift(self, doc: Doc, changed: int | None = None) -> float:
        """Return the largest shift of the score itself if `changed` words of a document change (None: all words)."""
        return self.noise_model.bound_sampled_shift(doc, changed, self.samples)


def logistic(values: Any) -> Any:
    """Return 1 / (1 + exp(-x)) without overflow.

    >>> logistic(np.array([0.0, -800.0, 800.0])).tolist()
    [0.5, 0.0, 1.0]
    """
    small = np.exp(-np.abs(values))
    return np.where(values >= 0, 1.0, small) / (1 + small)


def save(
    model: SubstitutionSmoothed | MaskSmoothed,
    folder: str | Path,
    card: Mapping[str, Any] | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Save a smoothed ranker in a folder, with a copy of the base if that is a saved model."""
    base = RANKERS.build(model.base)
    inside = isinstance(base, RANKERS.get_class("saved"))
    about = {
        "kind": KIND,
        "ranker": RANKERS.spec(replace(model, base=f"./{BASE_FOLDER}") if inside else model),
        "card": dict(card or {}),
    }
    folders.write_model(
        folder,
        about,
        (lambda new: _copy_model(Path(base.path), new / BASE_FOLDER)) if inside else None,
        overwrite=overwrite,
    )


def _copy_model(folder: Path, new: Path) -> None:
    """Copy the files of a model, and no other files of its folder."""
    stored = folders.read_verified(folder)
    new.mkdir()
    shutil.copyfile(folder / folders.MODEL_FILE, new / folders.MODEL_FILE)
    if stored.files_folder_name:
        shutil.copytree(stored.files_folder, new / stored.files_folder_name)


def open_folder(folder: str | Path, collection: Collection) -> Ranker:
    """Open the smoothed ranker of a folder."""
    stored = folders.read_verified(folder)
    model = RANKERS.build(str(stored.metadata.get("ranker", "")))
    if not isinstance(model, SubstitutionSmoothed | MaskSmoothed):
        raise BadInput("has no settings of the smoothing; save the model again", folder)
    inside = f"{BASE_FOLDER}/{folders.MODEL_FILE}" in stored.file_records
    base = RANKERS.get_class("saved")(str(stored.files_folder / BASE_FOLDER)) if inside else RANKERS.build(model.base)
    return replace(model.open_on(base, collection), name=str(folder))

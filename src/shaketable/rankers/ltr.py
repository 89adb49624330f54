"""Learned rankers on features: the model, its files, and the ranker opened on a collection.

    model.json    learner, features, normalisation, the weights of a linear model, and the training card
    trees.txt     the trees of a boosted model, in LightGBM's format

Loading reads only numbers and text; no code from a model folder (`rankers.persistence`) is executed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Collection, Scores, Slate, fingerprint
from shaketable.core.errors import BadInput, MissingExtra
from shaketable.datasets.letor import Letor, minmax_scale
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers import persistence as folders
from shaketable.rankers.features import FeatureExtractor
from shaketable.rankers.lightgbm_format import CheckedTrees, parse_trees

Floats = NDArray[np.float64]

FORMAT_VERSION = 1
TREES_FILE = "trees.txt"
MODEL_KINDS = ("linear", "trees")
"""The values of "kind" in model.json."""
NORMALISATIONS = ("query", "none")
BLOCK_ROWS = 8192  # bounds the memory for one block of rows


class Predictor(Protocol):
    """A learned model: it computes a score for each feature row, independent of the other rows."""

    @property
    def dims(self) -> int: ...
    def predict(self, features: NDArray[np.floating[Any]]) -> Floats: ...


@dataclass(frozen=True)
class LinearPredictor:
    """A weighted sum of the features.

    >>> LinearPredictor((1.0, -2.0)).predict(np.array([[3.0, 1.0], [0.0, 0.5]]))
    array([ 1., -1.])
    """

    weights: tuple[float, ...]

    @property
    def dims(self) -> int:
        return len(self.weights)

    def predict(self, features: NDArray[np.floating[Any]]) -> Floats:
        weights, scores = np.array(self.weights, np.float64), np.empty(len(features))
        for start in range(0, len(features), BLOCK_ROWS):
            block = features[start : start + BLOCK_ROWS].astype(np.float64)
            # Not by BLAS: there the last digits of a row depend on the number of rows.
            np.einsum("ij,j->i", block, weights, out=scores[start : start + BLOCK_ROWS])
        return scores


@dataclass(frozen=True)
class TreePredictor:
    """Boosted trees in LightGBM's text format."""

    text: str = field(repr=False)

    @property
    def dims(self) -> int:
        return self._checked_trees.dims

    def predict(self, features: NDArray[np.floating[Any]]) -> Floats:
        if not len(features):
            return np.empty(0)
        return np.asarray(self._booster.predict(features), dtype=np.float64)

    @cached_property
    def _checked_trees(self) -> CheckedTrees:
        return parse_trees(self.text)

    @cached_property
    def _booster(self) -> Any:
        return import_lightgbm().Booster(model_str=self._checked_trees.text)


def import_lightgbm() -> Any:
    """Return the module LightGBM, or raise an error that names the missing extra."""
    try:
        import lightgbm
    except ImportError as error:
        raise MissingExtra("ltr", "boosted trees") from error
    return lightgbm


@dataclass(frozen=True)
class FittedModel:
    """A learned ranker before it is opened on a collection.

    `feature_names` are its features. A model trained on the unnamed columns of a LETOR file has none: it ranks feature
    rows but no texts. Normalisation "query" scales each feature to [0, 1] within the ranked list, as in training.
    """

    predictor: LinearPredictor | TreePredictor
    feature_names: tuple[str, ...] = ()
    normalisation: str = "query"
    learner: str = "learned"
    analyzer: Analyzer = field(default_factory=Analyzer)
    card: Mapping[str, Any] = field(default_factory=dict, compare=False, hash=False)

    def __post_init__(self) -> None:
        if self.normalisation not in NORMALISATIONS:
            raise BadInput(f"normalisation is one of {', '.join(NORMALISATIONS)}, not {self.normalisation!r}")
        if self.feature_names and len(self.feature_names) != self.predictor.dims:
            raise BadInput(
                f"the model names {len(self.feature_names)} features, but was trained on {self.predictor.dims}"
            )

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything the scores depend on, except the collection."""
        return fingerprint(
            FORMAT_VERSION, asdict(self.predictor), self.feature_names, self.normalisation, self.analyzer.fingerprint
        )

    def open(self, collection: Collection) -> FittedRanker:
        """Return a ranker of texts that uses the statistics of the collection."""
        if not self.feature_names:
            raise BadInput(
                f"{self.learner} was trained on {self.predictor.dims} unnamed features of a LETOR file, so it cannot "
                "rank texts; train it on a collection, or on a file that names its features"
            )
        return FittedRanker(
            self.learner, self, FeatureExtractor.open(collection.docs, self.analyzer, self.feature_names)
        )

    def score_letor(self, letor: Letor) -> Floats:
        """Return the scores of feature rows."""
        if letor.feature_count != self.predictor.dims:
            message = f"there are {letor.feature_count} features, {self.learner} was trained on {self.predictor.dims}"
            raise BadInput(message, letor.source or None)
        if letor.names and self.feature_names:
            for number, (theirs, ours) in enumerate(zip(letor.names, self.feature_names, strict=True), 1):
                if theirs != ours:
                    message = f"feature {number} is {theirs} where {self.learner} reads {ours}"
                    raise BadInput(message, letor.source or None)
        return self.score_lists(letor.features, letor.starts)

    def score_lists(self, features: NDArray[np.floating[Any]], starts: NDArray[np.int64]) -> Floats:
        """Return the scores of the rows; list j has the rows starts[j]:starts[j+1]."""
        return self.predictor.predict(minmax_scale(features, starts) if self.normalisation == "query" else features)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model atomically. An existing model is replaced only with `overwrite`."""
        about = {
            "learner": self.learner,
            "dims": self.predictor.dims,
            "features": self.feature_names,
            "normalisation": self.normalisation,
            "tokenizer": asdict(self.analyzer),
            "card": dict(self.card),
        }
        if isinstance(self.predictor, LinearPredictor):
            folders.write_model(
                folder, {"kind": "linear", **about, "weights": self.predictor.weights}, overwrite=overwrite
            )
        else:
            text = self.predictor.text
            folders.write_model(
                folder, {"kind": "trees", **about}, lambda new: _write_trees(new, text), overwrite=overwrite
            )


def read_model(folder: str | Path) -> FittedModel:
    """Return the model that `save` wrote."""
    stored = folders.read_verified(folder)
    about, path = stored.metadata, stored.folder / folders.MODEL_FILE
    if about["kind"] not in MODEL_KINDS:
        raise BadInput(f"is a model of the kind {about['kind']}, which was not trained on features", path)
    try:
        if about["kind"] == "linear":
            predictor: LinearPredictor | TreePredictor = LinearPredictor(tuple(map(float, about["weights"])))
        else:
            import_lightgbm()  # report a missing package now, not at the first score
            predictor = TreePredictor((stored.files_folder / TREES_FILE).read_text(encoding="utf-8"))
        names, tokenizer = tuple(map(str, about["features"])), Analyzer(**about["tokenizer"])
        model = FittedModel(predictor, names, about["normalisation"], about["learner"], tokenizer, about["card"])
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise BadInput(f"is not a readable model ({type(error).__name__}: {error})", path) from error
    if not np.isfinite(about.get("weights", 0.0)).all():
        raise BadInput("has a weight that is not a number", path)
    if predictor.dims != about["dims"]:
        raise BadInput(f"declares {about['dims']} features, but the model in this folder has {predictor.dims}", path)
    return model


@dataclass(frozen=True, eq=False)
class FittedRanker:
    """A learned model on a collection. With normalisation a score depends on the whole list, so lists are never split.

    The extractor caches the features of a query and a text, which do not depend on the list.
    """

    name: str
    model: FittedModel
    extractor: FeatureExtractor
    family: ClassVar[str] = "learned from features"

    @property
    def pointwise(self) -> bool:
        return self.model.normalisation == "none"

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.model.fingerprint, self.extractor.fingerprint)

    @property
    def notice(self) -> str:
        """The report on a damaged index."""
        return "; ".join(filter(None, dict.fromkeys(self.extractor.remarks)))

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        starts = np.concatenate(([0], np.cumsum([len(slate.docs) for slate in slates], dtype=np.int64)))
        scores = self.model.score_lists(self.extract_features(slates), starts)
        return [scores[start:end] for start, end in pairwise(starts)]

    def extract_features(self, slates: Sequence[Slate]) -> Floats:
        """Return the features of each document of each slate, not normalised."""
        return self.extractor.extract_cached(slates)


def _write_trees(folder: Path, trees: str) -> None:
    (folder / TREES_FILE).write_text(trees, encoding="utf-8", newline="\n")

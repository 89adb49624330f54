"""The kind of answer that a query asks for, by a small model that learned it from queries whose kind is known.

Multinomial logistic regression on the words, pairs of neighbouring words and pieces of words of a query, and on what
the rules say of it (`data.kind_rules`). What is learned is a folder of arrays with checksums (`data.arrays`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shaketable.data import arrays
from shaketable.data.ids import Ids
from shaketable.data.kind_rules import kind_by_rules
from shaketable.errors import BadInput, Damaged, check
from shaketable.files import writing

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FORMAT = "shaketable.kinds/1"
PIECES = (3, 4)
"""Lengths of the pieces of words, in letters."""
FEWEST = 2
"""Queries that a feature must be in, to be one."""
START, END = "^", "$"
Floats = NDArray[np.float64]


def features(query: str) -> list[str]:
    """What the model sees of a query: words, pairs of neighbours and ends, pieces of words, and the rules' kind.

    >>> features("Who?")
    ['=person', 'who', '^ who', 'who $', '#^wh', '#who', '#ho$', '#^who', '#who$']
    """
    words = query.lower().replace("’", "'").replace("?", " ").split()
    found = [f"={kind_by_rules(query)}", *words, *(f"{a} {b}" for a, b in pairwise([START, *words, END]))]
    for word in words:
        padded = START + word + END
        found += (f"#{padded[i : i + n]}" for n in PIECES for i in range(len(padded) - n + 1))
    return found


@dataclass(frozen=True, eq=False)
class KindModel:
    """A classifier of queries: a weight for each feature and kind, and one for each kind alone in the last row."""

    kinds: tuple[str, ...]
    known: Ids
    weights: Floats

    def probabilities(self, queries: Sequence[str]) -> Floats:
        """How likely each kind is, a row for each query."""
        return _softmax(np.asarray(_matrix(queries, self.known) @ self.weights))

    def predict(self, queries: Sequence[str]) -> list[str]:
        """The likeliest kind of each query."""
        return [self.kinds[i] for i in self.probabilities(queries).argmax(axis=1)] if queries else []

    def save(self, folder: Path) -> None:
        """Write the model to a folder that is not there yet."""
        if folder.exists():
            raise BadInput("is there already; name a new folder for the model", folder)
        with writing(folder), arrays.kept(folder, {"format": FORMAT, "kinds": list(self.kinds)}) as writer:
            for name, array in self.known.arrays().items():
                writer.append(f"known.{name}", array)
            writer.append("weights", self.weights)


def read_model(folder: Path) -> KindModel:
    """The model in a folder; `Damaged` where a byte is not as it was written."""
    if not (folder / arrays.ABOUT).is_file():
        raise BadInput("holds no model of kinds; 'shaketable train-kinds' writes one", folder)
    about, found = arrays.read_arrays(folder)
    if about.get("format") != FORMAT:
        raise BadInput("holds something else than a model of kinds; 'shaketable train-kinds' writes one", folder)
    try:
        kinds = tuple(map(str, about["kinds"]))
        known = Ids.from_arrays({key.removeprefix("known."): a for key, a in found.items() if key != "weights"})
        model = KindModel(kinds, known, np.asarray(found["weights"]))
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(f"is not a whole model of kinds ({error})", folder) from error
    if model.weights.shape != (len(known) + 1, len(kinds)) or not np.isfinite(model.weights).all():
        raise Damaged("is not a whole model of kinds (its weights do not fit its features)", folder)
    return model


def learn(labelled: Sequence[tuple[str, str]], penalty: float = 1e-4) -> KindModel:
    """A model from queries and their kinds: the least mean log loss plus penalty/2 times the sum of squared weights.

    The weights of the kinds alone are free. The penalty was chosen by cross-validation (docs/evidence/query-kinds.md).
    """
    from scipy.optimize import minimize

    check("train-kinds", 0 < penalty < np.inf, "penalty", "above 0", penalty)
    queries, kinds = [query for query, _ in labelled], tuple(sorted({kind for _, kind in labelled}))
    if len(kinds) < 2:
        raise BadInput(f"a model of kinds needs queries of two kinds at least; there are {len(kinds)}")
    counts = Counter(feature for query in queries for feature in set(features(query)))
    known = Ids.build(sorted(feature for feature, n in counts.items() if n >= FEWEST))
    rows = _matrix(queries, known)
    truth = np.eye(len(kinds))[[kinds.index(kind) for _, kind in labelled]]
    shape = (rows.shape[1], len(kinds))

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(shape)
        likely = _softmax(np.asarray(rows @ weights))
        held = weights.copy()
        held[-1] = 0
        slope = np.asarray(rows.T @ (likely - truth)) / len(queries) + penalty * held
        value = -np.log(np.maximum((likely * truth).sum(axis=1), 1e-300)).mean() + penalty / 2 * (held**2).sum()
        return float(value), slope.ravel()

    found: Any = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 2000})
    return KindModel(kinds, known, found.x.reshape(shape))


def _matrix(queries: Sequence[str], known: Ids) -> csr_matrix[np.float64]:
    """A row for each query, of length 1 over the features that are known, and a 1 at the end."""
    from scipy.sparse import csr_matrix

    starts, places, values = [0], list[int](), list[float]()
    for query in queries:
        numbers = known.find_many(sorted(set(features(query))))
        there = numbers[numbers >= 0].tolist()
        places += [*there, len(known)]
        values += [*(len(there) ** -0.5 for _ in there), 1.0]
        starts.append(len(places))
    return csr_matrix((values, places, starts), shape=(len(queries), len(known) + 1))


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))

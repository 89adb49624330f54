"""Counter-fitting: word vectors in which synonyms are near each other and antonyms are not.

    k1 Σ_antonyms max(0, δ - d(u, w)) + k2 Σ_synonyms max(0, d(u, w) - γ) + k3 Σ_neighbours max(0, d(u, w) - d0(u, w))

is made small, where d is the cosine distance 1 - cos, d0 the distance before, and neighbours are words with d0 <= ρ.
The three terms repel antonyms, attract synonyms and preserve the rest of the space. A step moves each word against the
mean of the gradients of those of its terms that are not zero, and gives it length 1 again.

Mrkšić, Ó Séaghdha, Thomson, Gašić, Rojas-Barahona, Su, Vandyke, Wen, Young. Counter-fitting word vectors to linguistic
constraints. NAACL 2016. The mean, 20 steps, and that antonyms are neither synonyms nor neighbours are the authors' code
(github.com/nmrksic/counter-fitting). That code also pulls neighbours together whose distance is as it was, so that
words move of which no list says anything; here a term that is zero moves nothing, as in the paper.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shaketable.errors import BadInput, Damaged, quoted
from shaketable.files import columns, digest, home, lines, read_sealed, reading, sealed, settle, staged
from shaketable.text.neighbours import TINY, Vectors
from shaketable.text.vectors import read_vectors
from shaketable.types import fingerprint

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Pair: TypeAlias = tuple[str, str]

FORMAT = 1  # raise it when the same files come to other vectors
WORDS = 60_000
"""The words of a file of vectors that are fitted: so many of the first, which are the most frequent, and those of the
pairs. Time grows with the square."""
ROUNDING = 1e-12  # a term this near to zero is zero: rounding alone moves no word
BLOCK = 1 << 16  # pairs looked at a time
ROWS = 512  # words compared with all others at a time
VECTORS, SYNONYMS, ANTONYMS = "glove*.txt*", "*synonyms.t*", "*antonyms.t*"
"""The names of the files that are looked for."""


class Term(NamedTuple):
    """One of the three sums: pairs of words, each in both orders, by the first word; and the bounds of their distances.

    With a weight above 0 a distance should not be above its bound, with one below 0 it should not be below.
    """

    pairs: Ints
    bounds: Floats
    weight: float


@dataclass(frozen=True, eq=False)
class Objective:
    """What counter-fitting makes small, as a function of the unit vectors of all words."""

    terms: tuple[Term, ...]

    def value(self, rows: Floats) -> float:
        """The sum of the three terms, every pair counted once."""
        return sum(
            abs(term.weight) * float(np.maximum(excess, 0).sum()) / 2
            for term in self.terms
            for _, _, excess in _looked_at(term, rows)
        )

    def gradient(self, rows: Floats) -> tuple[Floats, Ints]:
        """The gradient with respect to each word, and in how many pairs that are not zero the word is.

        For unit vectors the gradient of d(u, w) with respect to u is u cos(u, w) - w.
        """
        total, counts = np.zeros_like(rows), np.zeros(len(rows), np.int64)
        for term in self.terms:
            for pairs, cosines, excess in _looked_at(term, rows):
                active = excess > ROUNDING
                if not active.any():
                    continue
                left, right = pairs[active].T
                parts = term.weight * (cosines[active, None] * rows[left] - rows[right])
                starts = np.flatnonzero(np.diff(left, prepend=-1))
                total[left[starts]] += np.add.reduceat(parts, starts)
                counts[left[starts]] += np.diff(starts, append=len(left))
        return total, counts

    def step(self, rows: Floats) -> Floats:
        """The vectors after one step; a word all of whose terms are zero stays where it is, to the last bit."""
        total, counts = self.gradient(rows)
        moved = counts > 0
        rows = rows.copy()
        rows[moved] = _unit(rows[moved] - total[moved] / counts[moved, None])
        return rows


def counter_fit(
    words: Sequence[str],
    vectors: NDArray[np.floating],
    synonyms: Iterable[Pair],
    antonyms: Iterable[Pair],
    *,
    k1: float = 0.1,
    k2: float = 0.1,
    k3: float = 0.1,
    delta: float = 1.0,
    gamma: float = 0.0,
    rho: float = 0.2,
    epochs: int = 20,
) -> Floats:
    """Unit vectors of the words, fitted to pairs of synonyms and of antonyms by the paper's settings.

    >>> rows = np.array([[1.0, 0.0], [0.96, -0.28], [0.0, 1.0]])
    >>> fitted = counter_fit(["cheap", "expensive", "inexpensive"], rows, [("cheap", "inexpensive")],
    ...                      [("cheap", "expensive")])
    >>> np.round(fitted @ fitted[0], 1).tolist()
    [1.0, -0.2, 1.0]

    A pair counts once, whatever its order; pairs of words that have no vectors are passed over.
    """
    rows = _unit(np.asarray(vectors, np.float64))
    objective = objective_for(words, rows, synonyms, antonyms, k1=k1, k2=k2, k3=k3, delta=delta, gamma=gamma, rho=rho)
    for _ in range(epochs):
        rows = objective.step(rows)
    return rows


def objective_for(
    words: Sequence[str],
    rows: Floats,
    synonyms: Iterable[Pair],
    antonyms: Iterable[Pair],
    *,
    k1: float = 0.1,
    k2: float = 0.1,
    k3: float = 0.1,
    delta: float = 1.0,
    gamma: float = 0.0,
    rho: float = 0.2,
) -> Objective:
    """The objective of words with these unit vectors. A pair of antonyms counts as nothing else."""
    places = {word: i for i, word in enumerate(words)}
    opposite = _numbered(antonyms, places)
    alike = _without(_numbered(synonyms, places), opposite, len(words))
    near = _without(_near(rows, 1 - rho) if k3 else np.empty((0, 2), np.int64), opposite, len(words))
    return Objective(
        (
            Term(opposite, np.full(len(opposite), float(delta)), -k1),
            Term(alike, np.full(len(alike), float(gamma)), k2),
            Term(near, 1 - _cosines(rows, near), k3),
        )
    )


def _looked_at(term: Term, rows: Floats) -> Iterator[tuple[Ints, Floats, Floats]]:
    """Some pairs at a time, their cosines, and by how much their distances are on the wrong side of their bounds."""
    for start in range(0, len(term.pairs), BLOCK):
        pairs = term.pairs[start : start + BLOCK]
        cosines = _cosines(rows, pairs)
        yield pairs, cosines, np.sign(term.weight) * (1 - cosines - term.bounds[start : start + BLOCK])


def _cosines(rows: Floats, pairs: Ints) -> Floats:
    blocks = (pairs[start : start + BLOCK] for start in range(0, len(pairs), BLOCK))
    found = [np.einsum("ij,ij->i", rows[block[:, 0]], rows[block[:, 1]]) for block in blocks]
    return np.concatenate(found) if found else np.empty(0)


def _near(rows: Floats, least: float) -> Ints:
    """Pairs of words whose cosine is at least so much, in both orders, by the first word.

    All pairs are compared in 32 bits, and those that may be near again in 64: which they are does not depend on the
    order in which a library adds.
    """
    single = rows.astype(np.float32)
    found = []
    for start in range(0, len(rows), ROWS):
        close = single[start : start + ROWS] @ single[start:].T >= least - 1e-5
        left, right = np.nonzero(close)
        found.append(np.stack((left, right), axis=1)[left < right] + start)
    pairs = np.concatenate(found) if found else np.empty((0, 2), np.int64)
    return _both(pairs[_cosines(rows, pairs) >= least])


def _numbered(pairs: Iterable[Pair], places: dict[str, int]) -> Ints:
    """The pairs of two different words that have numbers, each once in both orders, by the first word."""
    known = {(places[a], places[b]) for a, b in pairs if a != b and a in places and b in places}
    unordered = sorted({(min(pair), max(pair)) for pair in known})
    return _both(np.array(unordered, np.int64).reshape(-1, 2))


def _both(pairs: Ints) -> Ints:
    both = np.concatenate((pairs, pairs[:, ::-1]))
    return both[np.lexsort((both[:, 1], both[:, 0]))]


def _without(pairs: Ints, others: Ints, size: int) -> Ints:
    return pairs[~np.isin(pairs @ (size, 1), others @ (size, 1))]


def _unit(rows: Floats) -> Floats:
    rows = rows / np.maximum(np.abs(rows).max(axis=1, keepdims=True), TINY)  # the square of a large number is infinite
    unit: Floats = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY)
    return unit


def read_pairs(path: Path) -> list[Pair]:
    """Pairs of words, in lower case: two words a line with white space between them; # begins a remark.

    A first line "word1 word2" is a header.
    """
    pairs: list[Pair] = []
    for number, line in lines(path):
        cells = columns(line.lower())
        if line.startswith("#") or (not pairs and cells == ["word1", "word2"]):
            continue
        if len(cells) != 2:
            raise BadInput(f"a line is a pair of words, two and no more, not {quoted(line)}", path, number)
        pairs.append((cells[0], cells[1]))
    if not pairs:
        raise BadInput("holds no pairs of words", path)
    return pairs


class Inputs(NamedTuple):
    """The files that counter-fitting needs: vectors, pairs of synonyms, pairs of antonyms."""

    vectors: Path | None
    synonyms: tuple[Path, ...]
    antonyms: tuple[Path, ...]


def inputs(vectors: str = "", synonyms: str = "", antonyms: str = "") -> Inputs:
    """The files that are named, and in place of the others those in the folder for resources, as far as there are any.

    Of several files of vectors the first by name counts, of pairs all. Several that are named are parted as in PATH.
    """
    return Inputs(
        Path(vectors) if vectors else next(iter(_there(VECTORS)), None),
        tuple(map(Path, filter(None, synonyms.split(os.pathsep)))) or _there(SYNONYMS),
        tuple(map(Path, filter(None, antonyms.split(os.pathsep)))) or _there(ANTONYMS),
    )


def _there(names: str) -> tuple[Path, ...]:
    return tuple(path for path in sorted((home() / "resources").glob(names)) if path.is_file())


class Fitted(NamedTuple):
    """Counter-fitted vectors, and what became of those on disk that could not be used."""

    vectors: Vectors
    remark: str = ""


def fitted(files: Inputs) -> Fitted:
    """The vectors of a file, counter-fitted to pairs: those on disk, or new ones, kept there if that is possible."""
    lacking = [name for name, found in zip(Inputs._fields, files, strict=True) if not found]
    if files.vectors is None or lacking:
        wanted = ", ".join(str(home() / "resources" / name) for name in (VECTORS, SYNONYMS, ANTONYMS))
        raise BadInput(f"counter-fitting lacks {' and '.join(lacking)}; put files at {wanted}, or name them")
    content = [[_named(path) for path in paths] for paths in ((files.vectors,), files.synonyms, files.antonyms)]
    return _fitted(files, home() / "counterfitted" / fingerprint("counterfitted", FORMAT, WORDS, content))


def _named(path: Path) -> str:
    with reading(path):
        return digest(path)


@lru_cache(maxsize=2)
def _fitted(files: Inputs, folder: Path) -> Fitted:
    remark = ""
    try:
        if folder.is_dir():
            return Fitted(_read(folder))
    except BadInput as error:
        if isinstance(error, Damaged):
            shutil.rmtree(folder, ignore_errors=True)
        remark = f"the counter-fitted vectors were made again, for what was on disk is of no use ({error})"
    synonyms, antonyms = ([pair for path in paths for pair in read_pairs(path)] for paths in files[1:])
    assert files.vectors is not None
    words, rows = read_vectors(files.vectors, {word for pair in (*synonyms, *antonyms) for word in pair}, WORDS)
    known = set(words)
    if not any(a in known and b in known for a, b in synonyms):
        raise BadInput("no pair of synonyms has both words among these vectors", files.vectors)
    found = _vectors(words, counter_fit(words, rows, synonyms, antonyms).astype(np.float32))
    try:
        _keep(found, folder)
    except (OSError, BadInput) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        kept = f"counter-fitted vectors cannot be kept in {folder.parent} ({reason}): they will be made again"
        remark = remark or kept
    return Fitted(found, remark)


def _vectors(words: Sequence[str], rows: NDArray[np.float32]) -> Vectors:
    return Vectors(words, {word: i for i, word in enumerate(words)}, rows)


def _keep(vectors: Vectors, folder: Path) -> None:
    """Write a folder of words, their vectors and checksums of both, whole or not at all. Whoever came first, stays."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with staged(folder.parent, home=True) as new:
        (new / "words.txt").write_text("\n".join(vectors.words), encoding="utf-8", newline="\n")
        np.save(new / "vectors.npy", vectors.rows, allow_pickle=False)
        about = {name: digest(new / name) for name in ("words.txt", "vectors.npy")}
        (new / "about.json").write_text(sealed(about), encoding="utf-8")
        settle(new)
        try:
            os.rename(new, folder)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise


def _read(folder: Path) -> Vectors:
    """The vectors in a folder; `Damaged` if it is not as it was written."""
    for name, told in read_sealed(folder / "about.json").items():
        path = folder / name
        if not path.is_file() or _named(path) != told:
            raise Damaged("is missing, or not as it was written", path)
    words = (folder / "words.txt").read_text(encoding="utf-8").split("\n")
    return _vectors(words, np.load(folder / "vectors.npy", allow_pickle=False))

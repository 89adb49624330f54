"""Counter-fitting: by hand, against plain loops, against finite differences, on disk, and on real vectors."""

from __future__ import annotations

import json
import math
from itertools import count, pairwise
from pathlib import Path

import numpy as np
import pytest

from shaketable.errors import BadInput
from shaketable.text import counterfitting
from shaketable.text.counterfitting import Inputs, counter_fit, fitted, objective_for, read_pairs
from shaketable.text.vectors import read_vectors

WORDS = [f"w{i}" for i in range(24)]
SYNONYMS = [("w0", "w1"), ("w1", "w2"), ("w3", "w0"), ("w4", "w5"), ("w5", "w4"), ("w6", "w7"), ("w8", "w8")]
ANTONYMS = [("w0", "w4"), ("w9", "w10"), ("w7", "w6"), ("w2", "w11"), ("w1", "nowhere")]


def crowded(seed: int = 0) -> np.ndarray:
    """Vectors in few directions, so that many are near each other."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(4, 5))[rng.integers(4, size=len(WORDS))] + 0.35 * rng.normal(size=(len(WORDS), 5))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_one_step_by_hand():
    """a = (1, 0), b = (0, 1), c = (0.6, 0.8); a and b are synonyms, b and c antonyms.

    b and c are 0.2 apart, but as antonyms they are no neighbours to be kept. The gradient of d(u, w) in u is
    u cos - w; a goes towards b by 0.1 (0, 1); c away from b by 0.1 (0.8 c - b) = (0.048, -0.036); b goes by the mean of
    0.1 (1, 0) towards a and 0.1 (0.8 b - c) = (-0.06, 0) away from c, which is (0.02, 0).
    """
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    found = counter_fit(["a", "b", "c"], rows, [("a", "b")], [("c", "b")], epochs=1)
    expected = np.array([[1.0, 0.1], [0.02, 1.0], [0.648, 0.764]])
    assert found == pytest.approx(expected / np.linalg.norm(expected, axis=1, keepdims=True), abs=1e-15)


def test_the_objective_by_hand():
    """0.1 (1 - 0.2) for the antonyms that are 0.2 apart, 0.1 · 1 for the synonyms that are 1 apart."""
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    assert objective_for(["a", "b", "c"], rows, [("a", "b")], [("c", "b")]).value(rows) == pytest.approx(0.18)


def plain(rows, synonyms, antonyms, steps, rho=0.2, delta=1.0, gamma=0.0, k=(0.1, 0.1, 0.1)):
    """The same by loops over words, as the paper says it; returns vectors and the last objective."""
    places = {word: i for i, word in enumerate(WORDS)}

    def numbered(pairs):
        return {frozenset((places[a], places[b])) for a, b in pairs if a != b and {a, b} <= places.keys()}

    def distance(u, w):
        return 1 - sum(x * y for x, y in zip(u, w, strict=True))

    rows = [list(row) for row in rows]
    size = len(rows)
    opposite = numbered(antonyms)
    alike = numbered(synonyms) - opposite
    before = {
        frozenset((i, j)): distance(rows[i], rows[j])
        for i in range(size)
        for j in range(i)
        if distance(rows[i], rows[j]) <= rho and frozenset((i, j)) not in opposite
    }
    for step in count():
        value, moves = 0.0, {i: [] for i in range(size)}
        for pairs, weight, bound, away in (
            (opposite, k[0], lambda pair: delta, True),
            (alike, k[1], lambda pair: gamma, False),
            (before.keys(), k[2], before.__getitem__, False),
        ):
            for pair in sorted(pairs, key=sorted):
                i, j = sorted(pair)
                d = distance(rows[i], rows[j])
                excess = bound(pair) - d if away else d - bound(pair)
                if excess <= 1e-12:
                    continue
                value += weight * excess
                for u, w in ((i, j), (j, i)):
                    slope = [x * (1 - d) - y for x, y in zip(rows[u], rows[w], strict=True)]
                    moves[u].append([weight * (x if away else -x) for x in slope])
        if step == steps:
            break
        for u, steps_of in moves.items():
            if steps_of:
                new = [x + sum(m[c] for m in steps_of) / len(steps_of) for c, x in enumerate(rows[u])]
                length = math.sqrt(sum(x * x for x in new))
                rows[u] = [x / length for x in new]
    return np.array(rows), value


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("settings", [{}, {"rho": 0.4, "delta": 0.7, "gamma": 0.1}])
def test_loops_agree(seed, settings, monkeypatch):
    monkeypatch.setattr(counterfitting, "BLOCK", 7)
    monkeypatch.setattr(counterfitting, "ROWS", 5)
    rows = crowded(seed)
    expected, value = plain(rows, SYNONYMS, ANTONYMS, 20, **settings)
    found = counter_fit(WORDS, rows, SYNONYMS, ANTONYMS, **settings)
    assert np.abs(found - expected).max() < 1e-10
    objective = objective_for(WORDS, rows, SYNONYMS, ANTONYMS, **settings)
    assert objective.value(found) == pytest.approx(value, abs=1e-10)
    assert len(objective.terms[2].pairs) > 20, "the example must have neighbours to keep"


def test_weights_are_those_of_their_terms():
    rows = crowded(1)
    expected, _ = plain(rows, SYNONYMS, ANTONYMS, 6, k=(0.3, 0.05, 0.2))
    assert (
        np.abs(counter_fit(WORDS, rows, SYNONYMS, ANTONYMS, k1=0.3, k2=0.05, k3=0.2, epochs=6) - expected).max() < 1e-10
    )


def test_the_gradient_agrees_with_finite_differences():
    """Of the objective as a function of vectors of any length, at vectors of length 1.

    All of them have moved, for where a distance is as it was the objective has no gradient.
    """
    objective = objective_for(WORDS, crowded(), SYNONYMS, ANTONYMS, k1=0.3, k2=0.2, k3=0.7)
    rows = crowded() + 0.1 * np.random.default_rng(5).normal(size=(len(WORDS), 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found, counts = objective.gradient(rows)

    def value(rows):
        return objective.value(rows / np.linalg.norm(rows, axis=1, keepdims=True))

    for place in np.ndindex(rows.shape):
        up, down = rows.copy(), rows.copy()
        up[place] += 1e-6
        down[place] -= 1e-6
        assert (value(up) - value(down)) / 2e-6 == pytest.approx(found[place], abs=1e-6)
    assert (np.abs(found).sum(axis=1) > 0).tolist() == (counts > 0).tolist()


def test_the_objective_falls_and_words_that_no_list_moves_stay():
    rows = crowded(2)
    objective = objective_for(WORDS, rows, SYNONYMS, ANTONYMS)
    values = [objective.value(rows)]
    for _ in range(20):
        rows = objective.step(rows)
        values.append(objective.value(rows))
    assert values[-1] < 0.3 * values[0]
    assert all(after < before for before, after in pairwise(values[:6]))
    far = np.eye(len(WORDS))  # nobody is near to anybody
    fitted = counter_fit(WORDS, far, SYNONYMS, ANTONYMS)
    assert (fitted[12:] == far[12:]).all()
    assert (fitted[:6] != far[:6]).any(axis=1).all()


@pytest.mark.parametrize("seed", range(5))
def test_synonyms_come_nearer_and_antonyms_part(seed):
    """The two words that are nearest to each other are said to be antonyms, the two furthest to be synonyms."""
    rows = crowded(seed)
    cosines = rows @ rows.T
    far = np.unravel_index(cosines.argmin(), cosines.shape)
    near = np.unravel_index((cosines - 2 * np.eye(len(rows))).argmax(), cosines.shape)
    found = counter_fit(WORDS, rows, [[WORDS[i] for i in far]], [[WORDS[i] for i in near]])
    assert found[far[0]] @ found[far[1]] > cosines[far] + 0.1
    assert found[near[0]] @ found[near[1]] < cosines[near] - 0.05
    assert np.linalg.norm(found, axis=1) == pytest.approx(1)


def test_the_order_of_pairs_and_of_their_words_does_not_matter():
    rows = crowded(4)
    found = counter_fit(WORDS, rows, SYNONYMS, ANTONYMS)
    turned = counter_fit(WORDS, rows, [(b, a) for a, b in SYNONYMS[::-1]], ANTONYMS[::-1] * 2)
    assert (found == turned).all()


def test_nothing_to_fit():
    rows = crowded()
    assert counter_fit(WORDS, 3 * rows, [], []) == pytest.approx(rows, abs=1e-15)
    zeros = counter_fit(["a", "b"], np.zeros((2, 3)), [("a", "b")], [])
    assert not np.isnan(zeros).any()


# Files


@pytest.mark.parametrize("text", ["word1\tword2\nboat\tShip\nbig\tlarge\n", "# a remark\nboat ship\n\nBIG   large\n"])
def test_pairs(text, tmp_path: Path):
    (tmp_path / "p.tsv").write_text(text)
    assert read_pairs(tmp_path / "p.tsv") == [("boat", "ship"), ("big", "large")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("word1\tword2\nboat\n", r"p\.tsv:2: a line is a pair of words, two and no more, not 'boat'"),
        ("boat ship\nboat a ship\n", r"p\.tsv:2: a line is a pair of words"),
        ("boat\tmotor ship\n", r"p\.tsv:1: a line is a pair of words"),
        ("word1\tword2\n# nothing\n", r"p\.tsv: holds no pairs"),
    ],
)
def test_pairs_of_the_wrong_shape(text, message, tmp_path: Path):
    (tmp_path / "p.tsv").write_text(text)
    with pytest.raises(BadInput, match=message):
        read_pairs(tmp_path / "p.tsv")


@pytest.fixture
def files(tmp_path: Path) -> Inputs:
    rows = zip(WORDS, crowded(), strict=True)
    (tmp_path / "v.txt").write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows))
    (tmp_path / "s.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in SYNONYMS))
    (tmp_path / "a.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in ANTONYMS))
    counterfitting._fitted.cache_clear()
    return Inputs(tmp_path / "v.txt", (tmp_path / "s.tsv",), (tmp_path / "a.tsv",))


def test_vectors_are_fitted_once_and_kept_by_content(files: Inputs, home: Path):
    first = fitted(files).vectors
    expected = counter_fit(WORDS, crowded(), SYNONYMS, ANTONYMS)
    assert list(first.words) == WORDS
    assert np.abs(first.rows - expected).max() < 1e-6
    (kept,) = (home / "counterfitted").iterdir()
    counterfitting._fitted.cache_clear()
    again, remark = fitted(files)
    assert (again.rows == first.rows).all()
    assert (again.places, remark) == (first.places, "")
    files.antonyms[0].write_text("w0 w4\n")
    fitted(files)
    assert len(list((home / "counterfitted").iterdir())) == 2
    assert kept.is_dir()


@pytest.mark.parametrize("name", ["vectors.npy", "words.txt", "about.json"])
@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:-3])])
def test_damaged_vectors_are_made_again(name, damage, files: Inputs, home: Path):
    first = fitted(files).vectors
    (kept,) = (home / "counterfitted").iterdir()
    damage(kept / name)
    counterfitting._fitted.cache_clear()
    again, remark = fitted(files)
    assert "made again" in remark
    assert (again.rows == first.rows).all()
    counterfitting._fitted.cache_clear()
    assert fitted(files).remark == ""


def test_vectors_that_cannot_be_kept_are_used_all_the_same(files: Inputs, home: Path):
    home.mkdir()
    (home / "counterfitted").write_text("in the way")
    found, remark = fitted(files)
    assert list(found.words) == WORDS
    assert "cannot be kept" in remark


def test_words_of_pairs_are_fitted_wherever_they_stand(files: Inputs, monkeypatch):
    monkeypatch.setattr(counterfitting, "WORDS", 2)
    assert list(fitted(files).vectors.words) == [f"w{i}" for i in range(12)]


def test_what_is_lacking_is_named(home: Path, files: Inputs):
    with pytest.raises(
        BadInput, match="counter-fitting lacks vectors and synonyms and antonyms; put files at"
    ) as error:
        fitted(counterfitting.inputs())
    assert str(home / "resources") in str(error.value)
    (home / "resources").mkdir(parents=True)
    (home / "resources" / "glove.50d.txt").write_text("boat 1 2\n")
    (home / "resources" / "ppdb-synonyms.tsv").write_text("boat ship\n")
    with pytest.raises(BadInput, match="counter-fitting lacks antonyms"):
        fitted(counterfitting.inputs())
    with pytest.raises(BadInput, match=r"glove\.50d\.txt: no pair of synonyms has both words among these vectors"):
        fitted(counterfitting.inputs(antonyms=str(files.antonyms[0])))
    with pytest.raises(BadInput, match=r"nowhere\.tsv: there is no such file"):
        fitted(counterfitting.inputs(antonyms="nowhere.tsv"))


def test_real_vectors_and_real_pairs(shared_data: Path):
    """GloVe, PPDB and WordNet: synonyms get nearer, antonyms part, and the lists of others agree better than before."""
    synonyms = read_pairs(shared_data / "synonyms" / "ppdb-synonyms.tsv")
    names = ("ppdb-antonyms.tsv", "wordnet-antonyms.tsv")
    antonyms = [pair for name in names for pair in read_pairs(shared_data / "synonyms" / name)]
    words, rows = read_vectors(shared_data / "vectors" / "glove.6B.50d.60k.txt.gz", first=10_000)
    before = rows.astype(np.float64) / np.linalg.norm(rows, axis=1, keepdims=True)
    objective = objective_for(words, before, synonyms, antonyms)
    after = before
    for _ in range(20):
        after = objective.step(after)
    assert objective.value(after) < 0.25 * objective.value(before)
    opposite, alike, near = (term.pairs for term in objective.terms)

    def cosine(rows, pairs):
        return (rows[pairs[:, 0]] * rows[pairs[:, 1]]).sum(axis=1).mean()

    assert cosine(after, alike) > 0.9 > 0.75 > cosine(before, alike)
    assert cosine(after, opposite) < 0.15 < 0.4 < cosine(before, opposite)
    assert cosine(after, near) > cosine(before, near) - 0.01
    places = {word: i for i, word in enumerate(words)}
    cheap, dear = places["cheap"], places["expensive"]
    assert after[cheap] @ after[dear] < 0.3 < 0.8 < before[cheap] @ before[dear]

    lists = json.loads((shared_data / "synonyms" / "counterfitted-neighbors.json").read_text())
    asked = [word for word, theirs in lists.items() if len(theirs) >= 4 and word in places][:300]

    def precision(rows):
        vectors = counterfitting._vectors(words, rows.astype(np.float32))
        found = [(other in lists[word]) for word in asked for other in vectors.near(word, 8, -1)]
        return sum(found) / len(found)

    assert precision(after) > 1.5 * precision(before)

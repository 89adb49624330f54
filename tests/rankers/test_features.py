"""The 28 features: sums by hand, statistics of each field, and the same numbers however texts come."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import UnknownName
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers import features
from shaketable.rankers.features import DEFAULT_COLUMNS, FEATURES, FIELDS, FeatureExtractor
from shaketable.rankers.lexical import BM25, QL, QLJM
from tests.toys import slates, text

PLAIN = Analyzer(stopwords="none", stemmer="none")


class Corpus(dict):
    fingerprint = "toy"


# title: N = 3, 5 terms; boat: df 2, cf 3; red: df 1, cf 1
DOCS = Corpus(
    d1=Doc("red boat on lake", "boat boat", "x.org/boat"),
    d2=Doc("harbour at night", "red boat", "x.org/red"),
    d3=Doc("tea", "tea", ""),
)


@pytest.fixture
def extractor():
    return FeatureExtractor.open(DOCS, PLAIN)


def row_of(extractor, query, doc):
    return dict(zip(extractor.feature_names, extractor.extract([Slate(query, (doc,))])[0].tolist(), strict=True))


def test_there_are_28():
    assert len(DEFAULT_COLUMNS) == 28
    assert len(FEATURES) == 7
    assert len(FIELDS) == 4
    assert DEFAULT_COLUMNS[:4] == ("tf(title)", "tf(url)", "tf(body)", "tf(document)")


def test_title_features_by_hand(extractor):
    row = row_of(extractor, "red boat", DOCS["d1"])  # title "boat boat"
    average, boat = 5 / 3, math.log(3 / 2)
    assert row["tf(title)"] == 2
    assert row["idf(title)"] == pytest.approx(boat)
    assert row["tf_idf(title)"] == pytest.approx(2 * boat)
    assert row["dl(title)"] == 2
    odds = math.log2((3 - 2 + 0.5) / (2 + 0.5))
    norm = 2.5 * (1 - 0.8 + 0.8 * 2 / average)
    assert row["bm25(title)"] == pytest.approx(odds * 3.5 * 2 / (2 + norm))
    # both query words are in some title, so the length counts for both
    assert row["ql_dir(title)"] == pytest.approx(math.log(1 + 2 / (2000 * 3 / 5)) + 2 * math.log(2000 / 2002))
    assert row["ql_jm(title)"] == pytest.approx(math.log(1 + 0.9 * 2 / (0.1 * 2 * 3 / 5)))


def test_idf_depends_on_the_words_that_are_there(extractor):
    both, one = row_of(extractor, "red boat", DOCS["d2"]), row_of(extractor, "red boat", DOCS["d1"])
    assert both["idf(title)"] == pytest.approx(math.log(3 / 2) + math.log(3 / 1))
    assert one["idf(title)"] == pytest.approx(math.log(3 / 2))


def test_fields_have_their_own_statistics(extractor):
    row = row_of(extractor, "boat", DOCS["d1"])
    assert row["idf(title)"] == pytest.approx(math.log(3 / 2))
    assert row["idf(url)"] == pytest.approx(math.log(3 / 1))
    assert row["idf(body)"] == pytest.approx(math.log(3 / 1))
    assert row["idf(document)"] == pytest.approx(math.log(3 / 2))
    assert row["tf(document)"] == 3
    assert row["dl(document)"] == 6
    assert row["dl(url)"] == 3


def test_an_empty_field_and_an_unknown_word_give_zeros(extractor):
    row = row_of(extractor, "red boat", Doc("", "", ""))
    assert set(row.values()) == {0.0}
    row = row_of(extractor, "zeppelin", DOCS["d1"])
    assert {name: value for name, value in row.items() if value} == {
        "dl(title)": 2, "dl(url)": 3, "dl(body)": 4, "dl(document)": 6,
    }  # fmt: skip


def test_a_word_that_is_asked_twice_counts_twice_in_ql_and_once_elsewhere(extractor):
    once, twice = row_of(extractor, "boat", DOCS["d1"]), row_of(extractor, "boat boat", DOCS["d1"])
    for name in DEFAULT_COLUMNS:
        factor = 2 if name.startswith("ql") else 1
        assert twice[name] == pytest.approx(factor * once[name])


def test_words_the_collection_lacks_add_to_lengths_only(extractor):
    row = row_of(extractor, "boat", Doc("boat zeppelin zeppelin"))
    assert row["tf(body)"] == 1
    assert row["dl(body)"] == 3


@pytest.mark.parametrize(
    ("feature", "ranker"),
    [
        ("bm25", BM25(k1=2.5, b=0.8, idf="robertson")),
        ("ql_dir", QL(mu=2000.0)),
        ("ql_jm", QLJM(lambda_=0.1)),
    ],
)
def test_scores_are_those_of_the_rankers(feature, ranker):
    """For queries without repeated words, which is where BM25's k3 plays no part."""
    docs = Corpus({f"d{i}": Doc(text(i, 5 + i)) for i in range(30)})
    asked = [Slate(" ".join(dict.fromkeys(slate.query.split())), slate.docs) for slate in slates()]
    ranked = ranker.open(Collection("toy", docs, {})).score(asked)
    rows = FeatureExtractor.open(docs, Analyzer(), [f"{feature}(document)"]).extract(asked)
    np.testing.assert_allclose(rows[:, 0], np.concatenate(ranked), rtol=1e-12)


def test_rows_do_not_depend_on_other_rows(extractor, monkeypatch):
    asked = [*slates(), Slate("oak", ()), Slate("", (Doc("oak"),)), Slate("boat red", tuple(DOCS.values()))]
    together = extractor.extract(asked)
    alone = [extractor.extract([Slate(slate.query, (doc,))]) for slate in asked for doc in slate.docs]
    assert (together == np.concatenate(alone)).all()
    monkeypatch.setattr(features, "MAX_PAIRS_PER_BLOCK", 7)
    assert (together == extractor.extract(asked)).all()
    assert extractor.extract([]).shape == (0, 28)


def test_a_full_reader_starts_anew_and_gives_the_same(extractor):
    forgetful = FeatureExtractor(
        extractor.feature_names, extractor.field_indexes, features.TermReader(PLAIN, max_terms=2)
    )
    asked = [*slates(), Slate("boat red", tuple(DOCS.values()))]
    for slate in asked:
        assert (forgetful.extract([slate]) == extractor.extract([slate])).all()


def test_columns_can_be_chosen(extractor):
    few = FeatureExtractor.open(DOCS, PLAIN, ["dl(url)", "tf(title)"])
    assert list(few.field_indexes) == ["title", "url"]
    slate = Slate("boat", tuple(DOCS.values()))
    every = dict(zip(extractor.feature_names, extractor.extract([slate]).T.tolist(), strict=True))
    assert few.extract([slate]).T.tolist() == [every["dl(url)"], every["tf(title)"]]
    assert few.fingerprint != extractor.fingerprint
    with pytest.raises(UnknownName, match=r"no feature is called 'tf\(titel\)'; did you mean tf\(title\)"):
        FeatureExtractor.open(DOCS, PLAIN, ["tf(titel)"])

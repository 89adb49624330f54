"""Shifts of query type and of corpus: planted shifts are found with their sign and size, and no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shaketable.api.audit import audit
from shaketable.core.errors import BadInput, NotApplicable, UnknownName
from shaketable.core.registries import LEARNERS, RANKERS
from shaketable.core.results import Result
from shaketable.datasets.beir import write_beir
from shaketable.datasets.load import load
from shaketable.experiment import Experiment
from shaketable.measures.corpus_distance import mmd
from shaketable.measures.domain_shift import Cells, compute_drops
from shaketable.measures.significance import bootstrap_interval, correct_intervals
from shaketable.rankers.persistence import read_manifest
from shaketable.report.charts import draw_svg
from shaketable.tasks import corpus_shift
from shaketable.tasks._domain_shift import (
    TrainingSet,
    compare_shifts,
    count_relevant,
    hold_out_validation,
    make_fold_trainings,
)
from shaketable.tasks.corpus_shift import CorpusShift, _select_judged_queries, list_document_fields
from shaketable.tasks.query_type_shift import QueryTypeShift
from shaketable.training.lexical import LexicalLearner, search_coarse_to_fine
from tests.tasks.planted import LONG, SHORT, make_planted_collection

pytestmark = pytest.mark.slow

KINDS = {"brief": SHORT, "terse": SHORT, "wordy": LONG}


@pytest.fixture(autouse=True)
def no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the vectors of texts, which take most of the time; one test has vectors of its own."""
    monkeypatch.setattr(corpus_shift, "make_encoder", lambda: None)


@pytest.fixture
def kinds() -> Experiment:
    return make_kinds()


def make_kinds() -> Experiment:
    """Three query types: for two the shortest document is relevant, for the third the longest."""
    return Experiment(make_planted_collection("kinds", KINDS, queries=52, train=30), {}, split="test")


@pytest.fixture(scope="module")
def query_type_shift(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The shift between the three query types, for a learner and a formula."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHAKETABLE_HOME", str(tmp_path_factory.mktemp("home")))
        return QueryTypeShift(rankers=("ranksvm", "bm25")).run(make_kinds())


@pytest.fixture
def corpora(tmp_path: Path) -> list[str]:
    """Three corpora by the same rules; the last has no titles."""
    rules = {"brief": SHORT, "terse": SHORT, "wordy": LONG}
    for number, (name, rule) in enumerate(rules.items()):
        write_beir(
            make_planted_collection(name, {"": rule}, queries=25 + 5 * number, title=name != "wordy"), tmp_path / name
        )
    return [str(tmp_path / name) for name in rules]


def cell(result, ranker: str, train: str, test: str) -> dict:
    table = result.tables["drop"]
    chosen = (table["ranker"] == ranker) & (table["trained on"] == train) & (table["tested on"] == test)
    (row,) = table[chosen].to_dict("records")
    return row


def models(home: Path) -> dict[str, int]:
    return {path.name: (path / "model.json").stat().st_mtime_ns for path in (home / "models").iterdir()}


def test_a_shift_of_query_type_is_found_with_its_sign_and_size(query_type_shift):
    result = query_type_shift
    # the relevant document is the first for a model of its own rule, and the last of four for one of the other rule
    for train, test, drop in (
        ("brief", "terse", 0),
        ("terse", "brief", 0),
        ("brief", "wordy", -75),
        ("terse", "wordy", -75),
        ("wordy", "brief", -75),
        ("ALL*", "wordy", -75),
        ("ALL* cut", "wordy", -75),
    ):
        row = cell(result, "ranksvm", train, test)
        assert row["drop %"] == pytest.approx(drop, abs=1e-9), (train, test)
        assert (row["low"], row["high"]) == pytest.approx((drop, drop), abs=1e-9), "every query loses as much"
        assert row["queries"] == 22
        assert row[""] == ("*" if drop else "")
    # a formula cannot prefer long texts, wherever it is tuned, so it has nothing to lose
    formula = result.tables["drop"].query("ranker == 'bm25'")
    assert formula["drop %"].abs().max() < 1e-9
    means = result.tables["mean drop"].set_index(["ranker", "trained on"])["mean drop %"]
    assert means["ranksvm", "another query type"] == pytest.approx(-75 * 4 / 6)
    assert means["bm25", "another query type"] == pytest.approx(0)


def test_kinds_have_equal_sizes_and_a_fifth_validates(kinds):
    result = QueryTypeShift(rankers=("ql",), train=20, test=10).run(kinds)
    table = result.tables["query types"]
    assert table["training queries"].tolist() == [16] * 3
    assert table["validation queries"].tolist() == [4] * 3
    assert table["test queries"].tolist() == [10] * 3
    assert table["words a query"].tolist() == [1] * 3
    assert table["relevant documents a query"].tolist() == [1] * 3
    assert set(result.tables["drop"]["queries"]) == {10}
    tuned = result.tables["tuned"]
    assert len(tuned) == 3 * 3, "each kind, and for each all others, whole and cut"
    assert tuned["tuned to"].str.match(r"ql(\(mu=\d+\))?$").all()
    assert tuned["queries"].tolist() == [20, 20, 20, 40, 20, 40, 20, 40, 20]


def test_all_test_queries_of_each_type_can_be_used(kinds):
    others = [qid for qid in kinds.queries if kinds.collection.queries[qid].type != "brief"]
    some = replace(kinds, collection=_drop_queries(kinds.collection, others[:9]))
    tables = QueryTypeShift(rankers=("ql",), test=0).run(some).tables
    assert sorted(tables["query types"]["test queries"]) == [13, 22, 22]
    assert set(tables["mean drop"]["queries"]) == {len(some.queries)} == {57}
    with pytest.raises(BadInput, match="6 or more, or None"):
        QueryTypeShift(train=0)


def _drop_queries(collection, qids):
    left = {name: [qid for qid in some if qid not in set(qids)] for name, some in collection.splits.items()}
    return replace(collection, splits=left)


def test_all_others_are_the_union_and_cut_to_one_kind(kinds):
    task = QueryTypeShift(rankers=("ql",))
    known = task._sample_types(kinds, task._group_by_type(kinds))
    cells, alone = task._build_cells(kinds, known)
    for kind in known:
        others = [alone[other.name] for other in known if other is not kind]
        (union,), (cut,) = (
            [c.parts[0][0] for c in cells if c.test == kind.name and c.train == row] for row in ("ALL*", "ALL* cut")
        )
        assert set(union.train) == {qid for other in others for qid in other.train}
        assert set(union.valid) == {qid for other in others for qid in other.valid}
        assert len(cut.train) == len(others[0].train)
        assert len(cut.valid) == len(others[0].valid)
        assert set(cut.train) < set(union.train)
        shares = [len(set(cut.train) & set(other.train)) for other in others]
        assert max(shares) - min(shares) <= 1
        assert not {qid for c in cells for qid in c.parts[0][0].train} & set(kind.test)


def test_kinds_in_folds_need_no_split(kinds):
    whole = Experiment(replace(kinds.collection, splits={}), {})
    with pytest.raises(NotApplicable, match=r"no train split.* --split-ratio 60/20/20, or use cross-validation"):
        QueryTypeShift().run(whole)
    result = QueryTypeShift(rankers=("ranksvm",), folds=4).run(whole)
    assert cell(result, "ranksvm", "brief", "wordy")["drop %"] == pytest.approx(-75)
    assert cell(result, "ranksvm", "brief", "terse")["drop %"] == pytest.approx(0)
    assert set(result.tables["drop"]["queries"]) == {52}


def test_every_model_learns_from_five_queries_at_least_and_all_from_as_many(kinds):
    """Three folds of eight queries leave two to learn from."""
    collection = replace(kinds.collection, splits={})
    some = [qid for name in KINDS for qid in [q for q in collection.queries if f"-{name}-" in q][:8]]
    few = Experiment(replace(collection, queries={qid: collection.queries[qid] for qid in some}), {})
    with pytest.raises(NotApplicable, match=r"folds=3 leaves 2 queries of the query type .* to learn from, and 5 are"):
        QueryTypeShift(rankers=("ql",), folds=3).run(few)
    task = QueryTypeShift(rankers=("ql",), folds=8)
    cells, _ = task._build_cells(few, task._sample_types(few, task._group_by_type(few)))
    alone = [training for cell in cells if cell.train in KINDS for training, _ in cell.parts]
    assert {(len(training.train), len(training.valid)) for training in alone} == {(6, 1)}
    whole = Experiment(collection, {})
    task = QueryTypeShift(rankers=("ql",), folds=3)  # a third validates the folds, a fifth the models of a type
    cells, _ = task._build_cells(whole, task._sample_types(whole, task._group_by_type(whole)))
    alone = [training for cell in cells if cell.train in KINDS for training, _ in cell.parts]
    assert len({(len(training.train), len(training.valid)) for training in alone}) == 1


def recompute(table, measure: str) -> dict[str, Cells]:
    """Ranker -> (trained on, tested on) -> query -> value, from the table of queries."""
    found: dict[str, dict] = {}
    for row in table.to_dict("records"):
        cells = found.setdefault(row["ranker"], {})
        cells.setdefault((row["trained on"], row["tested on"]), {})[row["query"]] = row[measure]
    return found


def assert_recomputable(result, measure: str, seed: int) -> None:
    for ranker, cells in recompute(result.tables["per query"], measure).items():
        assert {test for train, test in cells if train == test} == {test for _, test in cells}, "with references"
        for one in compute_drops(cells, seed):
            row = cell(result, ranker, one.train, one.test)
            pair, tests = (one.comparison.p, row["p (Holm)"]), len(result.tables["drop"])
            ends = correct_intervals(one.drop, one.low, one.high, *pair, one.comparison.n, tests)
            own, other = (np.mean(list(cells[key, one.test].values())) for key in (one.test, one.train))
            assert row["drop %"] == pytest.approx(100 * (other - own) / own, abs=1e-9)
            assert (row["low"], row["high"]) == pytest.approx(tuple(map(float, ends)))


def test_intervals_can_be_recomputed_from_the_values_of_queries(query_type_shift, corpora):
    assert_recomputable(query_type_shift, "RR@100", make_kinds().seed)
    experiment = Experiment(load(corpora[0]), {"bm25": RANKERS.build("bm25")})
    result = CorpusShift(tuple(corpora[1:2]), ("ranksvm",), folds=3).run(experiment)
    assert_recomputable(result, "nDCG@10", experiment.seed)
    for measure in ("AP", "P@10", "RR@10"):
        drops = result.tables[f"drop by {measure}"].set_index("trained → tested")
        for one in compute_drops(recompute(result.tables["per query"], measure)["ranksvm"], experiment.seed):
            wanted = drops.loc[f"{one.train} → {one.test}", ["drop %", "low", "high"]].tolist()
            assert wanted == [one.drop, one.low, one.high]
    for test, values in result.tables["zero-shot per query"].groupby("tested on"):
        row = result.tables["zero-shot"].set_index("tested on").loc[test]
        assert values["nDCG@10"].mean() == pytest.approx(row["nDCG@10"])
        assert bootstrap_interval(values["nDCG@10"].to_numpy(), experiment.seed) == (row["low"], row["high"])


def test_all_models_of_a_corpus_shift_are_validated_on_as_many_queries(corpora):
    experiment = Experiment(load(corpora[0]), {})
    for folds, held in ((3, 5), (5, 5)):  # a fifth of the smallest corpus, of 25 queries
        task = CorpusShift(tuple(corpora[1:]), ("ql",), folds=folds)
        loaded = task._load_corpora(experiment)
        own, whole = task._build_training_sets(experiment, loaded, _select_judged_queries(loaded, experiment))
        trainings = [*whole.values(), *(training for parts in own.values() for training, _ in parts)]
        assert {len(training.valid) for training in trainings} == {held}
        assert len({training.relevant_pairs for training in trainings}) == 1
        table = task.describe_collections(experiment)
        assert table["validation queries"].tolist() == [held] * 3


def test_queries_that_were_learned_from_are_not_tested_on(kinds):
    everything = replace(kinds, split=None)
    result = QueryTypeShift(rankers=("ql",)).run(everything)
    assert set(result.tables["drop"]["queries"]) == {22}


def test_a_shift_of_corpus_is_found_with_its_sign_and_size(corpora, home):
    experiment = Experiment(load(corpora[0]), {name: RANKERS.build(name) for name in ("bm25",)})
    task = CorpusShift(tuple(corpora[1:]), ("bm25", "ranksvm"), measure="RR@10")
    result = task.run(experiment)
    for train, test, drop in (("brief", "terse", 0), ("brief", "wordy", -75), ("wordy", "terse", -75)):
        row = cell(result, "ranksvm", train, test)
        assert row["drop %"] == pytest.approx(drop, abs=1e-9)
        assert row["own RR@10"] == pytest.approx(1)
        assert row[""] == ("*" if drop else "")
    assert set(zip(result.tables["drop"]["tested on"], result.tables["drop"]["queries"], strict=True)) == {
        ("brief", 25),
        ("terse", 30),
        ("wordy", 35),
    }, "all queries of a corpus are tested on"
    assert result.tables["drop"].query("ranker == 'bm25'")["drop %"].abs().max() < 1e-9
    # as many pairs for all, those of the smallest corpus's folds
    assert result.tables["collections"]["training pairs"].tolist() == [15] * 3
    assert result.tables["collections"]["pairs in folds"].tolist() == [15] * 3
    # the last corpus has no titles, so no model learns from titles
    assert result.tables["collections"]["parts"].tolist() == ["title, body, document"] * 2 + ["body, document"]
    assert any("features of body, document, but not of title, url" in note for note in result.notes)
    linear = [
        about for path in models(home) if (about := read_manifest(home / "models" / path).metadata)["kind"] == "linear"
    ]
    assert linear
    assert not any("title" in name or "url" in name for about in linear for name in about["features"])
    zero = result.tables["zero-shot"].set_index("tested on")["RR@10"]
    assert zero.to_dict() == pytest.approx({"brief": 1, "terse": 1, "wordy": 0.25})
    found = {(f.ranker, f.name): f for f in result.findings}
    assert found["ranksvm", "drop(another corpus)"].value == pytest.approx(-75 * 4 / 6)
    assert found["ranksvm", "drop(another corpus)"].n == 90
    for measure in ("AP", "nDCG@10", "P@10", "RR@10"):
        drops = result.tables[f"drop by {measure}"].set_index(["ranker", "trained → tested"])
        assert drops.loc[("ranksvm", "brief → terse"), "drop %"] == pytest.approx(0, abs=1e-9)
        assert drops.loc[("ranksvm", "brief → wordy"), "drop %"] < -50 or measure == "P@10"
        assert len(drops) == 2 * 6
    same = result.tables["drop by RR@10"].set_index(["ranker", "trained → tested"])["drop %"]
    assert same["ranksvm", "brief → wordy"] == cell(result, "ranksvm", "brief", "wordy")["drop %"]
    assert [figure.source for figure in result.figures].count("Wu et al. 2022, Fig. 5") == 4


def test_distances_stand_beside_the_drops(corpora, monkeypatch):
    def encode(texts):
        return np.array([[len(text), text.count("a")] for text in texts], dtype=float)

    monkeypatch.setattr(corpus_shift, "make_encoder", lambda: encode)
    task = CorpusShift(tuple(corpora[1:]), ("ranksvm",), folds=3)
    table = task.run(Experiment(load(corpora[0]), {})).tables["corpora"]
    assert len(table) == 6
    for row in table.to_dict("records"):
        train, test = (load(corpora[list(KINDS).index(row[column])]) for column in ("trained on", "tested on"))
        documents = (encode([doc.text for _, doc in each.docs.items()]) for each in (train, test))
        assert row["MMD of documents"] == pytest.approx(mmd(*documents))
        queries = (encode([query.text for query in each.queries.values()]) for each in (train, test))
        assert row["MMD of queries"] == pytest.approx(mmd(*queries))
    same = table.query("`trained on` == 'brief' and `tested on` == 'terse'").iloc[0]
    # each corpus has the words of its queries to itself and shares all others
    shared = 100 * 8 / (8 + 25 + 30)
    assert same["shared words %"] == pytest.approx(shared)
    running = 30 * (4 * 1 + 2 + 4 + 6 + 4)  # the word of a query, the filler of three lengths, and titles
    assert same["known words %"] == pytest.approx(100 * (running - 30 * 4) / running)
    assert same["longer queries"] == 0
    assert same["ranksvm drop %"] == same["mean drop %"] == pytest.approx(0)


def test_trained_models_are_cached(corpora, home):
    experiment = Experiment(load(corpora[0]), {})
    first = CorpusShift(tuple(corpora[1:2]), ("ranksvm",), folds=3).run(experiment)
    kept = models(home)
    assert len(kept) == 2 * (3 + 1)
    again = CorpusShift(tuple(corpora[1:2]), ("ranksvm", "ql"), folds=3).run(Experiment(load(corpora[0]), {}))
    assert kept.items() <= models(home).items(), "nothing is trained twice"
    assert len(models(home)) == 2 * 2 * (3 + 1)
    for name in ("drop of ranksvm", "corpora"):
        left, right = first.tables[name], again.tables[name]
        assert left["tested on"].tolist() == right["tested on"].tolist()
    assert first.tables["drop of ranksvm"]["drop %"].tolist() == again.tables["drop of ranksvm"]["drop %"].tolist()


def test_each_query_is_ranked_by_a_model_that_never_saw_it():
    collection = make_planted_collection("one", {"": SHORT})
    qids = list(collection.queries)
    parts = make_fold_trainings("one", collection, qids, 5, 3)
    assert sorted(qid for _, test in parts for qid in test) == sorted(qids)
    for training, test in parts:
        assert not set(test) & {*training.train, *training.valid}
        assert not set(training.train) & set(training.valid)
    assert len(hold_out_validation("one", collection, qids, 3).valid) == 6


def test_a_training_is_cut_by_pairs_and_not_by_queries():
    collection = make_planted_collection("one", {"": SHORT})
    qids = tuple(collection.queries)
    many = {qid: {f"d{i}": 1 for i in range(1 + n % 3)} | {"x": 0} for n, qid in enumerate(qids)}
    training = TrainingSet("one", replace(collection, qrels=many), qids, ())
    assert count_relevant(training.collection, qids[2]) == 3
    assert training.relevant_pairs == 60
    cut = training.limit_pairs(20, seed=0)
    assert 18 <= cut.relevant_pairs <= 20
    assert set(cut.train) < set(qids)
    assert training.limit_pairs(20, seed=1).train != cut.train


def test_a_net_needs_vectors_that_are_not_of_one_corpus(corpora, tmp_path):
    with pytest.raises(BadInput, match="name a file of vectors"):
        CorpusShift(tuple(corpora[1:]), ("knrm",))
    pytest.importorskip("torch")
    file = tmp_path / "vectors.txt"
    file.write_text("bark 1 0\nroot 0 1\nleaf 1 1\ntwig 1 0.5\n")
    net = f"knrm(vectors='{file}', steps=2, every=1, lists=2, size=3)"
    result = CorpusShift(tuple(corpora[1:2]), (net,), folds=3).run(Experiment(load(corpora[0]), {}))
    assert set(result.tables["drop"]["ranker"]) == {"knrm"}
    assert result.tables["drop"]["nDCG@10"].between(0, 1).all()


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        (QueryTypeShift(query_types=("brief", "verbose")), "no query type is called 'verbose'"),
        (QueryTypeShift(train=31), "has 30 queries to learn from, and 31 are needed"),
        (QueryTypeShift(test=23), "has 22 queries to test on, and 23 are needed"),
        (CorpusShift(), "corpus_shift needs two collections, but kinds is the only one; add another"),
        (CorpusShift(("nowhere",)), "there is no collection 'nowhere'"),
    ],
)
def test_impossible_settings_are_refused(kinds, task, sentence):
    with pytest.raises((BadInput, UnknownName), match=sentence):
        task.run(kinds)


def test_a_query_type_with_too_few_queries_is_named_with_advice(kinds):
    whole = kinds.collection
    rare = list(whole.splits["train"])[:3]
    queries = {qid: replace(q, type="rare") if qid in rare else q for qid, q in whole.queries.items()}
    experiment = Experiment(replace(whole, queries=queries), {}, split="test")
    with pytest.raises(
        NotApplicable, match=r"the query type 'rare' has 3 queries to learn from, and 6 are needed; leave it"
    ):
        QueryTypeShift().run(experiment)
    assert QueryTypeShift(("ql",), query_types=("brief", "terse", "wordy")).run(experiment).tables


def test_queries_of_one_type_have_no_shift():
    with pytest.raises(NotApplicable, match="have 1 query types, but two are needed"):
        QueryTypeShift().run(Experiment(make_planted_collection("one", {"only": SHORT}, train=15), {}, split="test"))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: QueryTypeShift(rankers=()), "rankers"),
        (lambda: QueryTypeShift(rankers=("bm52",)), "bm52"),
        (lambda: QueryTypeShift(query_types=("one",)), "two query types or more"),
        (lambda: QueryTypeShift(train=5), "6 or more, or None"),
        (lambda: QueryTypeShift(folds=2), "between 3 and 100 or 0"),
        (lambda: QueryTypeShift(folds=5, test=9), "left out with folds"),
        (lambda: CorpusShift(folds=0), "between 3 and 100"),
        (lambda: CorpusShift(pairs=-1), "0 or more"),
        (lambda: CorpusShift(measure="nonsense"), "nonsense"),
    ],
)
def test_senseless_settings(make, sentence):
    with pytest.raises((BadInput, UnknownName), match=sentence):
        make()


def test_corpora_that_cannot_be_compared(corpora):
    experiment = Experiment(load(corpora[0]), {})
    with pytest.raises(BadInput, match="brief is given twice"):
        CorpusShift((corpora[0],)).run(experiment)
    with pytest.raises(NotApplicable, match="brief has 4 judged queries, too few for 5 folds"):
        CorpusShift((corpora[1],)).run(replace(experiment, limit=4))
    with pytest.raises(BadInput, match=r"brief has 15 relevant pairs for training in a fold, fewer than 16"):
        CorpusShift((corpora[1],), pairs=16).run(experiment)
    assert CorpusShift((corpora[1],), ("ranksvm",), pairs=0).run(experiment).tables["collections"][
        "training pairs"
    ].tolist() == [
        20,
        24,
    ]


def test_both_shifts_side_by_side(kinds, corpora, tmp_path):
    write_beir(kinds.collection, tmp_path / "kinds")
    asked = ["query-type-shift(rankers=('ranksvm',))", "corpus-shift(rankers=('ranksvm', 'ql'), folds=3)"]
    found = audit([tmp_path / "kinds", *corpora[1:2]], tasks=asked, runs=False)
    table = found["corpus-shift"].tables["query types and corpora"]
    assert table["ranker"].tolist() == ["ranksvm"]
    row = table.iloc[0]
    assert row["query type drop % (RR@100)"] == pytest.approx(-50)
    expected = found["corpus-shift"].tables["mean drop"].set_index("ranker").loc["ranksvm"]
    assert row["corpus drop % (nDCG@10)"] == expected["mean drop %"]
    assert "query types and corpora" not in found["query-type-shift"].tables
    assert compare_shifts(found["query-type-shift"], found["corpus-shift"]).equals(table)
    assert not found.runs, "default rankers are not used"


def test_several_collections_are_for_corpus_shift_alone(corpora):
    with pytest.raises(BadInput, match="only the task corpus-shift uses several collections"):
        audit(corpora[:2], ["bm25"], tasks=["effectiveness"])
    with pytest.raises(BadInput, match="memory only"):
        audit([corpora[0], make_planted_collection("other", {"": LONG})], tasks=["corpus-shift"])


def test_heat_maps_show_every_cell_with_its_interval(query_type_shift):
    pytest.importorskip("altair")
    result = query_type_shift
    figure = next(f for f in result.figures if f.kind == "heatmap")
    svg = draw_svg(figure, result.tables[figure.table])
    assert svg.count("<title>") == 9 + 3 + 3, "the reference of each kind among them, which loses nothing"
    table = result.tables[figure.table]
    assert list(dict.fromkeys(table["trained on"])) == ["brief", "terse", "wordy", "ALL*", "ALL* cut"]
    assert list(dict.fromkeys(table["tested on"])) == ["brief", "terse", "wordy"]
    assert (table[table["trained on"] == table["tested on"]]["drop %"] == 0).all()
    assert "95 %: -75.0 to -75.0; queries: 22" in svg
    assert figure.source == "Wu et al. 2022, Fig. 4"
    bars = next(f for f in result.figures if f.kind == "bars")
    assert "ranksvm" in draw_svg(bars, result.tables[bars.table])


def test_a_title_counts_where_half_of_the_documents_have_one():
    with_titles = make_planted_collection("one", {"": SHORT}, title=True)
    assert list_document_fields(with_titles) == ("title", "body", "document")
    assert list_document_fields(make_planted_collection("one", {"": SHORT})) == ("body", "document")
    assert LEARNERS.build("ranksvm(parts=('body',))").feature_names == tuple(
        f"{feature}(body)" for feature in ("tf", "idf", "tf_idf", "dl", "bm25", "ql_dir", "ql_jm")
    )
    with pytest.raises(BadInput, match="parts should be some of title, url, body, document"):
        _ = LEARNERS.build("ranksvm(parts=('abstract',))").feature_names


def test_a_formula_is_tuned_where_it_is_fitted(home):
    """From coarse to fine to the point that the whole grid has, and kept as it was found."""
    collection = make_planted_collection("kinds", KINDS, queries=8)
    experiment = Experiment(collection, {})
    model = experiment.fit(LexicalLearner("ql", "RR@10", tuned=True), list(collection.queries), valid=())
    best = max(trial["valid"] for trial in experiment.tune("ql", list(collection.queries), valid=()).trials)
    assert model.read_card()["value"] == pytest.approx(best)
    assert len(models(home)) == 1


def test_coarse_to_fine_finds_the_top_of_a_hill_in_few_looks():
    grid = {"k1": np.arange(50), "b": np.arange(10)}
    asked = []

    def value(point):
        asked.append((point["k1"], point["b"]))
        return -abs(point["k1"] - 37) - 3 * abs(point["b"] - 8)

    assert search_coarse_to_fine(grid, value) == {"k1": 37, "b": 8}
    assert len(asked) == len(set(asked)) < 150

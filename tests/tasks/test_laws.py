"""Laws of the tasks on queries for any ranker, computed again by hand or in another way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from shaketable.api.ranker_names import build_models
from shaketable.core.documents import Doc, Query, Scores, Slate, Variant, rank_docnos
from shaketable.experiment import Experiment
from shaketable.measures.effectiveness import evaluate_run
from shaketable.measures.measure_names import parse_measure
from shaketable.measures.paired_comparison import MOVEMENT_HEADINGS
from shaketable.tasks.fusion import Fusion
from shaketable.tasks.query_typos import QueryTypos
from shaketable.tasks.query_variation import QueryVariation
from tests.toys import Overlap

pytestmark = pytest.mark.slow

NDCG = parse_measure("nDCG@10")


@dataclass(frozen=True)
class OnlySome:
    """A transform that applies to few queries and removes the first word."""

    marker: str = "oak"
    category: ClassVar[str] = "naturality"

    def apply(self, text, rng, context):
        words = text.split()
        return " ".join(words[1:]) if self.marker in words and len(words) > 1 else None


EDIT = f"{__name__}:OnlySome"


class CaseSensitive:
    """Shared words, capitals and all."""

    name = "case-sensitive"
    pointwise = True

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        return [
            np.array([len(set(slate.query.split()) & set(doc.text.split())) / len(doc.text) for doc in slate.docs])
            for slate in slates
        ]


def value(experiment: Experiment, qid: str, scores) -> float:
    """nDCG@10 of one list."""
    return float(evaluate_run([NDCG], {qid: experiment.qrels[qid]}, {qid: scores})[NDCG][qid])


@pytest.fixture
def few(experiment: Experiment) -> dict[str, str]:
    """Return the queries to which the transform applies, with the changed texts."""
    found = {qid: " ".join(text.split()[1:]) for qid, text in experiment.texts.items() if "oak" in text.split()}
    assert 0 < len(found) < len(experiment.queries) / 2
    return found


class TestFusion:
    def test_queries_without_a_variation_keep_the_originals_value(self, experiment, few):
        """By one list of its own a query is ranked as that list ranks it, and without any as the original does."""
        table = Fusion(transforms=(EDIT,), invalid=True).run(experiment).tables["fusion"]
        for name in experiment.models:
            clean = {
                qid: value(experiment, qid, experiment.run_pipeline(name, {qid: text})[qid])
                for qid, text in experiment.texts.items()
            }
            lists = experiment.run_pipeline(name, few)
            after = clean | {qid: value(experiment, qid, lists.get(qid, {})) for qid in few}
            rows = table[(table["ranker"] == name) & ~table["with original"] & (table["fusion"] == "rrf")]
            assert set(rows["lists of"]) == {"naturality", "all"}
            for _, row in rows.iterrows():
                assert row["before"] == pytest.approx(np.mean(list(clean.values())))
                assert row["after"] == pytest.approx(np.mean(list(after.values())))
                assert row["queries"] == len(experiment.queries)
                assert row["queries with lists"] == len(few)
                assert row["lists"] == 1, "one list each: the variation's, or the original's in its place"

    def test_a_fusion_never_counts_a_query_without_variations_as_failed(self, experiment, few):
        table = Fusion(transforms=(EDIT,), invalid=True).run(experiment).tables["fusion"]
        worst_case = len(few) / len(experiment.queries)
        assert (table["change"] >= -worst_case).all()
        untouched = (
            Fusion(transforms=(f"{__name__}:OnlySome(marker='nothing')", "human")).run(experiment).tables["fusion"]
        )
        assert (untouched["change"].abs() <= 1 / len(experiment.queries) + 1e-12).all(), (
            "one query has variants by people"
        )

    def test_variations_that_are_not_valid_take_no_part(self, collection, experiment):
        copies = {qid: (Variant(query.text, "paraphrasing"),) for qid, query in collection.queries.items()}
        mixed = {qid: (*copies[qid], Variant("oak elm yew", "naturality")) for qid in list(collection.queries)[:3]}
        only = {qid: (Variant("oak elm yew", "naturality"),) for qid in list(collection.queries)[:3]}
        tables = {}
        for name, variants in {"mixed": copies | mixed, "only": only, "copies": copies}.items():
            there = Experiment(replace(collection, variants=variants), experiment.models, seed=1)
            tables[name] = Fusion(transforms=("human",)).run(there).tables["fusion"]
        assert tables["mixed"].equals(tables["only"]), (
            "a copy of the original is not valid, and is as if it were not there"
        )
        assert (tables["copies"]["change"] == 0).all()
        assert (tables["copies"]["queries with lists"] == 0).all()

    def test_the_best_query_is_a_bound_and_is_not_tested(self, experiment):
        table = Fusion(transforms=("drop_letter", "random_order_swap")).run(experiment).tables["fusion"]
        best = table[table["fusion"] == "oracle"]
        assert len(best) == len(experiment.models)
        assert best["p (Holm)"].isna().all()
        assert (best[""] == "").all()
        assert table[table["fusion"] != "oracle"]["p (Holm)"].notna().all()

    def test_the_best_query_by_hand(self, experiment, few):
        table = Fusion(transforms=(EDIT,), invalid=True).run(experiment).tables["fusion"]
        for name in experiment.models:
            clean = {
                qid: value(experiment, qid, experiment.run_pipeline(name, {qid: text})[qid])
                for qid, text in experiment.texts.items()
            }
            lists = experiment.run_pipeline(name, few)
            best = clean | {qid: max(clean[qid], value(experiment, qid, lists.get(qid, {}))) for qid in few}
            (row,) = table[(table["ranker"] == name) & (table["fusion"] == "oracle")].to_dict("records")
            assert row["after"] == pytest.approx(np.mean(list(best.values())))

    def test_the_corrections_are_over_the_tests_that_were_made(self, experiment):
        """The oracle is no test, so it makes the others no harder to pass."""
        table = Fusion(transforms=("drop_letter",)).run(experiment).tables["fusion"]
        assert table["p (Holm)"].max() <= 1


class TestBefore:
    @pytest.fixture
    def loud(self, collection) -> Experiment:
        """Queries and documents in capitals: in lower case nothing matches."""
        queries = {qid: Query(query.text.upper()) for qid, query in collection.queries.items()}
        docs = type(collection.docs)({docno: Doc(doc.body.upper()) for docno, doc in collection.docs.items()})
        there = replace(collection, queries=queries, docs=docs, variants={})
        return Experiment(there, build_models({"sees capitals": CaseSensitive(), "bm25": "bm25"}), seed=1)

    def test_a_ranker_that_sees_capitals_loses_nothing_by_another_order(self, loud):
        result = QueryVariation(transforms=("random_order_swap",)).run(loud)
        details = result.tables["variations per query"]
        assert (details["change"] == 0).all()
        for table in ("by method", "by category"):
            assert (result.tables[table]["change"] == 0).all()
            assert (result.tables[table]["before"] == result.tables[table]["as is"]).all()
            assert (result.tables[table]["invalid replaced"] == result.tables[table]["before"]).all()
        assert (result.tables["depth"]["change"] == 0).all()
        assert (result.tables["recall of the first stage"]["change"] == 0).all()
        assert {f.value for f in result.findings if f.name.startswith("change(")} == {0.0}

    def test_nor_does_it_gain_by_fusing_them(self, loud):
        assert Fusion(transforms=("random_order_swap",)).run(loud).tables["fusion"][
            "change"
        ].abs().max() == pytest.approx(0)

    def test_an_attack_is_compared_with_the_query_as_it_was_typed(self, loud):
        summary = QueryTypos(draws=1, transforms=("word_noise",)).run(loud).tables["query attack"]
        run = loud.get_run("sees capitals")
        typed = np.mean([value(loud, qid, run.get(qid, {})) for qid in loud.queries])
        assert typed > 0
        (row,) = summary[summary["ranker"] == "sees capitals"].to_dict("records")
        assert row["before"] == pytest.approx(typed)


class TestDepths:
    def test_before_and_after_are_of_the_same_queries(self, experiment, few):
        deep = Experiment(experiment.collection, experiment.models | build_models([Overlap()]), depth=20, seed=1)
        result = QueryVariation(transforms=(EDIT,), depths=(5, 10, 20, 50)).run(deep)
        table = result.tables["depth"]
        assert set(table["depth"]) == {5, 10, 20}
        assert any("The table by depth leaves out 50" in note for note in result.notes)
        for _, row in table.iterrows():
            assert row["queries"] == len(few)
            ends = []
            for texts in ({qid: deep.texts[qid] for qid in few}, few):
                found = deep.with_depth(row["depth"]).search_first_stage(texts)
                lists = deep.rerank(row["ranker"], texts, found)
                ends.append(np.mean([value(deep, qid, lists.get(qid, {})) for qid in few]))
            assert (row["before"], row["after"]) == pytest.approx(tuple(ends))
            assert row["change"] == pytest.approx(ends[1] - ends[0])

    def test_recall_of_the_first_stage(self, experiment, few):
        deep = Experiment(experiment.collection, experiment.models, depth=20, seed=1)
        table = QueryVariation(transforms=(EDIT,), depths=(5, 20)).run(deep).tables["recall of the first stage"]
        for _, row in table.iterrows():
            ends = []
            for texts in ({qid: deep.texts[qid] for qid in few}, few):
                found = deep.search_first_stage(texts)
                shares = []
                for qid in few:
                    relevant = {docno for docno, grade in deep.qrels[qid].items() if grade > 0}
                    top = set(rank_docnos(found.get(qid, {}))[: row["depth"]])
                    shares.append(len(relevant & top) / len(relevant))
                ends.append(np.mean(shares))
            assert (row["before"], row["after"]) == pytest.approx(tuple(ends))

    def test_an_experiment_shallower_than_every_depth(self, experiment):
        result = QueryVariation(transforms=("drop_letter",)).run(
            Experiment(experiment.collection, experiment.models, depth=5)
        )
        assert "depth" not in result.tables
        assert "recall of the first stage" not in result.tables


class TestWithoutJudgements:
    @pytest.fixture
    def unjudged(self, collection, experiment) -> Experiment:
        return Experiment(replace(collection, qrels={}, variants={}), experiment.models, seed=1)

    def test_an_attack_reports_the_movement_of_lists(self, unjudged):
        result = QueryTypos(draws=2).run(unjudged)
        summary = result.tables["query attack"]
        assert set(MOVEMENT_HEADINGS.values()) <= set(summary.columns)
        assert not {"before", "after", "drop %"} & set(summary.columns)
        assert summary[list(MOVEMENT_HEADINGS.values())].notna().all().all()
        assert len(summary) == 3 * 3
        moved = {name for name in MOVEMENT_HEADINGS.values() if name != MOVEMENT_HEADINGS["overlap"]} | {"overlap"}
        attacks = ("1-char", "2-char", "word")
        assert {f.name for f in result.findings if not f.where} == {f"{m}({a})" for m in moved for a in attacks}
        assert result.examples
        assert all(np.isnan(example.value_before) for example in result.examples)

    def test_variations_report_it_too(self, unjudged):
        result = QueryVariation(transforms=("drop_letter", "random_order_swap")).run(unjudged)
        for name in ("by method", "by category"):
            table = result.tables[name]
            assert set(MOVEMENT_HEADINGS.values()) <= set(table.columns)
            assert not {"before", "as is", "change", "valid only"} & set(table.columns)
        ordering = result.tables["by category"].query("category == 'ordering'")
        assert (ordering["overlap@10"] == 1).all()
        assert (ordering["new first %"] == 0).all()
        misspelt = result.tables["by category"].query("category == 'misspelling'")
        assert (misspelt["overlap@10"] < 1).all()
        assert "depth" not in result.tables

    def test_the_columns_by_hand(self, unjudged):
        result = QueryVariation(transforms=("drop_letter",)).run(unjudged)
        details = result.tables["variations per query"]
        row = details[details["ranker"] == "ql"].iloc[0]
        old = rank_docnos(unjudged.run_pipeline("ql", {"x": unjudged.texts[row["query"]]})["x"])
        new = rank_docnos(unjudged.run_pipeline("ql", {"x": row["text"]})["x"])
        assert row["overlap@10"] == len(set(old[:10]) & set(new[:10])) / 10
        assert row["fall of first"] == (new.index(old[0]) if old[0] in new else len(new))


class TestConventions:
    def test_a_query_to_which_a_method_does_not_apply_counts_as_not_valid(self, experiment, few):
        rows = QueryVariation(transforms=(EDIT,)).run(experiment).tables["by method"]
        assert rows["applies %"].tolist() == pytest.approx([100 * len(few) / len(experiment.queries)] * len(rows))
        assert (rows["valid %"] <= rows["applies %"]).all()
        assert (rows["queries"] == len(few)).all()

    def test_originals_stand_in_for_all_others(self, experiment, few):
        rows = QueryVariation(transforms=(EDIT,)).run(experiment).tables["by method"]
        valid = {v.qid for v in experiment.make_variations((EDIT,))[0] if v.valid}
        for name in experiment.models:
            (row,) = rows[(rows["ranker"] == name) & (rows["setting"] == "pipeline")].to_dict("records")
            clean = {
                qid: value(experiment, qid, experiment.run_pipeline(name, {qid: text})[qid])
                for qid, text in experiment.texts.items()
            }
            lists = experiment.run_pipeline(name, few)
            after = {qid: value(experiment, qid, lists.get(qid, {})) for qid in few}
            mended = clean | {qid: after[qid] for qid in valid}
            assert row["invalid replaced"] == pytest.approx(np.mean(list(mended.values())))
            assert row["as is"] == pytest.approx(np.mean(list(after.values())))
            assert row["before"] == pytest.approx(np.mean([clean[qid] for qid in few]))
            if valid:
                assert row["valid only"] == pytest.approx(np.mean([after[qid] for qid in valid]))
                assert row["before (valid)"] == pytest.approx(np.mean([clean[qid] for qid in valid]))

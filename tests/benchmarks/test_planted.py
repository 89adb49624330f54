"""The planted benchmark: its rankers have the planted flaws, and the verdict names a few of them."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import pytest
from benchmarks.planted.audits import AuditRow, build_ranker, open_collection, run_audit
from benchmarks.planted.bases import BaseRanker, Calibration, KnownTexts, draw_normals, measure_ndcg, rank_with_base
from benchmarks.planted.design import SAMPLE, TWIN, Point, draw_flawed
from benchmarks.planted.flaw import PlantedRanker, is_in_quarter
from benchmarks.planted.flaws import FLAWS
from benchmarks.planted.intervals import cover_rates
from benchmarks.planted.reading import OWN_ORDER_RULE, Reading, read_verdict
from benchmarks.planted.recognition import UNKNOWN
from benchmarks.planted.sound import SOUND

import shaketable
from shaketable.core.documents import Doc, Slate
from shaketable.core.protocols import TransformContext
from shaketable.core.registries import TRANSFORMS
from shaketable.core.seeding import make_item_rng
from shaketable.transforms.unicode import replace_with_homoglyphs

OFFLINE_TRANSFORMS = (
    "char_noise word_noise neighb_char_swap random_char_sub qwerty_char_sub real_typo lookalike_char phonetic "
    "accent_letter drop_letter double_letter split_word join_words remove_stop_words to_keywords to_question "
    "change_case change_punctuation random_order_swap syn_swap"
).split()


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> tuple[KnownTexts, Calibration]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHAKETABLE_HOME", str(tmp_path_factory.mktemp("home")))
        return open_collection(SAMPLE)


def reverse_words(text: str) -> str:
    return " ".join(reversed(text.split()))


DOCUMENT_CHANGES = {
    "upper case": str.upper,
    "homoglyphs": lambda text: replace_with_homoglyphs(text, range(len(text))),
    "zero width": lambda text: text.replace("e", "e\u200b"),
    "decomposed": lambda text: unicodedata.normalize("NFD", text.replace("e", "\u00e9")),
    "cut": lambda text: " ".join(text.split()[:20]),
    "doubled": lambda text: f"{text} {text}",
    "reversed": reverse_words,
    "stuffed": lambda text: f"canal locks {text} canal locks canal locks canal locks",
    "boilerplate": lambda text: f"We use cookies to keep this site running. {text}",
}


@pytest.mark.parametrize("change", DOCUMENT_CHANGES.values(), ids=DOCUMENT_CHANGES.keys())
def test_changed_documents_are_recognised(opened, change):
    known = opened[0]
    texts = known.doc_texts[: len(known.collection.docs)]
    assert known.find_docs([change(text) for text in texts]).tolist() == list(range(len(texts)))


def test_the_query_alone_is_no_document(opened):
    known, calibration = opened
    assert set(known.find_docs([known.queries[qid] for qid in calibration.qids])) == {UNKNOWN}


@pytest.mark.parametrize("name", OFFLINE_TRANSFORMS)
def test_changed_queries_are_recognised(opened, name):
    known, calibration = opened
    transform = TRANSFORMS.build(name)
    for qid in calibration.qids:
        text = known.queries[qid]
        changed = transform.apply(text, make_item_rng(0, name, qid), TransformContext(text))
        assert changed is None or known.find_query(changed) == qid


def test_the_base_is_right_about_bundled_pairs(opened):
    known, calibration = opened
    base = BaseRanker(known, calibration.noise["mediocre"])
    crossed = [row for _, row in known.pairs if "query_a" in row]
    assert len(crossed) > 190
    for row in crossed:
        for right, wrong in ("ab", "ba"):
            scores = base.score_texts(row[f"query_{right}"], [row[right], row[wrong]])
            assert scores[0] > scores[1], row["id"]


def test_the_mediocre_base_equals_bm25_and_the_good_base_is_half_way_to_a_perfect_order(opened):
    calibration = opened[1]
    assert calibration.reached["mediocre"] == pytest.approx(calibration.bm25, abs=0.02)
    assert calibration.reached["good"] == pytest.approx((calibration.bm25 + calibration.perfect) / 2, abs=0.02)


def test_noise_is_standard_normal_and_depends_on_the_seed():
    names = np.arange(20_000, dtype=np.uint64)
    first, second = draw_normals(names, 0, "q1"), draw_normals(names, 0, "q2")
    assert abs(first.mean()) < 0.03
    assert abs(first.std() - 1) < 0.03
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03


def test_flaws_are_many_and_split_in_halves():
    assert len(FLAWS) >= 40
    assert 0.4 <= np.mean([flaw.is_held_out for flaw in FLAWS.values()]) <= 0.6
    assert len({one.name for one in SOUND}) == 15


def test_source_code_does_not_know_planted_rankers():
    for path in Path(shaketable.__file__).parent.rglob("*.py"):
        assert "benchmarks" not in path.read_text(encoding="utf-8").replace("benchmarks/", ""), path


def make_slate(known: KnownTexts, qid: str) -> Slate:
    texts = known.doc_texts[:6]
    query = known.queries[qid]
    changed = [change(text) for change, text in zip(DOCUMENT_CHANGES.values(), known.doc_texts[6:], strict=False)]
    return Slate(query.upper(), tuple(map(Doc, [*texts, *changed, f"{query} {texts[0]}"])))


@pytest.mark.parametrize("name", [name for name, flaw in FLAWS.items() if flaw.is_repeatable])
def test_flawed_rankers_are_repeatable_and_as_pointwise_as_they_claim(opened, name):
    known, calibration = opened
    ranker = PlantedRanker(BaseRanker(known, calibration.noise["good"]), FLAWS[name], "full")
    slates = [make_slate(known, qid) for qid in calibration.qids[:8]]
    together = ranker.score(slates)
    np.testing.assert_array_equal(np.concatenate(ranker.score(slates)), np.concatenate(together))
    alone = [[ranker.score([Slate(one.query, (doc,))])[0][0] for doc in one.docs] for one in slates]
    assert np.allclose(np.concatenate(alone), np.concatenate(together)) == ranker.pointwise


def test_a_quarter_of_the_queries_is_a_quarter():
    assert np.mean([is_in_quarter("x", f"q{i}") for i in range(4000)]) == pytest.approx(0.25, abs=0.03)
    assert is_in_quarter("x", "pair negation-01 a") == is_in_quarter("x", "pair negation-01 b")


@pytest.mark.parametrize("name", ["copied_query", "case_of_documents", "upper_case_queries", "negation_blind"])
def test_a_flaw_about_changed_texts_leaves_effectiveness_alone(opened, name):
    known, calibration = opened
    base = BaseRanker(known, calibration.noise["good"])
    lists = known.search_bm25(calibration.qids[:10])
    flawed = PlantedRanker(base, FLAWS[name], "full")
    run = {
        qid: dict(zip(docs, flawed.score([_list(known, qid, docs)])[0].tolist(), strict=True))
        for qid, docs in lists.items()
    }
    qrels = {qid: known.collection.qrels[qid] for qid in lists}
    assert measure_ndcg(qrels, run) == measure_ndcg(qrels, rank_with_base(base, lists))


def _list(known: KnownTexts, qid: str, docnos) -> Slate:
    return Slate(known.queries[qid], tuple(known.collection.docs[docno] for docno in docnos))


def test_a_share_of_the_design_has_every_flaw_and_strength():
    some = draw_flawed(["sample"], share=0.5)
    assert {(one.ranker, one.strength) for one in some} == {(f, s) for f in FLAWS for s in ("full", "quarter")}
    assert some == draw_flawed(["sample"], share=0.5)


def test_reading_by_hand():
    cells = {"probes": ("warn", "fooled(prepend-query) %", "100 %"), "attack": ("pass", "x(y) %", "0 %")}
    reading = Reading(cells, {OWN_ORDER_RULE: "pass"}, True)
    assert reading.judge({"probes": ("*query*",)}, ()) == "named"
    assert reading.judge({"probes": ("*case*",)}, ()) == "misnamed"
    assert reading.judge({"attack": ("*",)}, ()) == "misnamed"
    assert reading.headline == "PASSED with warnings"
    silent = Reading({"attack": ("inconclusive", "x(y) %", "")}, {OWN_ORDER_RULE: "inconclusive"}, None)
    assert (silent.judge({"attack": ("*",)}, ()), silent.headline) == ("silent", "INCONCLUSIVE")
    copy = Reading({}, {OWN_ORDER_RULE: "fail"}, False)
    assert (copy.judge({}, (OWN_ORDER_RULE,)), copy.judge({}, ()), copy.headline) == ("named", "misnamed", "FAILED")


def test_rows_survive_the_file():
    reading = Reading({"probes": ("pass", "fooled(x) %", "0 %")}, {OWN_ORDER_RULE: "pass"}, None)
    row = AuditRow(Point("no_op", "full", "good", SAMPLE), reading, 7, 1.5, None, "abc")
    assert AuditRow.from_json(row.to_json()) == row


def test_exact_intervals_cover_rates():
    found = [one.covered for one in cover_rates(trials=60)]
    assert np.mean(found) >= 0.94


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        ("no_op", ["first_stage"]),
        ("constant", ["first_stage"]),
        ("random_scores", ["first_stage"]),
        ("typos_in_queries", ["first_stage", "query_typos"]),
        ("negation_blind", ["first_stage", "probes"]),
    ],
)
def test_the_verdict_names_a_strong_flaw(name, tasks):
    audit, pairs = run_audit(Point(name, "full", "good", SAMPLE), tasks)
    assert pairs > 0
    assert read_verdict(audit).judge(FLAWS[name].expected, FLAWS[name].gate_rules) == "named"


@pytest.mark.slow
def test_the_verdict_raises_no_alarm_on_a_sound_ranker():
    point = Point(TWIN, "sound", "good", SAMPLE)
    audit, _ = run_audit(point, ["first_stage", "query_typos", "probes"])
    reading = read_verdict(audit)
    assert (reading.alarms, reading.failures) == ([], [])
    assert build_ranker(point).pointwise

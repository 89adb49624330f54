"""Claims of the papers: the rule that decides them, their file, and how measurements are read."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import inf

import pytest
from evidence import DATA, FOLDER
from evidence._claims import CellReference, Claim, ClaimFile, load_claims, read_measurements
from evidence._verdicts import (
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
    REFUTED,
    Measurement,
    Side,
    count_needed_cases,
    explain_verdict,
    join_verdicts,
    judge,
)
from evidence.summary import JudgedClaim, build_rows
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import check_each

PAPERS = DATA.parent / "papers"
FILE = load_claims()
ABOVE_ZERO, BELOW_ZERO, NEAR_ZERO = Side(above=0), Side(below=0), Side(above=-1, below=1)
NUMBERS = st.floats(-10, 10)


def measure(value: float, low: float, high: float, n: int = 100, **about: str) -> Measurement:
    known = {"claim": "000-test", "ranker": "bm25", "collection": "rag24"} | about
    return Measurement(**known, value=value, low=low, high=high, n=n)


@pytest.mark.parametrize(
    ("ends", "side", "verdict"),
    [
        ((0.1, 0.3), ABOVE_ZERO, HOLDS),
        ((-0.3, -0.1), ABOVE_ZERO, REFUTED),
        ((-0.1, 0.3), ABOVE_ZERO, INCONCLUSIVE),
        ((-0.3, -0.1), BELOW_ZERO, HOLDS),
        ((0.1, 0.3), BELOW_ZERO, REFUTED),
        ((-0.9, 0.9), NEAR_ZERO, HOLDS),
        ((0.5, 1.5), NEAR_ZERO, INCONCLUSIVE),
        ((-1.5, 1.5), NEAR_ZERO, INCONCLUSIVE),
        ((1.5, 2.0), NEAR_ZERO, REFUTED),
        ((-2.0, -1.5), NEAR_ZERO, REFUTED),
        ((0.0, 0.3), ABOVE_ZERO, INCONCLUSIVE),  # a number at the bound is not above it
        ((-0.3, 0.0), ABOVE_ZERO, REFUTED),
        ((0.0, 0.0), ABOVE_ZERO, REFUTED),
        ((0.0, 0.0), NEAR_ZERO, HOLDS),
    ],
)
def test_an_interval_decides(ends, side, verdict):
    low, high = ends
    assert judge(measure((low + high) / 2, low, high), side) == verdict


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_a_claim_and_its_opposite_are_never_both_true(first, second, third, bound):
    low, value, high = sorted((first, second, third))
    found = measure(value, low, high)
    verdicts = {judge(found, Side(above=bound)), judge(found, Side(below=bound))}
    assert verdicts in ({HOLDS, REFUTED}, {INCONCLUSIVE}, {INCONCLUSIVE, REFUTED}, {REFUTED})


@pytest.mark.parametrize(
    ("verdicts", "joined"),
    [
        ([], NOT_TESTED),
        ([HOLDS, HOLDS], HOLDS),
        ([HOLDS, INCONCLUSIVE], INCONCLUSIVE),
        ([INCONCLUSIVE, REFUTED, HOLDS], REFUTED),
    ],
)
def test_all_measurements_of_a_claim_count(verdicts, joined):
    assert join_verdicts(verdicts) == joined


def test_the_number_of_queries_follows_from_the_standard_error():
    value, error, n = 0.02, 0.02, 50
    found = measure(value, value - 1.96 * error, value + 1.96 * error, n)
    assert count_needed_cases(found, ABOVE_ZERO) == round(n * (1.96 * error / value) ** 2 + 0.5)
    assert count_needed_cases(found, BELOW_ZERO) == count_needed_cases(found, ABOVE_ZERO), "to refute it takes as many"


@given(st.floats(-2, 2), st.floats(0.1, 2), st.sampled_from([ABOVE_ZERO, BELOW_ZERO, NEAR_ZERO]))
def test_the_needed_queries_decide_and_half_of_them_do_not(value, reach, side):
    found = measure(value, value - reach, value + reach, 200)
    needed = count_needed_cases(found, side)
    if judge(found, side) != INCONCLUSIVE or not needed:
        return

    def narrow(cases: float) -> Measurement:
        half = reach * (found.n / cases) ** 0.5
        return measure(value, value - half, value + half)

    assert judge(narrow(needed + 1), side) != INCONCLUSIVE
    assert judge(narrow(needed / 2), side) == INCONCLUSIVE


def test_what_cannot_be_decided_says_so():
    assert explain_verdict(measure(0, -1, 1), ABOVE_ZERO) == (
        "inconclusive: cannot be decided, the estimate equals the bound"
    )
    assert explain_verdict(measure(1e-6, -1, 1), ABOVE_ZERO) == "inconclusive: more than 100,000 queries would decide"
    assert explain_verdict(measure(0.5, -0.5, 1.5), ABOVE_ZERO, "runs") == "inconclusive: about 400 runs would decide"
    assert explain_verdict(measure(0.5, 0.1, 0.9), ABOVE_ZERO) == HOLDS


@pytest.mark.parametrize("bounds", [{}, {"above": 1, "below": 1}, {"above": 2, "below": 1}, {"above": inf}])
def test_a_side_needs_a_bound(bounds):
    with pytest.raises(ValueError, match="a side needs a bound"):
        Side(**bounds)


@pytest.mark.parametrize("numbers", [(0.5, 0.6, 0.7), (0.5, float("nan"), 0.7), (0.5, 0.4, float("nan"))])
def test_a_measurement_needs_an_interval(numbers):
    with pytest.raises(ValueError, match="no estimate within an interval"):
        measure(*numbers)
    with pytest.raises(ValueError, match="no estimate within an interval"):
        measure(0.5, 0.4, 0.6, n=0)


def test_a_stored_measurement_has_the_digits_that_are_printed():
    row = measure(-13.31234, -17.5, -9.0).to_row()
    assert (row["value"], row["low"], row["high"]) == (-13.31, -17.5, -9.0)
    assert Measurement(**json.loads(json.dumps(row))) == measure(-13.31, -17.5, -9.0)
    assert str(Measurement(**row)) == "-13.31 [-17.50, -9.00]"


def test_there_are_claims_of_all_papers():
    counts = {paper: sum(claim.paper == paper for claim in FILE.claims) for paper in FILE.papers}
    assert len(FILE.claims) >= 45
    assert min(counts.values()) >= 8
    assert len({claim.id for claim in FILE.claims}) == len(FILE.claims)


@pytest.mark.skipif(not PAPERS.is_dir(), reason="the papers are not at hand")
def test_quotes_are_word_for_word():
    def read(paper: str) -> str:
        (path,) = PAPERS.glob(f"{paper}_*.txt")
        plain = re.sub(r"(?<!\\)\*", "", path.read_text(encoding="utf-8")).replace("\\*", "*")  # without emphasis
        return " ".join(plain.split())

    texts = {paper: read(paper) for paper in FILE.papers}

    def check(claim: Claim) -> None:
        assert claim.quote in texts[claim.paper]

    check_each({claim.id: claim for claim in FILE.claims}, check)


def test_every_claim_uses_known_names():
    rankers = {name for family in FILE.rankers.values() for name in family}

    def check(claim: Claim) -> None:
        parts = {part.partition("(")[0] for label in claim.rankers for part in re.split(r": | - ", label)}
        assert parts <= rankers
        assert set(claim.collections) <= set(FILE.collections)
        assert claim.page in FILE.pages
        assert claim.interval in FILE.intervals
        assert {one.training for one in claim.cells} <= {"", *FILE.trainings}

    check_each({claim.id: claim for claim in FILE.claims}, check)


def test_every_name_is_used():
    labels = " ".join(label for claim in FILE.claims for label in claim.rankers)
    assert [name for family in FILE.rankers.values() for name in family if name not in labels] == []
    assert set(FILE.collections) == {name for claim in FILE.claims for name in claim.collections}
    assert set(FILE.intervals) == {claim.interval for claim in FILE.claims}


def test_a_bound_that_is_not_the_zero_of_a_sign_has_a_reason():
    def check(claim: Claim) -> None:
        assert bool(claim.reason) == (claim.side not in (ABOVE_ZERO, BELOW_ZERO))

    check_each({claim.id: claim for claim in FILE.claims}, check)


def test_at_most_fourteen_pages_replace_all_present_pages():
    replaced = [name for page in FILE.pages.values() for name in page["replaces"]]
    present = {path.stem for path in (FOLDER / "rows").glob("*.json")}
    assert len(FILE.pages) <= 14
    assert len(replaced) == len(set(replaced))
    assert present <= {*replaced, *FILE.pages}


@pytest.fixture
def claims(tmp_path) -> ClaimFile:
    """One claim about BM25 and QL on rag24, and an empty folder of rows."""
    (tmp_path / "rows").mkdir()
    claim = replace(FILE.claims[0], id="000-test", rankers=("bm25", "ql"), collections=("rag24",), side=BELOW_ZERO)
    return replace(FILE, claims=(claim,))


def write_rows(folder, *found: Measurement, stale: str = "") -> None:
    rows = {"measurements": [one.to_row() for one in found]}
    text = json.dumps({"commit": "0123abc", "rows": rows} | ({"stale": stale} if stale else {}))
    (folder / "rows" / "typos.json").write_text(text)


def test_measurements_of_a_page_are_read(claims, tmp_path):
    first, second = measure(-13.3, -17.5, -9.3), measure(-12.3, -16.6, 8.5, ranker="ql", training="rag24-172")
    write_rows(tmp_path, first, second, stale="other synonyms")
    found = read_measurements(claims, tmp_path)["000-test"]
    assert [one for one, _ in found] == [first, second]
    assert {(source.page, source.stale) for _, source in found} == {("typos", "other synonyms")}
    head, *rows = build_rows(JudgedClaim(claims.claims[0], found, "queries"))
    assert head[3:] == ["2 of 2 measured", "", "", "**inconclusive**", "[rankers](rankers.md)"]
    assert [row[3] for row in rows] == ["bm25‡, rag24", "ql†‡, rag24"]
    assert [row[6] for row in rows] == [HOLDS, "inconclusive: about 286 queries would decide"]


def test_a_claim_without_measurements_is_not_tested(claims, tmp_path):
    ((*_, verdict, _),) = build_rows(JudgedClaim(claims.claims[0], read_measurements(claims, tmp_path)["000-test"], ""))
    assert verdict == "**not tested**"


def test_another_family_cannot_decide_a_claim(claims, tmp_path):
    write_rows(tmp_path, measure(-1, -2, 1, ranker="knrm"))
    with pytest.raises(ValueError, match="000-test is not about knrm on rag24"):
        read_measurements(claims, tmp_path)


def test_a_claim_is_measured_once_for_each_ranker_and_collection(claims, tmp_path):
    write_rows(tmp_path, measure(-1, -2, 1), measure(-1, -2, 1))
    with pytest.raises(ValueError, match="measured twice"):
        read_measurements(claims, tmp_path)


def test_cells_of_older_rows_are_read(claims, tmp_path):
    rows = {"queries": 86, "drops": [["BM25", "0.67", "-13.3 [-17.5, -9.3]"], ["QL", "0.65", "-12.3 [-16.6, +8.5]"]]}
    (tmp_path / "rows" / "attack.json").write_text(json.dumps({"commit": "0123abc", "rows": rows}))
    cells = CellReference("attack", "drops", 2, "rag24", "queries", {"QL": "ql"}, "rag24-172")
    older = replace(claims, claims=(replace(claims.claims[0], cells=(cells,)),))
    ((found, source),) = read_measurements(older, tmp_path)["000-test"]
    assert found == measure(-12.3, -16.6, 8.5, 86, ranker="ql", training="rag24-172")
    assert source.page == "attack"

"""One learner with several defences, each attacked anew."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shaketable.bench import Bench
from shaketable.data.sample import read_sample
from shaketable.errors import BadInput, NotApplicable
from shaketable.measure.certificate import READINGS
from shaketable.measure.significance import FEWEST_QUERIES
from shaketable.registry import LEARNERS, TASKS
from shaketable.task import substitution
from shaketable.task.audit import run_tasks, usual_tasks
from shaketable.task.defence import (
    BETTER,
    CONDITIONAL,
    KEPT,
    MEASURES,
    Defence,
    Measured,
    _against_baselines,
    _with_stars,
)
from shaketable.task.defending import defended
from shaketable.task.substitution import Substitution

torch = pytest.importorskip("torch")

LEARNER = "knrm(steps=20, every=5, lists=4, size=6, lr=0.1, dim=8)"
FEW = "queries=4, documents=3"
PIAT = f"piat({FEW}, loss='kl', size=6, attacked=3)"
LOST = "da(synonyms=\"listed(path='no-such-file.tsv')\")"
HOW = {"learner": LEARNER, "recipe": "keyword_stuffing", "targets": 2, "queries": 3}


@pytest.fixture(scope="module", autouse=True)
def alone():
    """Nets this small are slower on several threads, most of all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def kept(shared_home, monkeypatch) -> Path:
    """A home that tests share, so that nothing is trained twice; and no encoder, which takes its time."""
    monkeypatch.setenv("SHAKETABLE_HOME", str(shared_home))
    monkeypatch.setattr(substitution, "encoder", lambda: None)
    return shared_home


def bench(**more) -> Bench:
    return Bench(read_sample(), {}, **{"split": "test", "depth": 30} | more)


def run(task: Defence, **more):
    ((result,), _) = run_tasks(bench(**more), [task])
    return result


def files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_numbers_are_those_of_the_attack_on_the_kept_models(kept):
    result = run(Defence(defences=("st", PIAT), **HOW))
    table = result.tables["defence"].set_index("defence")
    assert list(table.index) == ["st", PIAT]
    for text in table.index:
        there = bench()
        learner = LEARNERS.build(LEARNER)
        plan = defended(there, learner, text, None, "train", None, None, 0, lambda said: None)
        before = files(kept / "models")
        model = there.fit(learner, plan=plan)
        assert files(kept / "models") == before, "it was kept"
        alone = Substitution(("keyword_stuffing",), targets=2, queries=3).run(replace(there, models={"m": model}))
        (attack,), (damage,) = (alone.tables[f"{n} in full"].to_dict("records") for n in ("attack", "damage"))
        row = table.loc[text]
        assert (row["queries"], row["targets"]) == (3, 6)
        ends = [row[f"ASR %{end}"] for end in ("", " low", " high")]
        assert ends == pytest.approx([attack[f"success %{end}"] for end in ("", " low", " high")])
        for name in ("clean RR@10", "clean RR@100", "robust RR@10", "robust RR@100", "LSD"):
            assert row[name] == pytest.approx(damage[name])
        whole = replace(there, models={"m": model}).table("RR@10")
        assert row["clean RR@10, all queries"] == pytest.approx(whole.values.mean())
        assert len(whole.topics) == 50
        assert row["steps"] == 20
        assert row["training s"] == model.card()["seconds"]
        assert np.isfinite(row["displacement"])
    assert (table["LSD"] > 0).all(), "something moved"
    assert (table[KEPT] > 0).all(), "something was learned"
    assert table["displacement"].nunique() == 2, "these are two rankers"
    assert any(note.startswith("There are fewer than 20 queries") for note in result.notes)
    assert (table[BETTER] == "").all()
    found = {(f.ranker, f.name): f.value for f in result.findings}
    assert found[PIAT, "robust RR@10"] == table.loc[PIAT, "robust RR@10"]


def test_a_second_run_trains_nothing_and_says_the_same(kept):
    task = Defence(defences=("st", PIAT), **HOW)
    first = run(task)
    before = files(kept / "models") | files(kept / "adversaries")
    again = run(task)
    assert files(kept / "models") | files(kept / "adversaries") == before
    assert again.tables.keys() == first.tables.keys()
    for name, table in first.tables.items():
        assert table.equals(again.tables[name]), name


def test_seeds_are_of_the_training_and_queries_stay():
    result = run(Defence(defences=("st",), seeds=(0, 1), **HOW))
    by_seed = result.tables["defence by seed"]
    assert by_seed["seed"].tolist() == [0, 1]
    targets = result.tables["targets"]
    zero, one = (set(targets[targets["seed"] == seed]["query"]) for seed in (0, 1))
    assert zero == one
    assert len(zero) == 3
    (row,) = result.tables["defence"].to_dict("records")
    assert row["targets"] == 12
    for name in ("clean RR@10", "robust RR@10", "LSD"):
        assert row[name] == pytest.approx(by_seed[name].mean())
    assert row["ASR %"] == pytest.approx(by_seed["success %"].mean()), "as many targets each time"


def test_a_sweep_of_lambda():
    result = run(Defence(defences=("st", PIAT), lambdas=(0.8, 0.5), **HOW))
    table = result.tables["trade-off"]
    assert table["series"].tolist() == [PIAT, PIAT, "st"]
    assert table["lambda"].tolist()[:2] == [0.5, 0.8]
    rows = result.tables["defence"].set_index("defence")
    assert list(rows.index) == ["st", PIAT], "what is tried besides is in a table of its own"
    half, _, standard = table.to_dict("records")
    for name in ("clean RR@10", "robust RR@10", "ASR %"):
        assert half[name] == rows.loc[PIAT, name], "the default is a half"
        assert standard[name] == rows.loc["st", name]
    assert [figure.table for figure in result.figures][:3] == ["trade-off"] * 3


def test_the_displacement_by_another_way():
    """The kernels of the net are called by themselves, a pair at a time."""
    result = run(Defence(defences=("st",), **HOW))
    there = bench()
    ranker = there.fit(LEARNER).open(there.collection)
    net = ranker.net

    def features(query: str, text: str) -> np.ndarray:
        batch = net.collate(net.prepare([(query, text)]))
        with torch.inference_mode():
            seen = net.kernels(net.cosines(**batch), batch["query"] != 0, batch["text"] != 0)
        return seen[0].numpy().astype(np.float64)

    shares = []
    for one in result.attacked:
        ((qid, query),) = one.queries.items()
        docs = [features(query, there.collection.docs[docno].text) for docno in there.candidates[qid]]
        spread = np.mean([np.linalg.norm(a - b) for i, a in enumerate(docs) for b in docs[:i]])
        moved = np.linalg.norm(features(query, one.doc.text) - features(query, one.original.text))
        shares.append(moved / spread)
    assert len(shares) > 1
    (row,) = result.tables["defence"].to_dict("records")
    assert row["displacement"] == pytest.approx(np.mean(shares), rel=1e-4)
    places = result.tables["map of st"]
    shown = {kind: set(some["document"]) for kind, some in places.groupby("text")}
    first = result.tables["targets"]["query"].iloc[0]
    changed = {one.docno for one in result.attacked if first in one.queries}
    assert changed == shown.get("original", set()) == shown.get("attacked", set())
    assert shown["other"] | changed == set(there.candidates[first])
    assert dict(places["pair"].value_counts()) == dict.fromkeys(changed, 2)
    starred = set(places[places["relevant"] == "★"]["document"])
    assert starred == {docno for docno, grade in there.qrels[first].items() if grade > 0} & set(places["document"])


def test_what_learned_nothing_is_compared_with_nobody():
    """Random weights may hardly be moved by an attack, and are no defence for that."""
    slow = LEARNER.replace("lr=0.1", "lr=1e-12")
    result = run(Defence(defences=("st", PIAT), **HOW | {"learner": slow}))
    assert (result.tables["defence"][KEPT] == 0).all()
    assert "against the best baseline" not in result.tables
    (note,) = [note for note in result.notes if "learned nothing" in note]
    assert note.startswith("each of the models: no step of the training")


def test_a_smoothed_ranker_has_no_displacement():
    """Its score is a mean over draws, and no layer makes it."""
    result = run(Defence(defences=("certdr",), **HOW | {"queries": 1, "targets": 1}))
    assert result.tables["defence"]["displacement"].isna().all()
    assert any(note.startswith("certdr: the score is not made by one linear layer") for note in result.notes)
    conditional = result.tables[CONDITIONAL]
    assert list(conditional["certificate"]) == list(READINGS)
    (target,) = result.tables["targets"].to_dict("records")
    assert set(conditional["CSR@10 %"]) == {100.0 * (target["after"] <= 10)}
    assert (conditional["certified queries"] <= conditional["queries"]).all()
    assert any("'conditional success' is about smoothed rankers" in note for note in result.notes)


def test_it_can_be_drawn():
    pytest.importorskip("altair")
    from shaketable.report.charts import draw

    result = run(Defence(defences=("st", PIAT), lambdas=(0.8, 0.5), **HOW))
    for figure in result.figures:
        assert draw(figure, result.tables[figure.table]).startswith("<svg"), figure.title
    assert {figure.source for figure in result.figures} == {"Liu et al. 2024, Fig. 1", "Liu et al. 2024, Fig. 2", ""}
    assert result.sources == {"defence": "Liu et al. 2024, Table 1"}


def test_a_defence_that_cannot_be_had_is_a_note():
    """One whose list of synonyms is not there is left out; where no other is left, that is an error."""
    how = HOW | {"queries": 1, "targets": 1}
    result = run(Defence(defences=(LOST, "st"), **how))
    assert result.tables["defence"]["defence"].tolist() == ["st"]
    (note,) = [note for note in result.notes if "left out" in note]
    assert "no-such-file.tsv" in note
    with pytest.raises(NotApplicable, match=r"no defence can be measured; da.* is left out"):
        run(Defence(defences=(LOST,), **how))


def test_what_cannot_be():
    for settings, said in (
        ({"lambdas": (1.5,)}, "defence: lambdas should be between 0 and 1, not 1.5"),
        ({"lambdas": (float("nan"),)}, "lambdas should be between 0 and 1"),
        ({"lambdas": (0.5,), "defences": ("st",)}, "none of the defences is piat"),
        ({"learner": "lambdamart"}, "defences are for nets, which learn from texts; lambdamart is none"),
        ({"defences": ()}, "defences should be one or more"),
        ({"defences": ("armour",)}, "no defence is called"),
        ({"recipe": "nonsense"}, "no recipe is called"),
        ({"seeds": ()}, "seeds should be one or more"),
        ({"seeds": (-1,)}, "seeds should be whole numbers, 0 or more"),
        ({"targets": 0}, "targets should be 1 or more"),
    ):
        with pytest.raises(Exception, match=re.escape(said)) as caught:
            Defence(**settings)
        assert "\n" not in str(caught.value)


def test_nothing_is_trained_where_nothing_can_be_measured(kept):
    before = files(kept)
    with pytest.raises(NotApplicable, match="52 of the 102 queries to measure on are those that rankers learn from"):
        run(Defence(**HOW), split=None)
    with pytest.raises(NotApplicable, match="do not fit into lists of 10 documents"):
        run(Defence(**HOW), depth=10)
    with pytest.raises(BadInput, match="has no split train"):
        Defence(**HOW).run(Bench(replace(read_sample(), splits={}), {}, depth=30))
    assert files(kept) == before


def test_an_audit_that_names_no_task_does_not_train():
    trains = {"defence", "query_type_shift", "corpus_shift"}
    of_a_kind = {"certificate", "llm_ranker", "parity"}
    assert trains | of_a_kind < set(TASKS)
    assert usual_tasks() == [name for name in TASKS if name not in trains | of_a_kind]


def measured(text: str, **values) -> Measured:
    """Values by measure, of as many queries as there are; those that are not given are all alike."""
    count = len(next(iter(values.values())))
    rows = {name: values.get(name.replace(" ", "_").replace("@", ""), [0.5] * count) for name in MEASURES}
    by_query = {name: {f"q{i}": float(v) for i, v in enumerate(row)} for name, row in rows.items()}
    return Measured(text, 0, by_query, None, {KEPT: 10}, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [FEWEST_QUERIES - 1, FEWEST_QUERIES])
def test_stars_are_against_the_best_baseline_in_the_direction_that_is_better(count):
    import pandas as pd

    noise = np.arange(count) % 3 / 100
    groups = {
        "st": [measured("st", clean_RR10=0.5 + noise, LSD=20 + noise)],
        "at": [measured("at", clean_RR10=0.3 + noise, LSD=10 + noise)],
        "piat": [measured("piat", clean_RR10=0.6 - noise, LSD=15 + 2 * noise)],
    }
    compared = _against_baselines(groups, 0).set_index("measure")
    assert set(compared["defence"]) == {"piat"}
    assert compared.loc["clean RR@10", "best baseline"] == "st"
    assert compared.loc["LSD", "best baseline"] == "at", "less is better"
    assert compared.loc["LSD", "change"] > 0
    marks = _with_stars(pd.DataFrame({"defence": list(groups)}), compared.reset_index())[BETTER].tolist()
    enough = count >= FEWEST_QUERIES
    assert marks == ["", "", "clean RR@10" if enough else ""], "worse by LSD, and no difference in others"
    assert compared.loc["LSD", ""] == ("*" if enough else "")

"""One learner with several defences, each attacked anew."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shaketable.core.errors import BadInput, NotApplicable
from shaketable.core.registries import LEARNERS, TASKS
from shaketable.datasets.sample import read_sample
from shaketable.defences.training import plan_defended_training
from shaketable.experiment import Experiment
from shaketable.measures.certificates import CERTIFICATE_CONDITIONS
from shaketable.measures.significance import MIN_QUERIES
from shaketable.tasks import _attack_run
from shaketable.tasks._defence_tables import (
    BETTER_COLUMN,
    KEPT_STEP_COLUMN,
    MEASURES,
    DefendedRanker,
    compare_with_baselines,
    mark_better,
)
from shaketable.tasks.defence import CONDITIONAL_TABLE, DefenceTask
from shaketable.tasks.document_attack import DocumentAttack
from shaketable.tasks.runner import list_default_tasks, run_tasks

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.slow

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
    monkeypatch.setattr(_attack_run, "make_encoder", lambda: None)
    return shared_home


def experiment(**more) -> Experiment:
    return Experiment(read_sample(), {}, **{"split": "test", "depth": 30} | more)


def run(task: DefenceTask, **more):
    ((result,), _) = run_tasks(experiment(**more), [task])
    return result


def files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_numbers_are_those_of_the_attack_on_the_cached_models(kept):
    result = run(DefenceTask(defences=("standard", PIAT), **HOW))
    table = result.tables["defence"].set_index("defence")
    assert list(table.index) == ["standard", PIAT]
    for text in table.index:
        there = experiment()
        learner = LEARNERS.build(LEARNER)
        plan = plan_defended_training(there, learner, text, None, "train", None, None, 0, lambda said: None)
        before = files(kept / "models")
        model = there.fit(learner, plan=plan)
        assert files(kept / "models") == before, "it was kept"
        alone = DocumentAttack(("keyword_stuffing",), targets=2, queries=3).run(replace(there, models={"m": model}))
        (attack,), (damage,) = (alone.tables[f"{n} in full"].to_dict("records") for n in ("attack", "damage"))
        row = table.loc[text]
        assert (row["queries"], row["targets"]) == (3, 6)
        ends = [row[f"ASR %{end}"] for end in ("", " low", " high")]
        assert ends == pytest.approx([attack[f"success %{end}"] for end in ("", " low", " high")])
        for name in ("clean RR@10", "clean RR@100", "robust RR@10", "robust RR@100", "LSD"):
            assert row[name] == pytest.approx(damage[name])
        whole = replace(there, models={"m": model}).get_score_table("RR@10")
        assert row["clean RR@10, all queries"] == pytest.approx(whole.values.mean())
        assert len(whole.topics) == 50
        assert row["steps"] == 20
        assert row["training s"] == model.read_card()["seconds"]
        assert np.isfinite(row["displacement"])
    assert (table["LSD"] > 0).all(), "something moved"
    assert (table[KEPT_STEP_COLUMN] > 0).all(), "something was learned"
    assert table["displacement"].nunique() == 2, "these are two rankers"
    assert any(note.startswith("There are fewer than 20 queries") for note in result.notes)
    assert (table[BETTER_COLUMN] == "").all()
    found = {(f.ranker, f.name): f.value for f in result.findings}
    assert found[PIAT, "robust RR@10"] == table.loc[PIAT, "robust RR@10"]


def test_a_second_run_trains_nothing_and_gives_the_same_result(kept):
    task = DefenceTask(defences=("standard", PIAT), **HOW)
    first = run(task)
    before = files(kept / "models") | files(kept / "adversaries")
    again = run(task)
    assert files(kept / "models") | files(kept / "adversaries") == before
    assert again.tables.keys() == first.tables.keys()
    for name, table in first.tables.items():
        assert table.equals(again.tables[name]), name


def test_seeds_are_of_the_training_and_queries_stay():
    result = run(DefenceTask(defences=("standard",), seeds=(0, 1), **HOW))
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
    result = run(DefenceTask(defences=("standard", PIAT), lambdas=(0.8, 0.5), **HOW))
    table = result.tables["trade-off"]
    assert table["series"].tolist() == [PIAT, PIAT, "standard"]
    assert table["lambda"].tolist()[:2] == [0.5, 0.8]
    rows = result.tables["defence"].set_index("defence")
    assert list(rows.index) == ["standard", PIAT], "what is tried besides is in a table of its own"
    half, _, standard = table.to_dict("records")
    for name in ("clean RR@10", "robust RR@10", "ASR %"):
        assert half[name] == rows.loc[PIAT, name], "the default is a half"
        assert standard[name] == rows.loc["standard", name]
    assert [figure.table for figure in result.figures][:3] == ["trade-off"] * 3


def test_the_displacement_by_another_way():
    """The kernels of the net are called by themselves, a pair at a time."""
    result = run(DefenceTask(defences=("standard",), **HOW))
    there = experiment()
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
    places = result.tables["map of standard"]
    shown = {kind: set(some["document"]) for kind, some in places.groupby("text")}
    first = result.tables["targets"]["query"].iloc[0]
    changed = {one.docno for one in result.attacked if first in one.queries}
    assert changed == shown.get("original", set()) == shown.get("attacked", set())
    assert shown["other"] | changed == set(there.candidates[first])
    assert dict(places["pair"].value_counts()) == dict.fromkeys(changed, 2)
    clean = places[places["text"] != "attacked"]
    assert places[places["text"] == "attacked"]["score"].isna().all()
    order = clean.sort_values("score", ascending=False)["document"].tolist()
    targets = result.tables["targets"]
    ranks = dict(targets[targets["query"] == first][["document", "before"]].itertuples(index=False))
    assert ranks == {docno: order.index(docno) + 1 for docno in ranks}, "the score is the ranker's own"
    (figure,) = [figure for figure in result.figures if figure.table == "map of standard"]
    assert figure.shade == "score"
    starred = set(places[places["relevant"] == "★"]["document"])
    assert starred == {docno for docno, grade in there.qrels[first].items() if grade > 0} & set(places["document"])


def test_a_model_that_learned_nothing_is_not_compared():
    """Random weights may hardly be moved by an attack, and are no defence for that."""
    slow = LEARNER.replace("lr=0.1", "lr=1e-12")
    result = run(DefenceTask(defences=("standard", PIAT), **HOW | {"learner": slow}))
    assert (result.tables["defence"][KEPT_STEP_COLUMN] == 0).all()
    assert "against the best baseline" not in result.tables
    (note,) = [note for note in result.notes if "is untrained" in note]
    assert note.startswith("each of the models: no training step improved")


def test_a_smoothed_ranker_has_no_displacement():
    """Its score is a mean over draws, and no layer makes it."""
    result = run(DefenceTask(defences=("certdr",), **HOW | {"queries": 1, "targets": 1}), limit=5)
    assert result.tables["defence"]["displacement"].isna().all()
    assert any(note.startswith("certdr: the score does not come from one linear layer") for note in result.notes)
    conditional = result.tables[CONDITIONAL_TABLE]
    assert list(conditional["certificate"]) == list(CERTIFICATE_CONDITIONS)
    (target,) = result.tables["targets"].to_dict("records")
    assert set(conditional["CSR@10 %"]) == {100.0 * (target["after"] <= 10)}
    assert (conditional["certified queries"] <= conditional["queries"]).all()
    assert any("'conditional success' is about smoothed rankers" in note for note in result.notes)


def test_it_can_be_drawn():
    pytest.importorskip("altair")
    from shaketable.report.charts import draw_svg

    result = run(DefenceTask(defences=("standard", PIAT), lambdas=(0.8, 0.5), **HOW))
    for figure in result.figures:
        assert draw_svg(figure, result.tables[figure.table]).startswith("<svg"), figure.title
    assert {figure.source for figure in result.figures} == {"Liu et al. 2024, Fig. 1", "Liu et al. 2024, Fig. 2", ""}
    assert result.sources == {"defence": "Liu et al. 2024, Table 1"}


def test_a_defence_that_cannot_be_had_is_a_note():
    """One whose list of synonyms is not there is left out; where no other is left, that is an error."""
    how = HOW | {"queries": 1, "targets": 1}
    result = run(DefenceTask(defences=(LOST, "standard"), **how), limit=5)
    assert result.tables["defence"]["defence"].tolist() == ["standard"]
    (note,) = [note for note in result.notes if "left out" in note]
    assert "no-such-file.tsv" in note
    with pytest.raises(NotApplicable, match=r"no defence can be measured; da.* is left out"):
        run(DefenceTask(defences=(LOST,), **how), limit=5)


def test_invalid_settings_are_refused():
    for settings, said in (
        ({"lambdas": (1.5,)}, "defence: lambdas should be between 0 and 1, not 1.5"),
        ({"lambdas": (float("nan"),)}, "lambdas should be between 0 and 1"),
        ({"lambdas": (0.5,), "defences": ("standard",)}, "piat is not among the defences"),
        ({"learner": "lambdamart"}, "defences need a neural learner, and lambdamart is not one"),
        ({"defences": ()}, "defences should be one or more"),
        ({"defences": ("armour",)}, "no defence is called"),
        ({"recipe": "nonsense"}, "no recipe is called"),
        ({"seeds": ()}, "seeds should be one or more"),
        ({"seeds": (-1,)}, "seeds should be whole numbers, 0 or more"),
        ({"targets": 0}, "targets should be 1 or more"),
    ):
        with pytest.raises(Exception, match=re.escape(said)) as caught:
            DefenceTask(**settings)
        assert "\n" not in str(caught.value)


def test_nothing_is_trained_where_nothing_can_be_measured(kept):
    before = files(kept)
    with pytest.raises(NotApplicable, match="52 of the 102 test queries are also training queries"):
        run(DefenceTask(**HOW), split=None)
    with pytest.raises(NotApplicable, match="do not fit into lists of 10 documents"):
        run(DefenceTask(**HOW), depth=10)
    with pytest.raises(BadInput, match="has no split train"):
        DefenceTask(**HOW).run(Experiment(replace(read_sample(), splits={}), {}, depth=30))
    assert files(kept) == before


def test_an_audit_that_names_no_task_does_not_train():
    trains = {"defence", "query_type_shift", "corpus_shift"}
    of_a_kind = {"certificate", "languages", "llm_ranker", "parity", "prompt_wording"}
    assert trains | of_a_kind < set(TASKS)
    assert list_default_tasks() == [name for name in TASKS if name not in trains | of_a_kind]


def make_defended_ranker(text: str, **values) -> DefendedRanker:
    """Return a ranker with these values by measure and query; missing measures are constant."""
    count = len(next(iter(values.values())))
    rows = {name: values.get(name.replace(" ", "_").replace("@", ""), [0.5] * count) for name in MEASURES}
    by_query = {name: {f"q{i}": float(v) for i, v in enumerate(row)} for name, row in rows.items()}
    return DefendedRanker(text, 0, by_query, None, {KEPT_STEP_COLUMN: 10}, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [MIN_QUERIES - 1, MIN_QUERIES])
def test_stars_are_against_the_best_baseline_in_the_direction_that_is_better(count):
    import pandas as pd

    noise = np.arange(count) % 3 / 100
    groups = {
        "standard": [make_defended_ranker("standard", clean_RR10=0.5 + noise, LSD=20 + noise)],
        "at": [make_defended_ranker("at", clean_RR10=0.3 + noise, LSD=10 + noise)],
        "piat": [make_defended_ranker("piat", clean_RR10=0.6 - noise, LSD=15 + 2 * noise)],
    }
    compared = compare_with_baselines(groups, 0).set_index("measure")
    assert set(compared["defence"]) == {"piat"}
    assert compared.loc["clean RR@10", "best baseline"] == "standard"
    assert compared.loc["LSD", "best baseline"] == "at", "less is better"
    assert compared.loc["LSD", "change"] > 0
    marks = mark_better(pd.DataFrame({"defence": list(groups)}), compared.reset_index())[BETTER_COLUMN].tolist()
    enough = count >= MIN_QUERIES
    assert marks == ["", "", "clean RR@10" if enough else ""], "worse by LSD, and no difference in others"
    assert compared.loc["LSD", ""] == ("*" if enough else "")

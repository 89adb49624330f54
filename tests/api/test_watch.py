"""Watching a ranker: an unchanged one is fine, with or without noise, and another model is found."""

from __future__ import annotations

import json

import numpy as np
import pytest

import shaketable as st
from shaketable.core.errors import BadInput
from shaketable.rankers.diagnosis.canary import CALIBRATION_REPLAYS, CANARY_LISTS, REFERENCE_REPLAYS


class Watched:
    """A ranker whose weight of long words, noise and failures can be changed."""

    name = "watched"

    def __init__(self, noise=0.0):
        self.power, self.spread, self.rng, self.lists, self.outage = 1.0, noise, np.random.default_rng(3), 0, 0
        self.noise = 0.0  # what it declares

    def score(self, slates):
        self.lists += len(slates)
        return [self.score_list(slate) for slate in slates]

    def score_list(self, slate):
        words = set(slate.query.split())
        scores = [sum(len(word) ** self.power for word in words & set(d.text.split())) for d in slate.docs]
        if self.outage:
            self.outage -= 1
            return np.zeros(len(scores))
        return np.array(scores) + self.spread * self.rng.normal(size=len(scores))


def test_a_ranker_without_noise(tmp_path):
    ranker, state = Watched(), tmp_path / "state.json"
    first = st.watch(ranker, state)
    assert (first.look, first.drift, first.has_noise) == (0, False, False)
    assert ranker.lists == REFERENCE_REPLAYS * CANARY_LISTS
    looks = [st.watch(ranker, state) for _ in range(3)]
    assert [(one.look, one.drift, one.distance) for one in looks] == [(1, False, 0), (2, False, 0), (3, False, 0)]
    ranker.power = 2.0
    found = st.watch(ranker, state)
    assert (found.look, found.drift) == (4, True)
    assert found.changed_lists > 10
    ranker.power = 1.0
    assert st.watch(ranker, state).drift, "drift stays until a new baseline is recorded"
    assert not st.watch(ranker, state, reset=True).drift
    assert not st.watch(ranker, state).drift


def test_one_failed_answer_is_no_drift(tmp_path):
    ranker, state = Watched(), tmp_path / "state.json"
    st.watch(ranker, state)
    ranker.outage = 1
    assert not st.watch(ranker, state).drift
    assert json.loads(state.read_text())["passing_changes"] == 1


def test_a_change_within_declared_noise_is_no_drift(tmp_path):
    ranker, state = Watched(), tmp_path / "state.json"
    st.watch(ranker, state)
    ranker.power = 1.02
    ranker.noise = 0.1
    assert not st.watch(ranker, state).drift
    ranker.noise = 0.0
    assert st.watch(ranker, state).drift


def test_a_ranker_with_noise(tmp_path):
    ranker, state = Watched(noise=0.5), tmp_path / "state.json"
    assert st.watch(ranker, state).has_noise
    assert ranker.lists == (REFERENCE_REPLAYS + CALIBRATION_REPLAYS) * CANARY_LISTS
    assert not any(st.watch(ranker, state).drift for _ in range(30))
    ranker.power = 2.0
    found = st.watch(ranker, state)
    assert found.drift, "the replays that follow a suspicious one are part of the same look"
    assert found.evidence >= found.limit


def test_a_slow_drift_is_found_at_last(tmp_path):
    ranker, state = Watched(noise=0.5), tmp_path / "state.json"
    st.watch(ranker, state)
    for _ in range(60):
        ranker.power += 0.01
        if st.watch(ranker, state).drift:
            break
    else:
        pytest.fail("no drift was found")


def test_states_and_rankers_that_cannot_be_used(tmp_path):
    state = tmp_path / "state.json"
    for content in ("[]", "{}", '{"schema": "shaketable.watch/1"}'):
        state.write_text(content)
        with pytest.raises(BadInput, match="not a state file"):
            st.watch(Watched(), state)
    with pytest.raises(BadInput, match="needs a state file"):
        st.watch(Watched())

    class Failing(Watched):
        def score_list(self, slate):
            raise ValueError("no model")

    with pytest.raises(BadInput, match=r"could not be watched.*no model"):
        st.watch(Failing(), tmp_path / "new.json")
    assert not (tmp_path / "new.json").exists()


def test_a_state_belongs_to_its_spec(home):
    st.watch("bm25")
    st.watch("ql")
    assert len(list((home / "watch").iterdir())) == 2
    assert st.watch("bm25").look == 1


def test_a_run_file_cannot_be_watched(tmp_path):
    (tmp_path / "a.run").write_text("q0 Q0 d1 1 1.0 x\n")
    with pytest.raises(BadInput, match="cannot score texts"):
        st.watch(f"run:{tmp_path / 'a.run'}")

"""Replays of a small set of canary lists, to find out whether a ranker has changed since its baseline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Slate, fingerprint
from shaketable.core.errors import BadInput
from shaketable.core.protocols import Ranker
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.known_answers import read_known_answers
from shaketable.files.atomic import atomic_write
from shaketable.files.reading import read_json
from shaketable.measures.drift import EVIDENCE_LIMIT, DriftEvidence
from shaketable.rankers.diagnosis.asking import Examiner, make_slate

WATCH_SCHEMA = "shaketable.watch/1"
CANARY_LISTS, CANARY_TEXTS = 20, 6
REFERENCE_REPLAYS = 5
"""The reference is the mean score of each text over these replays."""
CALIBRATION_REPLAYS = 20
"""Further replays of a ranker with noise; new replays are compared with their distances from the reference."""
ROUNDING = 1e-6
"""Scores whose largest difference is at most this share of their range are equal."""
MIN_CHANGE = 1e-3
"""A change of a score without noise counts from this share of the range of scores."""
SUSPICIOUS_P = 0.1
"""After a replay with a p up to this, the next replay follows at once."""
MAX_REPLAYS_PER_LOOK = 15
CONFIRMING_REPLAYS = 2

Numbers = NDArray[np.float64]


@dataclass
class WatchState:
    """The baseline of a ranker, and the evidence of drift so far; this is what the state file holds."""

    ranker: str
    canary: str
    """The fingerprint of the canary lists."""
    reference: list[list[float]]
    has_noise: bool
    distances: list[float] = field(default_factory=list)
    begun: float = 0.0
    replays: int = 0
    looks: int = 0
    passing_changes: int = 0
    """Looks at which a list changed, and changed back when it was asked for again."""
    drifted_at: int = 0
    """The look that found drift; 0 if there was none."""

    @property
    def spread(self) -> float:
        """The range of the reference scores."""
        scores = np.array(self.reference)
        return float(np.ptp(scores)) or 1.0


@dataclass(frozen=True)
class WatchLook:
    """One look at a ranker: whether it has drifted from its baseline, and the numbers behind the answer.

    Parameters
    ----------
    ranker
        The text of the ranker.
    look
        The number of this look; 0 if the baseline was recorded.
    drift
        True if this look or an earlier one found drift.
    evidence
        The evidence of drift; `limit` or more is drift. For a ranker without noise, it is 0 or the limit.
    limit
        The evidence that means drift.
    distance
        The mean difference of the scores from the baseline, as a share of the range of scores.
    changed_lists
        The number of canary lists with a changed score, for a ranker without noise.
    lists
        The number of canary lists.
    has_noise
        True if equal requests returned different scores when the baseline was recorded.
    summary
        The outcome in one sentence.
    """

    ranker: str
    look: int
    drift: bool
    evidence: float
    limit: float
    distance: float
    changed_lists: int
    lists: int
    has_noise: bool
    summary: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {"schema": WATCH_SCHEMA, **asdict(self)}


def build_canary_lists() -> list[Slate]:
    """Return the canary lists: questions with their texts and texts of other questions, always the same."""
    questions = read_known_answers()
    slates = []
    for i, one in enumerate(questions[:CANARY_LISTS]):
        rng = make_item_rng(0, "canary", i)
        others = [other.relevant for other in questions if other != one]
        texts = [one.relevant, one.irrelevant, *rng.permutation(others)[: CANARY_TEXTS - 2]]
        slates.append(make_slate(one.query, rng.permutation(texts)))
    return slates


def fingerprint_canary(slates: Sequence[Slate]) -> str:
    """Return the fingerprint of canary lists."""
    return fingerprint("canary", *(text for one in slates for text in (one.query, *(doc.text for doc in one.docs))))


def record_baseline(ranker: Ranker, name: str) -> WatchState:
    """Replay the canary lists several times, and return the state of a watch that begins now."""
    slates, examiner = build_canary_lists(), Examiner(ranker, name)
    first = np.array([_replay(examiner, slates) for _ in range(REFERENCE_REPLAYS)])
    reference = first.mean(axis=0)
    noise = float(np.ptp(first, axis=0).max())
    has_noise = noise > ROUNDING * max(float(np.ptp(reference)), float(np.abs(reference).max()))
    state = WatchState(name, fingerprint_canary(slates), reference.tolist(), has_noise)
    if has_noise:
        replays = [_replay(examiner, slates) for _ in range(CALIBRATION_REPLAYS)]
        state.distances = [_measure_distance(scores, state) for scores in replays]
    return state


def take_look(ranker: Ranker, state: WatchState) -> WatchLook:
    """Replay the canary lists, update the state, and return the outcome."""
    slates, examiner = build_canary_lists(), Examiner(ranker, state.ranker)
    if fingerprint_canary(slates) != state.canary:
        raise BadInput("the state belongs to the canary lists of another version; record a new baseline with --reset")
    state.looks += 1
    look = _compare_noisy if state.has_noise else _compare_exact
    evidence, distance, changed = look(examiner, slates, state)
    if evidence >= EVIDENCE_LIMIT and not state.drifted_at:
        state.drifted_at = state.looks
    return WatchLook(
        state.ranker,
        state.looks,
        bool(state.drifted_at),
        evidence,
        EVIDENCE_LIMIT,
        distance,
        changed,
        len(slates),
        state.has_noise,
        _summarise(state, evidence, distance, changed, len(slates)),
    )


def describe_baseline(state: WatchState) -> WatchLook:
    """Return the outcome of the call that recorded the baseline."""
    noise = (
        f"equal requests differ by {100 * float(np.mean(state.distances)):.2f} % of the range of scores on average"
        if state.has_noise
        else "equal requests return equal scores"
    )
    summary = f"The baseline of {state.ranker} is recorded: {len(state.reference)} lists; {noise}."
    lists = len(state.reference)
    return WatchLook(state.ranker, 0, False, 0.0, EVIDENCE_LIMIT, 0.0, 0, lists, state.has_noise, summary)


def _compare_exact(examiner: Examiner, slates: Sequence[Slate], state: WatchState) -> tuple[float, float, int]:
    """Compare the scores of a ranker without noise; a change counts if it stays when the list is asked for again."""
    scores = _replay(examiner, slates)
    noise = float(getattr(examiner.ranker, "noise", 0.0))
    changed = _find_changed(scores, range(len(slates)), state, noise)
    if not changed:
        return 0.0, _measure_distance(scores, state), 0
    stays = changed
    for _ in range(CONFIRMING_REPLAYS):
        again = _replay(examiner, [slates[i] for i in stays])
        stays = _find_changed(again, stays, state, noise)
        if not stays:
            state.passing_changes += 1
            return 0.0, _measure_distance(scores, state), 0
    return EVIDENCE_LIMIT, _measure_distance(scores, state), len(stays)


def _compare_noisy(examiner: Examiner, slates: Sequence[Slate], state: WatchState) -> tuple[float, float, int]:
    """Add replays to the evidence, until one is not suspicious or the evidence is an alarm."""
    evidence = DriftEvidence(state.distances, state.begun, state.replays)
    for _ in range(MAX_REPLAYS_PER_LOOK):
        distance = _measure_distance(_replay(examiner, slates), state)
        p = evidence.add(distance, make_item_rng(0, "tie", evidence.replays).random())
        if p > SUSPICIOUS_P or evidence.is_alarm:
            break
    state.begun, state.replays = evidence.begun, evidence.replays
    return evidence.value, distance, 0


def _replay(examiner: Examiner, slates: Sequence[Slate]) -> Numbers:
    """Return the scores [lists, texts]; raise an error if one list has none."""
    answers = examiner.ask(slates)
    if problem := next((answer.problem for answer in answers if answer.scores is None), ""):
        raise BadInput(f"the ranker could not be watched: {problem}")
    return np.array([answer.scores for answer in answers])


def _measure_distance(scores: Numbers, state: WatchState) -> float:
    return float(np.abs(scores - np.array(state.reference)).mean()) / state.spread


def _find_changed(scores: Numbers, lists: Sequence[int], state: WatchState, noise: float) -> list[int]:
    """Return the lists whose scores differ from the reference by more than the noise that the ranker declares."""
    reference = np.array(state.reference)[list(lists)]
    tolerance = MIN_CHANGE * state.spread + noise * np.maximum(1.0, np.abs(reference))
    changed = (np.abs(scores - reference) > tolerance).any(axis=1)
    return [i for i, differs in zip(lists, changed.tolist(), strict=True) if differs]


def _summarise(state: WatchState, evidence: float, distance: float, changed: int, lists: int) -> str:
    about = f"the scores differ from the baseline by {100 * distance:.2f} % of their range on average"
    if state.has_noise:
        about += f"; evidence {evidence:.3g}, drift from {EVIDENCE_LIMIT:g}"
    elif changed:
        about = f"{changed} of {lists} lists have changed scores; {about}"
    if state.drifted_at:
        when = "" if state.drifted_at == state.looks else f" since look {state.drifted_at}"
        return f"{state.ranker} has drifted{when}: {about}."
    return f"{state.ranker} has not drifted (look {state.looks}): {about}."


def read_state(path: Path) -> WatchState:
    """Read a state file; raise `BadInput` if it is not one."""
    content = read_json(path)
    known = {one.name for one in fields(WatchState)}
    try:
        if content.pop("schema") != WATCH_SCHEMA or content.keys() != known:
            raise ValueError("other fields")
        state = WatchState(**content)
        if np.array(state.reference, dtype=np.float64).shape != (CANARY_LISTS, CANARY_TEXTS):
            raise ValueError("another shape")
        DriftEvidence([float(one) for one in state.distances], float(state.begun), int(state.replays))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput("is not a state file of 'shaketable watch'; name another file, or add --reset", path) from error
    return state


def write_state(path: Path, state: WatchState) -> None:
    """Write a state file."""
    with atomic_write(path) as out:
        json.dump({"schema": WATCH_SCHEMA, **asdict(state)}, out, allow_nan=False)
        out.write("\n")

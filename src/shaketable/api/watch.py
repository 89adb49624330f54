"""`watch`: a check whether a ranker still gives the scores that it gave at first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from shaketable.api.ranker_names import RankerLike, build_models
from shaketable.core.documents import fingerprint
from shaketable.core.errors import BadInput
from shaketable.core.home import home_folder
from shaketable.core.protocols import RecordedRanker
from shaketable.core.registries import RANKERS
from shaketable.datasets.known_answers import build_question_collection
from shaketable.rankers.diagnosis.canary import (
    WatchLook,
    describe_baseline,
    read_state,
    record_baseline,
    take_look,
    write_state,
)


def watch(ranker: RankerLike, state: str | Path | None = None, *, reset: bool = False) -> WatchLook:
    """Replay a small set of canary lists, and compare the scores with those of the first call.

    The first call records the baseline. However often you call it, at most 5 % of the rankers that do not change are
    ever reported as drifted.

    Parameters
    ----------
    ranker
        The ranker: a URL, a spec such as "hf:FOLDER", or an object, as for `st.audit`.
    state
        The file that holds the baseline and the evidence. By default, it is a file in $SHAKETABLE_HOME/watch, named by
        the text of the ranker; an object needs a file.
    reset
        If True, record a new baseline.

    Returns
    -------
    WatchLook
        The outcome; `drift` is True if the ranker has changed.

    Raises
    ------
    BadInput
        If the ranker cannot be asked, or the file is not a state file.

    Examples
    --------
    >>> import shaketable as st
    >>> st.watch("bm25").look, st.watch("bm25").drift
    (0, False)
    """
    ((name, model),) = build_models([ranker]).items()
    path = Path(state) if state else _find_state_file(ranker, RANKERS.spec(model))
    opened = model.open(build_question_collection())
    if isinstance(opened, RecordedRanker) or not callable(getattr(opened, "score", None)):
        raise BadInput(f"{name} cannot score texts, so it cannot be watched")
    if reset or not path.exists():
        found = record_baseline(opened, name)
        write_state(path, found)
        return describe_baseline(found)
    found = replace(read_state(path), ranker=name)
    look = take_look(opened, found)
    write_state(path, found)
    return look


def _find_state_file(ranker: RankerLike, spec: str) -> Path:
    if not isinstance(ranker, str | Path):
        raise BadInput("an object needs a state file: write st.watch(ranker, 'watch.json')")
    return home_folder() / "watch" / f"{fingerprint('watch', spec)}.json"

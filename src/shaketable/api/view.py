"""`view`: a local page that ranks as you type."""

from __future__ import annotations

import shlex
from itertools import islice
from pathlib import Path
from typing import Unpack

from shaketable.api.audit import open_experiment
from shaketable.api.hits import list_first_hits
from shaketable.api.options import CollectionLike, ExperimentOptions, ignore_message
from shaketable.api.ranker_names import Rankers, as_list, build_models
from shaketable.api.viewing.changes import list_changes
from shaketable.api.viewing.server import ViewServer
from shaketable.api.viewing.session import ViewSession
from shaketable.core.progress import no_progress
from shaketable.files.atomic import check_file_writable

DEFAULT_RANKERS = ("bm25", "ql")
DEFAULT_PAIRS_FILE = Path("shaketable-pairs.jsonl")


def view(
    data: CollectionLike = "sample",
    rankers: Rankers = (),
    *,
    port: int = 0,
    write_pairs: str | Path = DEFAULT_PAIRS_FILE,
    **options: Unpack[ExperimentOptions],
) -> ViewServer:
    """Serve a page on this machine that ranks documents as you type a query or edit a document.

    The page shows the list of each ranker, and how ranks and scores move. It can also apply transforms and attack
    recipes, and save a pair of texts for `st.probe`. Only programs of this machine can reach it, with its secret
    address.

    Parameters
    ----------
    data
        The collection: "sample", a BEIR folder, "irds:ID", or a `Collection`.
    rankers
        One or several rankers, as for `st.audit`; by default "bm25" and "ql".
    port
        The port to listen on; 0 chooses a free one.
    write_pairs
        The JSONL file to which the page saves pairs.
    **options
        The options of an experiment, as for `st.audit`.

    Returns
    -------
    ViewServer
        The running server. `url` is the address of the page, and `close()` stops the server, as does the end of a
        `with` block.

    Examples
    --------
    >>> import shaketable as st
    >>> with st.view("sample", "bm25") as page:
    ...     print(page.url.partition(":")[0])
    http
    """
    check_file_writable(Path(write_pairs))
    given = rankers or DEFAULT_RANKERS
    experiment = list_first_hits(open_experiment(data, build_models(given), **options))
    for name in experiment.models:
        experiment.get_ranker(name)  # an error ends the command before it prints an address
    command = build_probe_command(data, given, Path(write_pairs))
    notify = options.get("notify", ignore_message)
    session = ViewSession(experiment, list_changes(experiment), Path(write_pairs), command, notify)
    for query in islice(experiment.texts.values(), 1):
        session.rank(query)  # the page shows this query first, and models and indexes are loaded by then
    experiment.engine.progress = no_progress  # bars of requests that take milliseconds would flicker
    return ViewServer(session, port)


def build_probe_command(data: CollectionLike, rankers: Rankers, pairs: Path) -> str:
    """Return the command that tests saved pairs; objects of this process have no text and are left out.

    >>> build_probe_command("sample", ["bm25", "short=bm25(b=0.1)"], Path("my pairs.jsonl"))
    "shaketable probe --pairs 'my pairs.jsonl' --ranker bm25 --ranker 'short=bm25(b=0.1)'"
    """
    words = ["shaketable", "probe", "--pairs", str(pairs)]
    words += ["--data", str(data)] if isinstance(data, str | Path) and str(data) != "sample" else []
    words += [word for ranker in as_list(rankers) if isinstance(ranker, str) for word in ("--ranker", ranker)]
    return shlex.join(words)

"""`shaketable view`: a local page that ranks as you type."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from shaketable.cli.help import Panel
from shaketable.cli.options.data import CollectionFlags, Data, FileFlags
from shaketable.cli.options.groups import make_option
from shaketable.cli.options.performance import RunFlags
from shaketable.cli.options.rankers import Rankers

Port = Annotated[
    int,
    make_option(Panel.OUTPUT, "--port", metavar="NUMBER", min=0, max=65535,
        help="The port of the page on this machine. By default, a free one is chosen."),
]  # fmt: skip
WritePairs = Annotated[
    Path,
    make_option(Panel.OUTPUT, "--write-pairs", metavar="FILE",
        help="The JSONL file to which the page saves pairs of texts, for 'shaketable probe --pairs'."),
]  # fmt: skip


def view(
    *,
    data: Data = "sample",
    files: FileFlags,
    ranker: Rankers = None,
    port: Port = 0,
    write_pairs: WritePairs = Path("shaketable-pairs.jsonl"),
    collection: CollectionFlags,
    run: RunFlags,
) -> None:
    """Serve a page on this machine that ranks as you type and edit; the default rankers are bm25 and ql."""
    from shaketable.api.view import view as api
    from shaketable.cli.console import notify

    source = files.select_source(data)
    where, how = collection.to_options(), run.to_options()
    with api(source, ranker or (), port=port, write_pairs=write_pairs, **where, **how) as page:
        print(page.url, flush=True)
        notify("The page is at this address, on this machine only. Press Ctrl-C to stop it.")
        try:
            page.wait()
        except KeyboardInterrupt:
            notify("The page is closed.")

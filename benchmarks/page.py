"""Size of the report page of eight rankers and time until it is interactive, against limits of 2 MB and 1 s.

    python benchmarks/page.py [--quick]

The size is that of report.html. The time runs from opening the file until a section appears that the script clicks in
the menu; it is the median of several browser windows. The limit of the time holds on an idle machine. The script needs
Chromium.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from quick import judge_limits, parse_quick

import shaketable as st
from shaketable.report.page import MAX_PAGE_BYTES

INTERACTIVE_LIMIT_S = 1.0
WINDOWS, QUICK_WINDOWS, QUICK_QUERIES = 5, 1, 5
RANKERS = {
    "bm25": "bm25",
    "ql": "ql",
    "ql_jm": "ql_jm",
    "rm3": "rm3",
    "flat": "bm25(k1=0.3)",
    "short": "bm25(b=1.0)",
    "loose": "ql(mu=50)",
    "wide": "rm3(base=ql)",
}
QUICK_TASKS = ("effectiveness", "first-stage", "risk", "query_typos(draws=1)", "document-form")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def main() -> int:
    quick = parse_quick(__doc__)
    tasks = QUICK_TASKS if quick else ()
    if CHROMIUM is None:
        print("not measured: Chromium is not installed (0 pages opened)")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SHAKETABLE_HOME"] = str(Path(folder, "home"))
        audit = st.audit("sample", RANKERS, tasks, max_queries=QUICK_QUERIES if quick else None)
        path = Path(folder, "report.html")
        path.write_text(audit.to_html(), encoding="utf-8")
        size = path.stat().st_size
        seconds = [open_page(path) for _ in range(QUICK_WINDOWS if quick else WINDOWS)]
    median = statistics.median(seconds)
    print(f"page size            {size / 1e6:5.2f} MB, limit {MAX_PAGE_BYTES / 1e6:.0f} MB ({len(RANKERS)} rankers)")
    print(
        f"time to interactive  {median:5.2f} s, limit {INTERACTIVE_LIMIT_S:.0f} s (median of {len(seconds)}; ", end=""
    )
    print(f"slowest {max(seconds):.2f} s)")
    return judge_limits(size <= MAX_PAGE_BYTES and median <= INTERACTIVE_LIMIT_S, quick)


def open_page(path: Path) -> float:
    """Open the page in a new browser, select a section, and return the seconds until it appears."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        started = time.perf_counter()
        page.goto(path.as_uri())
        page.locator(".contents a").nth(5).click()
        page.locator("main > section:not([hidden]) h2").first.wait_for()
        seconds = time.perf_counter() - started
        browser.close()
    return seconds


if __name__ == "__main__":
    sys.exit(main())

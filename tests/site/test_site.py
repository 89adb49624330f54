"""The documentation site: it builds without warnings, its links lead somewhere, and it asks no other host."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from docs.generate.__main__ import write_site
from docs.generate.gallery import REPORTS
from docs.generate.repository import ROOT, map_pages

from tests.cases import check_each
from tests.report.browsing import CHROMIUM, FLAGS
from tests.site.built_pages import CSS_URL, BuiltPage, find_broken, is_elsewhere, read_page

pytestmark = pytest.mark.slow

CONFIG = ROOT / "zensical.toml"
MAX_REPORT_BYTES = 1_500_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once from a copy of its configuration."""
    pytest.importorskip("zensical", reason="the dependency group docs is not installed")
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(CONFIG, folder)
    project = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["project"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHAKETABLE_HOME", str(folder / "home"))
        write_site(folder / project["docs_dir"])
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(folder / CONFIG.name)]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "No issues found" in built.stdout + built.stderr
    return (folder / project["site_dir"]).resolve()


def list_pages(site: Path) -> list[BuiltPage]:
    return [read_page(path) for path in sorted(site.rglob("*.html"))]


def test_the_built_site(site: Path) -> None:
    """One test, because parallel tests would build the site more than once."""
    check_each({check.__name__: check for check in CHECKS}, lambda check: check(site))


def check_links_and_anchors(site: Path) -> None:
    pages = list_pages(site)
    assert len(pages) > 70
    checked = [page for page in pages if page.path.name != "404.html"]  # its links begin at the root of a server
    assert {page.path.name: broken for page in checked if (broken := find_broken(page, site))} == {}


def test_the_check_sees_a_broken_link(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        '<a href="#here">a</a><a href="#there" id="here">b</a><a href="gone.html">c</a><img src="gone.png">'
    )
    assert find_broken(BuiltPage(page), tmp_path.resolve()) == ["#there", "gone.html", "gone.png"]


def check_hosts_of_pages_and_styles(site: Path) -> None:
    pages = list_pages(site)
    assert {page.path.name: loads for page in pages if (loads := [a for a in page.loads if is_elsewhere(a)])} == {}
    styles = {path.name: CSS_URL.findall(path.read_text(encoding="utf-8")) for path in site.rglob("*.css")}
    assert styles
    assert [address for found in styles.values() for address in found if is_elsewhere(address)] == []


def test_the_check_sees_another_host(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        '<link rel="stylesheet" href="https://fonts.example/a.css"><script src="//cdn.example/b.js"></script>'
        '<style>@import "https://c.example/c.css";</style><p style="background: url(https://d.example/d.png)">'
        '<a href="https://e.example/">a link asks nothing until it is followed</a>'
    )
    assert len([address for address in BuiltPage(page).loads if is_elsewhere(address)]) == 4


def check_navigation(site: Path) -> None:
    shown = {link for link in read_page(site / "index.html").links if not is_elsewhere(link)}
    wanted = [*map_pages().values(), "reference/index.md", "gallery/index.md"]
    linked = {(site / link.partition("#")[0]).resolve() for link in shown}
    missing = [path for path in wanted if (site / path).with_suffix(".html") not in linked]
    assert missing == [], "add these pages to nav in zensical.toml"


def check_gallery(site: Path) -> None:
    links = read_page(site / "gallery" / "index.html").links
    for name in REPORTS:
        report = site / "gallery" / f"{name}.html"
        assert f"{name}.html" in links
        assert 10_000 < report.stat().st_size < MAX_REPORT_BYTES
        assert "Content-Security-Policy" in report.read_text(encoding="utf-8")


class QuietHandler(SimpleHTTPRequestHandler):
    """A file server that prints nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serve(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def check_in_browser(site: Path) -> None:
    """A browser asks no other host, no page is wider than a phone, and the search finds an entry."""
    from playwright.sync_api import sync_playwright

    asked: list[str] = []
    with serve(site) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.on("request", lambda request: asked.append(request.url))
        for name in ("gallery/lexical/report", "gallery/index", "reference/commands", "index"):
            page.goto(f"{address}/{name}.html")
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{name} is too wide"
        page.set_viewport_size({"width": 1280, "height": 900})
        page.locator(".md-search__button").click()
        page.locator("input:visible").fill("neighb_char_swap")
        page.locator("a[href*='transforms.html'][href*='neighb_char_swap']").first.wait_for()
        browser.close()
    assert len(asked) > 10
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []


CHECKS = (
    check_links_and_anchors,
    check_hosts_of_pages_and_styles,
    check_navigation,
    check_gallery,
    *((check_in_browser,) if CHROMIUM else ()),
)

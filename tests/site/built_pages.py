"""Built HTML pages as a link checker sees them: anchors, links, and the resources that a browser loads."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED_ATTRIBUTES = {"src", "srcset", "data", "poster", "action"}
LOADING_LINKS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect", "manifest"}
CSS_URL = re.compile(r"""(?:url\(\s*|@import\s+)['"]?([^'")\s;]+)""")


@dataclass
class BuiltPage(HTMLParser):
    """The parts of an HTML page: `loads` are addresses that a browser asks for when it opens the page."""

    path: Path
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    in_style: bool = False

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.in_style = tag == "style"
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        self.loads += [value for name, value in given.items() if name in LOADED_ATTRIBUTES and tag != "form"]
        self.loads += CSS_URL.findall(given.get("style", ""))
        if tag == "link" and LOADING_LINKS & {*given.get("rel", "").split()}:
            self.loads.append(given.get("href", ""))
        elif tag == "a" and "href" in given:
            self.links.append(given["href"])

    def handle_data(self, data: str) -> None:
        if self.in_style:
            self.loads += CSS_URL.findall(data)
            self.in_style = False

    def __hash__(self) -> int:
        return hash(self.path)


@cache
def read_page(path: Path) -> BuiltPage:
    return BuiltPage(path)


def is_elsewhere(address: str) -> bool:
    """True if an address names another host; data of the page itself does not."""
    return bool(urlsplit(address).netloc) or urlsplit(address).scheme in ("http", "https", "ftp")


def find_broken(page: BuiltPage, site: Path) -> list[str]:
    """Return the links and resources of a page that lead to no file or anchor of the site."""
    broken = []
    for address in [*page.links, *page.loads]:
        parts = urlsplit(address)
        if is_elsewhere(address) or parts.scheme:
            continue
        target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
        if target.is_dir():
            target = target / "index.html"
        is_found = target.is_file() and site in target.parents
        has_anchors = is_found and target.suffix == ".html" and parts.fragment
        if not is_found or (has_anchors and unquote(parts.fragment) not in read_page(target).anchors):
            broken.append(address)
    return broken

"""Pages in a real browser: a window that refuses every request, and the contrast of its texts."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage")
DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}

# The ratio of WCAG 2 between the colour of each visible text and what is behind it; below 4.5, or 3 for large text.
LOW_CONTRAST = """() => {
  const parse = (text) => {
    const numbers = (text.match(/-?[\\d.]+(?:e-?\\d+)?/g) ?? []).map(Number);
    const scale = text.startsWith("color(") ? 255 : 1;
    const [r, g, b, a = 1] = numbers;
    return [r * scale, g * scale, b * scale, a];
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const behind = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((x) => x / 255).map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    const unseen = !text.data.trim() || seen.has(node) || !node.checkVisibility();
    if (unseen || node.closest("svg, script, .unseen")) continue;
    seen.add(node);
    const style = getComputedStyle(node);
    const back = behind(node);
    const fore = over(parse(style.color), back);
    const [a, b] = [light(fore), light(back)].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = (a + 0.05) / (b + 0.05);
    const said = `${ratio.toFixed(2)} ${node.className || node.tagName}: ${text.data.trim().slice(0, 40)}`;
    if (ratio < (large ? 3 : 4.5)) found.push(said);
  }
  return found;
}"""


def each_scheme(page: Any) -> Iterator[str]:
    """Show a page in light and in dark colours."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        yield scheme


def find_low_contrast(page: Any) -> list[str]:
    """Return the texts of a page that are hard to read, in light or in dark colours."""
    return [f"{scheme}: {text}" for scheme in each_scheme(page) for text in page.evaluate(LOW_CONTRAST)]


@contextmanager
def opened(browser: Any, path: Path, **context: Any) -> Iterator[Any]:
    """The page in a new window; every request is blocked and, like every error, fails the test."""
    window = browser.new_context(accept_downloads=True, **context)
    asked: list[str] = []
    wrong: list[str] = []
    window.route(re.compile(r"^(?!file:|blob:|data:)"), lambda route: (asked.append(route.request.url), route.abort()))
    page = window.new_page()
    page.on("request", lambda request: asked.append(request.url) if request.url != path.as_uri() else None)
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    page.goto(path.as_uri())
    try:
        yield page
        assert not wrong
        assert not [url for url in asked if not url.startswith("blob:") and "#" not in url]
    finally:
        window.close()


def visit_sections(page: Any) -> Iterator[str]:
    """Show the sections of a page one after another, with the keyboard alone, and yield the address of each."""
    links = page.locator(".contents a")
    for number in range(links.count()):
        links.nth(number).focus()
        page.keyboard.press("Enter")
        address = links.nth(number).get_attribute("href")
        page.wait_for_function("id => !document.getElementById(id).hidden", arg=address[1:])
        yield address

"""The templates of pages: their environment, the content security policy, and links to the glossary."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup, escape

from shaketable.report import clean
from shaketable.report.colours import DARK_MODE_COLORS
from shaketable.report.glossary import build_term_pattern, find_term
from shaketable.report.system_table import render_html

STYLE_FILE, SCRIPT_FILE = "page.css", "page.js"


def render_template(name: str, context: Mapping[str, Any], script: str = SCRIPT_FILE, connect: bool = False) -> str:
    """Return a template of this package with a script as a page; every text of the context is escaped."""
    shared = {
        "on_dark": DARK_MODE_COLORS,
        "style": Markup(read_resource(STYLE_FILE)),
        "script": Markup(read_resource(script)),
        "policy": Markup(build_content_policy(script, connect)),
    }
    return clean(_build_environment().get_template(name).render({**shared, **context}))


def build_content_policy(script: str = SCRIPT_FILE, connect: bool = False) -> str:
    """Return the content security policy: inline styles, and only the script with this hash.

    With `connect`, the script may send requests to the server of the page.
    """
    digest = base64.b64encode(hashlib.sha256(read_resource(script).encode()).digest()).decode()
    allowed = f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    requests = "; connect-src 'self'" if connect else ""
    return f"default-src 'none'; base-uri 'none'; form-action 'none'; {allowed}{requests}"


@cache
def read_resource(name: str) -> str:
    """Return the text of a file of this package."""
    return resources.files(__package__).joinpath(name).read_text("utf-8")


@cache
def _build_environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(read_resource),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["terms"] = _link_terms
    environment.filters["heading"] = _annotate_heading
    environment.filters["systems"] = render_html
    return environment


def _link_terms(text: str) -> Markup:
    """Return a text with a link to the glossary at the first occurrence of each term."""
    link = Markup('<a class="term" href="#{anchor}" title="{meaning}">{word}</a>')
    return _replace_terms(
        text, lambda word: link.format(anchor=find_term(word).anchor, meaning=find_term(word).meaning, word=word)
    )


def _annotate_heading(text: str) -> Markup:
    """Return a heading with a tooltip on each term; a click on a link would not sort the table."""
    hint = Markup('<abbr title="{meaning}">{word}</abbr>')
    return _replace_terms(text, lambda word: hint.format(meaning=find_term(word).meaning, word=word))


def _replace_terms(text: str, make_markup: Callable[[str], Markup]) -> Markup:
    parts, end = [], 0
    seen = set()
    for match in build_term_pattern().finditer(text):
        word = match.group()
        if find_term(word) not in seen:
            seen.add(find_term(word))
            parts += [escape(text[end : match.start()]), make_markup(word)]
            end = match.end()
    return Markup("").join([*parts, escape(text[end:])])

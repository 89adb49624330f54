"""The live page: a template, and a script that sends requests to its server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from shaketable.report.templates import build_content_policy, read_resource, render_template

VIEW_SCRIPT, VIEW_STYLE = "view.js", "view.css"


def render_view_page(state: Mapping[str, Any]) -> str:
    """Return the live page; its script reads the state, which `api.viewing.session` describes."""
    context = {
        "title": f"Rankers on {state['collection']}",
        "state": state,
        "view_style": Markup(read_resource(VIEW_STYLE)),
        "data": json.dumps(state),
    }
    return render_template("view.html", context, VIEW_SCRIPT, connect=True)


def build_view_policy() -> str:
    """Return the content security policy of the live page."""
    return build_content_policy(VIEW_SCRIPT, connect=True)

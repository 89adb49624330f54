"""An SVG sanitizer: drawings may contain texts that attackers wrote."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

from shaketable.core.documents import fingerprint

FONT_FAMILY = "Helvetica, Arial, Liberation Sans, sans-serif"
"""Fonts of the same width, so that the layout of a drawing holds on any machine."""
MAX_HINTS = 400
"""The limit of marks with tooltips; a drawing with more marks has none, to limit the page size."""

_SVG_NAMESPACE = "{http://www.w3.org/2000/svg}"
_SAFE_ELEMENTS = {"svg", "g", "path", "rect", "line", "text", "tspan", "defs", "clipPath"}
_SAFE_ATTRIBUTES = {
    "class", "clip-path", "d", "dx", "dy", "fill", "fill-opacity", "font-size", "font-style", "font-weight", "height",
    "id", "opacity", "stroke", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit",
    "stroke-opacity", "stroke-width", "text-anchor", "transform", "viewBox", "width", "x", "x1", "x2", "y", "y1", "y2",
}  # fmt: skip

_INHERITED_ATTRIBUTES = ("fill", "font-size", "font-weight", "stroke", "stroke-opacity", "stroke-width", "text-anchor")
_NO_OP_ATTRIBUTES = {("opacity", "1"), ("transform", "translate(0,0)")}
"""Attributes without an effect."""


def sanitize_svg(svg: str, title: str) -> str:
    """Return the SVG with safe elements and attributes only; ids are unique, so that drawings can share a page."""
    root = ElementTree.fromstring(svg)
    scope = f"f{fingerprint(svg)[:10]}-"
    marks = sum("aria-label" in node.attrib for node in root.iter())
    kept = _copy_safe(root, scope, hints=marks <= MAX_HINTS)
    kept.set("xmlns", "http://www.w3.org/2000/svg")
    kept.set("role", "img")
    kept.set("aria-label", title)
    kept.set("font-family", FONT_FAMILY)
    return ElementTree.tostring(kept, encoding="unicode")


def _copy_safe(node: ElementTree.Element, scope: str, hints: bool) -> ElementTree.Element:
    kept = ElementTree.Element(node.tag.removeprefix(_SVG_NAMESPACE))
    kept.text = node.text
    for name, value in node.attrib.items():
        if name == "id":
            kept.set("id", scope + value)
        elif name == "clip-path" and (local := re.fullmatch(r"url\(#([\w-]+)\)", value)):
            kept.set(name, f"url(#{scope}{local.group(1)})")
        elif (name, value) not in _NO_OP_ATTRIBUTES and name in _SAFE_ATTRIBUTES and "url" not in value.lower():
            kept.set(name, _round_coordinates(value) if name in ("d", "transform") else value)
    if hints and kept.tag == "path" and "aria-label" in node.attrib:
        said, whose = json.loads(node.attrib["aria-label"])
        ElementTree.SubElement(kept, "title").text = said
        if whose:
            kept.set("data-at", json.dumps(whose, ensure_ascii=False))
    for child in node:
        bare = child.get("class") == "background" and not (child.get("fill") or child.get("stroke"))
        if child.tag.removeprefix(_SVG_NAMESPACE) in _SAFE_ELEMENTS and child.get("display") != "none" and not bare:
            kept.append(_copy_safe(child, scope, hints))
    _hoist_attributes(kept)
    return kept


def _hoist_attributes(group: ElementTree.Element) -> None:
    """Move attributes that all children share to the group, to reduce the page size."""
    children = [child for child in group if child.tag in ("text", "line", "path")]
    if len(children) < 2 or len(children) < len(group):
        return
    for name in _INHERITED_ATTRIBUTES:
        values = {child.get(name) for child in children}
        if len(values) == 1 and None not in values and group.get(name) is None:
            group.set(name, values.pop() or "")
            for child in children:
                del child.attrib[name]


def _round_coordinates(path: str) -> str:
    """Return the path with coordinates rounded to a tenth of a pixel."""
    return re.sub(r"-?\d+\.\d{2,}(?:e-?\d+)?", lambda match: f"{float(match.group()):.1f}".removesuffix(".0"), path)

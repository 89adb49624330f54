"""Topics in the formats that TREC publishes: SGML, whose tags often have no end tag, or XML.

    <top> <num> Number: 301 <title> Organized Crime <desc> Description: Identify ... <narr> Narrative: ... </top>
    <topics> <topic number="1"> <query>...</query> <description>...</description> </topic> </topics>

The title (or query) is the user's input; the description is the information need in a sentence. XML with a DTD is
refused, so that no entity is expanded and no other file is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import unescape

from shaketable.core.documents import Query
from shaketable.core.errors import BadInput, quote_value, truncate
from shaketable.datasets.limits import check_id
from shaketable.files.reading import MAX_LINE_BYTES

ID_TAGS = ("num", "number", "id", "identifier", "qid")
TEXT_TAGS = ("title", "query")
DESCRIPTION_TAGS = ("desc", "description", "question")
OTHER_TAGS = ("narr", "narrative", "head", "dom", "smry", "con", "fac", "def", "nat", "time")
TOPIC_TAGS = ("top", "topic")
"""Tag names across formats and years; a tag that begins a line may have any name."""

_FIRST_TAG = re.compile(r"\s*<([?!]|\w+(?=[\s>]|$))")
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*+)[^<>]*+>")
_LABEL = re.compile(r"\A\s*+(?:Number|Topic|Description)\s*+:", re.IGNORECASE)

Rows = Iterator[tuple[int, str]]
Topics = Iterator[tuple[int, dict[str, str]]]
"""The first line number of each topic, and the text under each of its tags."""


def find_first_tag(line: str) -> str:
    """Return the tag that a file of topics begins with; "" if there is none.

    >>> find_first_tag("<top>"), find_first_tag('<?xml version="1.0"?>'), find_first_tag("301\\ttidal power")
    ('top', '?', '')
    """
    match = _FIRST_TAG.match(line)
    return match[1].lower() if match else ""


def read_markup_topics(rows: Rows, tag: str, path: Path) -> dict[str, Query]:
    """Return the queries of a file of SGML or XML topics that begins with a tag."""
    rows = _limit_size(rows, path)
    topics = _parse_sgml(rows, path) if tag == "top" else _parse_xml(rows, path)
    queries: dict[str, Query] = {}
    first_lines: dict[str, int] = {}
    for number, fields in topics:
        qid, text = _get_field(fields, ID_TAGS), _get_field(fields, TEXT_TAGS)
        if qid is None:
            raise BadInput("the topic that begins here has no number", path, number)
        check_id(qid, "query id", path, number)
        if not text:
            message = f"topic {quote_value(qid)} has neither a title nor a query; it has: {truncate(', '.join(fields))}"
            raise BadInput(message, path, number)
        if (first := first_lines.setdefault(qid, number)) != number:
            raise BadInput(f"the id {quote_value(qid)} is taken; line {first} has it too", path, number)
        queries[qid] = Query(text, description=_get_field(fields, DESCRIPTION_TAGS) or "")
    if not queries:
        raise BadInput("holds no topics", path)
    return queries


def _limit_size(rows: Rows, path: Path) -> Rows:
    """Yield the lines; refuse a file with more than `MAX_LINE_BYTES` characters."""
    size = 0
    for number, line in rows:
        if (size := size + len(line)) > MAX_LINE_BYTES:
            raise BadInput(f"has more than {MAX_LINE_BYTES:,} characters, which is too long for topics", path)
        yield number, line


def _get_field(fields: dict[str, str], names: Iterable[str]) -> str | None:
    """Return the first of these fields that the topic has, with single spaces."""
    return next((" ".join(fields[name].split()) for name in names if name in fields), None)


def _parse_sgml(rows: Rows, path: Path) -> Topics:
    known = {*ID_TAGS, *TEXT_TAGS, *DESCRIPTION_TAGS, *OTHER_TAGS}
    fields: dict[str, list[str]] | None = None
    pieces: list[str] = []  # of the current field
    begun, current = 0, ""
    for number, line in rows:
        at, indent = 0, len(line) - len(line.lstrip())
        for tag in _TAG.finditer(line):
            ends, name = bool(tag[1]), tag[2].lower()
            pieces.append(line[at : tag.start()])
            at = tag.end()
            if name in TOPIC_TAGS:
                if ends == (fields is None):
                    where = "no topic has begun" if ends else "no topic may begin"
                    raise BadInput(f"{truncate(tag[0])} is where {where}", path, number)
                if fields is not None:
                    yield (
                        begun,
                        {name: unescape(_LABEL.sub("", "".join(text), count=1)) for name, text in fields.items()},
                    )
                fields, pieces, begun, current = None if ends else {}, [], number, ""
            elif fields is None:
                raise BadInput(f"{quote_value(tag[0])} is outside of all topics", path, number)
            elif ends:
                if name == current:
                    pieces, current = [], ""
            elif name in known or tag.start() == indent:
                if name in fields:
                    raise BadInput(
                        f"the topic that begins on line {begun} has a second {quote_value(tag[0])}", path, number
                    )
                fields[name] = pieces = []
                current = name
            elif current in (*ID_TAGS, *TEXT_TAGS, *DESCRIPTION_TAGS):
                raise BadInput(f"{quote_value(tag[0])} is inside a {current}, which must be plain text", path, number)
        pieces += (line[at:], "\n")
    if fields is not None:
        raise BadInput("the topic that begins here has no </top>", path, begun)


def _parse_xml(rows: Rows, path: Path) -> Topics:
    topics: list[tuple[int, dict[str, str]]] = []
    pieces: list[str] = []
    depth = inside = 0
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise BadInput(
            "has a DTD (<!DOCTYPE ...>); remove it: entities are not expanded", path, parser.CurrentLineNumber
        )

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth, inside
        depth += 1
        if not inside and tag.lower() in TOPIC_TAGS:
            inside = depth
            topics.append((parser.CurrentLineNumber, {name.lower(): text for name, text in attributes.items()}))
        elif inside and depth == inside + 1:
            pieces.clear()

    def end(tag: str) -> None:
        nonlocal depth, inside
        if inside and depth == inside + 1:
            number, fields = topics[-1]
            name = tag.lower()
            if name in fields and name in (*ID_TAGS, *TEXT_TAGS, *DESCRIPTION_TAGS):
                raise BadInput(f"the topic that begins here has a second <{name[:50]}>", path, number)
            fields[name] = "".join(pieces)
        inside = 0 if depth == inside else inside
        depth -= 1

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = pieces.append
    text: list[str] = []
    at = 1
    for number, line in rows:
        text.append("\n" * (number - at) + line)
        at = number
    try:
        parser.Parse("".join(text), True)
    except expat.ExpatError as error:
        raise BadInput(f"is not XML ({expat.ErrorString(error.code)})", path, error.lineno) from error
    except (LookupError, ValueError) as error:
        raise BadInput(f"is not XML that can be read ({error})", path) from error
    yield from topics

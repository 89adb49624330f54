"""The requests of a live page: JSON objects, checked and passed to the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shaketable.api.restarts import restart_if_refuted
from shaketable.api.viewing.changes import run_recipe, transform_document, transform_query
from shaketable.api.viewing.saved_pairs import append_pair
from shaketable.api.viewing.session import EditedDocument, ViewSession
from shaketable.core.documents import MAX_CHANGED_CHARS, Doc
from shaketable.core.errors import BadInput, UnknownName, quote_value

MAX_QUERY_CHARS = 10_000
MAX_NAME_CHARS = 1_000

Fields = Mapping[str, Any]
"""The JSON object of a request."""


def answer_request(session: ViewSession, action: str, fields: Fields) -> dict[str, Any]:
    """Return the answer to a request; raise `ShaketableError` with one sentence if it cannot be answered."""
    if action not in ACTIONS:
        raise UnknownName("action", action, ACTIONS)
    return ACTIONS[action](session, fields)


def _rank(session: ViewSession, fields: Fields) -> dict[str, Any]:
    base_query = _read_text(fields, "base_query", MAX_QUERY_CHARS) if fields.get("base_query") else ""
    edited = _read_document(fields) if fields.get("docno") else None
    return session.rank(_read_query(fields), base_query, edited)


def _open_document(session: ViewSession, fields: Fields) -> dict[str, Any]:
    return _describe_document(session.get_document(_read_text(fields, "docno", MAX_NAME_CHARS)))


def _transform_query(session: ViewSession, fields: Fields) -> dict[str, Any]:
    return {"query": transform_query(session, _read_text(fields, "name", MAX_NAME_CHARS), _read_query(fields))}


def _transform_document(session: ViewSession, fields: Fields) -> dict[str, Any]:
    doc = session.apply_edit(_read_document(fields))
    name = _read_text(fields, "name", MAX_NAME_CHARS)
    return _describe_document(transform_document(session, name, _read_query(fields), doc))


def _run_recipe(session: ViewSession, fields: Fields) -> dict[str, Any]:
    edited, query = _read_document(fields), _read_query(fields)
    name, ranker = (_read_text(fields, field, MAX_NAME_CHARS) for field in ("name", "ranker"))
    doc = session.apply_edit(edited)
    outcome = restart_if_refuted(
        session.experiment, lambda: run_recipe(session, name, ranker, query, edited.docno, doc), session.notify
    )
    ranks = {"rank_before": outcome.rank_before, "rank_after": outcome.rank_after, "trials": outcome.trials}
    return _describe_document(outcome.doc) | ranks


def _save_pair(session: ViewSession, fields: Fields) -> dict[str, Any]:
    edited = _read_document(fields)
    original = session.get_document(edited.docno)
    expect = _read_text(fields, "expect", MAX_NAME_CHARS)
    count = append_pair(session.pairs_file, _read_query(fields), original, session.apply_edit(edited), expect)
    return {"count": count, "file": str(session.pairs_file), "command": session.probe_command}


ACTIONS: Mapping[str, Callable[[ViewSession, Fields], dict[str, Any]]] = {
    "rank": _rank,
    "document": _open_document,
    "transform-query": _transform_query,
    "transform-document": _transform_document,
    "recipe": _run_recipe,
    "save": _save_pair,
}


def _describe_document(doc: Doc) -> dict[str, Any]:
    return {"title": doc.title, "body": doc.body}


def _read_query(fields: Fields) -> str:
    query = _read_text(fields, "query", MAX_QUERY_CHARS)
    if not query.strip():
        raise BadInput("the query is empty; type a query")
    return query


def _read_document(fields: Fields) -> EditedDocument:
    return EditedDocument(
        _read_text(fields, "docno", MAX_NAME_CHARS),
        _read_text(fields, "title", MAX_CHANGED_CHARS),
        _read_text(fields, "body", MAX_CHANGED_CHARS),
    )


def _read_text(fields: Fields, name: str, max_chars: int) -> str:
    """Return a text of a request; raise `BadInput` if it is missing or too long."""
    text = fields.get(name)
    if not isinstance(text, str):
        raise BadInput(f'the field "{name}" of the request should be a text, not {quote_value(text)}')
    if len(text) > max_chars:
        raise BadInput(f"the {name} is longer than {max_chars:,} characters")
    return text

"""Dialects of rerank servers: how each family of servers expects a request, and how to read the response.

Servers differ in the request format, so a `RerankDialect` describes only the request. One parser reads all responses:
a list of rows with an index and a score, or a list of scores.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from shaketable.core.errors import quote_value
from shaketable.rankers.http.reply import load_json

Rows: TypeAlias = list[tuple[Any, Any]]

LIST_FIELDS = ("results", "data", "rerank", "scores", "rankings")
"""Fields of a response that may hold the list; the response itself may also be the list."""
SCORE_FIELDS = ("relevance_score", "score")
ECHOED_FIELDS = ("input", "query", "documents", "document", "texts", "text", "text_1", "text_2", "body")
"""Fields of a refusal that repeat the request."""
MAX_SCORE_CHARS = 40
"""Maximum characters of a score that a server sends as a text."""
MAX_REFUSAL_CHARS = 2000
"""Maximum characters of a refusal that are parsed."""


@dataclass(frozen=True)
class RerankDialect:
    """The request format of a family of servers: the names of the JSON fields and of the header for the key."""

    documents_field: str = "documents"
    query_field: str = "query"
    top_field: str = ""
    """The field for the number of results, which is always set to all."""
    extra_fields: Mapping[str, object] = field(default_factory=dict)
    wraps_texts: bool = False
    """True if each text is sent as {"text": ...}."""
    key_header: tuple[str, str] = ("Authorization", "Bearer ")
    """The header that carries the key, and the prefix of the key."""
    headers: Mapping[str, str] = field(default_factory=dict)
    url_pattern: str = ""
    """A pattern of URLs that belong to this dialect only."""

    def build_request(self, model: str, query: str, texts: Sequence[str]) -> dict[str, object]:
        """Return the request body. Servers refuse an empty text, so a blank replaces it."""
        filled = [text or " " for text in texts]
        return {
            **({"model": model} if model else {}),
            self.query_field: query or " ",
            self.documents_field: [{"text": text} for text in filled] if self.wraps_texts else filled,
            **({self.top_field: len(texts)} if self.top_field else {}),
            **self.extra_fields,
        }


DIALECTS = {
    # Cohere (v1 and v2), Jina, vLLM and llama.cpp
    "cohere": RerankDialect(top_field="top_n"),
    # infinity also accepts Cohere's requests, but then returns the sigmoid of its scores
    # (`detect_dialect_from_answer`)
    "infinity": RerankDialect(top_field="top_n", extra_fields={"raw_scores": True}),
    # Hugging Face text-embeddings-inference; raw scores, because the sigmoid saturates and ties
    "tei": RerankDialect("texts", extra_fields={"raw_scores": True, "truncate": True}),
    "vllm-score": RerankDialect("text_2", "text_1", url_pattern=r"/score/?$"),
    "mixedbread": RerankDialect("input", top_field="top_k", url_pattern=r"mixedbread\.\w+/"),
    "voyage": RerankDialect(top_field="top_k", url_pattern=r"voyageai\.com"),
    "pinecone": RerankDialect(
        top_field="top_n",
        extra_fields={"return_documents": False},
        wraps_texts=True,
        key_header=("Api-Key", ""),
        headers={"X-Pinecone-API-Version": "2025-10"},
        url_pattern=r"pinecone\.io",
    ),
    "elasticsearch": RerankDialect("input", key_header=("Authorization", "ApiKey "), url_pattern=r"/_inference/"),
    # a custom server: a query and documents, without optional fields
    "plain": RerankDialect(),
}
DIALECTS_TO_TRY = ("cohere", "tei", "vllm-score", "mixedbread", "voyage", "plain")
"""The dialects to try with an unknown server, in this order."""


@dataclass(frozen=True)
class Vendor:
    """A service recognised by its host: the usual environment variable for its key, and an example model."""

    host: str
    key_env: str
    model: str


VENDORS = (
    Vendor("cohere.com", "COHERE_API_KEY", "rerank-v3.5"),
    Vendor("jina.ai", "JINA_API_KEY", "jina-reranker-v2-base-multilingual"),
    Vendor("voyageai.com", "VOYAGE_API_KEY", "rerank-2.5"),
    Vendor("mixedbread.com", "MXBAI_API_KEY", "mixedbread-ai/mxbai-rerank-large-v2"),
    Vendor("pinecone.io", "PINECONE_API_KEY", "bge-reranker-v2-m3"),
)


def find_vendor(host: str) -> Vendor | None:
    """Return the service at a host, or None.

    >>> find_vendor("api.cohere.com").key_env, find_vendor("cohere.com.elsewhere.org")
    ('COHERE_API_KEY', None)
    """
    return next((v for v in VENDORS if host == v.host or host.endswith(f".{v.host}")), None)


def detect_dialect_from_url(url: str) -> str:
    """Return the dialect if the address determines it, or "".

    >>> detect_dialect_from_url("https://api.voyageai.com/v1/rerank"), detect_dialect_from_url("http://localhost:8000/rerank")
    ('voyage', '')
    """
    return next((name for name, d in DIALECTS.items() if d.url_pattern and re.search(d.url_pattern, url)), "")


def detect_dialect_from_answer(answer: Any) -> str:
    """Return the dialect if the response names the server, or "".

    >>> detect_dialect_from_answer({"object": "rerank", "id": "infinity-0b1c", "results": []})
    'infinity'
    >>> detect_dialect_from_answer([])
    ''
    """
    said = answer.get("id") if isinstance(answer, dict) else None
    return "infinity" if isinstance(said, str) and said.startswith("infinity-") else ""


def parse_rows(answer: Any) -> Rows | None:
    """Return (index, score) of each result, in the server's order; None if the response has no such list.

    >>> parse_rows([{"index": 1, "score": 0.5}]), parse_rows({"scores": [0.1, 0.9]}), parse_rows({"error": "no"})
    ([(1, 0.5)], [(0, 0.1), (1, 0.9)], None)
    """
    inside = [answer[name] for name in LIST_FIELDS if name in answer] if isinstance(answer, dict) else [answer]
    for found in inside:
        if not isinstance(found, list):
            continue
        if found and all(isinstance(row, int | float) for row in found):
            return list(enumerate(found))
        score = next((name for name in SCORE_FIELDS if all(isinstance(row, dict) and name in row for row in found)), "")
        if score and all("index" in row for row in found):
            return [(row["index"], row[score]) for row in found]
    return None


def order_scores(rows: Rows, number: int) -> list[Any]:
    """Return the scores in the order of the texts; raise a ValueError if the indexes are wrong.

    >>> order_scores([(1, 0.9), (0, 0.1)], 2)
    [0.1, 0.9]
    >>> order_scores([(1, 0.9), (2, 0.1)], 2)
    Traceback (most recent call last):
    ValueError: its indexes begin at 1 (1, 2); they should be the positions of the texts, from 0 to 1
    """
    indexes = [index for index, _ in rows]
    shown = ", ".join(map(quote_value, indexes[:10])) + (", ..." if len(indexes) > 10 else "")
    should = f"they should be the positions of the texts, from 0 to {number - 1}"
    if len(rows) > number + 1:
        raise ValueError(f"it scored {len(rows):,} texts of {number:,} (indexes {shown}); {should}")
    if odd := [index for index in indexes if not isinstance(index, int) or isinstance(index, bool)]:
        kind = "texts" if isinstance(odd[0], str) else "not whole numbers"
        raise ValueError(f"its indexes are {kind} ({shown}); {should}")
    scores = dict(rows)
    if len(scores) < len(rows):
        twice, _ = Counter(indexes).most_common(1)[0]
        raise ValueError(f"it scored the text with index {twice} more than once ({shown}); {should}")
    if scores and 0 not in scores and max(scores) == number:
        raise ValueError(f"its indexes begin at 1 ({shown}); {should}")
    if outside := [index for index in indexes if not 0 <= index < number]:
        raise ValueError(
            f"it scored a text with index {quote_value(outside[0])}, which was not sent ({shown}); {should}"
        )
    if len(rows) != number:
        raise ValueError(
            f"it scored {len(rows)} texts of {number} (indexes {shown or 'none'}); "
            "does the server limit the number of results?"
        )
    return [_parse_score(place, scores[place]) for place in range(number)]


def _parse_score(place: int, score: Any) -> Any:
    """Return a score, which some servers send as a text; None stands for a score that is not a number."""
    if isinstance(score, int | float | None):
        return score
    if isinstance(score, str) and len(score) <= MAX_SCORE_CHARS:
        with suppress(ValueError):
            return float(score)
    raise ValueError(f"its scores are not numbers: the text with index {place} has {quote_value(score)}")


def strip_echo(message: str) -> str:
    """Return a server's message without the parts of the request that it repeats, which may contain anything.

    >>> strip_echo('{"detail": [{"msg": "Field required", "input": {"query": "at most 5 models"}}]}')
    '{"detail": [{"msg": "Field required"}]}'
    """
    try:
        said = load_json(message)
    except ValueError:
        return message[:MAX_REFUSAL_CHARS]
    return json.dumps(_drop_echoed_fields(said))[:MAX_REFUSAL_CHARS]


def _drop_echoed_fields(said: Any) -> Any:
    if isinstance(said, dict):
        return {name: _drop_echoed_fields(value) for name, value in said.items() if name not in ECHOED_FIELDS}
    return [_drop_echoed_fields(value) for value in said] if isinstance(said, list) else said


def parse_text_limit(status: int, message: str, sent: int) -> int:
    """Return the server's maximum of texts per request, from its refusal of `sent` texts; 0 if the cause is different.

    >>> parse_text_limit(422, "batch size 100 > maximum allowed batch size 32", 100)
    32
    >>> parse_text_limit(413, "", 100)
    50
    >>> parse_text_limit(422, "`inputs` must have less than 512 tokens. Given: 534", 1000)
    0

    If the server names no number, the result is half of `sent`.
    """
    if status not in (400, 413, 422) or sent < 2:
        return 0
    message = strip_echo(message)
    phrase = r"(?:max\w*|exceed\w*|larger than|at most|limit\w*|more than|fewer than|up to)[^\d]{0,60}(\d+)\b(?!\s*tok)"
    said = [int(number) for number in re.findall(phrase, message, re.IGNORECASE)]
    if fitting := [number for number in said if 0 < number < sent]:
        return max(fitting)
    return sent // 2 if status == 413 else 0


def parse_missing_fields(message: str) -> list[str]:
    """Return the missing fields that a refusal names, in the wording of serde, pydantic and others.

    >>> parse_missing_fields("missing field `texts` at line 1 column 9")
    ['texts']
    >>> parse_missing_fields('{"loc": ["body", "model"]}')
    ['model']
    """
    message = strip_echo(message)
    named = r"""(?:missing field|"body",)\s*["'`](\w+)["'`]"""
    required = r"""["'`]?\b(\w++)["'`]? (?:field )?(?:is required|must be provided)"""
    return re.findall(named, message) + re.findall(required, message)


def wants_model(message: str) -> bool:
    """Return True if a refusal says that the model is unknown or must be named.

    >>> wants_model("Invalid model: Engine for model name `x` not found."), wants_model("query too long")
    (True, False)
    """
    message = strip_echo(message)
    about = r"model\b.{0,80}(?:not found|does not exist|not exist|required|invalid|unknown|not supported|missing)"
    return "model" in parse_missing_fields(message) or bool(
        re.search(rf"{about}|(?:invalid|unknown|missing|no such|specify an?) model", message, re.IGNORECASE)
    )

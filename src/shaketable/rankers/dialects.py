"""How families of servers want to be asked for scores, and what they answer.

They differ in what they want to be sent, so that is what a `Dialect` is. What they answer is read by one reader for
all: a list of rows with an index and a score, or of scores alone, wherever it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Rows: TypeAlias = list[tuple[Any, Any]]

LISTS = ("results", "data", "rerank", "scores", "rankings")
"""Where in an answer the list may be; it may also be the answer."""
SCORES = ("relevance_score", "score")
REPEATED = ("input", "query", "documents", "document", "texts", "text", "text_1", "text_2", "body")
"""Fields of a refusal that repeat what was sent."""
MOST_WORDS = 2000
"""Characters of a refusal that are looked at."""


@dataclass(frozen=True)
class Dialect:
    """How a family of servers wants to be asked: the names of the JSON fields, and of the header for a key."""

    documents: str = "documents"
    query: str = "query"
    top: str = ""
    """The field that says how many results to send back: always all of them."""
    extra: Mapping[str, object] = field(default_factory=dict)
    wrapped: bool = False
    """Each text goes as {"text": ...}."""
    key: tuple[str, str] = ("Authorization", "Bearer ")
    """The header that carries the key, and what stands before the key."""
    headers: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    """A pattern of URLs that can be of this dialect only."""

    def request(self, model: str, query: str, texts: Sequence[str]) -> dict[str, object]:
        """The body to send. Servers refuse an empty text, so a blank stands for it."""
        filled = [text or " " for text in texts]
        return {
            **({"model": model} if model else {}),
            self.query: query or " ",
            self.documents: [{"text": text} for text in filled] if self.wrapped else filled,
            **({self.top: len(texts)} if self.top else {}),
            **self.extra,
        }


DIALECTS = {
    # Cohere (v1 and v2), Jina, vLLM and llama.cpp
    "cohere": Dialect(top="top_n"),
    # infinity takes Cohere's requests as well, and answers these with the sigmoid of its scores (`told_by_answer`)
    "infinity": Dialect(top="top_n", extra={"raw_scores": True}),
    # Hugging Face text-embeddings-inference; raw scores, for the sigmoid's saturate and tie
    "tei": Dialect("texts", extra={"raw_scores": True, "truncate": True}),
    "vllm-score": Dialect("text_2", "text_1", address=r"/score/?$"),
    "mixedbread": Dialect("input", top="top_k", address=r"mixedbread\.\w+/"),
    "voyage": Dialect(top="top_k", address=r"voyageai\.com"),
    "pinecone": Dialect(
        top="top_n",
        extra={"return_documents": False},
        wrapped=True,
        key=("Api-Key", ""),
        headers={"X-Pinecone-API-Version": "2025-10"},
        address=r"pinecone\.io",
    ),
    "elasticsearch": Dialect("input", key=("Authorization", "ApiKey "), address=r"/_inference/"),
    # a server of one's own: a query and documents, and no field that it may not know
    "plain": Dialect(),
}
TRIED = ("cohere", "tei", "vllm-score", "mixedbread", "voyage", "plain")
"""The dialects that a server of unknown family is spoken to in, in this order."""


@dataclass(frozen=True)
class Vendor:
    """A service whose host tells it: the variable that its users put the key into, and a model of it."""

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


def vendor_at(host: str) -> Vendor | None:
    """The service at a host.

    >>> vendor_at("api.cohere.com").key_env, vendor_at("cohere.com.elsewhere.org")
    ('COHERE_API_KEY', None)
    """
    return next((v for v in VENDORS if host == v.host or host.endswith(f".{v.host}")), None)


def told_by(url: str) -> str:
    """The dialect that can be told by the address alone, or "".

    >>> told_by("https://api.voyageai.com/v1/rerank"), told_by("http://localhost:8000/rerank")
    ('voyage', '')
    """
    return next((name for name, d in DIALECTS.items() if d.address and re.search(d.address, url)), "")


def told_by_answer(answer: Any) -> str:
    """The dialect of a server that names itself in its answer, or "".

    >>> told_by_answer({"object": "rerank", "id": "infinity-0b1c", "results": []}), told_by_answer([])
    ('infinity', '')
    """
    said = answer.get("id") if isinstance(answer, dict) else None
    return "infinity" if isinstance(said, str) and said.startswith("infinity-") else ""


def rows_in(answer: Any) -> Rows | None:
    """(index, score) of each result, in the server's order; None if there is no such list in the answer.

    >>> rows_in([{"index": 1, "score": 0.5}]), rows_in({"scores": [0.1, 0.9]}), rows_in({"error": "no"})
    ([(1, 0.5)], [(0, 0.1), (1, 0.9)], None)
    """
    inside = [answer[name] for name in LISTS if name in answer] if isinstance(answer, dict) else [answer]
    for found in inside:
        if not isinstance(found, list):
            continue
        if found and all(isinstance(row, int | float) for row in found):
            return list(enumerate(found))
        score = next((name for name in SCORES if all(isinstance(row, dict) and name in row for row in found)), "")
        if score and all("index" in row for row in found):
            return [(row["index"], row[score]) for row in found]
    return None


def in_place(rows: Rows, number: int) -> list[Any]:
    """The scores in the order of the texts; a ValueError says what is wrong with the indexes.

    >>> in_place([(1, 0.9), (0, 0.1)], 2)
    [0.1, 0.9]
    >>> in_place([(1, 0.9), (2, 0.1)], 2)
    Traceback (most recent call last):
    ValueError: its indexes begin at 1 (1, 2); they should be the places of the texts, from 0 to 1
    """
    indexes = [index for index, _ in rows]
    shown = ", ".join(map(repr, indexes[:10])) + (", ..." if len(indexes) > 10 else "")
    should = f"they should be the places of the texts, from 0 to {number - 1}"
    if odd := [index for index in indexes if not isinstance(index, int) or isinstance(index, bool)]:
        kind = "texts" if isinstance(odd[0], str) else "no whole numbers"
        raise ValueError(f"its indexes are {kind} ({shown}); {should}")
    if twice := [index for index in dict.fromkeys(indexes) if indexes.count(index) > 1]:
        raise ValueError(f"it scored the text with index {twice[0]} more than once ({shown}); {should}")
    if indexes and 0 not in indexes and max(indexes) == number:
        raise ValueError(f"its indexes begin at 1 ({shown}); {should}")
    if outside := [index for index in indexes if not 0 <= index < number]:
        raise ValueError(f"it scored a text with index {outside[0]}, which was not sent ({shown}); {should}")
    if len(rows) != number:
        raise ValueError(
            f"it scored {len(rows)} texts of {number} (indexes {shown or 'none'}); "
            "has the server a limit of its own on how many it returns?"
        )
    scores = dict(rows)
    return [scores[place] for place in range(number)]


def without_echo(message: str) -> str:
    """What a server says of a request, without the parts of the request that it repeats: texts may say anything.

    >>> without_echo('{"detail": [{"msg": "Field required", "input": {"query": "at most 5 models"}}]}')
    '{"detail": [{"msg": "Field required"}]}'
    """
    try:
        said = json.loads(message)
    except (ValueError, RecursionError):
        return message[:MOST_WORDS]
    return json.dumps(_cleaned(said))[:MOST_WORDS]


def _cleaned(said: Any) -> Any:
    if isinstance(said, dict):
        return {name: _cleaned(value) for name, value in said.items() if name not in REPEATED}
    return [_cleaned(value) for value in said] if isinstance(said, list) else said


def most_texts(status: int, message: str, sent: int) -> int:
    """How many texts a server takes at once, by the refusal of `sent` texts; 0 if the refusal is about something else.

    >>> most_texts(422, "batch size 100 > maximum allowed batch size 32", 100)
    32
    >>> most_texts(413, "", 100), most_texts(422, "`inputs` must have less than 512 tokens. Given: 534", 1000)
    (50, 0)

    Where a server only says that it is too much, half is the next thing to try.
    """
    if status not in (400, 413, 422) or sent < 2:
        return 0
    message = without_echo(message)
    phrase = r"(?:max\w*|exceed\w*|larger than|at most|limit\w*|more than|fewer than|up to)[^\d]{0,60}(\d+)\b(?!\s*tok)"
    said = [int(number) for number in re.findall(phrase, message, re.IGNORECASE)]
    if fitting := [number for number in said if 0 < number < sent]:
        return max(fitting)
    return sent // 2 if status == 413 else 0


def fields_missed(message: str) -> list[str]:
    """The fields that a server misses in a request; serde, pydantic and others word it so.

    >>> fields_missed("missing field `texts` at line 1 column 9"), fields_missed('{"loc": ["body", "model"]}')
    (['texts'], ['model'])
    """
    message = without_echo(message)
    named = r"""(?:missing field|"body",)\s*["'`](\w+)["'`]"""
    required = r"""["'`]?(\w+)["'`]? (?:field )?(?:is required|must be provided)"""
    return re.findall(named, message) + re.findall(required, message)


def wants_model(message: str) -> bool:
    """Does a refusal say that there is no model of that name, or that one must be named?

    >>> wants_model("Invalid model: Engine for model name `x` not found."), wants_model("query too long")
    (True, False)
    """
    message = without_echo(message)
    about = r"model\b.{0,80}(?:not found|does not exist|not exist|required|invalid|unknown|not supported|missing)"
    return "model" in fields_missed(message) or bool(
        re.search(rf"{about}|(?:invalid|unknown|missing|no such|specify an?) model", message, re.IGNORECASE)
    )

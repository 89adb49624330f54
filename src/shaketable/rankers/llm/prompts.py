"""Prompt templates and answer parsers for language models. A user's templates are files.

A template has placeholders in braces, such as {query}; all other text is literal. Values are inserted once, so braces
in a query or a passage are kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, log
from pathlib import Path

from shaketable.core.errors import BadInput

METHODS = ("listwise", "pointwise", "pairwise", "setwise")
PLACEHOLDERS = {
    "listwise": ("query", "passages", "count"),
    "pointwise": ("query", "passage"),
    "pairwise": ("query", "a", "b"),
    "setwise": ("query", "passages", "count"),
}
"""The placeholders of each method's templates; all but the count are required."""

WORDINGS: Mapping[str, Mapping[str, str]] = {
    "listwise": {
        "plain": """Here are {count} passages, each with a number in brackets.

{passages}

Search query: {query}

Order the {count} passages by how well they answer the search query, the best one first. Write nothing but the numbers \
in brackets, in the form [2] > [1] > [3].""",
        "role": """You are an expert assessor who puts search results in order of relevance.

The user searched for: {query}

The results to put in order:
{passages}

List all {count} result numbers from the most to the least relevant for "{query}", like this: [3] > [1] > [2]. \
Do not explain anything.""",
        "terse": """Query: {query}
{passages}
Ranking of [1] to [{count}] by relevance to the query, best first, as [] > []:""",
    },
    "pointwise": {
        "plain": """Passage: {passage}

Search query: {query}

Does the passage answer the search query? Reply with one word, Yes or No.""",
        "role": """You are an expert assessor of search results. Somebody searched for "{query}" and got this result:

{passage}

Is the result relevant? Answer Yes or No, and nothing else.""",
        "terse": """Query: {query}
Passage: {passage}
Relevant (Yes or No):""",
    },
    "pairwise": {
        "plain": """Search query: {query}

Passage A: {a}

Passage B: {b}

Which of the two passages answers the search query better? Reply with one letter, A or B.""",
        "role": """You are an expert assessor of search results. Somebody searched for "{query}" and got two results.

Passage A: {a}

Passage B: {b}

Name the more relevant one. Answer A or B, and nothing else.""",
        "terse": """Query: {query}
A: {a}
B: {b}
More relevant (A or B):""",
    },
    "setwise": {
        "plain": """Here are {count} passages, each with a number in brackets.

{passages}

Search query: {query}

Which of the passages answers the search query best? Write nothing but its number in brackets, such as [2].""",
        "role": """You are an expert assessor of search results. The user searched for: {query}

{passages}

Name the most relevant of the {count} results by its number in brackets. Do not explain anything.""",
        "terse": """Query: {query}
{passages}
Most relevant, as []:""",
    },
}
"""The built-in wordings of each method."""

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_BRACKETED = re.compile(r"\[\s*([0-9]{1,6})\s*\]")
_BARE = re.compile(r"[0-9\s>,;.()=-]+")
"""An answer of numbers without brackets, with separators."""
_REASONING = re.compile(r"^.*?</think>", re.DOTALL)
"""The reasoning before the answer of a reasoning model."""
CERTAIN_LOG_ODDS = 20.0
"""The log-odds of an answer without probabilities."""


def read_template(path: Path, method: str) -> str:
    """Read a user's template for a method; check its placeholders."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise BadInput("there is no such file; a template was expected", path) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the template cannot be read ({error})", path) from error
    known = PLACEHOLDERS[method]
    held = set(_PLACEHOLDER.findall(text))
    listed = ", ".join(f"{{{name}}}" for name in known)
    if strange := sorted(held - set(known)):
        raise BadInput(
            f"{{{strange[0]}}} is not a placeholder of a {method} template; the placeholders are {listed}", path
        )
    if absent := [name for name in known if name not in held and name != "count"]:
        raise BadInput(f"a {method} template needs {{{absent[0]}}}; the placeholders are {listed}", path)
    return text


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """Return the template with values for its placeholders. Values are never parsed.

    >>> fill_template("{query}: {passage}", {"query": "tea", "passage": "{query} and {0.__class__}"})
    'tea: {query} and {0.__class__}'
    """
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), template)


def build_prompt(method: str, template: str, query: str, texts: Sequence[str]) -> str:
    """Return the prompt for a query and the texts to show."""
    values = {"query": query, "count": str(len(texts))}
    if method == "pointwise":
        values["passage"] = texts[0]
    elif method == "pairwise":
        values["a"], values["b"] = texts
    else:
        values["passages"] = "\n".join(f"[{i}] {text}" for i, text in enumerate(texts, 1))
    return fill_template(template, values)


@dataclass(frozen=True)
class ParsedAnswer:
    """A parsed answer: positions in the shown list, best first, and the fault of the answer.

    `fault` is "" for a well-formed answer, "repaired" for a malformed but unambiguous one, and "unreadable" otherwise.
    """

    order: tuple[int, ...]
    fault: str = ""


def read_ranking(text: str, count: int) -> ParsedAnswer:
    """Return the permutation in an answer. Duplicates count once; missing passages come last, in input order.

    >>> read_ranking("[2] > [3] > [1]", 3)
    ParsedAnswer(order=(1, 2, 0), fault='')
    >>> read_ranking("[2] > [2] > [7]", 3)
    ParsedAnswer(order=(1, 0, 2), fault='repaired')
    >>> read_ranking("I cannot rank these 3 texts.", 3)
    ParsedAnswer(order=(0, 1, 2), fault='unreadable')
    """
    said = _parse_numbers(text)
    named = list(dict.fromkeys(number - 1 for number in said if 1 <= number <= count))
    order = tuple(named + [i for i in range(count) if i not in named])
    if not named:
        return ParsedAnswer(order, "unreadable")
    return ParsedAnswer(order, "" if len(said) == count == len(named) else "repaired")


def read_choice(text: str, count: int) -> ParsedAnswer:
    """Return the one number in an answer; several different numbers are unreadable.

    >>> read_choice("[2]", 3)
    ParsedAnswer(order=(1,), fault='')
    >>> read_choice("The best is [2], yes, [2].", 3), read_choice("[1] or [2]", 3)
    (ParsedAnswer(order=(1,), fault='repaired'), ParsedAnswer(order=(), fault='unreadable'))
    """
    said = _parse_numbers(text)
    if len(set(said)) != 1 or not 1 <= said[0] <= count:
        return ParsedAnswer((), "unreadable")
    return ParsedAnswer((said[0] - 1,), "" if re.fullmatch(r"\W*\d+\W*", text) else "repaired")


def read_letter(text: str) -> ParsedAnswer:
    """Return the choice of A or B; an answer with both is unreadable.

    Only capitals or a letter alone count, not the article "a".

    >>> read_letter("B")
    ParsedAnswer(order=(1,), fault='')
    >>> read_letter("Passage A is a better answer."), read_letter("A and B")
    (ParsedAnswer(order=(0,), fault='repaired'), ParsedAnswer(order=(), fault='unreadable'))
    """
    alone = re.fullmatch(r"\W*([abAB])\W*", text)
    if alone:
        return ParsedAnswer(("ab".index(alone[1].lower()),))
    named = set(re.findall(r"\b([AB])\b", text))
    return ParsedAnswer(("AB".index(named.pop()),), "repaired") if len(named) == 1 else ParsedAnswer((), "unreadable")


def read_log_odds(text: str, top_logprobs: Mapping[str, float]) -> tuple[float, str]:
    """Return ln p(yes) - ln p(no), and the fault of the answer.

    `top_logprobs` are of the first token. Tokens that differ only in case and blanks are summed; a missing token is at
    most as probable as the least probable listed one. Without probabilities the word itself counts as certain.

    >>> read_log_odds("Yes", {" yes": -1.0, "No": -3.0})
    (2.0, '')
    >>> read_log_odds("no.", {}), read_log_odds("Perhaps", {})
    ((-20.0, ''), (0.0, 'unreadable'))
    """
    found = {word: _sum_logprobs(top_logprobs, word) for word in ("yes", "no")}
    if max(found.values()) > -inf:
        least = min(top_logprobs.values())
        return max(found["yes"], least) - max(found["no"], least), ""
    words = [word.lower() for word in re.findall(r"[^\W\d_]+", text)]
    said = {word for word in words if word in found}
    if len(said) != 1:
        return 0.0, "unreadable"
    return (CERTAIN_LOG_ODDS if "yes" in said else -CERTAIN_LOG_ODDS), "" if len(words) == 1 else "repaired"


def strip_reasoning(text: str) -> str:
    """Return an answer without the reasoning before it.

    >>> strip_reasoning("<think>[1] or [2]?</think> [2] > [1]")
    '[2] > [1]'
    """
    return _REASONING.sub("", text).strip()


def _parse_numbers(text: str) -> list[int]:
    """Return the numbers in brackets; bare numbers count only if there is no other text, as they may be years."""
    found = _BRACKETED.findall(text)
    if not found and _BARE.fullmatch(text):
        found = re.findall(r"\d{1,6}", text)
    return [int(number) for number in found]


def _sum_logprobs(top_logprobs: Mapping[str, float], word: str) -> float:
    alike = [value for token, value in top_logprobs.items() if token.strip(" \t\n▁Ġ.,").lower() == word]
    if not alike:
        return -inf
    most = max(alike)
    return most + log(sum(exp(value - most) for value in alike))

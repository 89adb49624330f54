"""A language model behind an OpenAI-compatible endpoint as a listwise, pointwise, pairwise or setwise ranker."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from shaketable.core.documents import Collection, Doc, Scores, Slate, fingerprint
from shaketable.core.errors import BadInput, UnknownName, check_ranges
from shaketable.core.registries import RANKERS
from shaketable.rankers.http.client import HttpClient, describe_model
from shaketable.rankers.llm.client import CompletionClient, read_key, resolve_endpoint_url
from shaketable.rankers.llm.orders import (
    PromptSchedule,
    compare_all_pairs,
    run_schedule,
    slide_windows,
    sort_by_pairs,
    sort_by_sets,
)
from shaketable.rankers.llm.prompts import (
    WORDINGS,
    ParsedAnswer,
    build_prompt,
    read_choice,
    read_letter,
    read_log_odds,
    read_ranking,
    read_template,
    strip_reasoning,
)

PARAMETER_RANGES = {
    "window": (2, 1000),
    "step": (1, 1000),
    "size": (2, 100),
    "top": (1, 10_000),
    "words": (1, 100_000),
    "tokens": (0, 100_000),
    "seed": (0, 2**31 - 1),
    "timeout": (0.001, 86_400),
    "retries": (0, 100),
    "backoff": (0, 3600),
    "concurrency": (1, 1000),
}


@dataclass(frozen=True)
class LLM:
    """A language model by the URL of its chat or completion endpoint: vLLM, Ollama, llama.cpp, a vendor's.

    url         such as http://localhost:8000/v1; a URL that ends with /completions receives plain prompts
    model       the name of the model; optional if the server has only one
    method      listwise: a window slides over the list, and the model orders its passages (RankGPT)
                pointwise: does the passage answer the query, yes or no; by log-probabilities if the server returns them
                pairwise: which of two passages; setwise: which of a few passages
    window      passages in a listwise prompt, and `step`, by which the window moves
    pairs       sorting: as few pairs as sorting needs; all: every pair
    size        passages in a setwise prompt
    top         ranks that setwise sorting fills; the passages below keep their order
    words       words of each passage in the prompt
    wording     a built-in prompt wording: plain, role or terse
    template    a file with your own: {query} and {passages} for lists and sets (also {count}), {query} and {passage}
                for points, {query}, {a} and {b} for pairs; a word in braces is always a placeholder
    tokens      maximum tokens of an answer; 0 is the length of a well-formed answer
    key_env     the environment variable that holds the key; without it, no key is sent

    Requests use temperature 0, and `seed` if the server accepts one. Scores are ranks; pointwise scores are the
    log-odds of yes. Malformed answers are repaired if they are unambiguous, counted, and reported. The model behind a
    URL may change, so cached scores are reused only after a few of them are requested again; another `revision` is
    another ranker.
    """

    url: str = field(metadata={"example": "http://localhost:8000/v1"})
    model: str = ""
    method: Literal["listwise", "pointwise", "pairwise", "setwise"] = "listwise"
    window: int = 20
    step: int = 10
    pairs: Literal["sorting", "all"] = "sorting"
    size: int = 4
    top: int = 10
    words: int = 300
    wording: str = "plain"
    template: str = ""
    tokens: int = 0
    seed: int = 0
    revision: str = ""
    timeout: float = 120.0
    retries: int = 4
    backoff: float = 0.5
    concurrency: int = 4
    key_env: str = ""

    def __post_init__(self) -> None:
        check_ranges("llm", self, **PARAMETER_RANGES)
        if self.step > self.window:
            raise BadInput(f"llm: a step of {self.step} would skip passages between windows of {self.window}")
        if self.wording not in WORDINGS[self.method]:
            raise UnknownName("wording", self.wording, WORDINGS[self.method])

    def open(self, collection: Collection) -> LLMReranker:
        """Check the settings, read the template and return the ranker; the first request is sent at the first score."""
        url = resolve_endpoint_url(self.url)
        text = read_template(Path(self.template), self.method) if self.template else WORDINGS[self.method][self.wording]
        shape = {
            "listwise": (self.window, self.step),
            "pointwise": (),
            "pairwise": (self.pairs,),
            "setwise": (self.size, self.top),
        }[self.method]
        asked = (self.method, shape, self.words, self.tokens, self.seed, text)
        key = read_key(url, self.key_env)
        client = HttpClient(
            url,
            {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})},
            key,
            self.timeout,
            2 * self.timeout,
            self.retries,
            self.backoff,
            self.concurrency,
            "a chat or completion endpoint (often http://HOST/v1)",
            "concurrency, window or words",
        )
        return LLMReranker(
            name=f"{self.model or 'llm'} at {url}",
            fingerprint=fingerprint("llm", url, self.model, self.revision, *asked),
            model=self,
            template=text,
            client=CompletionClient(
                client, self.model, self.seed, self.key_env, lambda name: RANKERS.spec(replace(self, model=name))
            ),
        )

    @property
    def display_name(self) -> str:
        """The model, if one is named, and the host."""
        return describe_model(self.model, resolve_endpoint_url(self.url))

    def wordings(self) -> dict[str, LLM]:
        """Return the same ranker with each other built-in wording."""
        others = {name: replace(self, wording=name, template="") for name in WORDINGS[self.method]}
        return {name: model for name, model in others.items() if model != self}


@dataclass
class AnswerTally:
    """The numbers of answers that were read, repaired and unreadable."""

    answers: int = 0
    repaired: int = 0
    unreadable: int = 0

    @property
    def malformed(self) -> int:
        return self.repaired + self.unreadable


@dataclass(eq=False)
class LLMReranker:
    """A language model ready to rank."""

    name: str
    fingerprint: str
    model: LLM
    template: str = field(repr=False)
    client: CompletionClient = field(repr=False)
    tally: AnswerTally = field(default_factory=AnswerTally)
    volatile: bool = True
    family: str = "language model"
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def pointwise(self) -> bool:
        return self.model.method == "pointwise"

    @property
    def max_concurrency(self) -> int:
        return self.model.concurrency

    @property
    def chunk(self) -> int:
        """The size of one job: one list, or one pair. Each is cached as it arrives, as it may cost money."""
        return 1

    @property
    def status(self) -> str:
        """Retries and waits, for a progress display."""
        return self.client.http_client.limiter.status

    @property
    def notice(self) -> str:
        """A summary of retries and waits."""
        return self.client.http_client.limiter.retry_summary

    @property
    def remark(self) -> str:
        """The rate of malformed answers, and the settings that the server refused."""
        one, said = self.tally, []
        if one.malformed:
            said.append(
                f"{one.malformed} of {one.answers} answers were malformed: {one.repaired} could be repaired, "
                f"{one.unreadable} could not be read and were ignored"
            )
        if self.client.refused_settings:
            said.append(f"the server does not support {', '.join(self.client.refused_settings)}")
        return "; ".join(said)

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        return [self._score_slate(slate) for slate in slates]

    def _score_slate(self, slate: Slate) -> Scores:
        texts = [format_passage(doc, self.model.words) for doc in slate.docs]
        if self.pointwise:
            return np.array([self._ask_log_odds(slate.query, text) for text in texts], dtype=np.float64)
        order = run_schedule(
            self.make_schedule(len(texts)), lambda some: self._ask_order(slate.query, [texts[i] for i in some])
        )
        scores = np.empty(len(order))
        scores[order] = np.arange(len(order), 0, -1)
        return scores

    def count_requests(self, slates: Sequence[Slate]) -> int:
        """Return the number of prompts for these lists, assuming that every answer keeps the order."""
        if self.pointwise:
            return sum(len(slate.docs) for slate in slates)
        asked = 0

        def as_it_is(shown: tuple[int, ...]) -> tuple[int, ...]:
            nonlocal asked
            asked += 1
            return tuple(range(len(shown)))

        for slate in slates:
            run_schedule(self.make_schedule(len(slate.docs)), as_it_is)
        return asked

    def make_schedule(self, count: int) -> PromptSchedule:
        """Return the prompt schedule for a list of `count` documents."""
        how = self.model
        if how.method == "listwise":
            return slide_windows(count, how.window, how.step)
        if how.method == "setwise":
            return sort_by_sets(count, how.size, how.top)
        return compare_all_pairs(count) if how.pairs == "all" else sort_by_pairs(count)

    def _ask_order(self, query: str, texts: Sequence[str]) -> tuple[int, ...]:
        """Return the model's order of the passages."""
        method = self.model.method
        count = len(texts)
        needed = 8 * count if method == "listwise" else 8
        answer = self.client.complete(build_prompt(method, self.template, query, texts), self.model.tokens or needed)
        said = strip_reasoning(answer.text)
        if method == "listwise":
            reading = read_ranking(said, count)
        else:
            reading = read_letter(said) if method == "pairwise" else read_choice(said, count)
        return self._count_answer(reading).order

    def _ask_log_odds(self, query: str, text: str) -> float:
        asked = build_prompt("pointwise", self.template, query, [text])
        answer = self.client.complete(asked, self.model.tokens or 4, logprobs=True)
        odds, fault = read_log_odds(strip_reasoning(answer.text), answer.top_logprobs)
        self._count_answer(ParsedAnswer((), fault))
        return odds

    def _count_answer(self, reading: ParsedAnswer) -> ParsedAnswer:
        with self._lock:
            self.tally.answers += 1
            self.tally.repaired += reading.fault == "repaired"
            self.tally.unreadable += reading.fault == "unreadable"
        return reading


def format_passage(doc: Doc, words: int) -> str:
    """Return the first words of a document in one line.

    >>> format_passage(Doc("the oak is a tree", title="Oaks"), 3)
    'Oaks the oak'
    """
    return " ".join(doc.text.split()[:words])

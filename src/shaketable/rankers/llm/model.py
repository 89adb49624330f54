"""A language model behind an OpenAI-compatible endpoint, as a ranker of lists, texts, pairs or sets."""

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

    url         such as http://localhost:8000/v1; one that ends with /completions is sent plain prompts
    model       the name of the model; where the server has only one, it need not be named
    method      listwise: a window slides over the list, and the model puts what it shows in order (RankGPT)
                pointwise: does the passage answer the query, yes or no; by log-probabilities where the server tells
                pairwise: which of two passages; setwise: which of a few passages
    window      passages that a list-wise prompt shows, and `step`, by which the window moves
    pairs       sorting: as few pairs as sorting needs; all: every pair
    size        passages that a set-wise prompt shows
    top         places that are sorted out set-wise; the passages below keep their order
    words       words of each passage that are shown
    wording     a built-in way to put the question: plain, role or terse
    template    a file with your own: {query} and {passages} for lists and sets (also {count}), {query} and {passage}
                for points, {query}, {a} and {b} for pairs; a word in braces is always a placeholder
    tokens      the longest answer; 0 is as long as an answer in the form that is asked for
    key_env     the environment variable that holds the key; without it, none is sent

    Answers are asked for at temperature 0, with `seed` where the server takes one. Scores are ranks, but for pointwise,
    where they are the log-odds of yes. What is malformed in an answer is repaired where that leaves no doubt, counted,
    and reported. What is served behind a URL may change, so scores on disk are used again only after a few of them were
    asked for once more; another `revision` is another ranker.
    """

    url: str
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
            raise BadInput(f"llm: a step of {self.step} would leave passages out of windows of {self.window}")
        if self.wording not in WORDINGS[self.method]:
            raise UnknownName("wording", self.wording, WORDINGS[self.method])

    def open(self, collection: Collection) -> LLMReranker:
        """Check the settings, read the template and make a client; the first request is the first scoring."""
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
        """The model, where one is named, and the host."""
        return describe_model(self.model, resolve_endpoint_url(self.url))

    def wordings(self) -> dict[str, LLM]:
        """The same ranker by each built-in wording that is not its own."""
        others = {name: replace(self, wording=name, template="") for name in WORDINGS[self.method]}
        return {name: model for name, model in others.items() if model != self}


@dataclass
class AnswerTally:
    """How many answers were read, and what was wrong with them."""

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
        """One list, or one pair: each is kept as soon as it is there, for it may have been paid for."""
        return 1

    @property
    def status(self) -> str:
        """Retries and waits, for a progress display."""
        return self.client.http_client.limiter.status

    @property
    def notice(self) -> str:
        """What it took to get the answers."""
        return self.client.http_client.limiter.retry_summary

    @property
    def remark(self) -> str:
        """The rate of malformed answers, and what the server did not accept."""
        one, said = self.tally, []
        if one.malformed:
            said.append(
                f"{one.malformed} of {one.answers} answers were malformed: {one.repaired} could be repaired, "
                f"{one.unreadable} could not be read and changed nothing"
            )
        if self.client.refused_settings:
            said.append(f"the server does not take {', '.join(self.client.refused_settings)}")
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
        """How many questions these lists take; as many as it would be if every answer left the order as it is."""
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
        """Which documents of a list of so many are shown together, one question after the other."""
        how = self.model
        if how.method == "listwise":
            return slide_windows(count, how.window, how.step)
        if how.method == "setwise":
            return sort_by_sets(count, how.size, how.top)
        return compare_all_pairs(count) if how.pairs == "all" else sort_by_pairs(count)

    def _ask_order(self, query: str, texts: Sequence[str]) -> tuple[int, ...]:
        """What the model says of the passages that it is shown."""
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
    """The first words of a document, in one line.

    >>> format_passage(Doc("the oak is a tree", title="Oaks"), 3)
    'Oaks the oak'
    """
    return " ".join(doc.text.split()[:words])

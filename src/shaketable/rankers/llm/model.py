"""A language model behind an OpenAI-compatible endpoint, as a ranker of lists, texts, pairs or sets."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from shaketable.errors import BadInput, UnknownName, check_within
from shaketable.rankers.line import Line, model_at
from shaketable.rankers.llm.client import Client, address, key_for
from shaketable.rankers.llm.orders import Asking, all_pairs, led, sets, sorted_pairs, windows
from shaketable.rankers.llm.prompts import (
    WORDINGS,
    Reading,
    prompt,
    read_choice,
    read_letter,
    read_ranking,
    read_template,
    without_thoughts,
    yes_or_no,
)
from shaketable.registry import RANKERS
from shaketable.types import Collection, Doc, Scores, Slate, fingerprint

BOUNDS = {
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
        check_within("llm", self, **BOUNDS)
        if self.step > self.window:
            raise BadInput(f"llm: a step of {self.step} would leave passages out of windows of {self.window}")
        if self.wording not in WORDINGS[self.method]:
            raise UnknownName("wording", self.wording, WORDINGS[self.method])

    def open(self, collection: Collection) -> Reader:
        """Check the settings, read the template and make a client; the first request is the first scoring."""
        url = address(self.url)
        text = read_template(Path(self.template), self.method) if self.template else WORDINGS[self.method][self.wording]
        shape = {
            "listwise": (self.window, self.step),
            "pointwise": (),
            "pairwise": (self.pairs,),
            "setwise": (self.size, self.top),
        }[self.method]
        asked = (self.method, shape, self.words, self.tokens, self.seed, text)
        key = key_for(url, self.key_env)
        line = Line(
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
        return Reader(
            name=f"{self.model or 'llm'} at {url}",
            fingerprint=fingerprint("llm", url, self.model, self.revision, *asked),
            model=self,
            text=text,
            client=Client(
                line, self.model, self.seed, self.key_env, lambda name: RANKERS.spec(replace(self, model=name))
            ),
        )

    @property
    def called(self) -> str:
        """The model, where one is named, and the host."""
        return model_at(self.model, address(self.url))

    def wordings(self) -> dict[str, LLM]:
        """The same ranker by each built-in wording that is not its own."""
        others = {name: replace(self, wording=name, template="") for name in WORDINGS[self.method]}
        return {name: model for name, model in others.items() if model != self}


@dataclass
class Tally:
    """How many answers were read, and what was wrong with them."""

    answers: int = 0
    repaired: int = 0
    unreadable: int = 0

    @property
    def malformed(self) -> int:
        return self.repaired + self.unreadable


@dataclass(eq=False)
class Reader:
    """A language model ready to rank."""

    name: str
    fingerprint: str
    model: LLM
    text: str = field(repr=False)
    client: Client = field(repr=False)
    tally: Tally = field(default_factory=Tally)
    volatile: bool = True
    family: str = "language model"
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def pointwise(self) -> bool:
        return self.model.method == "pointwise"

    @property
    def in_flight(self) -> int:
        return self.model.concurrency

    @property
    def chunk(self) -> int:
        """One list, or one pair: each is kept as soon as it is there, for it may have been paid for."""
        return 1

    @property
    def status(self) -> str:
        """Retries and waits, for whoever looks on."""
        return self.client.line.gate.status

    @property
    def notice(self) -> str:
        """What it took to get the answers."""
        return self.client.line.gate.told

    @property
    def remark(self) -> str:
        """The rate of malformed answers, and what the server did not accept."""
        one, said = self.tally, []
        if one.malformed:
            said.append(
                f"{one.malformed} of {one.answers} answers were malformed: {one.repaired} could be repaired, "
                f"{one.unreadable} could not be read and changed nothing"
            )
        if self.client.refused:
            said.append(f"the server does not take {', '.join(self.client.refused)}")
        return "; ".join(said)

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        return [self._scored(slate) for slate in slates]

    def _scored(self, slate: Slate) -> Scores:
        texts = [shown(doc, self.model.words) for doc in slate.docs]
        if self.pointwise:
            return np.array([self._odds(slate.query, text) for text in texts], dtype=np.float64)
        order = led(self.asking(len(texts)), lambda some: self._answer(slate.query, [texts[i] for i in some]))
        scores = np.empty(len(order))
        scores[order] = np.arange(len(order), 0, -1)
        return scores

    def requests(self, slates: Sequence[Slate]) -> int:
        """How many questions these lists take; as many as it would be if every answer left the order as it is."""
        if self.pointwise:
            return sum(len(slate.docs) for slate in slates)
        asked = 0

        def as_it_is(shown: tuple[int, ...]) -> tuple[int, ...]:
            nonlocal asked
            asked += 1
            return tuple(range(len(shown)))

        for slate in slates:
            led(self.asking(len(slate.docs)), as_it_is)
        return asked

    def asking(self, count: int) -> Asking:
        """Which documents of a list of so many are shown together, one question after the other."""
        how = self.model
        if how.method == "listwise":
            return windows(count, how.window, how.step)
        if how.method == "setwise":
            return sets(count, how.size, how.top)
        return all_pairs(count) if how.pairs == "all" else sorted_pairs(count)

    def _answer(self, query: str, texts: Sequence[str]) -> tuple[int, ...]:
        """What the model says of the passages that it is shown."""
        method = self.model.method
        count = len(texts)
        needed = 8 * count if method == "listwise" else 8
        answer = self.client.ask(prompt(method, self.text, query, texts), self.model.tokens or needed)
        said = without_thoughts(answer.text)
        if method == "listwise":
            reading = read_ranking(said, count)
        else:
            reading = read_letter(said) if method == "pairwise" else read_choice(said, count)
        return self._counted(reading).order

    def _odds(self, query: str, text: str) -> float:
        asked = prompt("pointwise", self.text, query, [text])
        answer = self.client.ask(asked, self.model.tokens or 4, probabilities=True)
        odds, fault = yes_or_no(without_thoughts(answer.text), answer.tops)
        self._counted(Reading((), fault))
        return odds

    def _counted(self, reading: Reading) -> Reading:
        with self._lock:
            self.tally.answers += 1
            self.tally.repaired += reading.fault == "repaired"
            self.tally.unreadable += reading.fault == "unreadable"
        return reading


def shown(doc: Doc, words: int) -> str:
    """The first words of a document, in one line.

    >>> shown(Doc("the oak is a tree", title="Oaks"), 3)
    'Oaks the oak'
    """
    return " ".join(doc.text.split()[:words])

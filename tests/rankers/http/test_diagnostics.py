"""The doctor's visit to an endpoint: each ailment is found and named, a healthy server has none."""

from __future__ import annotations

import random

import pytest

from shaketable.rankers.http.diagnostics import diagnose_endpoint
from shaketable.rankers.http.reranker import HttpEndpoint
from tests import servers
from tests.servers import rows, worth


def visit(server, **settings):
    return {check.check: check for check in diagnose(server, **settings).checks}


def diagnose(server, **settings):
    return diagnose_endpoint(HttpEndpoint(server.url, retries=0, **settings), lists=60)


def find_check(checks, word):
    (found,) = [check for name, check in checks.items() if word in name]
    return found


def test_a_healthy_server(serve):
    checks = visit(serve(servers.simple))
    assert {check.severity for check in checks.values()} == {"ok"}, checks
    assert find_check(checks, "dialect").examples == ("cohere",)
    assert find_check(checks, "noise").examples == ("0",)
    assert find_check(checks, "in one request").count == 100
    assert " ms" in find_check(checks, "latency").examples[0]


def test_tei_has_a_limit_and_cuts_long_texts(serve):
    checks = visit(serve(servers.tei))
    assert find_check(checks, "dialect").examples == ("tei",)
    assert (find_check(checks, "in one request").count, find_check(checks, "in one request").severity) == (32, "ok")
    assert find_check(checks, "truncated").examples == ("after about 518 words",)


def test_rounding_differences_do_not_hide_truncation(serve):
    """As infinity's do: where a text stands in a batch changes how its sums are rounded."""

    def answer_rounded(nth, body):
        texts = [" ".join(text.split()[:200]) for text in body["documents"]]
        return 200, rows(*((i, worth(body["query"], text) + 3e-8 * i) for i, text in enumerate(texts))), {}

    assert find_check(visit(serve(answer_rounded)), "truncated").examples == ("after about 175 words",)


def test_a_limit_matters_where_lists_are_not_cut(serve):
    checks = visit(serve(lambda nth, body: answer_short_lists(body)))
    limit = find_check(checks, "in one request")
    assert (limit.count, limit.severity) == (25, "warning")
    assert "--depth 25" in limit.advice
    assert "scores depend on the list" in find_check(checks, "between two lists").advice


def answer_short_lists(body):
    scores = [worth(body["query"], text) + 0.01 for text in body["documents"]]
    if len(scores) > 30:
        return 413, b"payload too large", {}
    return 200, rows(*((i, score / sum(scores)) for i, score in enumerate(scores))), {}


def test_a_wrong_pointwise_setting_is_an_error(serve):
    checks = visit(serve(lambda nth, body: answer_short_lists(body)), pointwise=True)
    assert find_check(checks, "between two lists").severity == "error"
    assert "pointwise=False" in find_check(checks, "between two lists").advice


def test_a_server_that_re_ranks_nothing(serve):
    diagnosis = diagnose(serve(servers.by_place))
    assert [fault.kind for fault in diagnosis.faults] == ["input order"]
    assert "60 of 60 lists came back in input order" in diagnosis.summary


def test_a_server_whose_scores_are_all_equal(serve):
    checks = visit(serve(lambda nth, body: (200, rows(*((i, 0.5) for i in range(len(body["documents"])))), {})))
    assert find_check(checks, "constant scores").severity == "error"
    assert find_check(checks, "tied").count == 20


def test_scores_that_are_distances(serve):
    def reply(nth, body):
        scores = [-worth(body["query"], text) for text in body["documents"]]
        return 200, rows(*enumerate(scores)), {}

    assert find_check(visit(serve(reply)), "inverted scores").severity == "error"


def test_noise(serve):
    draws = random.Random(1)

    def reply(nth, body):
        scores = [worth(body["query"], text) + draws.uniform(0, 1e-3) for text in body["documents"]]
        return 200, rows(*enumerate(scores)), {}

    noise = find_check(visit(serve(reply)), "noise")
    assert noise.severity == "warning"
    assert 1e-4 < float(noise.examples[0]) <= 1e-3


def test_saturation(serve):
    def reply(nth, body):
        scores = [round(worth(body["query"], text) * 8, 1) > 0.3 for text in body["documents"]]
        return 200, rows(*((i, float(score)) for i, score in enumerate(scores))), {}

    checks = visit(serve(reply))
    assert find_check(checks, "saturated").count == 20
    assert find_check(checks, "saturated").severity == "warning"
    assert find_check(checks, "tied").severity == "warning"


def test_long_texts_that_are_refused(serve):
    def reply(nth, body):
        if any(len(text.split()) > 2000 for text in body["documents"]):
            return 400, {"error": "input is too long: 3000 tokens, the maximum is 2048 tokens"}, {}
        return servers.simple(nth, body)

    cut = find_check(visit(serve(reply)), "truncated")
    assert cut.examples == ("refused at 3,000 words",)


@pytest.mark.parametrize("status", [401, 404, 500])
def test_a_server_that_cannot_be_asked(serve, status):
    checks = visit(serve(servers.always(status, {"detail": "no"})))
    (only,) = checks.values()
    assert only.severity == "error"
    assert str(status) in only.advice

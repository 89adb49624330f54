"""Gradients with respect to words: by hand, by finite differences, and against tables that are really changed."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import pytest
import tokenizers
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from shaketable.core.errors import BadInput
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.words import find_word_spans
from shaketable.rankers.neural.bert import CrossEncoder
from shaketable.rankers.neural.colbert import ColBERT
from shaketable.rankers.neural.conv_knrm import ConvKNRM
from shaketable.rankers.neural.dense import BiEncoder
from shaketable.rankers.neural.drmm import DRMM
from shaketable.rankers.neural.dssm import DSSM
from shaketable.rankers.neural.duet import Duet
from shaketable.rankers.neural.epic import EPIC
from shaketable.rankers.neural.gradients import Gradients, RankContest
from shaketable.rankers.neural.knrm import KNRM
from shaketable.rankers.neural.monot5 import MonoT5
from shaketable.rankers.neural.net import Net
from shaketable.rankers.neural.shapes import (
    BertShape,
    ColBERTShape,
    ConvKNRMShape,
    DenseShape,
    DRMMShape,
    DSSMShape,
    DuetShape,
    EPICShape,
    KNRMShape,
    MonoT5Shape,
    WordsRead,
)
from shaketable.rankers.neural.tokens import WordPieces
from shaketable.rankers.neural.words import Vocabulary, WordVectorNet, letter_trigrams
from tests.rankers.neural import tiny
from tests.toys import WORDS, text

PLAIN = Analyzer(stemmer="none")
VOCABULARY = Vocabulary(tuple(WORDS), PLAIN)
TRIGRAMS = Vocabulary(tuple(sorted({trigram for word in WORDS for trigram in letter_trigrams(word)})), PLAIN)
DUET = {"filters": 3, "local": 4, "distributed": 5, "pool": 3, "query_length": 4, "text_length": 16}

WORD_NETS: dict[str, Callable[[], Net]] = {
    "knrm": lambda: KNRM(VOCABULARY, 6, KNRMShape(text_length=16)),
    "conv_knrm": lambda: ConvKNRM(VOCABULARY, 6, ConvKNRMShape(filters=5, text_length=16)),
    "duet": lambda: Duet(VOCABULARY, 6, DuetShape(**DUET)),
}
WITHOUT: dict[str, Callable[[], Net]] = {
    "drmm": lambda: DRMM(VOCABULARY, 6, DRMMShape(text_length=16)),
    "dssm": lambda: DSSM(TRIGRAMS, DSSMShape((8, 6, 4))),
    "trigrams": lambda: Duet(TRIGRAMS, 0, DuetShape(**DUET, input="trigrams")),
}
TRANSFORMERS: dict[str, Callable[[Any], Net]] = {
    "bert": lambda path: CrossEncoder.from_checkpoint(str(tiny.bert(path)), BertShape(max_length=32)),
    "two_logits": lambda path: CrossEncoder.from_checkpoint(str(tiny.bert(path, logits=2)), BertShape(max_length=32)),
    "dense": lambda path: BiEncoder.from_checkpoint(str(tiny.encoder(path)), DenseShape(max_length=24)),
    "prompted": lambda path: BiEncoder.from_checkpoint(
        str(tiny.encoder(path)), DenseShape(max_length=24, passage_prefix="oak: ", query_prefix="elm? ")
    ),
    "colbert": lambda path: ColBERT.from_checkpoint(
        str(tiny.encoder(path)), ColBERTShape(dim=8, query_length=10, text_length=24)
    ),
    "epic": lambda path: EPIC.from_checkpoint(str(tiny.write_masked_model(path)), EPICShape(max_length=24)),
    "epic_bare": lambda path: EPIC.from_checkpoint(str(tiny.encoder(path)), EPICShape(max_length=24)),
    "monot5": lambda path: MonoT5.from_checkpoint(str(tiny.t5(path)), MonoT5Shape(max_length=40)),
    "untied": lambda path: MonoT5.from_checkpoint(str(tiny.t5(path, tied=False)), MonoT5Shape(max_length=40)),
}
BYTES: dict[str, Callable[[Any], Net]] = {
    "roberta": lambda path: CrossEncoder.from_checkpoint(str(tiny.roberta(path)), BertShape(max_length=48)),
}
CONTEST = RankContest("oak elm", "a fir, the oak pine; oak", ("elm yew", "larch larch ash", "oak", "pine and fir"))
RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def nets(tmp_path_factory) -> Callable[[str], Net]:
    """Each net once, in float64 so that differences are exact."""
    made: dict[str, Net] = {}

    def get(name: str) -> Net:
        if name not in made:
            torch.manual_seed(11)
            words = WORD_NETS | WITHOUT
            pieces = TRANSFORMERS | BYTES
            net = words[name]() if name in words else pieces[name](tmp_path_factory.mktemp(name))
            made[name] = net.double().eval()
        return made[name]

    return get


def lookups(net: Net, pair: tuple[str, str], add: Callable[[int, torch.Tensor], Any] | None = None):
    """Return the score of a pair and the rows of each embedding lookup."""
    seen: list[torch.Tensor] = []

    def hook(module, inputs, output):
        seen.append(inputs[0].clone())
        return add(len(seen) - 1, output) if add else None

    weight = net.embedding().weight
    layers = [m for m in net.modules() if isinstance(m, torch.nn.Embedding) and m.weight is weight]
    handles = [layer.register_forward_hook(hook) for layer in layers]
    try:
        with torch.no_grad():
            score = net(**net.collate(net.prepare([pair]))).item()
    finally:
        for handle in handles:
            handle.remove()
    return score, seen


def loss(net: Net, contest: RankContest, own: float | None = None) -> float:
    """Return the loss of the attack by its definition."""
    scores = [lookups(net, (contest.query, other))[0] for other in (contest.text, *contest.others)]
    own = scores[0] if own is None else own
    return sum(max(0.0, 1.0 - own + other) for other in scores[1:])


# ------------------------------------------------------------------------------------------------ by hand


class Near(WordVectorNet):
    """score = -½ ‖Σ text - Σ query‖²: the gradient at each word of the text is Σ query - Σ text."""

    kind: ClassVar[str] = "near"
    shape_class: ClassVar[type[WordsRead]] = WordsRead

    def forward(self, query, text):  # type: ignore[no-untyped-def, override]
        return -0.5 * (self.look_up_vectors(query).sum(1) - self.look_up_vectors(text).sum(1)).square().sum(1)


class Dot(WordVectorNet):
    """score = Σ text · Σ query: the gradient at each word of the text is Σ query."""

    kind: ClassVar[str] = "dot"
    shape_class: ClassVar[type[WordsRead]] = WordsRead

    def forward(self, query, text):  # type: ignore[no-untyped-def, override]
        return (self.look_up_vectors(query).sum(1) * self.look_up_vectors(text).sum(1)).sum(1)


def by_hand(kind: type[WordVectorNet]) -> WordVectorNet:
    """oak (1, 0), elm (0, 2), fir (3, 4)."""
    net = kind(Vocabulary(("oak", "elm", "fir"), PLAIN), 2, WordsRead())
    net.load_vectors(np.array([[1, 0], [0, 2], [3, 4]], np.float32), frozen=True)
    return net


def test_importance_by_hand():
    """Q = oak + elm = (1, 2), so fir scores 11, oak 1, elm 4: the text 13, the others 4, 1, 26 and 14."""
    contest = RankContest("oak elm", "Fir, oak; baobab OAK!", ("elm", "oak", "fir fir elm", "fir oak oak oak"))
    # the last two have a part in the loss; each place of fir and oak has the gradient -2 Q
    (found,) = Gradients(by_hand(Dot)).compute_importance([contest])
    assert found == pytest.approx({"fir": 2 * sqrt(5), "oak": 4 * sqrt(5), "baobab": 0.0})
    assert list(found) == ["fir", "oak", "baobab"]
    (shared,) = Gradients(by_hand(Dot), shared=True).compute_importance([contest])
    # L = 2 - 2 s(d) + s(fir fir elm) + s(fir oak oak oak), and s = T · Q, where oak is in Q and may be in T
    # ∂L/∂oak = -2 (2 Q + T_d) + T_3 + (3 Q + T_4) = -Q - 2 (5, 4) + (6, 10) + (6, 4) = (1, 4)
    # ∂L/∂fir = -2 Q + 2 Q + Q = Q
    assert shared == pytest.approx({"fir": sqrt(5), "oak": sqrt(17), "baobab": 0.0})


def test_one_step_by_hand():
    """G of fir and oak is -2 (1, 2) and -4 (1, 2); α = 10, and ‖G‖ = 10."""
    contest = RankContest("oak elm", "Fir, oak; baobab OAK!", ("elm", "oak", "fir fir elm", "fir oak oak oak"))
    (found,) = Gradients(by_hand(Dot)).perturb_vectors([contest], steps=1, epsilon=10.0)
    assert found.keys() == {"fir", "oak"}, "an unknown word has no vector of its own"
    assert found["fir"] == pytest.approx([3 + 2, 4 + 4])
    assert found["oak"] == pytest.approx([1 + 4, 0 + 8])


def test_a_word_of_several_tokens_by_hand():
    """oak is there twice, elm once: G is -2 Q and -Q, and a step goes that way."""
    contest = RankContest("oak", "oak-elm baobab-oak", ("fir",))
    (study,) = Gradients(by_hand(Dot)).analyze([contest], steps=1, epsilon=sqrt(5))
    assert study.importance == pytest.approx({"oak-elm": 2.0, "baobab-oak": 2.0}), "that of the token that has most"
    assert study.perturbed_vectors["oak-elm"] == pytest.approx([(3 + 1) / 2, (0 + 2) / 2])
    assert study.perturbed_vectors["baobab-oak"] == pytest.approx([3, 0]), "an unknown token adds nothing"


@pytest.mark.parametrize(("steps", "alpha"), [(1, 0.6), (2, 0.6), (3, 0.6), (4, 0.3), (5, 0.3)])
def test_steps_by_hand(steps, alpha):
    """d = fir + 2 oak moves as one point towards the query's; steps are α = ε / max(1, ⌊steps / 2⌋) long."""
    (found,) = Gradients(by_hand(Near)).perturb_vectors(
        [RankContest("elm", "oak fir oak", ("elm",))], steps, epsilon=0.6
    )
    oak, fir, goal = np.array([1.0, 0.0]), np.array([3.0, 4.0]), np.array([0.0, 2.0])
    for _ in range(steps):
        slope = goal - (2 * oak + fir)
        slope /= np.linalg.norm(slope)
        oak, fir = oak + alpha * slope * 2 / sqrt(5), fir + alpha * slope / sqrt(5)
    assert found["oak"] == pytest.approx(oak)
    assert found["fir"] == pytest.approx(fir)


def test_steps_end_where_nothing_is_left_to_gain():
    """The first step takes the text ahead of all others by the margin."""
    engine, contest = Gradients(by_hand(Dot)), RankContest("oak", "oak", ("elm oak",))
    one, three = (engine.perturb_vectors([contest], steps, 5.0)[0]["oak"] for steps in (1, 3))
    assert one == pytest.approx([6, 0])
    assert three == pytest.approx(one)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("others", [("elm", "baobab"), ()])
def test_a_text_ahead_of_all_others_has_no_gradient(shared, others):
    engine = Gradients(by_hand(Dot), shared=shared)
    (study,) = engine.analyze([RankContest("fir", "fir oak", others)])
    assert study.importance == {"fir": 0.0, "oak": 0.0}
    assert study.perturbed_vectors["fir"].tolist() == [3, 4]
    assert study.perturbed_vectors["oak"].tolist() == [1, 0]
    assert engine.find_flips([RankContest("fir", "fir oak", others)], [[0, 1]]) == [{0: [], 1: []}]


@pytest.mark.parametrize("shared", [False, True])
def test_texts_that_tie_have_no_part_in_a_loss_without_a_margin(shared):
    assert Gradients(by_hand(Dot), margin=0.0, shared=shared).compute_importance(
        [RankContest("fir", "oak elm", ("elm oak", "oak elm"))]
    ) == [{"oak": 0.0, "elm": 0.0}]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("words", ["", "baobab kapok", "the of ---"])
def test_a_text_without_known_words_has_no_gradient(words, shared):
    (study,) = Gradients(by_hand(Near), shared=shared).analyze([RankContest("oak", words, ("oak",))])
    assert set(study.importance.values()) <= {0.0}
    assert study.perturbed_vectors == {}


def test_a_flip_changes_a_linear_score_as_it_says():
    net, others = by_hand(Dot), ("fir fir fir", "fir fir elm")
    before = RankContest("oak elm", "elm oak elm", others)
    (found,) = Gradients(net).find_flips([before], [[0, 1]], k=5)
    assert {place: [flip.word for flip in flips] for place, flips in found.items()} == {0: ["fir"], 1: ["fir", "elm"]}
    for place, flips in found.items():
        for flip in flips:
            words = before.text.split()
            words[place] = flip.word
            after = RankContest("oak elm", " ".join(words), others)
            assert flip.loss_change == pytest.approx(loss(net, after) - loss(net, before))
    assert Gradients(net).find_flips([before], [[1]], k=1)[0][1] == found[1][:1]
    assert [
        f.word for f in Gradients(net).find_flips([before], [[1]], vocabulary=["elm", "kapok", "two words"])[0][1]
    ] == ["elm"]


# ------------------------------------------------------------------------------------------------ every net


def moved_score(net: Net, contest: RankContest, places: list[torch.Tensor], by: torch.Tensor) -> float:
    pair = contest.query, contest.text
    return lookups(net, pair, lambda number, vectors: vectors + by * places[number][..., None])[0]


@pytest.mark.parametrize("name", [*WORD_NETS, *TRANSFORMERS])
def test_gradients_are_those_of_finite_differences(nets, name):
    """The positions of a word are those of the word that replaces it."""
    net, contest = nets(name), CONTEST
    size, error = (1e-3, 1e-2) if isinstance(net, MonoT5) else (1e-5, 1e-5)  # T5 has parts in float32
    (study,) = Gradients(net).analyze([contest], steps=1)
    assert study.importance.keys() == {"a", "fir", "the", "oak", "pine"}
    for word, other in (("oak", "yew"), ("fir", "yew"), ("pine", "yew")):
        (old,) = Gradients(net).look_up_vectors([word])
        moved = study.perturbed_vectors[word] - old
        slope = -study.importance[word] * moved / np.linalg.norm(moved)
        changed = contest.text.replace(word, other)
        seen, instead = (lookups(net, (contest.query, words))[1] for words in (contest.text, changed))
        places = [a != b for a, b in zip(seen, instead, strict=True)]
        assert sum(int(place.sum()) for place in places) == (2 if word == "oak" else 1)
        for _ in range(3):
            direction = torch.from_numpy(RNG.normal(size=len(slope)))
            direction *= size / direction.norm()
            above, below = (loss(net, contest, moved_score(net, contest, places, sign * direction)) for sign in (1, -1))
            close = error * size * np.linalg.norm(slope)
            assert float(slope @ direction.numpy()) == pytest.approx((above - below) / 2, abs=close)
        assert study.importance[word] > 1e-6


def plainly(net: Net, contest: RankContest) -> torch.Tensor:
    """L by one call of the net."""
    scores = net(**net.collate(net.prepare([(contest.query, t) for t in (contest.text, *contest.others)])))
    return (1 - scores[0] + scores[1:]).clamp(min=0).sum()


@pytest.mark.parametrize("name", ["knrm", "conv_knrm", "duet", "bert", "dense", "colbert"])
def test_shared_gradients_are_those_of_a_table_that_is_really_changed(nets, name):
    """The attack of the paper's code, which changes the weights of the net itself."""
    net, changed = nets(name), deepcopy(nets(name))
    weight = changed.embedding().weight.requires_grad_()
    rows = net.align_tokens(CONTEST.text, CONTEST.query).rows
    rows = torch.from_numpy(rows[rows >= 0]).unique()
    norms = None
    for _ in range(3):
        weight.grad = None
        plainly(changed, CONTEST).backward()
        norms = weight.grad.norm(dim=1) if norms is None else norms
        with torch.no_grad():
            weight[rows] -= 0.1 * (weight.grad / weight.grad.norm())[rows]
    (study,) = Gradients(net, shared=True).analyze([CONTEST], steps=3, epsilon=0.1)
    for word in ("oak", "fir", "pine"):
        (row,) = Gradients(net)._row_cache[word]
        assert study.importance[word] == pytest.approx(float(norms[row]), rel=1e-6)
        assert study.perturbed_vectors[word] == pytest.approx(weight[row].detach().numpy(), rel=1e-5, abs=1e-7)
    clean = Gradients(net).compute_importance([CONTEST])[0]
    assert clean["oak"] != pytest.approx(study.importance["oak"], rel=1e-3), "the query has this word, too"


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", [*WORD_NETS, "bert", "colbert"])
def test_a_contest_has_the_same_answer_in_any_company(nets, name, shared):
    net = nets(name)
    if name in ("bert", "colbert"):
        net = deepcopy(net).float()
    contests = [
        RankContest(text(q, 2), text(50 + d, 3 + 4 * d), tuple(text(60 + q + i, 2 + i) for i in range(5 + d)))
        for q in range(2)
        for d in range(3)
    ]
    together = Gradients(net, shared=shared).analyze(contests)
    backwards = Gradients(net, shared=shared).analyze(contests[::-1])[::-1]
    alone = [Gradients(net, shared=shared).analyze([contest])[0] for contest in contests]
    assert any(max(study.importance.values()) > 0 for study in together)
    for one, *rest in zip(together, backwards, alone, strict=True):
        for other in rest:
            assert one.importance == other.importance
            assert one.perturbed_vectors.keys() == other.perturbed_vectors.keys()
            assert all(
                np.array_equal(one.perturbed_vectors[word], other.perturbed_vectors[word])
                for word in one.perturbed_vectors
            )


@pytest.mark.parametrize("name", WORD_NETS)
def test_nor_do_flips_depend_on_it(nets, name):
    contests = [RankContest("oak elm", text(20 + d, 1 + d), ("oak", "elm elm", "yew fir oak")) for d in range(19)]
    marked = [range(len(find_word_spans(contest.text))) for contest in contests]
    together = Gradients(nets(name)).find_flips(contests, marked)
    alone = [
        Gradients(nets(name)).find_flips([contest], [some])[0] for contest, some in zip(contests, marked, strict=True)
    ]
    assert any(flips for found in together for flips in found.values())
    assert together == alone == Gradients(nets(name)).find_flips(contests[::-1], marked[::-1])[::-1]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", ["knrm", "bert", "monot5"])
def test_nothing_of_the_net_is_changed(nets, name, shared):
    net = deepcopy(nets(name)).float().train()
    next(m for m in net.modules() if m is not net).eval()
    modes = [module.training for module in net.modules()]
    weights = {key: value.clone() for key, value in net.state_dict().items()}
    wanted = [parameter.requires_grad for parameter in net.parameters()]
    engine = Gradients(net, shared=shared)
    engine.analyze([CONTEST])
    engine.find_flips([CONTEST], [[1]])
    assert [module.training for module in net.modules()] == modes
    assert all(torch.equal(value, weights[key]) for key, value in net.state_dict().items())
    assert [parameter.requires_grad for parameter in net.parameters()] == wanted
    assert all(parameter.grad is None for parameter in net.parameters())
    assert not any(module._forward_hooks for module in net.modules())


def test_dropout_is_off(nets):
    net = deepcopy(nets("duet")).train()
    assert Gradients(net).compute_importance([CONTEST]) == Gradients(nets("duet")).compute_importance([CONTEST])


def test_vectors_that_are_not_learned_have_gradients():
    torch.manual_seed(11)
    net = KNRM(VOCABULARY, 6, KNRMShape())
    (learned,) = Gradients(net).compute_importance([CONTEST])
    net.freeze(True)
    assert Gradients(net).compute_importance([CONTEST]) == [learned]
    assert learned["fir"] > 0


def test_a_net_that_stems_has_one_importance_for_all_forms():
    torch.manual_seed(11)
    net = KNRM(Vocabulary(("oak", "elm", "tabl"), Analyzer()), 6, KNRMShape())
    net(**net.collate(net.prepare([("tables", "an oak")])))
    (found,) = Gradients(net).compute_importance([RankContest("oak", "tables elm table", ("elm",))])
    assert found["tables"] == found["table"] > 0


@pytest.mark.parametrize(("name", "expected"), [("knrm", [8, 9, 1]), ("bert", [1] * 12)])
def test_the_scores_of_others_are_asked_for_once(nets, name, expected):
    """By a transformer in batches of one: the numbers of larger batches depend on the other pairs.

    Where words are read, the texts themselves come first, in a batch that is filled up.
    """
    net, others = nets(name), tuple(text(i) for i in range(9))
    sizes: list[int] = []
    with net.register_forward_pre_hook(
        lambda _, __, batch: sizes.append(len(next(iter(batch.values())))), with_kwargs=True
    ):
        Gradients(net).analyze(
            [RankContest("oak", text(20), others), RankContest("oak", text(21), (*others[::-1], "yew"))], steps=1
        )
    assert sizes == expected


@pytest.mark.parametrize("name", WITHOUT)
def test_a_net_without_gradients_says_so(nets, name):
    net = nets(name)
    assert net.no_gradients_reason
    with pytest.raises(BadInput) as refusal:
        Gradients(net)
    assert net.no_gradients_reason in str(refusal.value)


def test_a_tokenizer_without_offsets_is_refused(nets):
    net = deepcopy(nets("bert"))

    class Slow:
        is_fast = False

    net._pieces.tokenizer = Slow()
    with pytest.raises(BadInput, match="does not map pieces"):
        Gradients(net)


# ------------------------------------------------------------------------------------------------ vectors of words


def test_vectors_are_means_over_pieces(nets):
    net = nets("bert")
    weight = net.embedding().weight.detach().numpy()
    number = {piece: i for i, piece in enumerate(tiny.VOCABULARY)}
    found = Gradients(net).look_up_vectors(["oak", "yews", "東京", "...", "Oak"])
    assert found[0] == pytest.approx(weight[number["oak"]])
    # the tiny vocabulary has no "##ew": letters one by one
    pieces = net.tokenizer.convert_ids_to_tokens(net.tokenizer("yews", add_special_tokens=False)["input_ids"])
    assert len(pieces) > 1
    assert found[1] == pytest.approx(weight[[number[piece] for piece in pieces]].mean(0))
    assert np.isnan(found[2:4]).all()
    assert (found[4] == found[0]).all()
    assert Gradients(net).look_up_vectors([]).shape == (0, 32)


def test_unknown_words_have_no_vector(nets):
    found = Gradients(nets("knrm")).look_up_vectors(["oak", "baobab", "the", "oak-elm"])
    weight = nets("knrm").words.weight.detach().numpy()
    assert found[0] == pytest.approx(weight[VOCABULARY.numbers["oak"]])
    assert np.isnan(found[1:3]).all()
    assert found[3] == pytest.approx(weight[[VOCABULARY.numbers["oak"], VOCABULARY.numbers["elm"]]].mean(0))


@pytest.mark.parametrize("name", ["bert", "monot5", "roberta", "conv_knrm"])
def test_flips_are_words_that_the_net_reads_as_one_token(nets, name):
    net = nets(name)
    engine = Gradients(net, margin=1000.0)
    contest = RankContest("oak", "a fir x elm", ("oak", "yew"))
    (found,) = engine.find_flips([contest], [[1, 2]], k=4)
    flips = [flip for some in found.values() for flip in some]
    assert flips
    for place, some in found.items():
        assert [flip.loss_change for flip in some] == sorted(flip.loss_change for flip in some)
        (word,) = net.align_tokens(contest.text, contest.query).words[place].tokens[:1] or [None]
        for flip in some:
            assert flip.loss_change < 0
            assert word is not None
            assert find_word_spans(flip.word) == [(0, len(flip.word))]
            assert len(net.align_tokens(f"a {flip.word}").words[1].tokens) == 1
    if name == "bert":
        assert {flip.word for flip in flips} <= {*WORDS, *tiny.LETTERS}


# ------------------------------------------------------------------------------------------------ readings

ANYTHING = st.one_of(
    st.lists(st.sampled_from([*WORDS, "The", "of", "it's", "x-ray", "--", "(oak)", "Ünïtes", "東京", "é", "a/b"])).map(
        " ".join
    ),
    st.text(max_size=40),
)


@pytest.mark.parametrize("name", [*WORD_NETS, *WITHOUT, *TRANSFORMERS, *BYTES])
@settings(max_examples=40, deadline=None)
@given(words=ANYTHING, query=ANYTHING)
def test_readings_keep_their_laws(nets, name, words, query):
    net = nets(name)
    reading = net.align_tokens(words, query)
    assert [(word.start, word.end) for word in reading.words] == find_word_spans(words)
    tokens = [token for word in reading.words for token in word.tokens]
    assert tokens == sorted(set(tokens)), "in order, none twice"
    assert all(token in range(len(reading.rows)) for token in tokens)
    if name in WITHOUT:
        assert name == "drmm" or (reading.rows == -1).all()
        return
    _, seen = lookups(net, (query, words))
    read = seen[reading.lookup][0, reading.start : reading.start + len(reading.rows)].numpy()
    assert (read == reading.rows)[reading.rows >= 0].all()
    assert len(read) == len(reading.rows)


@settings(deadline=None)
@given(words=ANYTHING, split=st.sampled_from(["words", "space"]), stopwords=st.sampled_from(["english", "none"]))
def test_terms_of_a_text_are_those_of_its_words(words, split, stopwords):
    tokenizer = Analyzer(split=split, stopwords=stopwords, stemmer="none")
    net = KNRM(Vocabulary(tuple(WORDS), tokenizer), 6, KNRMShape(text_length=10_000))
    terms, reading = tokenizer(words), net.align_tokens(words)
    assert len(reading.rows) == len(terms)
    if split == "words":
        assert [token for word in reading.words for token in word.tokens] == list(range(len(terms)))
    for word in reading.words:
        if words[word.start : word.end].isascii() and split == "words":
            assert [terms[token] for token in word.tokens] == tokenizer(words[word.start : word.end])


@pytest.mark.parametrize("name", ["bert", "dense", "prompted", "colbert", "epic", "monot5", "roberta"])
def test_a_word_has_the_pieces_that_spell_it(nets, name):
    net = nets(name)
    words = "(oak, elms' yew... A x-ray?"
    reading = net.align_tokens(words, "fir")
    spelled = {
        words[word.start : word.end]: net.tokenizer.decode([int(reading.rows[token]) for token in word.tokens])
        for word in reading.words
    }
    plain = {word: piece.replace("#", "").replace(" ", "").lower() for word, piece in spelled.items()}
    assert plain == {"oak": "oak", "elms": "elms", "yew": "yew", "A": "a", "x-ray": "x-ray"}


@pytest.mark.parametrize("name", [*WORD_NETS, *TRANSFORMERS])
def test_a_word_beyond_the_limit_has_no_tokens(nets, name):
    net = nets(name)
    words = "oak " * 10 + "yew " * 60
    reading = net.align_tokens(words, "fir elm")
    read = [bool(word.tokens) for word in reading.words]
    assert read == sorted(read, reverse=True)
    assert 10 <= sum(read) < 40
    assert sum(read) == len(reading.rows)
    longer = net.align_tokens(words, "fir elm " * 20)
    if isinstance(net, CrossEncoder | MonoT5):
        assert len(longer.rows) < len(reading.rows), "a long query leaves fewer tokens for the text"
    (found,) = Gradients(net).compute_importance([RankContest("fir elm", words + "pine", ("oak",))])
    assert found["pine"] == 0.0 < found["oak"]


def test_a_word_that_is_cut_has_the_tokens_that_are_left(nets):
    net = nets("colbert")
    reading = net.align_tokens("oak " * 19 + "baobab elm")
    assert [len(word.tokens) for word in reading.words[-3:]] == [1, 2, 0]


def test_pieces_that_begin_with_a_space_belong_to_the_word_behind_it():
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = tokenizers.Tokenizer(
        models.BPE({c: i for i, c in enumerate([*letters, "Ġo", "Ġoa"])}, [("Ġ", "o"), ("Ġo", "a")])
    )
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.post_processor = processors.ByteLevel(trim_offsets=False)  # as unfavourable as it gets
    pieces = WordPieces(PreTrainedTokenizerFast(tokenizer_object=made))
    reading = pieces.align_tokens("oak oak (oak)", lookup=0, start=0, limit=99)
    spelled = [[[*letters, "Ġo", "Ġoa"][reading.rows[token]] for token in word.tokens] for word in reading.words]
    assert spelled == [["o", "a", "k"], ["Ġoa", "k"], ["o", "a", "k"]]


def test_unknown_pieces_are_no_words(nets):
    reading = nets("bert").align_tokens("oak 東京 elm")
    assert [word.tokens for word in reading.words] == [(0,), (), (3,)]
    assert len(reading.rows) == 4

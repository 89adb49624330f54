"""Smoothed and masked rankers: the contract, draws that are tied to texts, exact cases, certificates, folders."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from shaketable.core.documents import Collection, Doc, Query, Slate
from shaketable.core.errors import BadInput
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.defences import smoothing
from shaketable.defences.perturbation_sets import build_perturbation_sets
from shaketable.defences.smoothing import MaskNoise, MaskSmoothed, SubstitutionNoise, SubstitutionSmoothed, logistic
from shaketable.measures.certificates import CertifiableList
from shaketable.rankers import saved_spec
from shaketable.rankers.saved import SavedModel
from shaketable.testing import check_model, check_ranker
from tests.toys import Overlap, slates, text

SYNONYMS = "oak\tash\tbirch\npine\tfir\tlarch\tyew\nyew\twillow\n"
BASE = "tests.toys:Overlap"


@pytest.fixture
def woods() -> Collection:
    docs = {f"d{i}": Doc(text(i), title=text(50 + i, 2)) for i in range(12)}
    return Collection("woods", MemoryCorpus(docs), {f"q{i}": Query(text(300 + i, 2)) for i in range(3)})


@pytest.fixture
def synonyms(tmp_path) -> str:
    (tmp_path / "trees.tsv").write_text(SYNONYMS)
    return f"listed({str(tmp_path / 'trees.tsv')!r})"


def both(synonyms: str) -> list:
    return [
        SubstitutionSmoothed(BASE, 30, synonyms),
        SubstitutionSmoothed(BASE, 30, synonyms, most=3),
        MaskSmoothed(BASE, 0.4, 30),
    ]


def test_the_contract(woods, synonyms):
    for model in both(synonyms):
        check_model(model, woods)
        check_ranker(model.open(woods))
        check_ranker(model.open(woods), slates(3, 5))


def test_scores_are_means_over_the_draws_of_a_text(woods, synonyms):
    """Computed again draw by draw, one text at a time; sets are those of the collection."""
    slate = Slate("oak fir", (Doc("an oak, a fir", title="Pine"), Doc("yew elm oak")))
    sets = build_perturbation_sets([doc.text for _, doc in woods.docs.items()], synonyms)
    noise = {SubstitutionSmoothed: SubstitutionNoise(sets, 0), MaskSmoothed: MaskNoise(0.4)}
    for model in both(synonyms)[::2]:
        for doc, score in zip(slate.docs, model.open(woods).score([slate])[0], strict=True):
            draws = noise[type(model)].sample_docs(doc, 30)
            raw = [float(Overlap().score([Slate("oak fir", (draw,))])[0][0]) for draw in draws]
            assert len(set(draws)) > 1
            assert score == pytest.approx(np.mean(1 / (1 + np.exp(-np.array(raw)))))


def test_a_text_without_synonyms_has_the_score_of_the_base(woods, synonyms):
    slate = Slate("Elm, maple", (Doc("Elm, maple: CEDAR!", title="Hazel"), Doc(""), Doc("unheard")))
    raw = Overlap().score([slate])[0]
    for model in (
        SubstitutionSmoothed(BASE, 1, synonyms),
        SubstitutionSmoothed(BASE, 77, synonyms),
        MaskSmoothed(BASE, 0.0, 1),
    ):
        assert model.open(woods).score([slate])[0] == pytest.approx(logistic(raw), abs=1e-15)
    scaled = replace(SubstitutionSmoothed(BASE, 5, synonyms), scale=0.01).open(woods).score([slate])[0]
    assert scaled == pytest.approx(logistic(raw / 0.01), abs=1e-15)


def test_the_fingerprint_covers_everything_that_changes_scores(woods, synonyms):
    model, mask = SubstitutionSmoothed(BASE, 30, synonyms), MaskSmoothed(BASE, 0.4, 30)
    others = [
        *(
            replace(model, **{name: value})
            for name, value in (("samples", 31), ("seed", 1), ("scale", 2.0), ("most", 2))
        ),
        *(replace(model, **{name: value}) for name, value in (("synonyms", "thesaurus"), ("base", "bm25"))),
        *(replace(mask, **{name: value}) for name, value in (("samples", 31), ("seed", 1), ("scale", 2.0))),
        *(replace(mask, **{name: value}) for name, value in (("share", 0.5), ("base", "bm25"))),
    ]
    marks = [one.open(woods).fingerprint for one in (model, mask, *others)]
    assert len(set(marks)) == len(marks)
    assert all(marks)
    seeds = [replace(model, seed=seed).open(woods).score(slates(1, 4))[0] for seed in (0, 1)]
    assert not np.array_equal(*seeds)
    assert SubstitutionSmoothed("tests.counting:Mine(pointwise=True)", 3, synonyms).open(woods).fingerprint is None, (
        "nor has the base one"
    )


def test_a_ranker_of_lists_cannot_be_smoothed(woods):
    for model in (SubstitutionSmoothed("tests.toys:Normalised"), MaskSmoothed("tests.toys:Normalised")):
        with pytest.raises(BadInput, match="only a pointwise ranker can be smoothed"):
            model.open(woods)


def test_masks_hide_exactly_their_share_of_the_words():
    doc, other = Doc("a b,  c\nd ", title="T u"), Doc("a x,  c\nd ", title="T u")
    for token in ("[MASK]", ""):
        masks = MaskNoise(0.5, token)
        drawn = {draw.text for draw in masks.sample_docs(doc, 400)}
        assert len(drawn) == 20  # C(6, 3)
        assert masks.count_unmasked(6) == 3
        seen = {text.replace("[MASK]", "").replace(" ", "").replace("\n", "") for text in drawn}
        assert seen == {"".join(some) for some in combinations(("T", "u", "a", "b,", "c", "d"), 3)}
        unseen = {draw.text for draw in masks.sample_docs(other, 400)}
        assert {text for text in drawn if "b" not in text} == {text for text in unseen if "x" not in text}
    assert {draw.text for draw in MaskNoise(0.5, "?").sample_docs(Doc("a b"), 50)} == {"? b", "a ?"}
    assert {draw.text for draw in MaskNoise(1.0).sample_docs(Doc("a  b "), 2)} == {" "}
    assert MaskNoise(0.3, "?").sample_docs(Doc("a b c d"), 4) == MaskNoise(0.3, "?").sample_docs(Doc("a b c d"), 9)[:4]
    assert MaskNoise(0.5).bound_mean_shift(doc, 1) == pytest.approx(0.5)


def test_no_substitution_breaks_a_certified_list(woods, synonyms):
    """Certified by 1000 draws, then attacked in every admissible way: no document enters the top, as certified."""
    ranker = SubstitutionSmoothed(BASE, 1000, synonyms, most=4, scale=0.02).open(woods)
    docs = (Doc("oak elm"), Doc("maple pine"), Doc("cedar hazel"), Doc("Yew, rowan"))
    slate = Slate("oak elm ash", docs)
    scores = dict(zip("abcd", ranker.score([slate])[0].tolist(), strict=True))
    one = CertifiableList.from_scores(
        scores, {name: ranker.bound_mean_shift(doc) for name, doc in zip("abcd", docs, strict=True)}
    )
    assert one.is_certified(1, "tight, whole list", ranker.samples)
    sets = ranker.noise_model.sets
    for doc in docs[1:]:
        words = doc.body.replace(",", "").lower().split()
        choices = [(word, *sets.synonyms.get(word, ())) for word in words]
        for new in (" ".join(some) for some in product(*choices)):
            after = ranker.score([Slate(slate.query, (docs[0], Doc(new)))])[0]
            assert after[1] < after[0]
            # the draws of both texts are chance; expectations lie within the shift
            before = ranker.score([Slate(slate.query, (doc,))])[0][0]
            assert abs(after[1] - before) <= ranker.bound_mean_shift(doc) + 0.1
    assert 0 < ranker.bound_mean_shift(docs[3]) < 1
    assert ranker.bound_mean_shift(docs[3], changed=0) == 0


def test_a_substitution_within_a_whole_component_changes_no_digit(woods, synonyms):
    """However few draws there are; in a component that is larger than the sets, it may."""
    slate = Slate("oak fir elm", (Doc("An oak, a FIR.", title="Pine elm"), Doc("ash, yew", title="birch")))
    other = Slate("oak fir elm", (Doc("An Birch, a willow.", title="yew elm"), Doc("Oak, larch", title="ash")))
    whole, cut = (SubstitutionSmoothed(BASE, 3, synonyms, most=most).open(woods) for most in (100, 3))
    assert np.array_equal(whole.score([slate])[0], whole.score([other])[0])
    assert [whole.bound_sampled_shift(doc) for doc in slate.docs] == [0, 0]
    assert not np.array_equal(cut.score([slate])[0], cut.score([other])[0])
    assert [cut.bound_sampled_shift(doc) for doc in slate.docs] == [1, 1]
    assert cut.bound_sampled_shift(slate.docs[0], changed=0) == 0


def test_no_change_of_words_moves_a_masked_score_by_more_than_the_shift_of_its_draws(woods):
    """All texts of three words out of five, against each other, by the ranker itself with few draws."""
    ranker = MaskSmoothed(BASE, 0.7, 9, scale=0.01).open(woods)
    words = ("oak", "elm", "fir", "Ash,", "x")
    texts = list(product(words, repeat=3))
    scores = ranker.score([Slate("oak elm", tuple(Doc(" ".join(some)) for some in texts))])[0]
    apart = np.array([[sum(x != y for x, y in zip(a, b, strict=True)) for b in texts] for a in texts])
    moved = np.abs(scores[:, None] - scores)
    for changed in range(4):
        bound = ranker.bound_sampled_shift(Doc("a b c"), changed)
        assert moved[apart <= changed].max() <= bound + 1e-12
        assert bound > 0 or changed == 0
    assert moved[apart == 1].max() > ranker.bound_sampled_shift(Doc("a b c"), 1) / 3, "it is no idle bound"


def test_a_folder_holds_the_base_and_needs_it_nowhere_else(tmp_path, woods, synonyms):
    saved_spec.save("bm25(k1=0.5)", tmp_path / "plain", {})
    for number, model in enumerate(
        (SubstitutionSmoothed(str(tmp_path / "plain"), 20, synonyms, scale=5.0), MaskSmoothed("bm25", 0.5, 20))
    ):
        folder = tmp_path / f"kept {number}"
        smoothing.save(model, folder, {"of": "a test"})
        with pytest.raises(BadInput, match="already has a model"):
            smoothing.save(model, folder)
        expected = model.open(woods)
        if number == 0:
            (tmp_path / "plain" / "model.json").unlink()
        found = RANKERS.build(str(folder)).open(woods)
        assert SavedModel(str(folder)).read_card() == {"of": "a test"}
        assert found.name == str(folder)
        assert found.fingerprint == expected.fingerprint
        for a, b in zip(found.score(slates(2, 4)), expected.score(slates(2, 4)), strict=True):
            assert np.array_equal(a, b)
    inside = next((tmp_path / "kept 0").glob("files-*/base/model.json"))
    inside.write_text(inside.read_text().replace("0.5", "0.6"))
    with pytest.raises(BadInput, match="is damaged, or was changed by hand"):
        SavedModel(str(tmp_path / "kept 0")).open(woods)


def test_nets_are_smoothed_and_their_own_token_masks(tmp_path, woods, synonyms):
    pytest.importorskip("torch")
    from shaketable.nlp.analyzer import Analyzer
    from shaketable.rankers.neural.bert import CrossEncoder
    from shaketable.rankers.neural.knrm import KNRM
    from shaketable.rankers.neural.saving import FittedNet
    from shaketable.rankers.neural.shapes import BertShape, KNRMShape
    from shaketable.rankers.neural.words import Vocabulary
    from tests.rankers.neural import tiny

    tiny.bert(tmp_path / "checkpoint")
    FittedNet(CrossEncoder.from_checkpoint(str(tmp_path / "checkpoint"), BertShape(max_length=0)), {}).save(
        tmp_path / "bert"
    )
    FittedNet(KNRM(Vocabulary(("oak", "elm"), Analyzer()), 4, KNRMShape()), {}).save(tmp_path / "knrm")
    for kind, token in (("bert", "[MASK]"), ("knrm", "")):
        base = str(tmp_path / kind)
        masked = MaskSmoothed(base, 0.5, 6).open(woods)
        assert masked.noise_model == MaskNoise(0.5, token)
        for ranker in (masked, SubstitutionSmoothed(base, 6, synonyms).open(woods)):
            check_ranker(ranker, slates(2, 4))
            assert ranker.family == SavedModel(base).open(woods).family
    net = SavedModel(str(tmp_path / "bert")).open(woods).net
    assert net.tokenizer("oak [MASK] elm", add_special_tokens=False)["input_ids"][1] == net.tokenizer.mask_token_id
    smoothing.save(MaskSmoothed(str(tmp_path / "bert"), 0.5, 6), tmp_path / "kept")
    again = SavedModel(str(tmp_path / "kept")).open(woods)
    assert again.noise_model == MaskNoise(0.5, "[MASK]")
    assert again.fingerprint == MaskSmoothed(str(tmp_path / "bert"), 0.5, 6).open(woods).fingerprint

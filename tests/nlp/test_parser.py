"""What the linguistic tools say: against texts tagged by hand, on texts that are hard to cut, and on any text."""

from __future__ import annotations

import builtins
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.errors import BadInput, MissingExtra
from shaketable.nlp import spacy_parser
from shaketable.nlp.irregular_forms import (
    IRREGULAR_PLURALS,
    IRREGULAR_VERB_FORMS,
    build_irregular_plurals,
    build_irregular_verb_forms,
)
from shaketable.nlp.lemmatizer import lemmatize
from shaketable.nlp.parser import Parsed, Parser, Span, find_offsets, open_parser
from shaketable.nlp.pos_lexicon import CLOSED_CLASS_WORDS, UNIVERSAL_TAGS, build_closed_class_costs
from shaketable.nlp.rule_based import RuleBasedParser
from shaketable.nlp.sentences import tokenize_sentences
from shaketable.nlp.spacy_parser import SpacyParser
from shaketable.nlp.tagger import build_transition_costs, tag_words
from tests.nlp import hand_tagged
from tests.nlp.hand_tagged import Agreement, agreement

FLOORS = {  # just below what was measured: see the values in the message of a failure
    "light": Agreement(tags=0.949, lemmas=0.986, sentences=0.999, chunks=0.926),
    "spacy": Agreement(tags=0.965, lemmas=0.986, sentences=0.991, chunks=0.941),
}


def tool(name: str) -> Parser:
    if name != "light":
        pytest.importorskip("spacy")
        if not spacy_parser.list_english_models():
            pytest.skip("no English model of spaCy's is installed")
    return open_parser(name)


def law(text: str, parsed: Parsed) -> None:
    """Check the invariants of every parsed text."""
    assert "".join(text.split()) == "".join(parsed.list_words()), "no character is lost but spaces"
    assert all(word and not any(map(str.isspace, word)) for word in parsed.list_words())
    ends = [0, *(span.end for span in parsed.sentences)]
    assert ends[:-1] == [span.start for span in parsed.sentences], "sentences follow each other without a gap"
    assert ends[-1] == len(parsed.tokens)
    last = 0
    for chunk in parsed.chunks:
        assert last <= chunk.start < chunk.end <= len(parsed.tokens), "noun chunks do not overlap"
        last = chunk.end
    find_offsets(text, parsed.tokens)


def test_the_hand_is_right_about_itself():
    texts = hand_tagged.read()
    assert sum(len(parsed.sentences) for _, parsed in texts) >= 60
    assert sum(len(parsed.tokens) for _, parsed in texts) >= 700
    for text, parsed in texts:
        law(text, parsed)
        assert {token.tag for token in parsed.tokens} <= set(UNIVERSAL_TAGS.values())
        for chunk in parsed.chunks:
            assert {token.tag for token in parsed.tokens[chunk.start : chunk.end]} & {"NOUN", "PROPN", "PRON"}


@pytest.mark.parametrize("name", FLOORS)
def test_the_tools_agree_with_the_hand(name):
    wrong: list[str] = []
    found = agreement(tool(name), wrong)
    assert all(value >= floor for value, floor in zip(found, FLOORS[name], strict=True)), (found, wrong)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("don't can't won't it's I'm they'd", "do n't ca n't wo n't it 's I 'm they 'd"),
        ("cannot gonna", "can not gon na"),
        ("the dogs' and O'Brien's o'clock", "the dogs ' and O'Brien 's o'clock"),
        ("a well-known state-of-the-art test", "a well - known state - of - the - art test"),
        ("$3.50, 1,000 and 45% at 10:30 p.m.", "$ 3.50 , 1,000 and 45 % at 10:30 p.m."),
        ("10km in the 1990s, the 3rd B12", "10 km in the 1990s , the 3rd B12"),
        ("see www.a.org/b?c=1. or a.b@c.org!", "see www.a.org/b?c=1 . or a.b@c.org !"),
        ("“Why?” (no)…", "“ Why ? ” ( no ) …"),
        ("the end.The next", "the end . The next"),
        ("e.g. Dr. J. Hill of the U.S. et al. said", "e.g. Dr. J. Hill of the U.S. et al . said"),
        ("cafe\u0301 naïve 東京", "cafe\u0301 naïve 東京"),
    ],
)
def test_words_are_cut(text, tokens):
    assert [token for sentence in tokenize_sentences(text) for token in sentence] == tokens.split()


@pytest.mark.parametrize(
    "sentences",
    [
        ["Dr. J. R. Hill came.", "He sat."],
        ["It cost $3.50.", "That was cheap!", "Was it?"],
        ["He said, \"Go away.\"", "She left."],
        ["\"Why?\" he asked.", "Nobody knew."],
        ["Cats (e.g. lions) sleep a lot.", "Mice do not."],
        ["It was made in the U.S. by Mr. Lee.", "The end."],
        ["He lives in Washington D.C.", "It is hot there."],
        ["Wait... what?", "Yes."],
        ["See fig. 3 and Smith et al. in vol. 2.", "That is all."],
        ["Vitamin C.", "The body needs it."],
        ["no capitals here.", "just a second sentence."],
        ["1. Open the box.", "2. Take it out."],
    ],
)  # fmt: skip
def test_sentences_are_cut(sentences):
    assert [" ".join(tokens) for tokens in tokenize_sentences(" ".join(sentences))] == [
        " ".join(token for part in tokenize_sentences(sentence) for token in part) for sentence in sentences
    ]


def test_a_blank_line_ends_a_sentence_and_a_line_break_does_not():
    assert len(tokenize_sentences("A heading\n\nThe text of it\nhas two lines.")) == 2


@pytest.mark.parametrize("name", ["light", "spacy"])
@pytest.mark.parametrize("text", ["", " \n", ".", "...", "\ud800 half a pair", "a\u00a0b\n\n  c", "🙂 :-)", "x" * 5000])
def test_odd_texts_keep_the_law(name, text):
    law(text, tool(name).parse([text])[0])


@pytest.mark.parametrize(
    "text",
    ["a-" * 50_000, "a." * 50_000, "1." * 50_000, "1" * 50_000 + "a", "a'" * 50_000, "red " * 20_000, "John's " * 500,
     "when " * 20_000, '. " ' * 20_000, "red, " * 20_000, "both " * 20_000, "a@" * 50_000],
    ids=lambda text: text[:6],
)  # fmt: skip
def test_long_texts_are_read_in_time_that_grows_with_their_length(text):
    """Each of these would keep a careless pattern or rule busy for hours."""
    law(text, RuleBasedParser().parse([text])[0])


@given(st.text(max_size=80))
def test_any_text_keeps_the_law(text):
    law(text, RuleBasedParser().parse([text])[0])


@given(
    st.lists(st.sampled_from("The a dog 's saw , . ! \" ( U.S. Mr. it and 3.5 n't Paris to run".split()), max_size=25)
)
def test_any_order_of_english_keeps_the_law(words):
    text = " ".join(words)
    law(text, RuleBasedParser().parse([text])[0])


def test_every_step_between_parts_has_a_cost():
    assert set(build_transition_costs()) == {"^^", *UNIVERSAL_TAGS}
    assert all(set(row) == set(UNIVERSAL_TAGS) for row in build_transition_costs().values())
    assert {part for parts in build_closed_class_costs().values() for part, _ in parts} <= set(UNIVERSAL_TAGS)
    assert len(CLOSED_CLASS_WORDS) > 40


@pytest.mark.parametrize(
    ("sentence", "tags"),
    [
        ("They have a dog", "PRON VERB DET NOUN"),
        ("They have seen it", "PRON AUX VERB PRON"),
        ("Do they do that ?", "AUX PRON VERB PRON PUNCT"),
        ("We went to Rome to rest", "PRON VERB ADP PROPN PART VERB"),
        ("The dog 's tail", "DET NOUN PART NOUN"),
        ("She 's here", "PRON AUX ADV"),
        ("after the war ended", "SCONJ DET NOUN VERB"),
        ("after the war", "ADP DET NOUN"),
        ("WE SAW THE OLD HOUSE", "PRON VERB DET ADJ NOUN"),
    ],
)
def test_neighbours_decide(sentence, tags):
    parsed = RuleBasedParser().parse([sentence])[0]
    assert " ".join(token.tag for token in parsed.tokens) == tags


@pytest.mark.parametrize(
    ("word", "part", "lemma"),
    [
        ("children", "NS", "child"), ("boxes", "NS", "box"), ("cities", "NS", "city"), ("tornadoes", "NS", "tornado"),
        ("sugars", "NS", "sugar"), ("policewomen", "NS", "policewoman"), ("CDs", "NS", "CD"), ("news", "NN", "news"),
        ("went", "VD", "go"), ("stopped", "VD", "stop"), ("making", "VG", "make"), ("lying", "VG", "lie"),
        ("equipped", "VN", "equip"), ("transcribed", "VN", "transcribe"), ("carries", "VZ", "carry"),
        ("easiest", "JJ", "easy"), ("bigger", "JJ", "big"), ("best", "RB", "well"), ("Berlin", "NP", "Berlin"),
        ("n't", "NO", "not"), ("them", "PO", "they"), ("'d", "HV", "have"),
    ],
)  # fmt: skip
def test_lemmas(word, part, lemma):
    assert lemmatize(word, part) == lemma


def test_lists_of_odd_forms_are_whole():
    assert len(IRREGULAR_VERB_FORMS.replace("|", " ").split()) % 3 == 0
    assert len(IRREGULAR_PLURALS.replace("|", " ").split()) % 2 == 0
    assert build_irregular_verb_forms()["saw"] == ("see", "past")
    assert build_irregular_plurals()["feet"] == "foot"


def test_no_words_have_no_tags():
    assert tag_words([]) == []


def test_noun_chunks_of_rules():
    parsed = RuleBasedParser().parse(["The old man's eyes had seen many storms and a very big, black dog in Paris."])[0]
    found = [" ".join(parsed.list_words(chunk)) for chunk in parsed.chunks]
    assert found == ["The old man 's eyes", "many storms", "a very big , black dog", "Paris"]


@pytest.mark.parametrize("name", ["light", "spacy"])
def test_a_parse_does_not_depend_on_other_texts(name):
    texts = [text for text, _ in hand_tagged.read()]
    language = tool(name)
    together = language.parse(texts)
    assert language.parse(texts[::-1]) == together[::-1]
    assert [language.parse([text])[0] for text in texts] == together


def test_spacy_leaves_out_tokens_that_are_space():
    parsed = tool("spacy").parse(["  The  old \n dog slept .  \n\n It sleeps ."])[0]
    assert parsed.list_words() == ["The", "old", "dog", "slept", ".", "It", "sleeps", "."]
    assert Span(0, 3) in parsed.chunks


def test_names_contain_tool_model_and_version():
    import re

    assert re.fullmatch(r"light \d+", RuleBasedParser().name)
    model = tool("spacy") and spacy_parser.list_english_models()[0]
    assert re.fullmatch(rf"spacy \d+\.\d+\S*, {model} \d+\.\d+\S*", SpacyParser().name)
    assert SpacyParser(model).name == SpacyParser().name
    assert open_parser(f"spacy:{model}") == SpacyParser(model)


@pytest.mark.parametrize("name", ["", "heavy", "light:x", "spacy:", "Spacy"])
def test_other_names_are_refused(name):
    with pytest.raises(BadInput, match="is not a parser: write light, spacy, or spacy:MODEL"):
        open_parser(name)


@pytest.mark.parametrize("model", ["en_no_such", "../evil", "/etc", "os"])
def test_only_installed_models_are_loaded(model):
    tool("spacy")
    with pytest.raises(BadInput, match="no English model of spaCy's is installed as"):
        SpacyParser(model).parse(["a"])


def test_without_any_model_the_remedy_is_named(monkeypatch):
    tool("spacy")
    monkeypatch.setattr(spacy_parser, "list_english_models", list)
    with pytest.raises(BadInput, match="no English model of spaCy's is installed: install one"):
        SpacyParser().parse(["a"])


def test_without_spacy_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "spacy"]:
        monkeypatch.delitem(sys.modules, name)
    plain = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == "spacy":
            raise ModuleNotFoundError(name=name)
        return plain(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"pip install 'shaketable\[language\]'"):
        SpacyParser().parse(["a"])


def test_spacy_refuses_a_text_that_is_too_long_in_a_sentence():
    language = tool("spacy")
    with pytest.raises(BadInput, match="longer than spaCy reads"):
        language.parse(["a " * 500_001])

"""Changes of a document's form: each keeps the meaning, and reports texts to which it does not apply."""

from __future__ import annotations

import unicodedata

import pytest

from shaketable.core.documents import Doc
from shaketable.transforms.document_form import (
    FORM_CHANGES,
    NEUTRAL_SENTENCES,
    insert_zero_width_spaces,
    use_homoglyphs,
)
from shaketable.transforms.insertion import BOILERPLATE

CHANGES = {change.name: change for change in FORM_CHANGES}
DOC = Doc("The fifth boat sank in 1912. Its crew of five found land... A café stood there.", "Boats, lost", "a.org/b")
QUERY = "which boat sank"


def change(name: str, doc: Doc = DOC, query: str = QUERY) -> Doc | None:
    return CHANGES[name].apply(doc, query)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_changes_something_or_does_not_apply(name):
    for doc in (DOC, Doc(""), Doc(" "), Doc("x"), Doc("", "Title only"), Doc("1 2\n\n3 4. ?! 𝔘 東京 e\u0301")):
        for query in (QUERY, "", "cookies", "the 1912"):
            changed = change(name, doc, query)
            assert changed is None or (changed != doc and changed.text.strip() and changed.url == doc.url)
            assert changed == change(name, doc, query)


@pytest.mark.parametrize("name", ["compatible_forms", "non_breaking_spaces"])
def test_nfkc_restores_the_text(name):
    changed = change(name)
    assert changed is not None
    assert unicodedata.normalize("NFKC", changed.text) == DOC.text


def test_by_hand():
    found = {name: one.body if (one := change(name)) else None for name in CHANGES}
    first, second, third = "The fifth boat sank in 1912.", "Its crew of five found land...", "A café stood there."
    assert found["upper_case"] == DOC.body.upper()
    assert change("upper_case").title == "BOATS, LOST"
    assert found["accents"] == DOC.body.replace("é", "e")
    assert found["compatible_forms"] == DOC.body.replace("fi", "ﬁ").replace("...", "…").replace("é", "e\u0301")
    assert found["no_punctuation"].split() == DOC.body.replace(".", " ").split()
    assert found["paragraph_tags"] == f"<p>{DOC.body}</p>"
    assert found["append_boilerplate"] == f"{DOC.body} {BOILERPLATE}"
    assert found["prepend_boilerplate"] == f"{BOILERPLATE} {DOC.body}"
    assert found["bury_answer"] == f"{second} {third} {first}"
    assert found["reverse_sentences"] == f"{third} {second} {first}"
    assert found["later_years"] == DOC.body.replace("1912", "1922")
    assert found["earlier_years"] == DOC.body.replace("1912", "1902")
    assert found["recent_date"] == f"{DOC.body} Updated: 2026."
    assert found["old_date"] == f"{DOC.body} Updated: 1996."
    assert found["duplicate"] == f"{DOC.body} {DOC.body}"
    assert found["double_length"] == f"{DOC.body} {' '.join(NEUTRAL_SENTENCES[:3])}", "15 words and 7 + 7 + 6"
    assert change("unrelated_sentence") == Doc(second, "", DOC.url), "the title has a word of the query"


def test_where_a_change_does_not_apply():
    assert change("later_years", Doc("No years, 12 or 3000.")) is None
    assert change("later_years", query="ships of 1912") is None
    assert change("recent_date", query="news of 2024") is None
    assert change("append_boilerplate", query="do cookies track") is None, "it would match the query"
    assert change("double_length", query="walls of the afternoon") is None
    assert change("bury_answer", query="nothing of this") is None
    assert change("bury_answer", Doc("Nothing. The boat sank.")) is None, "it is the last already"
    assert change("reverse_sentences", Doc("One sentence.")) is None
    assert change("unrelated_sentence", Doc("The boat sank. A boat sank.")) is None
    assert change("lower_case", Doc("all small")) is None
    assert change("compatible_forms", Doc("no such letters")) is None


def test_accents_spare_the_words_of_the_query():
    body = " ".join(["boat"] * 20 + ["tree"] * 20)
    changed = change("accents", Doc(body), "boats")
    assert changed is not None
    assert changed.body.split()[:20] == ["boat"] * 20
    assert sum(word != "tree" for word in changed.body.split()[20:]) == 4, "every fifth word"


def test_marks_of_other_scripts_stay():
    """The marks of и and か make other letters, not accents."""
    body = "Май が é"
    assert change("accents", Doc(body), "").body == "Май が e"


@pytest.mark.parametrize("change", [use_homoglyphs, insert_zero_width_spaces])
def test_invisible_changes_keep_the_words_of_the_query(change):
    text = "one two three four seven boats eight nine ten cope eleven"
    changed = change(text, "boats cope")
    assert changed != text
    assert "boats" in changed
    assert "cope" in changed
    assert change("one two", "") == "one two", "too few words"

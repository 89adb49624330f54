"""TREC's topics: title and description from SGML and XML, one message for anything else."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from shaketable.core.documents import Query
from shaketable.core.errors import BadInput
from shaketable.datasets import topics
from shaketable.datasets.trec import read_topics

# our own words in the shape of TREC's files of 1992 to 2004
SGML = """
<top>
<num> Number: 301
<title> Tidal  power

<desc> Description:
Which coasts &amp; rivers have
plants that use the tide?

<narr> Narrative:
Plans <b>alone</b> are not relevant; 3 < 4 holds.
</top>

<top>
<num> Number: 302 </num>
<dom> Domain: Science
<title> Topic: Glaciers </title>
<desc> Where do they grow? </desc>
<EN-note> anything
</top>
"""
EXPECTED = {
    "301": Query("Tidal power", description="Which coasts & rivers have plants that use the tide?"),
    "302": Query("Glaciers", description="Where do they grow?"),
}
XML = """<?xml version="1.0" encoding="UTF-8"?>
<!-- a comment -->
<topics task="toy">
  <topic number="1" type="faceted">
    <query>tidal &lt;power&gt;</query>
    <description>Which coasts
      have plants?</description>
    <subtopic number="1" type="inf">One.</subtopic><subtopic number="2" type="nav">Two.</subtopic>
  </topic>
  <topic number="2"><title>glaciers <b>in</b> Asia</title><narrative>None.</narrative></topic>
</topics>
"""


def file(tmp_path: Path, text: str | bytes, name: str = "topics.txt") -> Path:
    data = text.encode() if isinstance(text, str) else text
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return tmp_path / name


@pytest.mark.parametrize("name", ["topics.txt", "topics.gz"])
@pytest.mark.parametrize("change", [str, lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n")])
def test_sgml(tmp_path: Path, name: str, change) -> None:  # type: ignore[no-untyped-def]
    assert read_topics(file(tmp_path, change(SGML), name)) == EXPECTED


def test_sgml_on_one_line_and_in_capitals(tmp_path: Path) -> None:
    text = "<top><num> Number: 301 <title> Tidal power <desc> Description: Which? <narr> Narrative: x</top>"
    expected = {"301": Query("Tidal power", description="Which?")}
    assert read_topics(file(tmp_path, text)) == expected
    assert read_topics(file(tmp_path, text.replace("top", "TOP").replace("title", "TITLE"))) == expected
    microblog = "<top>\n<num> Number: MB01 </num>\n<query> tidal power </query>\n<querytime> Tue </querytime>\n</top>\n"
    assert read_topics(file(tmp_path, microblog)) == {"MB01": Query("tidal power")}


@pytest.mark.parametrize("name", ["topics.xml", "topics.xml.gz"])
@pytest.mark.parametrize("change", [str, lambda text: "\ufeff" + text, lambda text: text.partition("\n")[2]])
def test_xml(tmp_path: Path, name: str, change) -> None:  # type: ignore[no-untyped-def]
    assert read_topics(file(tmp_path, change(XML), name)) == {
        "1": Query("tidal <power>", description="Which coasts have plants?"),
        "2": Query("glaciers in Asia"),
    }


def test_xml_is_read_as_utf8_despite_its_declaration(tmp_path: Path) -> None:
    text = '<?xml version="1.0" encoding="iso-8859-1"?><topics><topic number="1"><query>café</query></topic></topics>'
    assert read_topics(file(tmp_path, text)) == {"1": Query("café")}
    with pytest.raises(BadInput, match="is not UTF-8 text"):
        read_topics(file(tmp_path, text.encode("latin-1")))


def test_a_label_is_removed_from_the_start_of_a_field_only(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("<top>\n<num> Number: 1\n<title> Topic: talk on Topic: boats\n</top>\n")
    assert read_topics(tmp_path / "a.txt")["1"].text == "talk on Topic: boats"


def test_ids_that_look_like_tags_stay_lines_of_a_table(tmp_path: Path) -> None:
    assert read_topics(file(tmp_path, "<dbpedia:Boat>\tboats\n")) == {"<dbpedia:Boat>": Query("boats")}


LAUGHS = '<?xml version="1.0"?><!DOCTYPE t [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><t><topic number="1">&b;</topic></t>'
FILE = '<!DOCTYPE t [<!ENTITY f SYSTEM "file:///etc/passwd">]><t><topic number="1"><query>&f;</query></topic></t>'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LAUGHS, ":1: has a DTD"),
        (FILE, ":1: has a DTD"),
        ('<!DOCTYPE topics SYSTEM "x.dtd"><topics/>', ":1: has a DTD"),
        ("<topics><topic number='1'><query>&b;</query></topic></topics>", ":1: is not XML (undefined entity)"),
        ("<topics>\n<topic number='1'></topics>", ":2: is not XML (mismatched tag)"),
        ("<topics>", ":1: is not XML (no element found)"),
        ("<topics></topics>", ": holds no topics"),
        ("<topics><topic><query>x</query></topic></topics>", ":1: the topic that begins here has no number"),
        ("<topics>\n<topic number='1'><disease>x</disease></topic></topics>", ":2: topic '1' has neither a title nor"),
        ("<topics><topic number='1'><query> </query></topic></topics>", ":1: topic '1' has neither a title nor"),
        ("<t><topic number='1'><query>a</query><query>b</query></topic></t>", ":1: the topic that begins here has a"),
        ("<t><topic number='a b'><query>a</query></topic></t>", ":1: the query id 'a b' has ' ' in it"),
        (
            "<t><topic number='1'><query>a</query></topic>\n<topic number='1'><query>a</query></topic></t>",
            ":2: the id '1'",
        ),
        ("<topics>\n\n<topic number='1'>\n\n&</topic></topics>", ":5: is not XML"),
        ("<topics><topic number='1'><query>a\0</query></topic></topics>", ":1: has the control character"),
        ("<topics><topic number='1'><query>a\x01</query></topic></topics>", ":1: is not XML"),
        ("<top>\n<num> 1\n<title> x\n", ":1: the topic that begins here has no </top>"),
        ("<top>\n<num> 1\n<top>\n", ":3: <top> is where no topic may begin"),
        ("<top>\n<num> 1\n<title> x\n</top>\n</top>", ":5: </top> is where no topic has begun"),
        ("<top>\n<title> x\n</top>", ":1: the topic that begins here has no number"),
        ("<top>\n<num> Number:\n<title> x\n</top>", ":1: the query id '' is empty"),
        ("<top>\n<num> 1\n<desc> x\n</top>", ":1: topic '1' has neither a title nor a query; it has: num, desc"),
        ("<top>\n<num> 1\n<title> x\n<title> y\n</top>", ":4: the topic that begins on line 1 has a second '<title>'"),
        ("<top>\n<num> 1\n<title> x <b>y</b>\n</top>", ":3: '<b>' is inside a title, which must be plain text"),
        ("<top>\n<num> 1\n<title> x\n</top>\n<num> 2", ":5: '<num>' is outside of all topics"),
        ("<top>\n<num> 1\n<title> x\0\n</top>", ":3: has the control character"),
    ],
)
def test_one_sentence(tmp_path: Path, text: str | bytes, says: str) -> None:
    path = file(tmp_path, text)
    with pytest.raises(BadInput) as caught:
        read_topics(path)
    assert str(caught.value).startswith(f"{path}{says}" if says.startswith(":") else str(path))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["<top>" + "<num " * 200_000, "<t>" + "<a>" * 200_000, "<t " + "a" * 1_000_000],
    ids=["sgml", "deep", "long"],
)
def test_unclosed_elements_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput):
        read_topics(file(tmp_path, text))


@pytest.mark.parametrize("text", [SGML, XML], ids=["sgml", "xml"])
def test_more_than_topics_ever_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(topics, "MAX_LINE_BYTES", 100)
    with pytest.raises(BadInput, match="has more than 100 characters, which is too long for topics"):
        read_topics(file(tmp_path, text))

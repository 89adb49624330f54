"""The languages that Shaketable knows: their names, stemmers, keyboards and ways to separate words.

A language is named by its ISO 639-1 code, such as "de". English is the default everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shaketable.core.errors import BadInput, UnknownName

ENGLISH = "en"


@dataclass(frozen=True)
class Language:
    """A language: its English name, its stemmer in the Snowball library ("none" without one), and its script.

    `layout` names a keyboard of `shaketable.nlp.keyboard`; "" if people type the language in another script.
    """

    code: str
    name: str
    stemmer: str = "none"
    layout: str = ""
    right_to_left: bool = False
    full_width: bool = False
    """True if keyboards of the language also type full-width Latin letters and half-width katakana."""


LANGUAGES = {
    one.code: one
    for one in (
        Language("ar", "Arabic", "arabic", "arabic", right_to_left=True),
        Language("bn", "Bengali"),
        Language("ca", "Catalan", "catalan", "spanish"),
        Language("cs", "Czech", "czech", "qwertz"),
        Language("da", "Danish", "danish", "nordic"),
        Language("de", "German", "german", "german"),
        Language("el", "Greek", "greek"),
        Language(ENGLISH, "English", "porter", "qwerty"),
        Language("es", "Spanish", "spanish", "spanish"),
        Language("et", "Estonian", "estonian", "qwerty"),
        Language("eu", "Basque", "basque", "spanish"),
        Language("fa", "Persian", "persian", right_to_left=True),
        Language("fi", "Finnish", "finnish", "nordic"),
        Language("fr", "French", "french", "azerty"),
        Language("ga", "Irish", "irish", "qwerty"),
        Language("he", "Hebrew", right_to_left=True),
        Language("hi", "Hindi", "hindi", "inscript"),
        Language("hu", "Hungarian", "hungarian", "qwertz"),
        Language("hy", "Armenian", "armenian"),
        Language("id", "Indonesian", "indonesian", "qwerty"),
        Language("it", "Italian", "italian", "qwerty"),
        Language("ja", "Japanese", full_width=True),
        Language("ko", "Korean", full_width=True),
        Language("lt", "Lithuanian", "lithuanian", "qwerty"),
        Language("ne", "Nepali", "nepali", "inscript"),
        Language("nl", "Dutch", "dutch", "qwerty"),
        Language("no", "Norwegian", "norwegian", "nordic"),
        Language("pl", "Polish", "polish", "qwerty"),
        Language("pt", "Portuguese", "portuguese", "qwerty"),
        Language("ro", "Romanian", "romanian", "qwerty"),
        Language("ru", "Russian", "russian", "russian"),
        Language("sr", "Serbian", "serbian"),
        Language("sv", "Swedish", "swedish", "nordic"),
        Language("ta", "Tamil", "tamil"),
        Language("th", "Thai"),
        Language("tr", "Turkish", "turkish", "turkish"),
        Language("uk", "Ukrainian", "none", "ukrainian"),
        Language("vi", "Vietnamese", "none", "qwerty"),
        Language("yi", "Yiddish", "yiddish", right_to_left=True),
        Language("zh", "Chinese", full_width=True),
    )
}


def get_language(code: str) -> Language:
    """Return the language of an ISO 639-1 code; an unknown code is an error."""
    if code not in LANGUAGES:
        raise UnknownName("language", code, LANGUAGES)
    return LANGUAGES[code]


def parse_languages(given: str | Iterable[str]) -> tuple[str, ...]:
    """Return the codes of a list such as "de,fr", in their order and without repetitions.

    >>> parse_languages("de, fr,de"), parse_languages(["ru"])
    (('de', 'fr'), ('ru',))
    """
    texts = given.split(",") if isinstance(given, str) else given
    codes = tuple(dict.fromkeys(code.strip() for code in texts))
    for code in codes:
        if get_language(code).code == ENGLISH:
            raise BadInput("--languages names languages other than English (en), which every audit tests")
    return codes

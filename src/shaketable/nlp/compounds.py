"""German compounds: words that consist of two known parts, such as "Zahnarzt".

The parts are a list of frequent nouns, adjectives and verb stems, written for Shaketable, and any further words of the
caller. A longer list would find more compounds and also more words that only look like one.
"""

from __future__ import annotations

from collections.abc import Container

from shaketable.nlp.words import match_case, word_set

GERMAN_PARTS = word_set(
    """
    alt amt apfel arbeit arzt arznei augen auto bad bahn bank bau bäume baum berg bett bier bild blume blumen boden boot
    brief brot brücke buch bücherei bücher büro bus dach dorf druck eis eisen energie fahrt fahr fahrrad familie farbe
    feld fenster fern fest feuer film fisch fleisch flug fluss form frage frau frist frucht führer fuß garten gas gebiet
    geld gemüse gericht geschichte gesetz gitarre gitarren glas gold grund gruppe hand handel haupt haus haustier haut
    heim heizung hilfe himmel hof hoch holz hotel hund hunde industrie insel jahr jugend kaffee käse karte katze katzen
    kauf kinder kind kirche kirsch klavier kleid kosten kraft kranken küche kunst kurs land last lehrer leben licht lied
    liste luft macht markt maschine mauer mehl meer messe miete milch minister mittel monat morgen motor musik nacht
    name netz obst ofen öl ordnung papier park pass pfanne pferd pflege plan platz polizei post preis presse programm
    rad rat rathaus raum recht regel regen reise rente restaurant roggen rohr saal sache salat salz schaden schiff
    schlaf schloss schmerz schnee schrank schuh schule schüler schutz schwimm see seite sommer sonne spiel sport
    sprache staat stadt stein steuer stoff strand straße straßen strom stück stuhl stunde suche suppe tag tanz tasche
    tee teil tier tisch tor tür turm uhr unfall unterricht urlaub verkehr versicherung verein vertrag vogel volk wagen
    wahl wald wand wasser weg wein weihnacht weizen welt werk wetter wind winter wirtschaft woche wohnung wort zahl zahn
    zeit zeitung zelt zentrum zimmer zucker zug zwiebel
    """
)
_LINKS = ("", "s", "es", "n", "en", "er")
"""The letters that may join two parts."""
MIN_PART_LETTERS = 3


def split_compound(word: str, more_parts: Container[str] = ()) -> tuple[str, str] | None:
    """Return the two parts of a German compound, with linking letters removed; None if it is not known as one.

    The first split from the right whose parts are both known is returned.

    >>> split_compound("Zahnarzt"), split_compound("Stadtbücherei"), split_compound("Versicherungsvertrag")
    (('Zahn', 'Arzt'), ('Stadt', 'Bücherei'), ('Versicherung', 'Vertrag'))
    >>> split_compound("Montag") is None
    True
    """
    lower = word.lower()

    def is_part(text: str) -> bool:
        return len(text) >= MIN_PART_LETTERS and (text in GERMAN_PARTS or text in more_parts)

    for place in range(len(lower) - MIN_PART_LETTERS, MIN_PART_LETTERS - 1, -1):
        if not is_part(lower[place:]):
            continue
        for link in _LINKS:
            first = lower[:place].removesuffix(link) if lower[:place].endswith(link) else ""
            if is_part(first):
                return word[: len(first)], match_case(word[place:], word)
    return None


def join_compound(first: str, second: str) -> str | None:
    """Return two German nouns as one word; None if either is not known as a part of compounds.

    >>> join_compound("Zahn", "Arzt"), join_compound("der", "Arzt")
    ('Zahnarzt', None)
    """
    if {first.lower(), second.lower()} <= GERMAN_PARTS and min(len(first), len(second)) >= MIN_PART_LETTERS:
        return first + second.lower()
    return None

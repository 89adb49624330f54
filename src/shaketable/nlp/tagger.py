"""A part-of-speech tagger.

Each possible part of speech of a word has a cost (`pos_lexicon`), and so has each transition from one part to the next.
The Viterbi algorithm finds the cheapest sequence. The transition costs are set by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from shaketable.nlp.analyzer import Memo
from shaketable.nlp.pos_lexicon import (
    UNIVERSAL_TAGS,
    Costs,
    find_capitalised_costs,
    find_pos_costs,
    find_sentence_start_costs,
    parse_costs,
)
from shaketable.nlp.words import word_set

DEFAULT_TRANSITION_COST = 4.0
TRANSITION_COSTS = """
^^ DT1 PP1 NP1.5 NN2 NS2 JJ2 RB2 IN1.5 SC2 CD2 WP2 WR2 VB3 VZ6 VG3 VN4 EX2 PS2 MD4 BE4 DO3 HV4 CC2.5 TO3 UH2 DP2 PD3 PO5 VD6 PE1 PC1
DT NN0 NS.5 JJ.5 NP1 CD1 VN2.5 VG2.5 RB2 DT6 PP9 PO9 PS6 IN7 SC8 CC5 MD9 BE7 HV7 DO8 VB8 VZ8 VD8 PC4 PE7 WP9 GE9 TO8 NO6 SY2 WR8
PD DT1 NN1.5 NS1 JJ1.5 IN2.5
PP MD.5 BE.5 HV.5 DO1 VB.5 VZ.7 VD.5 RB1 NN6 NS7 JJ4.5 NP5 PC2.5 PE3 CC3 DT5 IN3.5 VN4 VG3.5 PP5 GE4 WP4 SC4 TO3.5 NO4 CD5 PO5
PO PE.5 PC1 IN.5 TO1 DT1.5 RB1.5 CC1.5 JJ2.5 VB2.5 VG2.5 SC1.5 WR2.5 WP2.5 NN4 NS4 VZ5 VD5 BE5 MD5 HV5 DO5 VN3 PS2.5 CD3.5 PP3 NP4 GE4
PS NN0 NS.5 JJ.5 NP1.5 CD1.5 VN3 VG2.5 RB3 IN8 SC8 DT8 BE8 VB7 VZ8 VD8 PP9 PC5 PE6 MD8 HV8 DO8 CC5 PO9
DP BE.5 MD1 VZ1 VB1.5 VD1.5 IN1 HV1.5 DO2 RB2 PC2 PE2 NN6 NS6 JJ4 TO2.5 PP3 WP2.5 SC3 DT4 GE4 NO4 CC3
WP VZ.7 VB1 VD1 BE.5 MD1 HV1 DO1 PP1 DT1.5 NP1.5 NS2 NN2.5 RB1.5 PS1.5 JJ3 EX2 VN5 VG5 PE3 PC3 IN3.5 TO3 GE5 CD3 DP2 CC4
EX BE0 MD1 VZ2 HV2 VD2.5 VB3 RB2.5 NN7 NS7 JJ6
IN DT0 NN1 NS1 NP1 JJ1 PS.7 PO.5 VG1.2 CD1 WP1.5 DP1.5 PP3.5 VN4 RB3 IN2.5 EX6 TO7 VB7 VZ7 VD6 BE7 MD8 HV7 DO7 CC4 PC4 PE4 SY1.5 SC4.5 WR2 GE8 NO5 PD2 XX3
SC PP0 DT.5 NN1.5 NS1.5 NP1.5 JJ2 PS1 EX.7 CD2 DP1.5 VG2 VN2.5 RB2 IN2.5 TO3 WP3 VB6 VZ6 VD6 BE5 MD6 HV5 DO5 PO6 PC4 PE7 SC5
CC NN1 NS1 NP1.2 JJ1 DT1 PP1 VB1.2 VZ1.5 VD1.5 VN1.5 VG1.5 RB1.2 IN1.5 PS1.2 CD1.5 MD2 BE2 HV2 DO2.5 WP2.5 TO2 EX2.5 SC2 DP2.5 PO2 WR2 SY2.5 PC2.5 PE6 CC5 NO2.5
MD VB0 BE0 HV.5 RB.7 NO.3 PP1 DO1.5 DT2.5 VZ8 VD8 VN6 VG7 NN4 NS5 NP3 JJ6 IN5 PC3 PE3 TO6 DP3
BE VN.5 JJ.5 DT.5 VG.7 RB.7 NN1.5 NS2 IN1 NO.5 PP1.5 CD2 PS1.5 NP2 TO1.5 WP2 SC2 VB6 VZ7 VD5 BE3 HV7 MD7 DP2.5 PO3 EX2 PC2.5 PE2.5 SY3 WR2 CC4 DO6
HV VN.3 BE.3 DT.7 RB1 NN2 NS2 JJ1.5 NO.8 PP1.5 TO1 CD1.5 PS1.5 IN3 VB4 VD5 VZ7 NP2.5 PO2 DP2 HV2 PC3 PE3 PD2 VG3.5 DO4
DO NO.3 PP.5 VB1 DT1 RB1.5 DP1.5 PO1.5 NS1.5 NN2 NP1.5 JJ2.5 IN3 PS1.5 PC2.5 PE2.5 VZ8 VD8 VN6 VG5 BE7 EX2.5 WP3
VB DT.5 NN1.5 NS1.3 JJ1.5 PO.7 PS.8 IN1 TO1 RB1.3 NP1.7 CD1.7 WP1.5 SC1.5 WR1.7 VN3 VG2 PC1.7 PE1.5 CC2 DP1.7 PP2 EX3 VB5 VZ7 VD7 BE6 MD6 HV6 DO6 UH4 PD2 SY2
VZ DT.5 NN1.7 NS1.7 JJ1.5 PO1 PS1 IN.8 TO1 RB1.3 NP1.7 CD1.7 WP1.5 SC1 WR1.7 VN2.5 VG2 PC1.7 PE1.7 CC2 DP2 PP2 VB5.5 VZ7 VD7 BE6 MD6 HV6 DO6 PD2 SY2
VD DT.5 NN2 NS2 JJ1.7 PO.8 PS1 IN.8 TO1 RB1.2 NP1.7 CD1.7 WP1.7 SC1 WR1.7 VN3 VG2 PC1.5 PE1.5 CC2 DP2 PP1.5 VB5.5 VZ7 VD6 BE6 MD6 HV6 DO6 PD2 SY2
VN IN.5 TO1 DT1.7 NN2 NS2 JJ2.5 RB1.3 PC1.5 PE1.5 CC1.7 CD2 NP2.5 PO2 PS2 SC2 VG2.5 VN4 WP2.5 VB6 VZ5 VD6 BE3.5 MD3.5 HV4.5 DO5 PP4 DP3
VG DT.7 NN1.3 NS1.3 IN1 JJ1.7 RB1.5 PS1 PO1.2 TO1.2 NP1.7 CD2 VN2.5 PC1.7 PE2 CC1.7 SC1.7 WP2 WR2 BE2 VZ2.5 MD2.5 VB5.5 VD4 HV4 DO5 PP3.5 VG4 DP2.5 PD2.5 SY2
NN IN.5 PC.7 PE.7 NN1.3 NS1.2 VZ1.3 BE.8 MD1.2 VD1.3 CC1 HV1.5 DO2.5 TO1.5 GE.5 WP1.3 RB1.7 VN1.7 VG1.8 CD2.2 JJ3 DT3 PP2.5 VB4 NP3 SC1.5 WR2 PO5 PS3.5 EX4 DP4 SY2.5 NO4 XX3 PD4
NS IN.5 PC.7 PE.7 VB1.2 BE.8 MD1.2 VD1.5 CC1 HV1.5 DO2 TO1.5 GE1.5 WP1.2 RB1.5 VN1.6 VG1.8 NN3 NS3.5 VZ4 CD2.7 JJ2.7 DT2.7 PP2 NP3.5 SC1.5 WR2 PO5 PS3.5 EX4 DP4 SY3 NO4
NP NP.5 IN1 PC.7 PE1 VZ1.3 BE1 MD1.5 VD1.2 CC1 HV1.5 DO2.5 TO2 GE.5 WP2 RB2 VN2 VG2.5 NN1.3 NS1.5 CD1.5 JJ2.7 DT3 PP3 VB3.5 SC2 PS4 PO5
JJ NN0 NS0 NP1.7 JJ1.3 IN1.5 CC1.3 PC1.3 PE1.3 TO1.3 RB2.5 VG2.5 VN3 CD2 SC2 DT3 PP3.5 BE3.5 MD4 VB5.5 VZ5.5 VD5 HV5 DO5 WP3 PS4 PO5 GE5
RB VN1.2 JJ1 VB1.2 VD1.2 VZ1.3 RB1.5 IN1.2 PC1.2 PE1.5 DT1.5 PP1.3 VG1.5 BE1.5 MD1.7 HV2 CD1.5 TO2 CC2 SC2 NN3 NS3 NP2.5 PS2 WP2.5 DO2.5 EX2.5 PO3 DP3 NO3 WR3
WR DT1 PP.7 TO.7 BE.7 DO.5 JJ1 RB1.2 NN1.7 NS1.5 NP1.5 MD1 HV1 PS1 VB3.5 VZ3 VD3 VG2.5 VN2.5 PC3 PE2.5 EX2 DP2 IN3.5 CD3 PO4
CD NS0 NN.7 IN1 PC.8 PE.8 CC1.3 CD1.3 SY1 JJ1.7 NP1.5 TO1.5 VN2.5 VZ3 VB4 VD3 BE2 MD2.7 HV3 RB2 DT4 PP4 WP3 GE3 VG3 XX2
TO VB0 BE0 HV.5 DO.7 RB2.5 NN5 NS6 NP6 DT8 JJ7 VZ9 VD9 VN7 VG8 IN6 PP8 PO8 CD7 PS8 PC5 PE5 NO4 WP7
NO VB.5 VN.7 JJ1 DT1 RB1 VG1 TO1 IN1.2 BE1 HV1 PP1.5 PC2 PE2 NN2.5 NS2.5 DO2 CD2 SC2 VD5 VZ6 NP3 PS2 DP2 WP3 CC3 PO2.5
GE NN0 NS.5 JJ1 NP1 CD2 VN3 VG2.5 RB3 IN3 PC2.5 PE2.5 VB6 VZ5 VD5 DT6 PP7 CC3 BE4 MD4 HV5
PC NN1.7 NS1.7 NP1.5 DT1.2 JJ1.7 PP1.3 CC1 IN1.3 RB1.3 VG1.7 VN1.7 VB2.2 VZ2.2 VD2.2 CD1.5 SC1.5 WP1.2 WR1.5 PC1 PE1.2 MD2.5 BE2 HV2.5 DO3 PS1.7 EX2 DP2.2 TO2 PO3 UH2 SY2 NO2.5 XX2 GE4 PD2.5
PE PC1 PE1 DT1 PP1 NP1.5 NN2 NS2 JJ2 RB2 IN1.5 SC2 CD2 CC2
SY CD.2 NN2 NS2 PC2 PE2 IN1.5 SY2 CC2 VB3 BE2 JJ2.5
UH PC.5 PE.5 PP1.5 DT2 VB2 NP1.5 UH1.5 RB2 NN3
XX XX1 PC1 PE1 NN2 NP2 IN1.5 CD2 BE2 VZ2.5
"""  # noqa: E501
"""The costs of transitions between parts of speech; ^^ is the start of a sentence; the default is 4."""


@cache
def build_transition_costs() -> Mapping[str, Mapping[str, float]]:
    """Return part of speech -> next part of speech -> cost."""
    rows = {line[:2]: dict(parse_costs(line[2:])) for line in TRANSITION_COSTS.strip().splitlines()}
    return {part: {to: rows[part].get(to, DEFAULT_TRANSITION_COST) for to in UNIVERSAL_TAGS} for part in rows}


_COSTS_ANYWHERE: Memo[Costs] = Memo(find_pos_costs, 200_000)
_COSTS_CAPITALISED: Memo[Costs] = Memo(find_capitalised_costs, 200_000)
_COSTS_SENTENCE_START: Memo[Costs] = Memo(find_sentence_start_costs, 200_000)


def tag_words(words: Sequence[str]) -> list[str]:
    """Return our parts of speech of a sentence's tokens: the cheapest sequence.

    >>> [UNIVERSAL_TAGS[part] for part in tag_words("The old man the boats .".split())]
    ['DET', 'ADJ', 'NOUN', 'DET', 'NOUN', 'PUNCT']
    """
    step = build_transition_costs()
    shouting = sum(map(str.isupper, words)) * 2 > len(words) and len(words) > 4
    ways: dict[str, float] = {"^^": 0.0}
    back: list[dict[str, str]] = []
    leading = True
    for word in words:
        if not word[0].isupper():
            costs = _COSTS_ANYWHERE[word]
        elif shouting:
            costs = _COSTS_ANYWHERE[word.lower()]
        else:
            costs = _COSTS_SENTENCE_START[word] if leading else _COSTS_CAPITALISED[word]
        leading = leading and not word[0].isalnum()
        reached: dict[str, float] = {}
        came: dict[str, str] = {}
        for part, cost in costs:
            best, least = "", 1e9
            for before, sofar in ways.items():
                total = sofar + step[before][part]
                if total < least:
                    best, least = before, total
            reached[part] = least + cost
            came[part] = best
        back.append(came)
        ways = reached
    if not back:
        return []
    part = min(ways, key=ways.__getitem__)
    parts = [part]
    for came in reversed(back[1:]):
        part = came[part]
        parts.append(part)
    parts.reverse()
    for i, word in enumerate(words[:-1]):
        if parts[i] == "IN" and parts[i + 1] == "CD" and word.lower() in APPROXIMATION_WORDS:
            parts[i] = "RB"
    return parts


APPROXIMATION_WORDS = word_set("about around nearly almost approximately roughly over under")
"""Words that are adverbs before a number."""


VERB_TAGS = frozenset(("VB", "VZ", "VD", "VN", "VG"))
CLAUSE_OPENERS = word_set("after before since until till as than like")
HAVE_FORMS = {"have": "have", "has": "have", "had": "have", "having": "have", "'ve": "have", "’ve": "have"}
DO_FORMS = word_set("do does did doing")


def to_universal_tags(words: Sequence[str], parts: Sequence[str]) -> list[str]:
    """Return universal tags; separates auxiliaries from full verbs, and prepositions from conjunctions."""
    tags = [UNIVERSAL_TAGS[part] for part in parts]
    for i, part in enumerate(parts):
        if part == "HV":
            tags[i] = "AUX" if _is_auxiliary(parts, i, ("VN", "BE", "HV", "VD")) else "VERB"
        elif part == "DO":
            tags[i] = (
                "AUX" if _is_auxiliary(parts, i, ("VB", "HV", "BE", "DO")) or _starts_question(parts, i) else "VERB"
            )
        elif (
            part in ("DT", "DP")
            and (pair := PAIRED_CONJUNCTIONS.get(words[i].lower()))
            and _has_pair_partner(words, i, pair)
        ):
            tags[i] = "CCONJ"
        elif part == "IN" and words[i].lower() in CLAUSE_OPENERS and _clause_follows(parts, i):
            tags[i] = "SCONJ"
        elif (
            part == "WR"
            and words[i].lower() in ("when", "where", "whenever", "wherever")
            and _is_subordinate(words, parts, i)
        ):
            tags[i] = "SCONJ" if words[i].lower().startswith("when") else "ADV"
    return tags


PAIRED_CONJUNCTIONS = {"both": "and", "either": "or", "neither": "nor"}


def _has_pair_partner(words: Sequence[str], i: int, pair: str) -> bool:
    return pair in words[i + 2 : i + 7]


def _is_auxiliary(parts: Sequence[str], i: int, wanted: tuple[str, ...]) -> bool:
    """Return True if a wanted form follows, with only adverbs and pronouns between."""
    for j in range(i + 1, min(i + 5, len(parts))):
        if parts[j] in wanted:
            return True
        if parts[j] not in ("RB", "NO", "PP", "EX", "DP"):
            return False
    return False


def _starts_question(parts: Sequence[str], i: int) -> bool:
    """Return True if a question with a later main verb begins here: "do young spiders [change]"."""
    if i and parts[i - 1] not in ("WR", "WP", "PC", "NN", "NS", "CC"):
        return False
    for j in range(i + 1, min(i + 8, len(parts))):
        if parts[j] == "VB":
            return True
        if parts[j] not in ("DT", "PS", "JJ", "NN", "NS", "NP", "CD", "PP", "RB", "NO", "IN", "GE", "DP", "CC"):
            return False
    return False


def _clause_follows(parts: Sequence[str], i: int) -> bool:
    """Return True if a subject with its finite verb follows."""
    subject = False
    for j in range(i + 1, min(i + 7, len(parts))):
        part = parts[j]
        if part in ("NN", "NS", "NP", "PP", "DP", "EX"):
            subject = True
        elif part in ("VZ", "VD", "MD", "BE", "HV", "DO", "VB"):
            return subject
        elif part not in ("DT", "JJ", "CD", "PS", "RB", "GE"):
            return False
    return False


def _is_subordinate(words: Sequence[str], parts: Sequence[str], i: int) -> bool:
    """Return True for a subordinate clause, False for a question."""
    return "?" not in words[i : i + 60] and not (i + 1 < len(parts) and parts[i + 1] in ("DO", "BE", "MD", "TO"))

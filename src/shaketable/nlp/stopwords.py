"""English function words: articles, pronouns, prepositions, conjunctions, auxiliaries, and the ends of contractions.

Left out because of their other meanings: may, mine, us, won, and the letters d and m ("vitamin d").
"""

from __future__ import annotations

ENGLISH_STOPWORDS = frozenset(
    """
    a an the
    i me my myself we our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves
    this that these those here there
    who whom whose which what when where why how whether
    am is are was were be been being
    do does did doing done have has had having
    can could might must shall should will would
    and or but nor so yet if then else than because since while although though unless until
    about above across after against along among around as at before behind below between beyond by
    down during for from in into of off on onto out over per through to under up upon via with within without
    all any another both each either every few many more most much no other others own same some such
    again also already always ever however just never not now often once only still therefore thus too very
    don didn doesn isn aren wasn weren hasn haven hadn wouldn couldn shouldn
    ll re s t ve
    """.split()
)

"""From queries to their variations: by edits, or as people wrote them (`published` reads those of others)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shaketable.chance import Draws, draws_for
from shaketable.data import beir
from shaketable.edit.taxonomy import CATEGORIES, DOCUMENT, category_of
from shaketable.edit.validity import Case, Validity
from shaketable.errors import BadInput
from shaketable.files import lines
from shaketable.registry import EDITS
from shaketable.types import Context, Edit, Query, Variant

PATIENCE = 5  # draws in a row that bring nothing new before a query is given up
HUMAN = "human"
NOT_APPLICABLE = "The method does not apply to this query."


@dataclass(frozen=True, slots=True)
class Variation:
    """A query as it might have been asked: how it was made, of what kind it is, and whether it will do.

    `original` is the query prepared as the variation is (`prepared`): the two differ by the edit alone. So what a
    ranker makes of `original`, not of the query's raw text, is the "before" of any comparison with `text`: a ranker
    that sees case would otherwise lose by the preparation what the edit did not take.
    """

    qid: str
    method: str
    category: str
    text: str
    original: str
    valid: bool = True
    why: str = ""


def prepared(text: str, lower: bool = True) -> str:
    """A query as edits see it: single spaces, and in lower case, as in paper 004, unless case is to be kept."""
    return " ".join((text.lower() if lower else text).split())


def alike(text: str, original: str, lower: bool = True) -> str:
    """A variation, prepared as its original was, unless case or spaces are all in which the two differ."""
    same = prepared(text, lower)
    return text if same == original else same


def vary(
    queries: Mapping[str, Query],
    edits: Sequence[Edit],
    n: int = 1,
    seed: int = 0,
    vocabulary: Sequence[str] = (),
    lower: bool = True,
    validity: Validity | None = None,
) -> list[Variation]:
    """Up to n distinct variations of each query by each edit, edit by edit in the order of the queries.

    What an edit draws depends on the seed, its text form, the query's id and the number of the draw, on nothing else:
    asking for more variations keeps the first ones, and other queries or edits do not matter. Queries are `prepared`
    first, and so is what the edits make, unless case or spaces are all that they changed. Where an edit has no
    category, the words tell it (`taxonomy.category_of`).
    """
    if n < 1:
        raise BadInput(f"at least one variation must be asked for, not {n}")
    for edit in edits:
        refuse_documents_edit(edit)
    drafts: list[tuple[str, str, str, str, str]] = []
    cases: list[Case] = []
    originals = {qid: prepared(query.text, lower) for qid, query in queries.items()}
    contexts = {qid: Context(originals[qid], query.description, vocabulary) for qid, query in queries.items()}
    for edit in edits:
        method, made_with = EDITS.spec(edit), tuple(getattr(edit, "made_with", ()))
        found = _drawn(edit, originals, contexts, n, seed, lower)
        for qid, original in originals.items():
            for text in found[qid]:
                category = edit.category or category_of(original, text)
                drafts.append((qid, method, category, text, original))
                cases.append(Case(category, original, text, made_with))
    whys = (validity or Validity()).judge_all(cases)
    return [Variation(*draft, not why, why) for draft, why in zip(drafts, whys, strict=True)]


def refuse_documents_edit(edit: Edit) -> None:
    """Refuse an edit of documents where queries are to be edited."""
    if getattr(edit, "category", "") == DOCUMENT:
        raise BadInput(f"{EDITS.spec(edit)} is an edit of documents, so it cannot vary a query; name another edit")


def chance_of(edit: Edit, seed: int, qid: str, draw: int) -> Draws:
    """What an edit draws from for a query: tied to the seed, the edit's text form, the query and the draw's number.

    Edits that build on each other name a common text in `drawn_as`: then two character edits begin with the one.
    """
    return draws_for(seed, getattr(edit, "drawn_as", None) or EDITS.spec(edit), qid, draw)


def _drawn(
    edit: Edit, texts: Mapping[str, str], contexts: Mapping[str, Context], n: int, seed: int, lower: bool
) -> dict[str, list[str]]:
    """qid -> distinct texts. Each round is one draw for each query that still needs one."""
    found: dict[str, list[str]] = {qid: [] for qid in texts}
    waiting, draw = dict.fromkeys(texts, 0), 0  # qid -> draws in a row without anything new
    many = getattr(edit, "apply_many", None)
    while waiting:
        draws = [chance_of(edit, seed, qid, draw) for qid in waiting]
        if many:  # a model: its output does not depend on chance, so one round says all
            results = many([texts[q] for q in waiting], draws, [contexts[q] for q in waiting])
        else:
            results = [edit.apply(texts[q], d, contexts[q]) for q, d in zip(waiting, draws, strict=True)]
        later = {}
        for (qid, idle), result in zip(waiting.items(), results, strict=True):
            if result is None:
                continue  # not applicable now, not applicable ever
            text = alike(result, texts[qid], lower)
            new = text not in found[qid]
            if new:
                found[qid].append(text)
            if len(found[qid]) < n and (new or idle + 1 < PATIENCE) and not many:
                later[qid] = 0 if new else idle + 1
        waiting, draw = later, draw + 1
    return found


def written(
    queries: Mapping[str, Query], variants: Mapping[str, Iterable[Variant]], lower: bool = True
) -> list[Variation]:
    """Variations as people wrote them; where the category is not said, the words tell it (`taxonomy.category_of`).

    Their writers vouch for the meaning: people rephrase far more freely than lexical rules can follow, so only empty
    texts and copies of the original are not valid. They are prepared as what `vary` makes.
    """
    drafts = []
    for qid, texts in variants.items():
        if qid not in queries:
            raise BadInput(f"there is a variant of the query {qid!r}, but there is no such query")
        original = prepared(queries[qid].text, lower)
        for variant in texts:
            text = alike(variant.text, original, lower)
            drafts.append((qid, HUMAN, variant.category or category_of(original, text), text, original))
    whys = Validity().judge_all([Case("", original, text) for *_, text, original in drafts])
    return [Variation(*draft, not why, why) for draft, why in zip(drafts, whys, strict=True)]


def not_applicable(
    queries: Mapping[str, Query], edits: Sequence[Edit], variations: Iterable[Variation]
) -> dict[str, int]:
    """For how many queries each edit had nothing to offer."""
    done = Counter(method for method, _ in {(v.method, v.qid) for v in variations})
    return {(method := EDITS.spec(edit)): len(queries) - done[method] for edit in edits}


def grid(
    variations: Sequence[Variation], queries: Mapping[str, Query], edits: Sequence[Edit] = (), lower: bool = True
) -> list[Variation]:
    """The variations, and the original, as not valid, for each query to which a method does not apply.

    So every method has every query, as in paper 004: its Table 3 counts a query without a variation as not valid, and
    its Table 5 ranks by the original there. Methods are those of the edits, which may apply to no query at all, and
    those of the variations, in this order; each is complete, query by query, but `human`, of which nobody expects a
    variant of each query. Variations of other queries are left out.
    """
    categories = {EDITS.spec(edit): edit.category for edit in edits}
    found: dict[tuple[str, str], list[Variation]] = {}
    for v in variations:
        found.setdefault((v.method, v.qid), []).append(v)
        categories[v.method] = categories.get(v.method) or v.category
    originals = {qid: prepared(query.text, lower) for qid, query in queries.items()}
    originals |= {v.qid: v.original for v in variations}
    rows: list[Variation] = []
    for method, category in categories.items():
        for qid in queries:
            stand_in = Variation(qid, method, category, originals[qid], originals[qid], False, NOT_APPLICABLE)
            rows += found.get((method, qid), [] if method == HUMAN else [stand_in])
    return rows


def read_variants(path: Path) -> dict[str, tuple[Variant, ...]]:
    """Human-written variants: JSONL as collections have it, or TSV of query id, text and, if known, category."""
    if ".tsv" not in path.suffixes:
        return beir.read_variants(path)
    found: dict[str, tuple[Variant, ...]] = {}
    for number, line in lines(path):
        fields = line.split("\t")
        if len(fields) not in (2, 3):
            raise BadInput("a line is a query id, a text and perhaps a category, with tabs between them", path, number)
        qid, text, category = (*fields, "")[:3]
        if category and category not in CATEGORIES:
            raise BadInput(f"the category is one of {', '.join(CATEGORIES)}, not {category!r}", path, number)
        found[qid] = (*found.get(qid, ()), Variant(text, category))
    return found

"""From queries to their variations: by edits, or as people wrote them, all judged by the same rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shaketable.chance import draws_for
from shaketable.data import beir
from shaketable.edit.taxonomy import CATEGORIES, category_of
from shaketable.edit.validity import Validity
from shaketable.errors import BadInput
from shaketable.files import lines
from shaketable.registry import EDITS
from shaketable.types import Context, Edit, Query, Variant

PATIENCE = 5  # draws in a row that bring nothing new before a query is given up
HUMAN = "human"


@dataclass(frozen=True, slots=True)
class Variation:
    """A query as it might have been asked: how it was made, of what kind it is, and whether it will do.

    `original` is the text that was edited, lower-cased if the edits were told so: the two differ by the edit alone.
    """

    qid: str
    method: str
    category: str
    text: str
    original: str
    valid: bool = True
    why: str = ""


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
    asking for more variations keeps the first ones, and other queries or edits do not matter. Queries are lower-cased
    first, as paper 004 does.
    """
    if n < 1:
        raise BadInput(f"at least one variation must be asked for, not {n}")
    drafts: list[tuple[str, str, str, str, str]] = []
    originals = {qid: query.text.lower() if lower else query.text for qid, query in queries.items()}
    contexts = {qid: Context(originals[qid], query.description, vocabulary) for qid, query in queries.items()}
    for edit in edits:
        method = EDITS.spec(edit)
        found = _drawn(edit, method, originals, contexts, n, seed)
        drafts += [(q, method, edit.category, text, originals[q]) for q in queries for text in found[q]]
    whys = (validity or Validity()).judge_all([(category, original, text) for _, _, category, text, original in drafts])
    return [Variation(*draft, not why, why) for draft, why in zip(drafts, whys, strict=True)]


def _drawn(
    edit: Edit, method: str, texts: Mapping[str, str], contexts: Mapping[str, Context], n: int, seed: int
) -> dict[str, list[str]]:
    """qid -> distinct texts. Each round is one draw for each query that still needs one."""
    found: dict[str, list[str]] = {qid: [] for qid in texts}
    waiting, draw = dict.fromkeys(texts, 0), 0  # qid -> draws in a row without anything new
    many = getattr(edit, "apply_many", None)
    while waiting:
        draws = [draws_for(seed, method, qid, draw) for qid in waiting]
        if many:  # a model: its output does not depend on chance, so one round says all
            results = many([texts[q] for q in waiting], draws, [contexts[q] for q in waiting])
        else:
            results = [edit.apply(texts[q], d, contexts[q]) for q, d in zip(waiting, draws, strict=True)]
        later = {}
        for (qid, idle), text in zip(waiting.items(), results, strict=True):
            if text is None:
                continue  # not applicable now, not applicable ever
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
    texts and copies of the original are not valid.
    """
    drafts = []
    for qid, texts in variants.items():
        if qid not in queries:
            raise BadInput(f"there is a variant of query {qid!r}, but no such query")
        original = queries[qid].text.lower() if lower else queries[qid].text
        for variant in texts:
            text = variant.text.lower() if lower else variant.text
            drafts.append((qid, HUMAN, variant.category or category_of(original, text), text, original))
    whys = [Validity().judge("", original, text) for *_, text, original in drafts]
    return [Variation(*draft, not why, why) for draft, why in zip(drafts, whys, strict=True)]


def not_applicable(
    queries: Mapping[str, Query], edits: Sequence[Edit], variations: Iterable[Variation]
) -> dict[str, int]:
    """For how many queries each edit had nothing to offer."""
    done = Counter(method for method, _ in {(v.method, v.qid) for v in variations})
    return {(method := EDITS.spec(edit)): len(queries) - done[method] for edit in edits}


def read_variants(path: Path) -> dict[str, tuple[Variant, ...]]:
    """Human-written variants: JSONL as collections have it, or TSV of query id, text and, if known, category."""
    if ".tsv" not in path.suffixes:
        return beir.read_variants(path)
    found: dict[str, tuple[Variant, ...]] = {}
    for number, line in lines(path):
        fields = line.split("\t")
        if len(fields) not in (2, 3):
            raise BadInput("a line is a query id, a text and perhaps a category, with tabs between", path, number)
        qid, text, category = (*fields, "")[:3]
        if category and category not in CATEGORIES:
            raise BadInput(f"the category is one of {', '.join(CATEGORIES)}, not {category!r}", path, number)
        found[qid] = (*found.get(qid, ()), Variant(text, category))
    return found

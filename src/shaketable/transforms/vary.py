"""Query variations made by transforms or written by people (`published` reads published ones)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shaketable.core.documents import Query, Variant
from shaketable.core.errors import BadInput
from shaketable.core.protocols import Transform, TransformContext
from shaketable.core.registries import TRANSFORMS
from shaketable.core.seeding import ItemRandom, make_item_rng
from shaketable.datasets import beir
from shaketable.files.reading import read_lines
from shaketable.transforms.categories import CATEGORIES, DOCUMENT, classify_variation
from shaketable.transforms.validity import NOT_JUDGED, Validity, ValidityCase

MAX_IDLE_DRAWS = 5  # consecutive draws without a new text before a query is given up
HUMAN = "human"
NOT_APPLICABLE_REASON = "The transform does not apply to this query."


@dataclass(frozen=True, slots=True)
class Variation:
    """A variation of a query, with its method, category and validity.

    `original` is the query after `normalise_query`, so `text` and `original` differ by the transform alone. Compare
    the ranking for `text` with the ranking for `original`, not for the raw query. Otherwise a case-sensitive ranker
    is charged for the normalisation.
    """

    qid: str
    method: str
    category: str
    text: str
    original: str
    valid: bool = True
    why: str = ""

    @property
    def judged(self) -> bool:
        """Whether the evidence at hand decides about its validity; if not, `valid` is False."""
        return not self.why.startswith(NOT_JUDGED)


def normalise_query(text: str, lower: bool = True) -> str:
    """Return the query with single spaces and, if `lower` is set, in lower case as in paper 004."""
    return " ".join((text.lower() if lower else text).split())


def normalise_like(text: str, original: str, lower: bool = True) -> str:
    """Return the normalised variation, or the raw text if it differs from the original in case or spaces alone."""
    same = normalise_query(text, lower)
    return text if same == original else same


def vary(
    queries: Mapping[str, Query],
    transforms: Sequence[Transform],
    n: int = 1,
    seed: int = 0,
    vocabulary: Sequence[str] = (),
    lower: bool = True,
    validity: Validity | None = None,
    translations: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Variation]:
    """Return up to n distinct variations of each query by each transform, in the order of transforms, then queries.

    The random numbers depend only on the seed, the spec of the transform, the query id and the draw number. A larger
    n therefore keeps the first variations, and other queries or transforms have no effect. `normalise_query` is
    applied to the queries and to the new texts, except where a transform changes only case or spaces. If a transform
    has no category, `categories.classify_variation` finds it. `translations` maps a query id to the query in other
    languages, by language.
    """
    if n < 1:
        raise BadInput(f"the number of variations must be at least 1, not {n}")
    for transform in transforms:
        refuse_document_transform(transform)
    drafts: list[tuple[str, str, str, str, str]] = []
    cases: list[ValidityCase] = []
    originals = {qid: normalise_query(query.text, lower) for qid, query in queries.items()}
    contexts = {
        qid: TransformContext(
            originals[qid], query.description, vocabulary, query.language, (translations or {}).get(qid, {})
        )
        for qid, query in queries.items()
    }
    for transform in transforms:
        method, sources = TRANSFORMS.spec(transform), tuple(getattr(transform, "sources", ()))
        found = _draw_variations(transform, originals, contexts, n, seed, lower)
        for qid, original in originals.items():
            for text in found[qid]:
                category = transform.category or classify_variation(original, text)
                drafts.append((qid, method, category, text, original))
                cases.append(ValidityCase(category, original, text, sources, queries[qid].text))
    whys = (validity or Validity()).judge_all(cases)
    return [Variation(*draft, not why, why) for draft, why in zip(drafts, whys, strict=True)]


def refuse_document_transform(transform: Transform) -> None:
    """Raise `BadInput` if the transform is for documents."""
    if getattr(transform, "category", "") == DOCUMENT:
        raise BadInput(
            f"{TRANSFORMS.spec(transform)} is a transform of documents and cannot vary a query; name another transform"
        )


def make_rng(transform: Transform, seed: int, qid: str, draw: int) -> ItemRandom:
    """Return the random number generator of a transform, a query and a draw.

    Transforms that build on each other share a `random_key`. The first of two character changes then equals the
    change of the single-change transform.
    """
    return make_item_rng(seed, getattr(transform, "random_key", None) or TRANSFORMS.spec(transform), qid, draw)


def _draw_variations(
    transform: Transform,
    texts: Mapping[str, str],
    contexts: Mapping[str, TransformContext],
    n: int,
    seed: int,
    lower: bool,
) -> dict[str, list[str]]:
    """Return the distinct texts of each query id. Each round draws once for each unfinished query."""
    found: dict[str, list[str]] = {qid: [] for qid in texts}
    waiting, draw = dict.fromkeys(texts, 0), 0  # qid -> consecutive draws without a new text
    many = getattr(transform, "apply_many", None)
    while waiting:
        rngs = [make_rng(transform, seed, qid, draw) for qid in waiting]
        if many:  # a model's output is deterministic, so one round is enough
            results = many([texts[q] for q in waiting], rngs, [contexts[q] for q in waiting])
        else:
            results = [transform.apply(texts[q], rng, contexts[q]) for q, rng in zip(waiting, rngs, strict=True)]
        later = {}
        for (qid, idle), result in zip(waiting.items(), results, strict=True):
            if result is None:
                continue  # a transform that does not apply once never applies
            text = normalise_like(result, texts[qid], lower)
            new = text not in found[qid]
            if new:
                found[qid].append(text)
            if len(found[qid]) < n and (new or idle + 1 < MAX_IDLE_DRAWS) and not many:
                later[qid] = 0 if new else idle + 1
        waiting, draw = later, draw + 1
    return found


def build_human_variations(
    queries: Mapping[str, Query], variants: Mapping[str, Iterable[Variant]], lower: bool = True
) -> list[Variation]:
    """Return variations that people wrote; `categories.classify_variation` finds missing categories.

    Only empty texts and copies of the original are invalid, because people rephrase more freely than lexical rules
    can follow. The texts are normalised as in `vary`.
    """
    drafts = []
    for qid, texts in variants.items():
        if qid not in queries:
            raise BadInput(f"there is a variant of the query {qid!r}, which does not exist")
        original = normalise_query(queries[qid].text, lower)
        for variant in (one for one in texts if not one.language):  # a parallel query is no variation of this one
            text = normalise_like(variant.text, original, lower)
            drafts.append((qid, HUMAN, variant.category or classify_variation(original, text), text, original))
    whys = Validity().judge_all([ValidityCase("", original, text) for *_, text, original in drafts])
    return [Variation(*draft, not why, why) for draft, why in zip(drafts, whys, strict=True)]


def count_not_applicable(
    queries: Mapping[str, Query], transforms: Sequence[Transform], variations: Iterable[Variation]
) -> dict[str, int]:
    """Count the queries to which each transform does not apply."""
    done = Counter(method for method, _ in {(v.method, v.qid) for v in variations})
    return {(method := TRANSFORMS.spec(transform)): len(queries) - done[method] for transform in transforms}


def fill_missing_variations(
    variations: Sequence[Variation],
    queries: Mapping[str, Query],
    transforms: Sequence[Transform] = (),
    lower: bool = True,
) -> list[Variation]:
    """Return the variations, plus the original marked invalid for each query to which a method does not apply.

    Every method then covers every query, as in paper 004: its Table 3 counts a query without a variation as not
    valid, and its Table 5 ranks by the original there. The methods are those of the transforms, then those of the
    variations. The method `human` is not filled. Variations of other queries are dropped.
    """
    categories = {TRANSFORMS.spec(transform): transform.category for transform in transforms}
    found: dict[tuple[str, str], list[Variation]] = {}
    for v in variations:
        found.setdefault((v.method, v.qid), []).append(v)
        categories[v.method] = categories.get(v.method) or v.category
    originals = {qid: normalise_query(query.text, lower) for qid, query in queries.items()}
    originals |= {v.qid: v.original for v in variations}
    rows: list[Variation] = []
    for method, category in categories.items():
        for qid in queries:
            stand_in = Variation(qid, method, category, originals[qid], originals[qid], False, NOT_APPLICABLE_REASON)
            rows += found.get((method, qid), [] if method == HUMAN else [stand_in])
    return rows


def read_variants(path: Path) -> dict[str, tuple[Variant, ...]]:
    """Read human-written variants from JSONL (as in collections) or TSV (query id, text, optional category)."""
    if ".tsv" not in path.suffixes:
        return beir.read_variants(path)
    found: dict[str, tuple[Variant, ...]] = {}
    for number, line in read_lines(path):
        fields = line.split("\t")
        if len(fields) not in (2, 3):
            raise BadInput("a line has a query id, a text and an optional category, separated by tabs", path, number)
        qid, text, category = (*fields, "")[:3]
        if category and category not in CATEGORIES:
            raise BadInput(f"the category is one of {', '.join(CATEGORIES)}, not {category!r}", path, number)
        found[qid] = (*found.get(qid, ()), Variant(text, category))
    return found

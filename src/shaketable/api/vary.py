"""`vary`: variations of queries."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shaketable.api.ranker_names import as_list
from shaketable.core.documents import Collection, Query
from shaketable.core.errors import BadInput
from shaketable.core.protocols import Transform
from shaketable.datasets.languages import list_collection_translations
from shaketable.datasets.load import load
from shaketable.datasets.trec import read_topics
from shaketable.files.atomic import atomic_write
from shaketable.rankers.similarity import build_validity_judge
from shaketable.report import escape_controls, escape_formula
from shaketable.transforms import vary as varying
from shaketable.transforms.presets import select_transforms
from shaketable.transforms.user_function import FunctionTransform
from shaketable.transforms.vary import Variation

TransformLike = str | Transform | Callable[..., object]
"""The spec of a transform, a transform, or a function of a module."""

VARIATION_COLUMNS = ("qid", "method", "category", "text", "original", "valid", "why")


@dataclass(frozen=True)
class VariationSet:
    """Variations of queries, the number of queries that a transform does not apply to, and unavailable transforms."""

    queries: Mapping[str, Query]
    variations: list[Variation]
    not_applicable: dict[str, int]
    unavailable: dict[str, str]


def vary(
    queries: str | Path | Collection | Mapping[str, Query | str] = "sample",
    transforms: TransformLike | Sequence[TransformLike] = (),
    *,
    categories: Sequence[str] = (),
    n: int = 1,
    seed: int = 0,
    lower: bool = True,
    variants: str | Path | None = None,
) -> VariationSet:
    """Make variations of queries, such as misspellings, and check that they keep the meaning.

    Parameters
    ----------
    queries
        The queries: a collection, a file of topics, "-" for lines on standard input, or a mapping qid -> text.
    transforms
        One or several transforms: texts, objects, or functions f(text, rng) of a module. By default, all rule-based
        transforms of queries.
    categories
        Categories whose transforms are all used: "misspelling", "naturality", "ordering" or "paraphrasing"; for other
        languages "script", "mixed-languages" or "translation".
    n
        The maximum number of variations that each transform makes of each query.
    seed
        The random seed.
    lower
        If True, convert the queries to lower case.
    variants
        A JSONL or TSV file of variations that people wrote, to add to the others.

    Returns
    -------
    VariationSet
        The variations with category and validity, and the transforms that do not apply or are not available.

    Examples
    --------
    >>> import shaketable as st
    >>> made = st.vary({"q1": "flu symptoms"}, "random_order_swap")
    >>> [variation.text for variation in made.variations]
    ['symptoms flu']
    """
    known, collection = read_queries(queries)
    given = as_list(transforms)
    names, objects = [t for t in given if isinstance(t, str)], [t for t in given if not isinstance(t, str)]
    used: list[Transform] = [_as_transform(thing) for thing in objects]
    lacking: dict[str, str] = {}
    if names or categories or (variants is None and not objects):
        more, lacking = select_transforms(names, categories)
        used += more
    variations = (
        varying.vary(
            *(known, used, n, seed),
            lower=lower,
            validity=build_validity_judge(collection),
            translations=list_collection_translations(collection) if collection else None,
        )
        if used
        else []
    )
    if variants is not None:
        variations += varying.build_human_variations(known, varying.read_variants(Path(variants)), lower=lower)
    return VariationSet(known, variations, varying.count_not_applicable(known, used, variations), lacking)


def read_queries(
    source: str | Path | Collection | Mapping[str, Query | str],
) -> tuple[dict[str, Query], Collection | None]:
    """Return queries and their collection, if there is one."""
    if isinstance(source, Mapping):
        return {qid: Query(query) if isinstance(query, str) else query for qid, query in source.items()}, None
    if isinstance(source, Collection):
        return dict(source.queries), source
    if source == "-":
        try:
            rows = [line.rstrip("\r\n").partition("\t") for line in sys.stdin if line.strip()]
        except UnicodeDecodeError as error:
            raise BadInput("stdin: is not UTF-8 text") from error
        if any(not tab for _, tab, _ in rows):
            raise BadInput("standard input: each line must have a query id, a tab and a query")
        return {qid: Query(text) for qid, _, text in rows}, None
    if Path(source).is_file():
        return dict(read_topics(Path(source))), None
    collection = load(source)
    return dict(collection.queries), collection


def _as_transform(thing: Any) -> Transform:
    """Return a transform unchanged; wrap a function of a module."""
    if isinstance(getattr(thing, "category", None), str) and callable(getattr(thing, "apply", None)):
        transform: Transform = thing
        return transform
    target = f"{getattr(thing, '__module__', '')}:{getattr(thing, '__qualname__', '')}"
    if not callable(thing) or "<" in target:
        raise BadInput(
            f"{thing!r} is not a transform: give an object with category and apply, or a module's f(text, rng)"
        )
    return FunctionTransform(target)


def write_variations(variations: Iterable[Variation], out: str | Path) -> None:
    """Write variations as JSONL, or as TSV if the file name ends in .tsv; "-" is standard output.

    The label of a variation that was not judged is null or empty, so a command that reads the file judges it again.
    """
    tsv = str(out).removesuffix(".gz").endswith(".tsv")
    with nullcontext(sys.stdout) if out == "-" else atomic_write(Path(out)) as stream:
        if tsv:
            stream.write("\t".join(VARIATION_COLUMNS) + "\n")
        for variation in variations:
            row = {column: getattr(variation, column) for column in VARIATION_COLUMNS}
            row |= {} if variation.judged else {"valid": None}
            cells = (escape_formula("" if value is None else " ".join(str(value).split())) for value in row.values())
            stream.write(
                "\t".join(cells) + "\n" if tsv else escape_controls(json.dumps(row, ensure_ascii=False)) + "\n"
            )

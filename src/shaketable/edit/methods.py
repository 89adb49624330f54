"""Which methods a run of variations has: by default, by category, by name, or as paper 004 had them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from shaketable.edit.missing import missing
from shaketable.edit.taxonomy import CATEGORIES, DOCUMENT
from shaketable.edit.vary import refuse_documents_edit
from shaketable.errors import BadInput, UnknownName
from shaketable.registry import EDITS
from shaketable.text.resources import GENERATORS
from shaketable.types import Edit

ATTACKS = ("char_attack", "word_attack")
"""Edits that are no variations but attacks, which have an experiment of their own (paper 000, section 5.1)."""

PAPER_004: Mapping[str, str] = {
    "NeighbCharSwap": "neighb_char_swap",
    "RandomCharSub": "random_char_sub",
    "QWERTYCharSub": "qwerty_char_sub",
    "RemoveStopWords": "remove_stop_words",
    "T5DescToTitle": "desc_to_title",
    "RandomOrderSwap": "random_order_swap",
    "BackTranslation": "back_translation",
    "T5QQP": "paraphrase",
    "WordEmbedSynSwap": "word_embed_syn_swap",
    "WordNetSynSwap": "wordnet_syn_swap",
}
"""The ten methods of paper 004 (Table 3) -> ours.

Four of them need a model: T5DescToTitle, BackTranslation and T5QQP one that generates, WordEmbedSynSwap word vectors;
WordNetSynSwap needs WordNet. `chosen(["paper_004"])` says which are missing.
"""


def default_methods() -> tuple[str, ...]:
    """What a run has that names no method: every variation by rules; no attacks, and no models that generate."""
    return tuple(name for name in _variations() if name not in GENERATORS)


def presets() -> dict[str, tuple[str, ...]]:
    """The lists of methods that have a name."""
    return {"default": default_methods(), "paper_004": tuple(PAPER_004.values())}


def chosen(names: Sequence[str] = (), categories: Sequence[str] = ()) -> tuple[list[Edit], dict[str, str]]:
    """The edits of a run, and which methods of a list are left out: name -> what they lack on this machine.

    Names are those of edits or of presets; categories stand for all their methods but attacks; without either the
    preset "default" is meant. An edit that was named itself and cannot work here is an error.
    """
    found: list[Edit] = []
    lacking: dict[str, str] = {}
    known = presets()
    for name in (name for name in names if name not in known):
        edit: Edit = EDITS.build(name)
        refuse_documents_edit(edit)
        if reason := missing(edit):
            raise BadInput(f"{EDITS.spec(edit)} cannot work here: {reason}")
        found += [edit] if edit not in found else []
    lists = [known[name] for name in names if name in known] + [_of_category(name) for name in categories]
    for name in (name for methods in lists or ([] if names else [known["default"]]) for name in methods):
        try:
            edit = EDITS.build(name)
        except BadInput as error:
            lacking[name] = str(error)
            continue
        if reason := missing(edit):
            lacking[name] = reason
        elif edit not in found:
            found.append(edit)
    return found, lacking


def _of_category(category: str) -> tuple[str, ...]:
    if category not in CATEGORIES:
        raise UnknownName("category", category, CATEGORIES)
    names = tuple(name for name in _variations() if _category(name) == category)
    if not names:
        raise BadInput(
            f"no method makes variations of the category {category!r}; name an edit, or bring a file of them"
        )
    return names


def _category(name: str) -> str:
    try:
        return str(getattr(EDITS.class_of(name), "category", ""))
    except BadInput:
        return ""


def _variations() -> Iterator[str]:
    """The edits of queries that are no attacks and need no parameter."""
    for name in EDITS:
        try:
            edit = EDITS.class_of(name)
        except BadInput:  # of another package; whoever builds it learns why it cannot be had
            yield name
            continue
        fields = dataclasses.fields(edit) if dataclasses.is_dataclass(edit) else ()
        optional = all(f.default is not f.default_factory for f in fields if f.init)  # both are MISSING where it is not
        if optional and name not in ATTACKS and _category(name) != DOCUMENT:
            yield name

"""Selection of transforms: the default, by category, by name, or those of paper 004."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.protocols import Transform
from shaketable.core.registries import TRANSFORMS
from shaketable.nlp.resources import GENERATOR_MODELS
from shaketable.transforms.availability import find_unavailable_reason
from shaketable.transforms.categories import CATEGORIES, DOCUMENT, LANGUAGE_CATEGORIES
from shaketable.transforms.vary import refuse_document_transform

NOISE_TRANSFORMS = ("char_noise", "word_noise")
"""Transforms that are attacks, not variations; a separate experiment uses them (paper 000, section 5.1)."""

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
"""The ten methods of paper 004 (Table 3) -> our transforms.

T5DescToTitle, BackTranslation and T5QQP need a generative model, WordEmbedSynSwap needs word vectors, and
WordNetSynSwap needs WordNet. `select_transforms(["paper_004"])` returns the missing ones.
"""


def list_default_methods() -> tuple[str, ...]:
    """Return the default methods: all rule-based variations, without attacks and generative models."""
    return tuple(name for name in _list_variation_methods() if name not in GENERATOR_MODELS)


def list_presets() -> dict[str, tuple[str, ...]]:
    """Return the presets by name."""
    return {
        "default": list_default_methods(),
        "paper_004": tuple(PAPER_004.values()),
        "languages": list_language_methods(),
    }


def list_language_methods() -> tuple[str, ...]:
    """Return the transforms of queries in other languages; they are no default, as English queries do not need them."""
    return tuple(name for name in TRANSFORMS.builtin_rows if _is_for_languages(name))


def _is_for_languages(name: str) -> bool:
    transform = TRANSFORMS.get_class(name)
    return getattr(transform, "needs_language", False) or _find_category(name) in LANGUAGE_CATEGORIES


def select_transforms(
    names: Sequence[str] = (), categories: Sequence[str] = ()
) -> tuple[list[Transform], dict[str, str]]:
    """Return the selected transforms, and the unavailable methods of presets and categories: name -> reason.

    Names are those of transforms or presets; a category selects all its methods except attacks. Without names and
    categories the preset "default" applies. An unavailable transform that you name is an error.
    """
    found: list[Transform] = []
    lacking: dict[str, str] = {}
    known = list_presets()
    for name in (name for name in names if name not in known):
        transform: Transform = TRANSFORMS.build(name)
        refuse_document_transform(transform)
        if reason := find_unavailable_reason(transform):
            raise BadInput(f"{TRANSFORMS.spec(transform)} is not available: {reason}")
        found += [transform] if transform not in found else []
    lists = [known[name] for name in names if name in known] + [_list_category_methods(name) for name in categories]
    for name in (name for methods in lists or ([] if names else [known["default"]]) for name in methods):
        try:
            transform = TRANSFORMS.build(name)
        except BadInput as error:
            lacking[name] = str(error)
            continue
        if reason := find_unavailable_reason(transform):
            lacking[name] = reason
        elif transform not in found:
            found.append(transform)
    return found, lacking


def _list_category_methods(category: str) -> tuple[str, ...]:
    if category not in (*CATEGORIES, *LANGUAGE_CATEGORIES):
        raise UnknownName("category", category, (*CATEGORIES, *LANGUAGE_CATEGORIES))
    known = list_language_methods() if category in LANGUAGE_CATEGORIES else _list_variation_methods()
    names = tuple(name for name in known if _find_category(name) == category)
    if not names:
        raise BadInput(f"no transform has the category {category!r}; name a transform, or give a file of variations")
    return names


def _find_category(name: str) -> str:
    try:
        return str(getattr(TRANSFORMS.get_class(name), "category", ""))
    except BadInput:
        return ""


def _list_variation_methods() -> Iterator[str]:
    """Yield the query transforms that are no attacks, have no required parameter and are for any language."""
    for name in TRANSFORMS:
        try:
            transform = TRANSFORMS.get_class(name)
        except BadInput:  # a plugin that cannot be imported; building it reports the reason
            yield name
            continue
        fields = dataclasses.fields(transform) if dataclasses.is_dataclass(transform) else ()
        optional = all(f.default is not f.default_factory for f in fields if f.init)  # required: both are MISSING
        if (
            optional
            and name not in NOISE_TRANSFORMS
            and _find_category(name) != DOCUMENT
            and not _is_for_languages(name)
        ):
            yield name

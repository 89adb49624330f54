"""A parser that uses an installed English model of spaCy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from shaketable.core.errors import BadInput, MissingExtra, quote_value
from shaketable.core.extras import installed_version
from shaketable.nlp.parser import Parsed, Span, Token

EXCLUDED_COMPONENTS = (
    "ner",
    "entity_linker",
    "entity_ruler",
    "span_ruler",
    "spancat",
    "textcat",
    "textcat_multilabel",
    "senter",
)
"""Unused pipeline components; the dependency parser splits sentences."""
BATCH_TEXTS = 64  # texts


@dataclass(frozen=True)
class SpacyParser:
    """A parser with an installed English spaCy model: the named one, or the first in alphabetical order."""

    model: str = ""

    @property
    def name(self) -> str:
        meta = self.pipeline.meta
        return f"spacy {installed_version('spacy')}, {meta['lang']}_{meta['name']} {meta['version']}"

    @property
    def pipeline(self) -> Any:
        """The loaded model; raises an error if it, or spaCy, is not installed."""
        return _load_pipeline(self.model or _find_default_model())

    def parse(self, texts: Sequence[str]) -> list[Parsed]:
        pipeline = self.pipeline
        if long := next((text for text in texts if len(text) > pipeline.max_length), None):
            raise BadInput(
                f"a text of {len(long):,} characters is longer than spaCy reads ({pipeline.max_length:,}); "
                "shorten it, or use the parser 'light'"
            )
        clean = (text.encode("utf-8", "replace").decode() for text in texts)  # a lone surrogate becomes "?"
        read = pipeline.pipe(clean, batch_size=BATCH_TEXTS)
        return [_convert_doc(text, doc) for text, doc in zip(texts, read, strict=True)]


def list_english_models() -> list[str]:
    """Return the names of installed English models.

    Only package names are checked; no model is loaded.
    """
    try:
        from spacy.util import get_installed_models, get_model_meta, get_package_path
    except ModuleNotFoundError as error:
        raise MissingExtra("language", "the parser 'spacy'") from error
    return [name for name in sorted(get_installed_models()) if get_model_meta(get_package_path(name))["lang"] == "en"]


def _find_default_model() -> str:
    if models := list_english_models():
        return models[0]
    raise BadInput(
        "no English model of spaCy's is installed: install one as a package, such as en_core_web_sm, "
        "or use the parser 'light'"
    )


@lru_cache(maxsize=2)
def _load_pipeline(name: str) -> Any:
    known = list_english_models()
    if name not in known:
        raise BadInput(
            f"no English model of spaCy's is installed as {quote_value(name)}; "
            f"there are: {', '.join(known) or 'none'}; install it as a package"
        )
    from spacy.util import load_model_from_package

    pipeline = load_model_from_package(name, exclude=list(EXCLUDED_COMPONENTS))
    if lacking := [part for part in ("parser", "lemmatizer") if part not in pipeline.pipe_names]:
        raise BadInput(f"spaCy's model {name} has no {' and no '.join(lacking)}, which noun chunks and lemmas need")
    return pipeline


def _convert_doc(text: str, doc: Any) -> Parsed:
    """Convert a spaCy document, without white-space tokens."""
    place = [0]
    tokens: list[Token] = []
    for token in doc:
        if not token.is_space:
            tokens.append(Token(text[token.idx : token.idx + len(token)], token.lemma_, token.pos_))
        place.append(len(tokens))
    return Parsed(tuple(tokens), tuple(_convert_spans(doc.sents, place)), tuple(_convert_spans(doc.noun_chunks, place)))


def _convert_spans(spans: Any, token_numbers: Sequence[int]) -> Iterator[Span]:
    for span in spans:
        start, end = token_numbers[span.start], token_numbers[span.end]
        if start < end:
            yield Span(start, end)

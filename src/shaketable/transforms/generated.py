"""Variations by any sequence-to-sequence model of Hugging Face, with the settings of paper 004 as presets.

Beam search makes the output depend on the model and the text alone, so `rng` is not used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from shaketable.core.errors import BadInput, MissingExtra
from shaketable.nlp import checkpoints
from shaketable.nlp.resources import GENERATOR_MODELS, find_hub_cache, find_model_folder, list_model_paths
from shaketable.transforms.categories import NATURALITY, PARAPHRASING

if TYPE_CHECKING:
    from shaketable.core.protocols import TransformContext
    from shaketable.core.seeding import ItemRandom

SEED = 0


@dataclass(frozen=True)
class GenerationPass:
    """The settings of one generation: a prompt with a gap for the text, lengths, beams and languages."""

    prompt: str = "{}"
    min_length: int = 0
    max_length: int = 40
    num_beams: int = 1
    source_language: str = ""
    target_language: str = ""


class _GeneratedTransform(ABC):
    """A transform that runs its passes in sequence; an unchanged or empty output counts as not applicable."""

    model: str
    batch: int

    @property
    @abstractmethod
    def passes(self) -> tuple[GenerationPass, ...]:
        """The generation passes, in order."""

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        return self.apply_many([text], [rng], [context])[0]

    def apply_many(
        self, texts: Sequence[str], rngs: Sequence[ItemRandom], contexts: Sequence[TransformContext]
    ) -> list[str | None]:
        """Return the variation of each text; batches hold texts of similar length, and input order has no effect."""
        order = sorted((i for i, text in enumerate(texts) if text.strip()), key=lambda i: (len(texts[i]), texts[i]))
        results: list[str | None] = [None] * len(texts)
        if not order:
            return results
        model = open_generator(self.model)
        for start in range(0, len(order), self.batch):
            chosen = order[start : start + self.batch]
            outputs = [" ".join(texts[i].split()) for i in chosen]
            for step in self.passes:
                outputs = model.generate(outputs, step)
            for i, output in zip(chosen, outputs, strict=True):
                words = output.split()
                results[i] = " ".join(words) if words and words != texts[i].split() else None
        return results


@dataclass(frozen=True)
class DescToTitle(_GeneratedTransform):
    """Shorten a query to a title with a T5 fine-tuned on TREC topics (T5DescToTitle).

    The paper's fine-tuned weights are not public. The default is the plain t5-base it started from; `model` may be a
    folder with your own weights.
    """

    model: str = GENERATOR_MODELS["desc_to_title"]
    batch: int = 32
    category: ClassVar[str] = NATURALITY

    @property
    def passes(self) -> tuple[GenerationPass, ...]:
        return (GenerationPass("summarize : {}?", min_length=3, max_length=8, num_beams=4),)


@dataclass(frozen=True)
class BackTranslation(_GeneratedTransform):
    """Translate a query into another language and back (BackTranslation: M2M100 through German)."""

    model: str = GENERATOR_MODELS["back_translation"]
    pivot: str = "de"
    batch: int = 32
    category: ClassVar[str] = PARAPHRASING

    @property
    def passes(self) -> tuple[GenerationPass, ...]:
        there = GenerationPass(max_length=200, num_beams=5, source_language="en", target_language=self.pivot)
        return there, GenerationPass(max_length=200, num_beams=5, source_language=self.pivot, target_language="en")


@dataclass(frozen=True)
class Paraphrase(_GeneratedTransform):
    """Rephrase a query with a T5 fine-tuned on pairs of duplicate questions (T5QQP)."""

    model: str = GENERATOR_MODELS["paraphrase"]
    batch: int = 32
    category: ClassVar[str] = PARAPHRASING

    @property
    def passes(self) -> tuple[GenerationPass, ...]:
        return (GenerationPass("paraphrase : {}?", max_length=40, num_beams=4),)


@dataclass(frozen=True)
class Generator:
    """A generative model with its tokenizer."""

    name: str
    model: Any
    tokenizer: Any

    def generate(self, texts: list[str], generation_pass: GenerationPass) -> list[str]:
        """Return the output of the model for each text."""
        import torch

        settings: dict[str, Any] = {}
        if generation_pass.target_language:
            self.tokenizer.src_lang = generation_pass.source_language
            settings["forced_bos_token_id"] = self._find_language_id(generation_pass.target_language)
        inputs = self.tokenizer(
            [generation_pass.prompt.replace("{}", text) for text in texts],
            return_tensors="pt",
            padding=True,
            truncation=True,
        )
        torch.manual_seed(SEED)
        with torch.inference_mode():
            output = self.model.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                do_sample=False,
                num_beams=generation_pass.num_beams,
                min_length=generation_pass.min_length,
                max_length=generation_pass.max_length,
                **settings,
            )
        return [str(text) for text in self.tokenizer.batch_decode(output, skip_special_tokens=True)]

    def _find_language_id(self, code: str) -> int:
        try:
            return int(self.tokenizer.get_lang_id(code))
        except (AttributeError, KeyError) as error:
            raise BadInput(
                f"the model {self.name} does not translate into {code!r}; use a model such as M2M100"
            ) from error


@lru_cache(maxsize=2)
def open_generator(name: str) -> Generator:
    """Load a model from a folder, our resources, the Hugging Face cache or the hub, in this order."""
    try:
        import transformers  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra("neural", "generating variations with a model") from error
    folder = find_model_folder(name)
    try:
        if folder is None or folder.parent == find_hub_cache():
            folder = checkpoints.fetch_from_hub(name)
        return Generator(name, checkpoints.read_generator(folder).eval(), checkpoints.read_tokenizer(folder))
    except BadInput as error:
        looked = ", ".join(map(str, list_model_paths(name)))
        raise BadInput(f"the model {name} cannot be loaded; searched: {looked}, and the hub ({error})") from error

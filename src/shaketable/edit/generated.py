"""Variations by sequence-to-sequence models: any from Hugging Face, with the settings of paper 004 as presets.

Beams, not sampling: the output depends on the model and the text alone, so the draws are not used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from shaketable.edit.taxonomy import NATURALITY, PARAPHRASING
from shaketable.errors import BadInput, MissingExtra
from shaketable.text import door
from shaketable.text.resources import GENERATORS, hub_cache, model_folder, model_places

if TYPE_CHECKING:
    from shaketable.chance import Draws
    from shaketable.types import Context

SEED = 0


@dataclass(frozen=True)
class Pass:
    """One run of the model: the prompt with a gap for the text, and how it writes."""

    prompt: str = "{}"
    shortest: int = 0
    longest: int = 40
    beams: int = 1
    source: str = ""
    target: str = ""


class _Generated(ABC):
    """Runs the passes one after the other; what comes out as it went in, or empty, is no variation."""

    model: str
    batch: int

    @property
    @abstractmethod
    def passes(self) -> tuple[Pass, ...]:
        """What the model is asked to do, step by step."""

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        return self.apply_many([text], [draws], [context])[0]

    def apply_many(self, texts: Sequence[str], draws: Sequence[Draws], contexts: Sequence[Context]) -> list[str | None]:
        """All texts at once. Those of like length go together; the order given does not matter."""
        order = sorted((i for i, text in enumerate(texts) if text.strip()), key=lambda i: (len(texts[i]), texts[i]))
        results: list[str | None] = [None] * len(texts)
        if not order:
            return results
        model = open_generator(self.model)
        for start in range(0, len(order), self.batch):
            chosen = order[start : start + self.batch]
            outputs = [" ".join(texts[i].split()) for i in chosen]
            for step in self.passes:
                outputs = model.write(outputs, step)
            for i, output in zip(chosen, outputs, strict=True):
                words = output.split()
                results[i] = " ".join(words) if words and words != texts[i].split() else None
        return results


@dataclass(frozen=True)
class DescToTitle(_Generated):
    """Shorten a query to a title with a T5 that learned it from TREC topics (T5DescToTitle).

    The paper's fine-tuned weights are not public: the default is the plain t5-base it started from; give a folder.
    """

    model: str = GENERATORS["desc_to_title"]
    batch: int = 32
    category: ClassVar[str] = NATURALITY

    @property
    def passes(self) -> tuple[Pass, ...]:
        return (Pass("summarize : {}?", shortest=3, longest=8, beams=4),)


@dataclass(frozen=True)
class BackTranslation(_Generated):
    """Translate a query into another language and back (BackTranslation: M2M100, by way of German)."""

    model: str = GENERATORS["back_translation"]
    pivot: str = "de"
    batch: int = 32
    category: ClassVar[str] = PARAPHRASING

    @property
    def passes(self) -> tuple[Pass, ...]:
        there = Pass(longest=200, beams=5, source="en", target=self.pivot)
        return there, Pass(longest=200, beams=5, source=self.pivot, target="en")


@dataclass(frozen=True)
class Paraphrase(_Generated):
    """Rephrase a query with a T5 that learned it from questions asked twice (T5QQP)."""

    model: str = GENERATORS["paraphrase"]
    batch: int = 32
    category: ClassVar[str] = PARAPHRASING

    @property
    def passes(self) -> tuple[Pass, ...]:
        return (Pass("paraphrase : {}?", longest=40, beams=4),)


@dataclass(frozen=True)
class Loaded:
    """A model and its tokenizer, ready to write."""

    name: str
    model: Any
    tokenizer: Any

    def write(self, texts: list[str], step: Pass) -> list[str]:
        """What the model writes for each text."""
        import torch

        settings: dict[str, Any] = {}
        if step.target:
            self.tokenizer.src_lang = step.source
            settings["forced_bos_token_id"] = self._language(step.target)
        inputs = self.tokenizer(
            [step.prompt.replace("{}", text) for text in texts], return_tensors="pt", padding=True, truncation=True
        )
        torch.manual_seed(SEED)
        with torch.inference_mode():
            output = self.model.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                do_sample=False,
                num_beams=step.beams,
                min_length=step.shortest,
                max_length=step.longest,
                **settings,
            )
        return [str(text) for text in self.tokenizer.batch_decode(output, skip_special_tokens=True)]

    def _language(self, code: str) -> int:
        try:
            return int(self.tokenizer.get_lang_id(code))
        except (AttributeError, KeyError) as error:
            raise BadInput(f"the model {self.name} does not translate into {code!r}; take one like M2M100") from error


@lru_cache(maxsize=2)
def open_generator(name: str) -> Loaded:
    """A model from a folder, our resources, the cache of Hugging Face, or the hub, whichever has it first."""
    try:
        import transformers  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra("neural", "generating variations with a model") from error
    folder = model_folder(name)
    try:
        if folder is None or folder.parent == hub_cache():
            folder = door.from_hub(name)
        return Loaded(name, door.read_generator(folder).eval(), door.read_tokenizer(folder))
    except BadInput as error:
        looked = ", ".join(map(str, model_places(name)))
        raise BadInput(f"the model {name} cannot be loaded: looked at {looked}, and on the hub ({error})") from error

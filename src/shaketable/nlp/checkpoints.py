"""The reader of pretrained models: only this module opens configurations, tokenizers and weights.

A checkpoint is an untrusted folder. This module opens its settings, vocabulary files and weights (safetensors), and
passes them to transformers as values. It runs no code of a checkpoint, reads no pickle, downloads nothing, and opens no
file outside of the folder. The options of transformers (trust_remote_code=False, local_files_only=True) do not
guarantee this: a config.json may still name kernels of the hub, older versions open the files that
tokenizer_config.json names, and adapter_config.json may name other weights.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

from shaketable.core.documents import fingerprint
from shaketable.core.errors import BadInput
from shaketable.core.home import home_folder
from shaketable.files.checksums import digest_file

Transformer: TypeAlias = Any
"""A model of transformers: a torch module with a `config`."""
CONFIG_FILE, GENERATION_CONFIG_FILE, TOKENIZER_CONFIG_FILE = (
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
)
WEIGHTS_FILE, WEIGHT_INDEX_FILE = "model.safetensors", "model.safetensors.index.json"
VOCABULARY_PATTERNS = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
"""Vocabulary files; every tokenizer has one of them."""
TOKENIZER_PATTERNS = (
    *VOCABULARY_PATTERNS,
    TOKENIZER_CONFIG_FILE,
    "special_tokens_map.json",
    "added_tokens.json",
    "merges.txt",
    "bpe.codes",
)
"""All files that a tokenizer may read."""
HUB_PATTERNS = ("*.safetensors", "*.json", "*.txt", "*.model", "*.codes")
"""The files to download from the hub. Pickled weights are excluded, because they can run code."""
CUSTOM_CODE_KEYS = ("auto_map", "custom_pipelines")
LOADING_KEYS = (
    "attn_implementation", "experts_implementation", "fusion_config", "distributed_config", "per_layer_config",
    "transformers_weights", "transformers_version", "use_kernels", "kernel_config", "dtype", "torch_dtype",
    "name_or_path", "attribute_map", "sub_configs", "sub_configs_defaults",
)  # fmt: skip
"""Ignored settings that control how and from where a model is loaded; some would download code."""
IGNORED_TOKENIZER_KEYS = re.compile(
    r".*_(files?|object|path)|auto_map|init_inputs|chat_template|is_local|local_files_only"
)
"""Ignored tokenizer settings, which name files or are for conversations."""
COUNT_KEYS, MAX_COUNT = re.compile(r".*(layers?|blocks?|groups?|heads|experts|labels|depth)"), 1000
"""Settings that count parts of the model, and their largest value."""
MAX_INTEGER, MAX_SETTINGS_BYTES = 1 << 24, 1 << 24
"""The largest integer setting, and the largest size of a settings file."""
MAX_EXTRA_PARAMETERS = 1 << 24
"""Parameters that a model may have beyond those of its checkpoint, such as an untrained head."""


def fetch_from_hub(name: str, *, local_only: bool = False) -> Path:
    """Return the folder of a checkpoint in the hub's cache; download it if it is not there, unless `local_only`."""
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HFValidationError

    # The library reads this variable only once.
    offline = local_only or os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
    try:
        cached = Path(snapshot_download(name, allow_patterns=list(HUB_PATTERNS), local_files_only=True))
        if any(cached.glob("*.safetensors")):  # a snapshot may hold only a configuration
            return cached
    except HFValidationError as error:
        raise BadInput(f"there is no checkpoint {name!r}: no such folder, and the hub has no such names") from error
    except OSError:
        pass
    try:
        return Path(snapshot_download(name, allow_patterns=list(HUB_PATTERNS), local_files_only=offline))
    except Exception as error:  # network errors have many types
        raise BadInput(
            f"there is no checkpoint {name!r}: no folder of that name, here or in {home_folder() / 'resources'}, not "
            f"in the cache at {constants.HF_HUB_CACHE}, and not available from {constants.ENDPOINT} "
            f"({summarise_error(error)})"
        ) from error


def resolve_inside(folder: Path, name: str) -> Path:
    """Return the path of a checkpoint's file; refuse paths that lead outside, except to blobs of the hub's cache."""
    path, root = folder / name, folder.resolve()
    roots = [root]
    if root.parent.name == "snapshots":
        roots.append(root.parents[1] / "blobs")
    try:
        target = path.resolve()
    except (OSError, RuntimeError) as error:  # Python 3.11 raises RuntimeError for a loop of links
        raise BadInput("is a link that leads nowhere", path) from error
    if not any(target.is_relative_to(place) for place in roots):
        raise BadInput(f"leads to {target}, outside of the checkpoint; copy that file into its folder", path)
    return path


def fingerprint_checkpoint(folder: Path) -> str:
    """Return a hash of the settings, vocabulary and weights of a checkpoint."""
    weights = list_weight_files(folder)
    index = [folder / WEIGHT_INDEX_FILE] if weights != [folder / WEIGHTS_FILE] else []
    settings = [
        path for name in (CONFIG_FILE, GENERATION_CONFIG_FILE) if (path := resolve_inside(folder, name)).is_file()
    ]
    files = {*settings, *index, *weights, *list_tokenizer_files(folder)}
    return fingerprint(sorted((path.relative_to(folder).as_posix(), digest_file(path)) for path in files))


def read_config(folder: Path) -> Any:
    """Return the configuration of a checkpoint."""
    return make_config(_read_settings(folder, CONFIG_FILE), folder / CONFIG_FILE)


def make_config(settings: Mapping[str, Any], path: Path | None = None) -> Any:
    """Return a transformers configuration made from plain values; `path` is the file that holds them."""
    from transformers import CONFIG_MAPPING

    kind = settings.get("model_type")
    if asked := _find_requested_key(settings, CUSTOM_CODE_KEYS):
        raise BadInput(f"needs its own code ({asked}), which is never run; use a model without code", path)
    if settings.get("quantization_config"):
        raise BadInput("describes quantised weights, which are not supported; use the original model", path)
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        raise BadInput(f"is of the type {kind!r}, which transformers does not know", path)
    _refuse_nonsense(settings, path)
    try:
        with silence_transformers():
            made = CONFIG_MAPPING[kind]
            return made.from_dict(_drop_unsafe_settings(settings, made))
    except Exception as error:  # transformers raises errors of any type for bad settings
        raise BadInput(f"is not a checkpoint that transformers can read ({summarise_error(error)})", path) from error


def read_tokenizer(folder: Path, *, needs_padding: bool = True) -> Any:
    """Read the tokenizer; check its files first, because transformers creates an empty tokenizer without them."""
    from transformers import AutoTokenizer, PretrainedConfig

    if not any(file for pattern in VOCABULARY_PATTERNS for file in folder.glob(pattern)):
        raise BadInput(
            f"has no tokenizer (none of {', '.join(VOCABULARY_PATTERNS)}); copy its files from the original model",
            folder,
        )
    config = read_config(folder) if (folder / CONFIG_FILE).is_file() else PretrainedConfig()
    settings = _read_settings(folder, TOKENIZER_CONFIG_FILE) if (folder / TOKENIZER_CONFIG_FILE).is_file() else {}
    if asked := _find_requested_key(settings, CUSTOM_CODE_KEYS):
        raise BadInput(f"needs its own code ({asked}), which is never run", folder / TOKENIZER_CONFIG_FILE)
    files = list_tokenizer_files(folder)
    kept = {key: value for key, value in settings.items() if not IGNORED_TOKENIZER_KEYS.fullmatch(key)}
    try:
        with silence_transformers(), tempfile.TemporaryDirectory() as folder_copy:  # holds only the permitted files
            for path in files:
                shutil.copyfile(path, Path(folder_copy, path.name))
            if settings:
                Path(folder_copy, TOKENIZER_CONFIG_FILE).write_text(json.dumps(kept), encoding="utf-8")
            tokenizer = AutoTokenizer.from_pretrained(
                folder_copy, config=config, trust_remote_code=False, local_files_only=True
            )
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the tokenizers library is not an Exception
        raise BadInput(f"has a tokenizer that cannot be read ({summarise_error(error)})", folder) from error
    tokenizer.name_or_path = ""
    if needs_padding and tokenizer.pad_token_id is None:
        raise BadInput("has a tokenizer without a padding token, so texts cannot be batched", folder)
    return tokenizer


def read_model(auto_class: Any, folder: Path, config: Any) -> tuple[Transformer, set[str]]:
    """Return the model of a checkpoint in float32, opened by an auto class, and the names of missing weights."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    files = list_weight_files(folder)
    kind = type(build_without_weights(auto_class, config, files, folder / CONFIG_FILE))
    try:
        weights: dict[str, Any] = {}
        for path in files:
            weights |= load_file(path)
        with silence_transformers():
            model, info = kind.from_pretrained(
                None,
                config=config,
                state_dict=weights,
                dtype=torch.float32,
                trust_remote_code=False,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
            )
    except (OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        raise BadInput(f"has weights that cannot be read ({summarise_error(error)})", folder) from error
    if mismatched := {name for name, *_ in info["mismatched_keys"]}:
        raise BadInput(f"has weights of other sizes than its config.json says: {format_few_names(mismatched)}", folder)
    # Copied because the alignment of memory-mapped weights changes sums slightly.
    for tensor in [*model.parameters(), *model.buffers()]:
        tensor.data = tensor.data.clone()
    return model, set(info["missing_keys"])


def check_vocabulary(folder: Path, tokenizer: Any, model: Transformer) -> None:
    """Refuse a tokenizer that was made for another model."""
    known = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > known:
        raise BadInput(f"has a tokenizer of {len(tokenizer)} pieces, but the model has only {known}", folder)


def read_generator(folder: Path) -> Transformer:
    """Return a text-to-text model with the generation settings of its files."""
    from transformers import AutoModelForSeq2SeqLM, GenerationConfig

    made: Any = GenerationConfig
    model, missing = read_model(AutoModelForSeq2SeqLM, folder, read_config(folder))
    if missing:
        raise BadInput(f"has no weights for {format_few_names(missing)}", folder)
    known = made().to_dict().keys()
    told = _read_settings(
        folder, GENERATION_CONFIG_FILE if (folder / GENERATION_CONFIG_FILE).is_file() else CONFIG_FILE
    )
    model.generation_config = made(**{key: told[key] for key in known & told.keys() if _is_number(told[key])})
    return model


def build_untrained(auto_class: Any, settings: Mapping[str, Any]) -> Transformer:
    """Return an untrained model with these settings."""
    import torch

    config = make_config(settings)
    with silence_transformers():
        return auto_class.from_config(config, dtype=torch.float32, trust_remote_code=False)


def build_without_weights(auto_class: Any, config: Any, files: list[Path], path: Path) -> Transformer:
    """Return the model without memory for its weights; refuse one that is far larger than the weights in the files."""
    import torch
    from safetensors import SafetensorError, safe_open

    there = 0
    for file in files:
        try:
            with safe_open(file, "pt") as held:
                there += sum(prod(held.get_slice(name).get_shape()) for name in held.keys())  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise BadInput(f"has weights that cannot be read ({summarise_error(error)})", file) from error
    try:
        with silence_transformers(), torch.device("meta"):
            model = auto_class.from_config(config, dtype=torch.float32, trust_remote_code=False)
    except Exception as error:  # as above: bad settings raise errors of any type
        raise BadInput(f"describes a model that cannot be created ({summarise_error(error)})", path) from error
    size = sum(tensor.numel() for tensor in (*model.parameters(), *model.buffers()))
    if size > 2 * there + MAX_EXTRA_PARAMETERS:
        raise BadInput(f"describes a model of {size:,} parameters, but has {there:,} weights", path)
    return model


def list_weight_files(folder: Path) -> list[Path]:
    """Return the weight files: a single one, or those that an index names."""
    if (path := resolve_inside(folder, WEIGHTS_FILE)).is_file():
        return [path]
    if not resolve_inside(folder, WEIGHT_INDEX_FILE).is_file():
        raise BadInput("has no weights in the safetensors format; pickled ones (.bin) are not read", folder)
    named = _read_settings(folder, WEIGHT_INDEX_FILE).get("weight_map")
    names = set(named.values()) if isinstance(named, dict) else set()
    if not names or not all(isinstance(name, str) for name in names):
        raise BadInput("names no files of weights", folder / WEIGHT_INDEX_FILE)
    for name in sorted(names):
        if not name.endswith(".safetensors"):
            raise BadInput(
                f"names {name}, which is not in the safetensors format and is not read", folder / WEIGHT_INDEX_FILE
            )
        if not resolve_inside(folder, name).is_file():
            raise BadInput(f"names {name}, which is not there", folder / WEIGHT_INDEX_FILE)
    return [folder / name for name in sorted(names)]


def list_tokenizer_files(folder: Path) -> list[Path]:
    """Return the existing files that a tokenizer may read."""
    return sorted(
        {resolve_inside(folder, path.name) for pattern in TOKENIZER_PATTERNS for path in folder.glob(pattern)}
    )


def _read_settings(folder: Path, name: str) -> dict[str, Any]:
    """Return the settings in a JSON file of a checkpoint."""
    path = resolve_inside(folder, name)
    try:
        if path.exists() and not path.is_file():
            raise BadInput("is not a regular file", path)
        if path.stat().st_size > MAX_SETTINGS_BYTES:
            raise BadInput("is too large for a file of settings", path)
        settings = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise BadInput(f"is not a checkpoint that transformers can read: it has no {name}", folder) from error
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"is not readable JSON ({summarise_error(error)})", path) from error
    if not isinstance(settings, dict):
        raise BadInput("is not an object of settings", path)
    return settings


def _find_requested_key(settings: Any, names: tuple[str, ...]) -> str:
    """Return the first of these names with a value anywhere in the settings; "" if there is none."""
    parts = list(settings.values()) if isinstance(settings, dict) else settings if isinstance(settings, list) else []
    own = [name for name in names if isinstance(settings, dict) and settings.get(name)]
    return next(filter(None, (*own, *(_find_requested_key(part, names) for part in parts))), "")


def _drop_unsafe_settings(settings: Mapping[str, Any], made: type) -> dict[str, Any]:
    """Return the settings without those that control loading or would replace a method."""
    return {
        key: _drop_unsafe_settings(value, type(None)) if isinstance(value, dict) else value
        for key, value in settings.items()
        if not key.startswith("_") and key not in LOADING_KEYS and not callable(getattr(made, key, None))
    }


def _refuse_nonsense(settings: Any, path: Path | None) -> None:
    """Refuse numbers that would exhaust the memory before the model is compared with the weights."""
    for key, value in settings.items() if isinstance(settings, dict) else enumerate(settings):
        if isinstance(value, dict | list):
            _refuse_nonsense(value, path)
        elif isinstance(value, int) and not str(key).endswith(("theta", "_id")):
            counted = COUNT_KEYS.fullmatch(str(key))
            if not (0 <= value <= MAX_COUNT if counted else abs(value) <= MAX_INTEGER):
                raise BadInput(f"has the invalid value {key} = {value}", path)


def _is_number(value: object) -> bool:
    """Return True for a number, None, or a list of these."""
    return all(map(_is_number, value)) if isinstance(value, list) else value is None or isinstance(value, int | float)


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Disable the progress bars and reports of transformers in a context."""
    logging: Any = import_module("transformers.utils.logging")
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def summarise_error(error: BaseException) -> str:
    """Return the first line of an error message, and the second if the first ends in a colon."""
    first, _, rest = (str(error).strip() or type(error).__name__).partition("\n")
    return f"{first} {rest.strip().partition(chr(10))[0]}" if first.endswith(":") else first


def format_few_names(names: set[str]) -> str:
    """Return the first three names as text."""
    return ", ".join(sorted(names)[:3]) + (" and others" if len(names) > 3 else "")

"""Nets on disk: model.json says what it is, weights.safetensors what it learned; vocabulary files lie beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes

from shaketable.errors import BadInput
from shaketable.files import written_whole, written_whole_binary
from shaketable.rank.nets.net import Net
from shaketable.rank.neural import NETS
from shaketable.types import fingerprint

SCHEMA = "shaketable.model/1"


def save(net: Net, folder: Path, card: Mapping[str, Any]) -> None:
    """Write a net and the card of its training. The weights come before the file that names them."""
    folder.mkdir(parents=True, exist_ok=True)
    net.save_vocabulary(folder)
    state, names = net.state_dict(), _names(net)
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items() if name in names}
    with written_whole_binary(folder / "weights.safetensors") as raw:
        raw.write(to_bytes(weights))
    about = {"schema": SCHEMA, "kind": net.kind, "config": net.config(), "card": dict(card)}
    with written_whole(folder / "model.json") as out:
        json.dump(about, out, indent=1, allow_nan=False)


def load(folder: Path) -> Net:
    """The net in a folder."""
    about = read(folder)
    path = folder / "weights.safetensors"
    try:
        net: Net = NETS.load(about["kind"]).from_config(about["config"], folder)
        found = net.load_state_dict(load_file(path), strict=False)
        if wrong := {*found.unexpected_keys, *_names(net).intersection(found.missing_keys)}:
            raise RuntimeError(f"{min(wrong)} is there and should not be, or the other way round")
    except FileNotFoundError as error:
        raise BadInput("there is no such file, and a saved model needs it", path) from error
    except (SafetensorError, RuntimeError) as error:
        first = str(error).strip().partition("\n")[0]
        raise BadInput(f"does not hold the weights that model.json describes ({first})", path) from error
    except (KeyError, TypeError) as error:
        raise BadInput(f"describes no model that can be made ({error!r})", folder / "model.json") from error
    return net


def _names(net: Net) -> set[str]:
    """The names of all tensors, each by its first one: a head may share its weights with the embeddings."""
    return {name for name, _ in (*net.named_parameters(), *net.named_buffers())}


def read(folder: Path) -> dict[str, Any]:
    """What model.json says."""
    path = folder / "model.json"
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadInput("there is no such file, so its folder holds no saved model", path) from error
    except (OSError, ValueError) as error:
        raise BadInput(f"is not JSON that can be read ({error})", path) from error
    if not isinstance(about, dict) or about.get("schema") != SCHEMA or not {"kind", "config"} <= about.keys():
        raise BadInput(f"is no saved model of this version ({SCHEMA})", path)
    return about


def note(folder: Path, more: Mapping[str, Any]) -> None:
    """Add to the card of a saved net."""
    about = read(folder)
    about["card"] = about.get("card", {}) | dict(more)
    with written_whole(folder / "model.json") as out:
        json.dump(about, out, indent=1, allow_nan=False)


def mark(folder: Path) -> str:
    """Names what the scores of a saved net depend on: its weights, its configuration, its vocabulary."""
    about = read(folder)
    digests = []
    for path in sorted(path for path in folder.iterdir() if path.is_file() and path.name != "model.json"):
        with path.open("rb") as raw:
            digests.append((path.name, file_digest(raw, lambda: blake2b(digest_size=16)).hexdigest()))
    return fingerprint(about["kind"], json.dumps(about["config"], sort_keys=True), digests)

"""Nets in model folders (`rankers.persistence`).

model.json describes the net, weights.safetensors has its weights, and the files of its vocabulary are beside them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes

from shaketable.core.documents import fingerprint
from shaketable.core.errors import BadInput
from shaketable.nlp.checkpoints import summarise_error
from shaketable.rankers import persistence as folders
from shaketable.rankers.neural.models import find_net_class
from shaketable.rankers.neural.net import Net

WEIGHTS_FILE = "weights.safetensors"
MAX_NET_SIZE = 1_000_000
"""The largest allowed size in a configuration; a larger net would not fit into memory."""


@dataclass(frozen=True, eq=False)
class FittedNet:
    """A trained net and its training card."""

    net: Net
    card: Mapping[str, Any]

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the net atomically. An existing model is replaced only with `overwrite`."""
        about = {"kind": self.net.kind, "config": self.net.config(), "card": dict(self.card)}
        folders.write_model(folder, about, self._write_files, overwrite=overwrite)

    def _write_files(self, folder: Path) -> None:
        self.net.save_vocabulary(folder)
        state = self.net.state_dict()
        weights = {name: state[name].detach().cpu().contiguous() for name in _list_saved_tensors(self.net)}
        (folder / WEIGHTS_FILE).write_bytes(to_bytes(weights))


def read_net(folder: str | Path) -> Net:
    """Return the net in a folder."""
    stored = folders.read_verified(folder)
    about, path, weights = stored.metadata, stored.folder / folders.MODEL_FILE, stored.files_folder / WEIGHTS_FILE
    try:
        make, config = find_net_class(about["kind"]).from_config, about["config"]
        _refuse_large(config)
        with torch.device("meta"):  # compares sizes before memory is allocated
            _refuse_mismatched_weights(make(config, stored.files_folder), weights)
        net = make(config, stored.files_folder)
        net.load_state_dict(load_file(weights), strict=False)
    except BadInput as error:
        raise BadInput(f"describes a model that cannot be created ({error})", path) from error
    except (SafetensorError, RuntimeError, OSError) as error:
        raise BadInput(
            f"does not have the weights that {path} describes ({summarise_error(error)})", weights
        ) from error
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise BadInput(f"describes a model that cannot be created ({error!r})", path) from error
    return net


def read_description(folder: str | Path) -> Mapping[str, Any]:
    """Return the content of model.json: the kind of a net, its configuration, and its card."""
    return folders.read_manifest(folder).metadata


def compute_fingerprint(folder: str | Path) -> str:
    """Return a digest of everything the scores of a saved net depend on: weights, configuration and vocabulary."""
    stored = folders.read_manifest(folder)
    config = json.dumps(stored.metadata["config"], sort_keys=True)
    return fingerprint(stored.metadata["kind"], config, stored.fingerprint)


def _list_saved_tensors(net: Net) -> list[str]:
    """Return the names of the tensors to save; a tensor shared by two layers is saved once."""
    own = {name for name, _ in (*net.named_parameters(), *net.named_buffers())}
    return [name for name in net.state_dict() if name in own]


def _refuse_mismatched_weights(net: Net, weights: Path) -> None:
    """Raise an error unless the weights have exactly the names and sizes of the net's tensors."""
    state = net.state_dict()
    wanted = {name: list(state[name].shape) for name in _list_saved_tensors(net)}
    with safe_open(weights, "pt") as file:
        found = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            raise RuntimeError(f"{name} should be {wanted.get(name, 'absent')} and is {found.get(name, 'absent')}")


def _refuse_large(config: Any) -> None:
    """Raise an error for implausible sizes; those of a transformer are checked when it is built."""
    for key, value in config.items() if isinstance(config, dict) else enumerate(config):
        if isinstance(value, dict | list):
            if "model_type" not in value:
                _refuse_large(value)
        elif isinstance(value, int) and abs(value) > MAX_NET_SIZE:
            raise ValueError(f"{key} is {value}")

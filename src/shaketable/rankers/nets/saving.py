"""Nets in model folders (`rankers.folder`): model.json says what it is, weights.safetensors what it learned; the files
of its vocabulary lie beside the weights.
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

from shaketable.errors import BadInput
from shaketable.rankers import folder as folders
from shaketable.rankers.nets.net import Net
from shaketable.rankers.neural import net_class
from shaketable.text.door import first_line
from shaketable.types import fingerprint

WEIGHTS = "weights.safetensors"
LARGEST = 1_000_000
"""No size of a net is larger: one that is asks for memory that nobody has."""


@dataclass(frozen=True, eq=False)
class FittedNet:
    """A net that was trained, and the card of its training."""

    net: Net
    card: Mapping[str, Any]

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the net, whole or not at all. A model that is there is replaced only if that was asked for."""
        about = {"kind": self.net.kind, "config": self.net.config(), "card": dict(self.card)}
        folders.write(folder, about, self._fill, overwrite=overwrite)

    def _fill(self, folder: Path) -> None:
        self.net.save_vocabulary(folder)
        state = self.net.state_dict()
        weights = {name: state[name].detach().cpu().contiguous() for name in _names(self.net)}
        (folder / WEIGHTS).write_bytes(to_bytes(weights))


def read_net(folder: str | Path) -> Net:
    """The net in a folder."""
    stored = folders.opened(folder)
    about, path, weights = stored.about, stored.folder / folders.MODEL, stored.files / WEIGHTS
    try:
        make, config = net_class(about["kind"]).from_config, about["config"]
        _refuse_large(config)
        with torch.device("meta"):  # sizes are compared before any memory is asked for
            _refuse_others(make(config, stored.files), weights)
        net = make(config, stored.files)
        net.load_state_dict(load_file(weights), strict=False)
    except BadInput as error:
        raise BadInput(f"describes no model that can be made ({error})", path) from error
    except (SafetensorError, RuntimeError, OSError) as error:
        raise BadInput(f"does not hold the weights that {path} describes ({first_line(error)})", weights) from error
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise BadInput(f"describes no model that can be made ({error!r})", path) from error
    return net


def read(folder: str | Path) -> Mapping[str, Any]:
    """What model.json says: the kind of a net, its configuration, and its card."""
    return folders.read(folder).about


def mark(folder: str | Path) -> str:
    """Names what the scores of a saved net depend on: its weights, its configuration, its vocabulary."""
    stored = folders.read(folder)
    config = json.dumps(stored.about["config"], sort_keys=True)
    return fingerprint(stored.about["kind"], config, stored.fingerprint)


def _names(net: Net) -> list[str]:
    """The tensors that are saved, each under its first name only: two layers may share one."""
    own = {name for name, _ in (*net.named_parameters(), *net.named_buffers())}
    return [name for name in net.state_dict() if name in own]


def _refuse_others(net: Net, weights: Path) -> None:
    """Weights must be those of the net, all of them and in its sizes."""
    state = net.state_dict()
    wanted = {name: list(state[name].shape) for name in _names(net)}
    with safe_open(weights, "pt") as file:
        found = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            raise RuntimeError(f"{name} should be {wanted.get(name, 'absent')} and is {found.get(name, 'absent')}")


def _refuse_large(config: Any) -> None:
    """Look for sizes that make no sense; those of a transformer are looked at where it is made."""
    for key, value in config.items() if isinstance(config, dict) else enumerate(config):
        if isinstance(value, dict | list):
            if "model_type" not in value:
                _refuse_large(value)
        elif isinstance(value, int) and abs(value) > LARGEST:
            raise ValueError(f"{key} is {value}")

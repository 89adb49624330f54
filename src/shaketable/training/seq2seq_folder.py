"""The folder of a trained writer: a checkpoint of transformers with a card."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shaketable.core.errors import BadInput
from shaketable.files.atomic import explain_write_errors
from shaketable.files.reading import read_json
from shaketable.files.staging import staging_folder, sync_folder, sync_path
from shaketable.nlp import checkpoints
from shaketable.rankers.persistence import MODEL_FILE, STATE_FILE, TRAINING_FOLDER, refuse_taken

if TYPE_CHECKING:
    from shaketable.training.seq2seq_net import Seq2SeqNet

CARD_FILE, CONFIG_FILE = "card.json", "config.json"


def refuse_occupied_folder(folder: Path, *, overwrite: bool = False) -> None:
    """Raise an error if the folder holds another model, or a writer and `overwrite` is False.

    A folder with an interrupted training is accepted: it may hold some or all files of the writer.
    """
    if (folder / TRAINING_FOLDER / STATE_FILE).is_file() and not os.path.lexists(folder / MODEL_FILE):
        return
    if not (folder / CONFIG_FILE).exists():
        refuse_taken(folder)
    elif not (folder / CARD_FILE).exists():
        raise BadInput("has a checkpoint of another program; name another folder", folder)
    elif not overwrite:
        raise BadInput("already has a trained writer; name another folder, or use --overwrite", folder)
    else:
        _list_replaced_files(folder)


def save_writer(net: Seq2SeqNet, folder: Path, card: Mapping[str, Any]) -> None:
    """Write the files of a checkpoint, the configuration last, because a folder without it holds no model."""
    from safetensors import SafetensorError

    with explain_write_errors(folder), staging_folder(folder) as fresh:
        try:
            with checkpoints.silence_transformers():
                net.model.save_pretrained(fresh)
        except SafetensorError as error:  # raised when the disk is full
            raise BadInput(f"cannot be written ({checkpoints.summarise_error(error)})", folder) from error
        net.save_vocabulary(fresh)
        files = sorted({path.name for path in fresh.iterdir()} | {CARD_FILE})
        (fresh / CARD_FILE).write_text(
            json.dumps({**card, "files": files}, indent=1, allow_nan=False), encoding="utf-8"
        )
        sync_folder(fresh)
        for name in _list_replaced_files(folder):
            (folder / name).unlink(missing_ok=True)
        for name in sorted(files, key=CONFIG_FILE.__eq__):
            os.replace(fresh / name, folder / name)
        sync_path(folder)


def _list_replaced_files(folder: Path) -> list[str]:
    """Return the files of the writer in a folder, the configuration first, without the card, which lists them.

    Old vocabulary files would be read as part of the new writer.
    """
    if not (folder / CARD_FILE).exists():
        return []
    card = read_json(folder / CARD_FILE)
    listed = card.get("files") if isinstance(card, dict) else None
    if not isinstance(listed, list) or not all(isinstance(name, str) and Path(name).name == name for name in listed):
        raise BadInput("is not the card of a writer of Shaketable; name another folder", folder / CARD_FILE)
    return sorted({*listed} - {CARD_FILE}, key=lambda name: name != CONFIG_FILE)

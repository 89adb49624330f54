"""Execute the notebooks of this folder and write their outputs: `make examples`.

The cells run in a new namespace, as in Jupyter: the outputs of a cell are its printed text and the value of its last
expression. Jupyter is not needed.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
LAST_VALUE = "_"
"""The variable for the value of the last expression of a cell, as in a notebook."""


def main() -> None:
    """Execute all notebooks, each in an empty folder with empty caches, and write them back."""
    for path in list_notebooks():
        notebook = json.loads(path.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder, work_in(Path(folder)):
            outputs = execute(notebook)
        for number, (cell, cell_outputs) in enumerate(zip(list_code(notebook), outputs, strict=True), 1):
            cell["outputs"], cell["execution_count"] = cell_outputs, number
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(path.name)


def list_notebooks() -> list[Path]:
    """Return the notebooks of this folder."""
    return sorted(FOLDER.glob("*.ipynb"))


def list_code(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the code cells of a notebook."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def execute(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Run the code cells one after another, and return the outputs of each."""
    names: dict[str, Any] = {"__name__": "__main__"}
    return [run_cell("".join(cell["source"]), names) for cell in list_code(notebook)]


def run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell and return its printed text, and the value of its last expression as text or HTML."""
    tree = ast.parse(source)
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        kept = ast.Assign([ast.Name(LAST_VALUE, ast.Store())], last.value)
        tree.body[-1] = ast.fix_missing_locations(ast.copy_location(kept, last))
    printed, outputs = io.StringIO(), []
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)  # noqa: S102 - the notebooks are ours
    value = names.pop(LAST_VALUE, None)
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": split_lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": split_lines(repr(value))}
        if html := getattr(value, "_repr_html_", lambda: None)():
            data = {"text/html": split_lines(html), "text/plain": [f"{type(value).__name__}(…)"]}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    return outputs


def split_lines(text: str) -> list[str]:
    """Return the lines of a text as a notebook stores them."""
    return text.splitlines(keepends=True)


@contextlib.contextmanager
def work_in(folder: Path) -> Iterator[None]:
    """Change to a folder that also holds the caches."""
    before, home = Path.cwd(), os.environ.get("SHAKETABLE_HOME")
    os.environ["SHAKETABLE_HOME"] = str(folder / "home")
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        if home is None:
            del os.environ["SHAKETABLE_HOME"]
        else:
            os.environ["SHAKETABLE_HOME"] = home


if __name__ == "__main__":
    sys.exit(main())

"""The Markdown pages of the repository as pages of the site, with links that work on both.

A page of docs/ keeps its path. A link to a file that is no page, such as a script, leads to a page that shows the file.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from docs.generate.markdown import CODE_SPAN, format_block, format_table, join_blocks

ROOT = Path(__file__).resolve().parents[2]
ROOT_PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""The site path of each page outside docs/; the first page of the site stands for the README."""
PAGE_FOLDERS = ("docs", "docs/evidence")
ASSET_SUFFIXES = {".png", ".svg", ".json"}
SHOWN_FILES = "files"
"""The folder of the pages that show other files of the repository."""
WRITTEN_AT = re.compile(r"^Written at commit (`\w+`)", re.MULTILINE)
STALE = "**Stale:"
LANGUAGES = {".py": "python", ".sh": "sh", ".toml": "toml", ".yml": "yaml", ".yaml": "yaml"}
FENCED_BLOCK = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
"""The target of a link to another file, and its anchor."""
FILE_NAME_LINK = re.compile(r"\[(?:[\w-]+/)*([\w-]+\.md)\]\(([^)#\s]*?\b\1)\)")
"""A link whose text is the name of a page, as GitHub shows it; the site shows the page's title."""


@dataclass
class SiteWriter:
    """A writer of the repository's pages to a folder; it also writes the files that they link to."""

    folder: Path
    written: dict[str, str] = field(default_factory=dict)

    def write_pages(self) -> None:
        """Write all pages of the repository, and every file that one of them links to."""
        pages = {f"docs/{path}": path for path in list_page_paths()}
        sources = {name: site for name, site in ROOT_PAGES.items() if site not in pages.values()}
        for source, site in (pages | sources).items():
            self.write(site, self.rewrite_links((ROOT / source).read_text(encoding="utf-8"), source, site))

    def write(self, site_path: str, text: str) -> None:
        """Write a page."""
        target = self.folder / site_path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def rewrite_links(self, text: str, source: str, site_path: str) -> str:
        """Return a page whose links lead to pages of the site. Code is left as it is."""

        def rewrite(match: re.Match[str]) -> str:
            linked = os.path.normpath(PurePosixPath(source).parent / match[1])
            target = self.find_target(PurePosixPath(linked).as_posix())
            return os.path.relpath(target, PurePosixPath(site_path).parent) + (match[2] or "")

        def name(match: re.Match[str]) -> str:
            return f"[{read_title((ROOT / source).parent / match[2])}]({match[2]})"

        blocks = FENCED_BLOCK.split(text)
        for number in range(0, len(blocks), 2):
            spans = CODE_SPAN.split(FILE_NAME_LINK.sub(name, blocks[number]))
            # a link around code, [`x`](y), is split inside its text only, so that the target is whole
            spans[::2] = [LINK.sub(rewrite, span) for span in spans[::2]]
            blocks[number] = "".join(spans)
        return "".join(blocks)

    def find_target(self, path: str) -> str:
        """Return the site path of a file or folder of the repository, and write it if it is not a page."""
        if path in ROOT_PAGES:
            return ROOT_PAGES[path]
        inside = path.removeprefix("docs/")
        if path in PAGE_FOLDERS:
            return f"{inside}/index.md" if path != "docs" else "index.md"
        if path.endswith(".md") and PurePosixPath(path).parent.as_posix() in PAGE_FOLDERS:
            return inside
        if path not in self.written:
            self.written[path] = self.show_file(path)
        return self.written[path]

    def show_file(self, path: str) -> str:
        """Copy an image or data file; show any other file, or the files of a folder, on a page. Return its path."""
        source = ROOT / path
        if source.suffix in ASSET_SUFFIXES:
            target = self.folder / path.removeprefix("docs/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            return path.removeprefix("docs/")
        site_path = f"{SHOWN_FILES}/{path}{'/index' if source.is_dir() else ''}.md"
        self.written[path] = site_path
        if source.is_dir():
            files = sorted(one for one in source.iterdir() if one.is_file() and not one.name.startswith((".", "__")))
            rows = [[f"[{one.name}]({one.name})", f"{one.stat().st_size:,} bytes"] for one in files]
            text = join_blocks(f"# {path}", format_table(["file", "size"], rows))
            self.write(site_path, self.rewrite_links(text, f"{path}/index.md", site_path) + "\n")
        elif source.suffix == ".ipynb":
            self.write(site_path, self.rewrite_links(render_notebook(source), path, site_path))
        else:
            block = format_block(LANGUAGES.get(source.suffix, "text"), source.read_text(encoding="utf-8"))
            self.write(site_path, join_blocks(f"# {path}", block) + "\n")
        return site_path


def list_page_paths() -> list[str]:
    """Return the paths of the pages inside docs/."""
    docs = ROOT / "docs"
    found = [path for folder in PAGE_FOLDERS for path in sorted((ROOT / folder).glob("*.md"))]
    return [path.relative_to(docs).as_posix() for path in found]


def render_notebook(path: Path) -> str:
    """Return the texts, the code and the outputs of a notebook as Markdown; HTML is kept, as the notebooks are ours."""
    blocks = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        blocks.append(text if cell["cell_type"] == "markdown" else format_block("python", text))
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text/html" in data:
                blocks.append(f'<div class="output">\n{"".join(data["text/html"])}\n</div>')
            else:
                blocks.append(format_block("text", "".join(output.get("text") or data.get("text/plain", ""))))
    return join_blocks(*blocks) + "\n"


def render_evidence_index() -> str:
    """Return the overview of the evidence: each page with its commit, and a mark if a part of it is stale."""
    rows = []
    for path in (path for path in list_page_paths() if path.startswith("evidence/")):
        page = ROOT / "docs" / path
        text = page.read_text(encoding="utf-8")
        commit = WRITTEN_AT.search(text)
        rows.append(
            [f"[{read_title(page)}]({page.name})", commit[1] if commit else "", "in part" if STALE in text else ""]
        )
    text = (
        "A script of `evidence/` measures each page on public data and stores its rows, and the tests write the page "
        "again from the rows. `make evidence PAGE=NAME` measures it again. A page is stale in part if the code has "
        "changed so that it would give other numbers; the page says which."
    )
    return join_blocks("# Evidence", text, format_table(["page", "written at commit", "stale"], rows)) + "\n"


def read_title(path: Path) -> str:
    """Return the first heading of a page."""
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").strip()

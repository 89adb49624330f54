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
MOVED_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "docs/evidence/README.md": "evidence/index.md",
}
"""The site path of each page that does not keep its path; the first page of the site stands for the README."""
PAGE_FOLDERS = ("docs", "docs/evidence")
ASSET_SUFFIXES = {".png", ".svg", ".json"}
SHOWN_FILES = "files"
"""The folder of the pages that show other files of the repository."""
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
        for source, site in map_pages().items():
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
        if path in MOVED_PAGES:
            return MOVED_PAGES[path]
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


def map_pages() -> dict[str, str]:
    """Return the site path of each page of the repository; docs/index.md is the first page, if it exists."""
    found = [path for folder in PAGE_FOLDERS for path in sorted((ROOT / folder).glob("*.md"))]
    pages = {path.relative_to(ROOT).as_posix(): path.relative_to(ROOT / "docs").as_posix() for path in found}
    return pages | {source: site for source, site in MOVED_PAGES.items() if site not in pages.values()}


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


def read_title(path: Path) -> str:
    """Return the first heading of a page."""
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").strip()

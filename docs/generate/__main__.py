"""Write the pages from which the site is built, to build/pages: `python -m docs.generate`."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

from docs.generate.gallery import render_gallery, write_gallery
from docs.generate.reference import render_reference
from docs.generate.repository import ROOT, SiteWriter


def main() -> None:
    """Write all pages to the folder that zensical.toml names."""
    project = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    write_site(ROOT / project["docs_dir"])


def write_site(folder: Path) -> None:
    """Replace a folder by the pages of the repository, the reference and the gallery."""
    shutil.rmtree(folder, ignore_errors=True)
    writer = SiteWriter(folder)
    writer.write_pages()
    shutil.copytree(Path(__file__).parent / "assets", folder / "assets")
    for name, page in render_reference().items():
        writer.write(f"reference/{name}", page)
    writer.write("gallery/index.md", render_gallery())
    write_gallery(folder / "gallery")


if __name__ == "__main__":
    main()

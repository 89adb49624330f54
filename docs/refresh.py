"""Write the output in README.md and the picture of the report from a real audit: `make readme`.

The README's first block of `text` becomes the beginning of the output of the command above it, and
docs/images/report.png becomes a screenshot of its report (Chromium must be installed).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "images" / "report.png"
PICTURE_WIDTH_PX = 1280
PICTURE_SCALE = 0.8
PICTURE_MARGIN_PX = 12
LAST_IN_PICTURE = ".scorecard"
"""The part of the page that ends the picture."""
OUTPUT_COLUMNS = "80"
MAX_OUTPUT_LINES = 16
EXAMPLE = re.compile(
    r"as `(?P<file>\w+\.py)`:\n\n```python\n(?P<code>.*?)```\n\n"
    r"```sh\n(?P<command>[^\n]+)\n```.*?```text\n(?P<output>.*?)```",
    re.DOTALL,
)
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-lcd-text")


def main() -> None:
    """Run the README's example in an empty folder, and write its output and the picture of its report."""
    text = README.read_text(encoding="utf-8")
    example = EXAMPLE.search(text)
    chromium = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if example is None or chromium is None:
        sys.exit("README.md has no example" if example is None else "Chromium is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / example["file"]).write_text(example["code"], encoding="utf-8")
        output = run_example(example["command"], folder)
        start, end = example.span("output")
        README.write_text(text[:start] + output + text[end:], encoding="utf-8")
        take_picture(chromium, folder / "shaketable-audit" / "report.html")


def run_example(command: str, folder: Path) -> str:
    """Run a command in a folder and return the first lines of its output."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "COLUMNS": OUTPUT_COLUMNS, "SHAKETABLE_HOME": str(folder / "home")}
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines()[:MAX_OUTPUT_LINES])


def take_picture(chromium: str, report: Path) -> None:
    """Write the top of a report as a picture, down to the scorecard."""
    from playwright.sync_api import sync_playwright

    PICTURE.parent.mkdir(exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=list(CHROMIUM_FLAGS))
        page = browser.new_page(viewport={"width": PICTURE_WIDTH_PX, "height": 1000}, device_scale_factor=PICTURE_SCALE)
        page.goto(report.as_uri())
        last = page.locator(LAST_IN_PICTURE).first.bounding_box()
        assert last is not None, f"the page has no {LAST_IN_PICTURE}"
        height = last["y"] + last["height"] + PICTURE_MARGIN_PX
        clip = {"x": 0, "y": 0, "width": PICTURE_WIDTH_PX, "height": height}
        page.screenshot(path=PICTURE, full_page=True, clip=clip)
        browser.close()


if __name__ == "__main__":
    main()

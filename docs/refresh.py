"""Write the outputs in README.md and the picture of the report from real audits: `make readme`.

A block of `text` in README.md becomes the beginning of the output of the last command above it. docs/images/report.png
becomes a screenshot of the report of `shaketable demo` (Chromium must be installed).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "images" / "report.png"
PICTURE_WIDTH_PX = 1280
PICTURE_SCALE = 0.75
PICTURE_MARGIN_PX = 12
LAST_IN_PICTURE = ".scorecard"
"""The part of the page that ends the picture."""
OUTPUT_COLUMNS = "100"
"""The width from which a verdict has at most 25 lines."""
DEMO = "shaketable demo"
MAX_OUTPUT_LINES = {DEMO: 15}
"""The number of lines to show of a command; of all others, `MAX_EXAMPLE_LINES`."""
MAX_EXAMPLE_LINES = 8
FILE = re.compile(r"as `(?P<name>\w+\.py)`:\n\n```python\n(?P<code>.*?)```", re.DOTALL)
EXAMPLE = re.compile(
    r"```sh\n(?:[^`]*\n)?(?P<command>shaketable [^\n]+)\n```(?:(?!```).)*```text\n(?P<output>.*?)```", re.DOTALL
)
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-lcd-text")


def main() -> None:
    """Run the examples of the README in an empty folder; write their outputs, and the picture of the demo's report."""
    text = README.read_text(encoding="utf-8")
    examples = list(EXAMPLE.finditer(text))
    chromium = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if DEMO not in [example["command"] for example in examples]:
        sys.exit(f"README.md has no output of {DEMO}")
    if chromium is None:
        sys.exit("Chromium is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in FILE.finditer(text):
            (folder / file["name"]).write_text(file["code"], encoding="utf-8")
        for example in reversed(examples):  # from the last, so that positions stay valid; the demo's report is the last
            start, end = example.span("output")
            text = text[:start] + run_example(example["command"], folder) + text[end:]
        README.write_text(text, encoding="utf-8")
        take_picture(chromium, folder / "shaketable-audit" / "report.html")


def run_example(command: str, folder: Path) -> str:
    """Run a command in a folder and return the lines of its output that the README shows."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "COLUMNS": OUTPUT_COLUMNS, "SHAKETABLE_HOME": str(folder / "home")}
    done = subprocess.run(shlex.split(command), cwd=folder, env=env, check=True, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()[: MAX_OUTPUT_LINES.get(command, MAX_EXAMPLE_LINES)]
    return "".join(f"{line.rstrip()}\n" for line in lines)


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

"""The wheel and the sdist: they are built offline, have every file and no other, and work after installing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

import pytest

import shaketable

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "shaketable"
SDIST_EXTRA_FILES = {
    *("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"),
    *("PKG-INFO", ".gitignore"),  # hatchling writes the first, and reads the second to leave out caches
}
DATA_FILES = {
    *("py.typed", "report/base.html", "report/page.html", "report/page.css", "report/page.js"),
    *("report/results.schema.json", "datasets/sample_files/corpus.jsonl", "datasets/sample_files/qrels/test.tsv"),
    *("datasets/known_answers.jsonl", "nlp/thesaurus.txt", "nlp/misspellings.txt", "nlp/fixed_phrases.txt"),
}
"""Some of each kind of data; the test compares all files."""
MAX_BYTES = 3_000_000
AUDIT = "audit --ranker bm25 --ranker ql --task effectiveness --max-queries 5 --out audit".split()


@dataclass(frozen=True)
class Distribution:
    """The wheel and the sdist of this checkout."""

    wheel: Path
    sdist: Path


def run(*command: str | Path, cwd: Path | None = None, **env: str) -> str:
    """Run a command without the paths of this process and return its output."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=inherited | env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Distribution:
    """Build the sdist, and the wheel from the sdist, with the installed hatchling."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    assert len(list(out.iterdir())) == 2
    return Distribution(wheel, sdist)


def list_package_files() -> set[str]:
    """Return the files of the package in this checkout, without caches."""
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(PACKAGE).as_posix() for path in files}


def without_prefix(names: Iterable[str], prefix: str) -> set[str]:
    return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}


def read_version(metadata: str) -> str:
    return str(Parser().parsestr(metadata)["Version"])


def test_the_version_has_one_source():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    assert ROOT / project["tool"]["hatch"]["version"]["path"] == PACKAGE / "__init__.py"


def test_the_version_needs_no_installation():
    code = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); import shaketable; print(shaketable.__version__)"
    assert run(sys.executable, "-I", "-S", "-c", code).strip() == shaketable.__version__  # -S: no installed package


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package_and_no_other(built):
    with zipfile.ZipFile(built.wheel) as wheel:
        names = {name for name in wheel.namelist() if not name.endswith("/")}
        about = f"shaketable-{shaketable.__version__}.dist-info/"
        metadata = wheel.read(f"{about}METADATA").decode()
    inside = without_prefix(names, "shaketable/")
    assert inside == list_package_files()
    assert inside >= DATA_FILES
    assert names - {f"shaketable/{name}" for name in inside} == {
        about + name for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
    }
    assert read_version(metadata) == shaketable.__version__
    assert built.wheel.stat().st_size < MAX_BYTES


@pytest.mark.slow
def test_the_sdist_has_the_sources_of_the_wheel_and_no_other_file(built):
    top = f"shaketable-{shaketable.__version__}/"
    with tarfile.open(built.sdist) as sdist:
        names = {member.name for member in sdist.getmembers() if member.isfile()}
        info = sdist.extractfile(f"{top}PKG-INFO")
        assert info is not None
        assert read_version(info.read().decode()) == shaketable.__version__
    inside = without_prefix(names, top)
    assert without_prefix(inside, "src/shaketable/") == list_package_files()
    assert {name for name in inside if not name.startswith("src/")} == SDIST_EXTRA_FILES
    assert built.sdist.stat().st_size < MAX_BYTES


@pytest.mark.slow
def test_an_installed_wheel_audits(built, tmp_path):
    env = tmp_path / "env"
    run(sys.executable, "-m", "venv", "--without-pip", env)
    python, program = env / "bin" / "python", env / "bin" / "shaketable"
    quiet = ("--disable-pip-version-check", "--quiet")
    run(sys.executable, "-m", "pip", *quiet, "--python", python, "install", "--no-deps", "--no-index", built.wheel)
    # The dependencies come from the environment of the tests, so that nothing is downloaded. A line of a .pth file only
    # adds a folder: an editable installation of Shaketable in that folder stays out.
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    empty = tmp_path / "empty"
    empty.mkdir()
    code = "import shaketable; print(shaketable.__file__, shaketable.__version__)"
    where, version = run(python, "-c", code, cwd=empty).split()
    assert Path(where).is_relative_to(site)
    assert version == shaketable.__version__
    assert run(program, "--version", cwd=empty).splitlines()[0] == f"shaketable {shaketable.__version__}"
    # A new environment has no compiled kernels, and compiling takes seconds; as plain Python, they give the same.
    settings = {"SHAKETABLE_HOME": str(tmp_path / "home"), "NUMBA_DISABLE_JIT": "1"}
    assert "ql" in run(program, *AUDIT, cwd=empty, **settings)
    results = json.loads((empty / "audit" / "results.json").read_text(encoding="utf-8"))
    assert results["provenance"]["versions"]["shaketable"] == shaketable.__version__
    assert "<script" in (empty / "audit" / "report.html").read_text(encoding="utf-8")

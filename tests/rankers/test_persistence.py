"""Model folders: nothing of others is lost, and a kill at any moment leaves the old model or the new one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from shaketable.core.errors import BadInput, Damaged
from shaketable.files.checksums import read_sealed_json, seal_json
from shaketable.files.staging import staging_folder
from shaketable.rankers import persistence as folders
from shaketable.rankers.persistence import read_manifest, read_verified, refuse_taken, write_model
from tests.processes import in_a_process


def filling(**files: str):
    def fill(new: Path) -> None:
        for name, text in files.items():
            path = new / name.replace("__", "/")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    return fill


OLD, NEW = filling(a="old", deep__b="old too"), filling(a="new", c="more")


def content(folder: Path) -> dict[str, str]:
    """Return the card and the files of a model, after a check of every checksum."""
    stored = read_verified(folder)
    return {"about": stored.metadata["what"]} | {
        name: (stored.files_folder / name).read_text() for name in stored.file_records
    }


WAS = {"about": "old", "a": "old", "deep/b": "old too"}
IS = {"about": "new", "a": "new", "c": "more"}


def save_old(folder: Path) -> None:
    write_model(folder, {"kind": "test", "what": "old"}, OLD)


def save_new(folder: Path, overwrite: bool = True) -> None:
    write_model(folder, {"kind": "test", "what": "new"}, NEW, overwrite=overwrite)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "deep" / "model"
    save_old(path)
    return path


def test_written_data_are_read_back(folder):
    assert content(folder) == WAS
    assert [path.name for path in folder.parent.iterdir()] == ["model"]
    assert sorted(path.name for path in folder.iterdir()) == [read_manifest(folder).files_folder_name, "model.json"]
    assert read_manifest(folder).files_folder_name.startswith("files-")


def test_a_model_without_files(tmp_path):
    write_model(tmp_path / "model", {"kind": "test", "what": "plain"})
    assert content(tmp_path / "model") == {"about": "plain"}
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["model.json"]


def test_equal_models_are_equal_folders(tmp_path, folder):
    save_old(tmp_path / "twin")
    assert (tmp_path / "twin" / "model.json").read_bytes() == (folder / "model.json").read_bytes()


def test_a_model_that_is_there_stays_unless_it_may_be_overwritten(folder):
    with pytest.raises(BadInput, match="already has a model; name another folder, or use --overwrite"):
        save_new(folder, overwrite=False)
    assert content(folder) == WAS
    save_new(folder)
    assert content(folder) == IS
    assert len(list(folder.iterdir())) == 2


def test_what_others_put_into_a_model_folder_stays(folder):
    place = folder / read_manifest(folder).files_folder_name
    mine = [folder / "test.run", folder / "notes" / "a.txt", place / "mine.txt", folder / "trees.txt"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("precious")
    save_new(folder)
    assert [path.read_text() for path in mine] == ["precious"] * 4
    assert content(folder) == IS
    assert sorted(path.name for path in place.rglob("*")) == ["deep", "mine.txt"]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "not JSON",
        '{"format": 1, "learner": "ranksvm", "weights": [1.0]}',
        '{"schema": "shaketable.model/1", "kind": "bert", "config": {}}',
        '{"schema": "shaketable.model/2", "kind": "test", "place": "", "files": {}, "checksum": "0"}',
    ],
)
def test_a_model_json_of_others_is_never_replaced(tmp_path, text, overwrite):
    """Other files in the folder stay too; an earlier version deleted every folder with a file of that name."""
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "model.json").write_text(text)
    (folder / "chapter.txt").write_text("years of work")
    with pytest.raises(BadInput, match="exists and is not a model that can be replaced"):
        save_new(folder, overwrite)
    assert (folder / "model.json").read_text() == text
    assert (folder / "chapter.txt").read_text() == "years of work"
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("overwrite", [False, True])
def test_folders_and_files_of_others_are_not_written_into(tmp_path, overwrite):
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "mine.txt").write_text("precious")
    with pytest.raises(BadInput, match=r"is not a model \(it has mine.txt\); name a new folder"):
        save_new(tmp_path / "papers", overwrite)
    with pytest.raises(BadInput, match="is a file; name a folder"):
        save_new(tmp_path / "papers" / "mine.txt", overwrite)
    (tmp_path / "work" / "training").mkdir(parents=True)
    (tmp_path / "work" / "training" / "queries.tsv").write_text("precious")
    with pytest.raises(BadInput, match=r"is not a model \(it has training\)"):
        save_new(tmp_path / "work", overwrite)
    assert [path.name for path in (tmp_path / "papers").iterdir()] == ["mine.txt"]
    assert (tmp_path / "work" / "training" / "queries.tsv").read_text() == "precious"


def test_an_empty_folder_and_a_training_that_was_cut_off_are_no_hindrance(tmp_path):
    (tmp_path / "model" / "training").mkdir(parents=True)
    (tmp_path / "model" / "training" / "state.safetensors").write_bytes(b"")
    (tmp_path / "model" / "training" / "best-50.safetensors").write_bytes(b"")
    refuse_taken(tmp_path / "model")
    save_old(tmp_path / "model")
    assert content(tmp_path / "model") == WAS
    assert (tmp_path / "model" / "training" / "state.safetensors").exists()


def test_a_list_cannot_name_files_of_others(tmp_path, folder):
    (tmp_path / "precious").write_text("years of work")
    about = read_sealed_json(folder / "model.json")
    told = {"size": 13, "blake2b": "0"}
    for place, files in (
        (about["place"], {"../../../precious": told}),
        (about["place"], {str(tmp_path / "precious"): told}),
        ("../..", {"precious": told}),
        ("", {"precious": told}),
        (about["place"], ["precious"]),
    ):
        (folder / "model.json").write_text(seal_json(about | {"place": place, "files": files}))
        with pytest.raises(BadInput, match="has an invalid list of files"):
            read_manifest(folder)
        with pytest.raises(BadInput, match="is not a model that can be replaced"):
            save_new(folder)
    assert (tmp_path / "precious").read_text() == "years of work"


@pytest.mark.parametrize("name", ["a", "deep/b"])
def test_every_file_is_checked(folder, name):
    path = read_manifest(folder).files_folder / name
    path.write_text(path.read_text().replace("l", "1"))
    with pytest.raises(Damaged, match="is damaged, or was changed by hand; train the model"):
        read_verified(folder)
    path.unlink()
    with pytest.raises(Damaged, match="cannot be read"):
        read_verified(folder)
    save_new(folder)  # what is damaged may be replaced
    assert content(folder) == IS


def test_a_fill_that_fails_leaves_nothing(tmp_path, folder):
    def failing(new: Path) -> None:
        (new / "half").write_text("half")
        raise OSError(28, "No space left on device")

    for target in (folder, tmp_path / "fresh"):
        with pytest.raises(BadInput, match=r"cannot be written \(No space left on device\)"):
            write_model(target, {"kind": "test"}, failing, overwrite=True)
    assert not (tmp_path / "fresh").exists()
    assert content(folder) == WAS
    assert len(list(folder.iterdir())) == 2


LIMITED = """
import resource, sys
from pathlib import Path
from shaketable.core.errors import BadInput
from shaketable.rankers.persistence import write_model
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
about = {"kind": "test", "card": ["x"] * int(sys.argv[2])}
try:
    write_model(sys.argv[1], about, lambda new: (new / "a").write_text("a" * 400))
except BadInput as error:
    print(error)
"""


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path):
    done = in_a_process(LIMITED, tmp_path / "model", 10_000)
    assert done.stdout.strip().endswith("cannot be written (File too large)"), done.stderr
    assert not (tmp_path / "model").exists()


def killed_everywhere(parent: Path) -> None:
    """Save over a model, and kill the process before the first, the second, ... step on disk."""
    events = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree", "os.chmod", "os.truncate")
    for kind in ("over", "first"):
        for last in range(1, 1000):
            folder = parent / f"{kind}-{last}"
            if kind == "over":
                save_old(folder)
                (folder / "mine.txt").write_text("precious")
            if (child := os.fork()) == 0:
                steps = iter(range(last))

                def kill(event: str, arguments: object, steps=steps) -> None:
                    if event in events and next(steps, None) is None:
                        os.kill(os.getpid(), signal.SIGKILL)

                sys.addaudithook(kill)
                save_new(folder)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            print(json.dumps([kind, last, folder.name]), flush=True)
            if os.WIFEXITED(status):
                assert os.WEXITSTATUS(status) == 0
                break


def test_a_kill_at_any_moment_leaves_the_old_model_or_the_new_one(tmp_path):
    code = (
        "import pathlib, sys, tests.rankers.test_persistence as test; test.killed_everywhere(pathlib.Path(sys.argv[1]))"
    )
    done = in_a_process(code, tmp_path / "all")
    assert done.returncode == 0, done.stderr
    outcomes = []
    for kind, _, name in map(json.loads, done.stdout.splitlines()):
        folder = tmp_path / "all" / name
        if kind == "over":
            found = content(folder)
            assert found in (WAS, IS)
            assert (folder / "mine.txt").read_text() == "precious"
        else:
            found = content(folder) if (folder / "model.json").exists() else None
            assert found in (None, IS)
        outcomes.append((kind, found == IS))
        save_new(folder)  # the next write removes leftover files
        assert content(folder) == IS
        mine = {"mine.txt"} if kind == "over" else set()
        assert {path.name for path in folder.iterdir()} == {
            "model.json",
            read_manifest(folder).files_folder_name,
        } | mine, name
        shutil.rmtree(folder)
    assert len(outcomes) > 40
    assert {("over", False), ("over", True), ("first", False), ("first", True)} == set(outcomes)


def test_nothing_is_swept_that_another_writer_needs(folder):
    files = folder / "files-0123456789abcdef"
    with staging_folder(folder) as new:
        OLD(new)
        os.rename(new, files)
        named = folders._fingerprint_files({name: folders._describe_file(files / name) for name in ("a", "deep/b")})
        os.rename(files, folder / f"files-{named}-7")
        save_new(folder)
        assert (folder / f"files-{named}-7").exists()
    save_new(folder)
    assert not (folder / f"files-{named}-7").exists()


def test_a_folder_whose_name_only_looks_like_ours_stays(folder):
    (folder / "files-0123456789abcdef").mkdir()
    (folder / "files-0123456789abcdef" / "mine.txt").write_text("precious")
    (folder / ".building-mine").mkdir()
    (folder / ".building-mine" / "mine.txt").write_text("precious")
    save_new(folder)
    assert (folder / "files-0123456789abcdef" / "mine.txt").read_text() == "precious"
    assert (folder / ".building-mine" / "mine.txt").read_text() == "precious"

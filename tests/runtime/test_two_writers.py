"""Processes that write the same output at once, readers meanwhile, and what killed ones leave."""

import os
import pickle

import numpy as np
import pytest

from polysift import open_data, save
from polysift.reporting.evaluation import evaluate
from polysift.runtime import locks, outputs
from polysift.runtime.locks import LOCK_NAME, machine_mark
from polysift.runtime.outputs import replacing, replacing_folder
from problems import paper_classifier
from writers import WRITERS, Writing, content, open_file, rows_of, timeless, write_often, write_once

pytestmark = pytest.mark.skipif(not locks.HAS_LOCKS, reason="there are no such locks here")

EVERY = [
    pytest.param(name, marks=[pytest.mark.needs(*packages)] if packages else [])
    for name, (_, packages) in WRITERS.items()
]
# Those that take a while are written by the same function as the others.
OFTEN = [case for case in EVERY if case.values[0] not in ("report.html", "picture.png")]
TIMES = 15


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return a folder with the two models whose outputs are written."""
    folder = tmp_path_factory.mktemp("models")
    for which, degree in (("a", 2), ("b", 3)):
        X = rows_of(which)
        clf = paper_classifier(degree, n_jobs=1, random_state=0).fit(X, X[:, 0] > X[:, 1])
        save(clf, folder / which)
        figures = evaluate(clf, X, X[:, 0] > X[:, 1])  # once, since it measures time
        (folder / f"{which}.figures").write_bytes(pickle.dumps(figures))
    return folder


@pytest.fixture(scope="module")
def whole(models, tmp_path_factory):
    """Return what each output is when one process alone writes it."""
    known = {}

    def expected(name, which):
        if (name, which) not in known:
            path = tmp_path_factory.mktemp("alone") / name
            WRITERS[name][0](models, path, which)
            known[name, which] = content(path)
        return known[name, which]

    return expected


@pytest.mark.parametrize("name", EVERY)
def test_two_writers(name, models, whole, tmp_path):
    """Both have written all bytes before either renames; a reader has the old one open."""
    path = tmp_path / name
    WRITERS[name][0](models, path, "b")
    writing = [Writing(write_once, models, path, which) for which in "ab"]
    for process in writing:
        process.arrived()
    assert content(path) == whole(name, "b") and len(os.listdir(tmp_path)) == 3
    held = None if path.is_dir() else path.open("rb")
    for process, which in zip(writing, "ab", strict=True):
        process.go()
        assert process.ended() == 0
        assert content(path) == whole(name, which)
    if held is not None:
        with held:
            assert timeless(held.read()) == whole(name, "b")
    assert os.listdir(tmp_path) == [name]


def read_open(path):
    """Return the content of a file, or of a folder whose files are all read from the same one."""
    if not path.is_dir():
        return path.read_bytes()
    folder, found = os.open(path, os.O_RDONLY), {}
    try:
        for name in os.listdir(folder):
            with open(os.open(name, os.O_RDONLY, dir_fd=folder), "rb") as file:
                found[name] = file.read()
    except FileNotFoundError:  # it was replaced, and is being removed
        pass
    finally:
        os.close(folder)
    return found


@pytest.mark.parametrize("name", OFTEN)
def test_readers_meanwhile(name, models, whole, tmp_path):
    """Whatever is open at any moment is of one writer, and whole; the name is never vacant."""
    path = tmp_path / name
    WRITERS[name][0](models, path, "b")
    writing = [Writing(write_often, models, path, which, TIMES) for which in "ab"]
    for process in writing:
        process.arrived()
    for process in writing:
        process.go()
    versions, seen = [whole(name, which) for which in "ab"], 0
    while any(process.process.is_alive() for process in writing):
        found = read_open(path)
        if isinstance(found, dict):
            assert any(found.items() <= version.items() for version in versions)
        else:
            assert found in versions
        seen += 1
    assert [process.ended() for process in writing] == [0, 0] and seen
    assert content(path) in versions and os.listdir(tmp_path) == [name]


def test_folders_where_names_cannot_be_exchanged(tmp_path, monkeypatch):
    """Another process puts its folder in place between the two renames."""
    monkeypatch.setattr(outputs, "_exchanged", lambda *_: False)
    out, rename, others = tmp_path / "out", os.rename, []

    def interfering(source, target):
        rename(source, target)
        if str(target).endswith(".old") and not others:
            others.append(target)
            with replacing_folder(out, overwrite=True) as folder:
                (folder / "part-00000.parquet").write_text("other")

    with replacing_folder(out, overwrite=False) as folder:
        (folder / "part-00000.parquet").write_text("old")
    monkeypatch.setattr(os, "rename", interfering)
    with replacing_folder(out, overwrite=True) as folder:
        (folder / "part-00000.parquet").write_text("new")
    assert others and content(out) == {"part-00000.parquet": b"new"}
    assert os.listdir(tmp_path) == ["out"]


class TestLeftOvers:
    @pytest.mark.parametrize("name", OFTEN)
    def test_of_killed_processes(self, name, models, whole, tmp_path):
        """The next writer removes what a dead one has left, and nothing of a living one."""
        path = tmp_path / name
        dead, living = (Writing(write_once, models, path, which) for which in "ab")
        dead.arrived()
        left = set(os.listdir(tmp_path))
        living.arrived()
        left |= set(os.listdir(tmp_path))
        assert len(left) == 2 and not path.exists()
        dead.kill()
        assert set(os.listdir(tmp_path)) == left
        WRITERS[name][0](models, path, "a")
        assert len(os.listdir(tmp_path)) == 2 and content(path) == whole(name, "a")
        living.go()
        assert living.ended() == 0
        assert content(path) == whole(name, "b") and os.listdir(tmp_path) == [name]

    @pytest.mark.parametrize("ending", [pytest.param("csv", marks=pytest.mark.needs("pyarrow")),
                                        "svm", "npz"])  # fmt: skip
    def test_of_parsed_files(self, ending, tmp_path, monkeypatch):
        file, temporary = tmp_path / f"rows.{ending}", tmp_path / "temporary"
        temporary.mkdir()
        if ending == "npz":
            np.savez_compressed(file, X=rows_of("a"))
        elif ending == "csv":
            file.write_text("a,b\n1,2\n3,4\n")
        else:
            file.write_text("1 1:2 2:3\n0 1:1\n")
        dead = Writing(open_file, file, temporary)
        (left,) = dead.arrived()
        living = Writing(open_file, file, temporary)
        used = set(living.arrived()) - {left}
        rescued = temporary / f"polysift-{machine_mark()}-rescued"  # of a fit: a model, no lock
        rescued.mkdir()
        dead.kill()
        assert (temporary / left).is_dir() and len(used) == 1
        monkeypatch.setattr("tempfile.tempdir", str(temporary))
        source = open_data(file)
        there = set(os.listdir(temporary))
        assert left not in there and used < there and rescued.name in there
        del source
        living.go()
        assert living.ended() == 0
        assert os.listdir(temporary) == [rescued.name]

    def test_links_are_left_alone(self, tmp_path):
        (tmp_path / "far").mkdir()
        (tmp_path / "far" / LOCK_NAME).touch()
        (tmp_path / "near").mkdir()
        for number, what in enumerate(("partial", "old", "gone")):
            name = f".out.{machine_mark()}.{number:012x}.{what}"
            (tmp_path / "near" / name).symlink_to(tmp_path / "far")
        (tmp_path / "near" / f".out.{machine_mark()}.{9:012x}.partial").symlink_to(
            tmp_path / "far" / LOCK_NAME
        )
        for _ in range(2):
            with replacing(tmp_path / "near" / "out") as file:
                file.write(b"x")
        assert os.listdir(tmp_path / "far") == [LOCK_NAME]
        assert len(os.listdir(tmp_path / "near")) == 5

    def test_a_folder_that_is_finished_while_it_is_judged(self, tmp_path, monkeypatch):
        """Its lock was opened before it was removed, and can be had: it is not abandoned."""
        folder = tmp_path / "folder"
        folder.mkdir()
        owner, try_lock = locks.FolderLock(folder), locks.try_lock

        def late(file):
            owner.release()
            return try_lock(file)

        monkeypatch.setattr(locks, "try_lock", late)
        with locks.claimed(folder / LOCK_NAME) as free:
            assert not free

    @pytest.mark.parametrize("why", ["another machine", "no locks", "another output"])
    def test_what_cannot_be_judged_stays(self, tmp_path, monkeypatch, why):
        mark = "0" * 8 if why == "another machine" else machine_mark()
        name = "x.old" if why == "another output" else "x"
        if why == "no locks":
            for module in (locks, outputs):
                monkeypatch.setattr(module, "HAS_LOCKS", False)
        left = tmp_path / f".{name}.{mark}.{1:012x}.partial"
        left.write_text("half")
        folder = tmp_path / f".{name}.{mark}.{2:012x}.partial"
        folder.mkdir()
        (folder / LOCK_NAME).touch()
        with replacing(tmp_path / "x") as file:
            file.write(b"x")
        assert left.read_text() == "half" and os.listdir(folder) == [LOCK_NAME]

    def test_the_only_old_folder_stays(self, tmp_path):
        """A process was killed between two renames, where names cannot be exchanged at once."""
        old = tmp_path / f".out.{machine_mark()}.{1:012x}.old"
        old.mkdir()
        with replacing_folder(tmp_path / "out", overwrite=True):
            assert old.is_dir()
        with replacing_folder(tmp_path / "out", overwrite=True):
            assert not old.exists()

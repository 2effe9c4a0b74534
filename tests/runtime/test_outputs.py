"""Output files: a name of their own while they are written, no links followed, the user's mode."""

import os
import stat

import numpy as np
import pytest

from polysift.runtime import outputs
from polysift.runtime.arrays import read_arrays, write_arrays
from polysift.runtime.checkpoints import Checkpoint, CheckpointError
from polysift.runtime.outputs import replacing, replacing_folder

needs_links = pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links cannot be told here")


@pytest.fixture
def victim(tmp_path):
    """Return a file beside the folder of outputs, which links planted there lead to."""
    path = tmp_path / "victim"
    path.write_text("precious")
    return path


@pytest.fixture
def home(tmp_path):
    """Return a folder of outputs."""
    path = tmp_path / "home"
    path.mkdir()
    return path


class TestHiddenNames:
    def test_the_old_fixed_name_is_not_followed(self, home, victim):
        (home / ".x.partial").symlink_to(victim)
        write_arrays(home / "x", {"a": np.arange(3.0)}, {})
        assert victim.read_text() == "precious"
        np.testing.assert_array_equal(read_arrays(home / "x")[0]["a"], np.arange(3.0))

    def test_a_link_under_the_hidden_name_is_refused(self, home, victim, monkeypatch):
        known = home / ".x.known.partial"
        known.symlink_to(victim)
        monkeypatch.setattr(outputs, "_hidden", lambda *_: known)
        with pytest.raises(FileExistsError), replacing(home / "x") as file:
            file.write(b"new")
        assert victim.read_text() == "precious" and known.is_symlink()
        assert not (home / "x").exists()

    def test_two_at_once_do_not_mix(self, home):
        with replacing(home / "x") as one:
            one.write(b"one" * 100_000)
            with replacing(home / "x") as other:
                other.write(b"other")
            assert (home / "x").read_bytes() == b"other"
        assert (home / "x").read_bytes() == b"one" * 100_000
        assert os.listdir(home) == ["x"]

    @pytest.mark.parametrize("name", ["x" * 255, "\N{GREEK SMALL LETTER ALPHA}" * 127])
    def test_the_longest_name(self, home, name):
        for content in (b"one", b"two"):
            with replacing(home / name) as file:
                file.write(content)
        assert os.listdir(home) == [name] and (home / name).read_bytes() == b"two"

    def test_a_library_may_close_the_file(self, home):
        with replacing(home / "x") as file:
            file.write(b"all")
            file.close()
        assert (home / "x").read_bytes() == b"all"


@pytest.mark.skipif(not hasattr(os, "fchmod"), reason="there is no umask here")
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o002])
def test_the_mode_is_the_users(home, mask):
    before = os.umask(mask)
    try:
        with replacing(home / "file") as file:
            file.write(b"x")
        with replacing_folder(home / "folder", overwrite=False):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((home / "file").stat().st_mode) == 0o666 & ~mask
    assert stat.S_IMODE((home / "folder").stat().st_mode) == 0o777 & ~mask


def test_file_and_folder_are_synchronised(home, monkeypatch):
    """The file before it takes its name, the folder after."""
    events, fsync, replace = [], os.fsync, os.replace

    def syncing(descriptor):
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        events.append(kind)
        fsync(descriptor)

    def renaming(*paths):
        events.append("rename")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(os, "replace", renaming)
    with replacing(home / "x") as file:
        file.write(b"x")
    assert events == ["file", "rename", "folder"]


@needs_links
def test_the_lock_of_a_checkpoint_follows_no_link(home, victim):
    (home / "lock").symlink_to(victim)
    with pytest.raises(CheckpointError, match="no folder that can be written to"):
        Checkpoint(home, {})
    assert victim.read_text() == "precious"

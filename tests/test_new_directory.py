"""Directories that appear when they are complete."""

from pathlib import Path

import pytest

from kseg.new_directory import WriteError, new_directory


def test_what_cant_be_written_is_called_as_it_would_be_at_the_end(tmp_path: Path) -> None:
    with pytest.raises(WriteError) as raised, new_directory(tmp_path / "new") as unfinished:
        (unfinished / "absent" / "file").write_bytes(b"")
    assert raised.value.path == tmp_path / "new" / "absent" / "file"


def test_folders_made_on_the_way_go_too_unless_something_is_in_them(tmp_path: Path) -> None:
    with pytest.raises(WriteError), new_directory(tmp_path / "some" / "more" / "new") as unfinished:
        (tmp_path / "some" / "file").write_bytes(b"kept")
        raise OSError(28, "No space left on device", unfinished)
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "some", tmp_path / "some" / "file"]

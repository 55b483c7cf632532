"""Directories that appear when they are complete."""

from pathlib import Path

import pytest

from kseg.system.new_directory import WriteError, new_directory


def test_what_cant_be_written_is_called_as_it_would_be_at_the_end(tmp_path: Path) -> None:
    with pytest.raises(WriteError) as raised, new_directory(tmp_path / "new") as unfinished:
        (unfinished / "absent" / "file").write_bytes(b"")
    assert str(raised.value) == f"{tmp_path}/new/absent/file: can't be written: No such file or directory"


def test_folders_made_on_the_way_go_too(tmp_path: Path) -> None:
    with pytest.raises(WriteError), new_directory(tmp_path / "some" / "new") as unfinished:
        (unfinished / "absent" / "file").write_bytes(b"")
    assert list(tmp_path.iterdir()) == []


def test_folders_with_something_in_them_stay(tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "file").write_bytes(b"kept")
    with pytest.raises(WriteError), new_directory(tmp_path / "some" / "more" / "new") as unfinished:
        (unfinished / "absent" / "file").write_bytes(b"")
    assert list((tmp_path / "some").iterdir()) == [tmp_path / "some" / "file"]

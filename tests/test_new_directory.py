"""Directories that appear when they are complete."""

from pathlib import Path

import pytest

from kseg.errors import SwappedError, UsageError
from kseg.store.target import NewFile, new_directory
from kseg.system.new_directory import WriteError


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


def replace_by_link(folder: Path, by: Path) -> None:
    """Move a folder away, and make its name a link."""
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(by)


def test_a_folder_that_is_replaced_while_it_is_written_to_is_an_error(tmp_path: Path) -> None:
    """Begun files are removed too; nothing is created or removed at the link's destination."""
    parent, other = tmp_path / "some", tmp_path / "other"
    for each in (parent, other):
        each.mkdir()
    with pytest.raises(SwappedError, match="some: another program replaced it"), new_directory(parent / "new") as new:  # noqa: PT012
        (new / "file").write_bytes(b"content")
        (unfinished,) = parent.iterdir()
        (other / unfinished.name).mkdir()
        replace_by_link(parent, other)
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted([unfinished.name, "moved", "other", "some"])
    assert (other / unfinished.name).is_dir()


def test_an_unfinished_directory_that_is_replaced_by_a_link_leads_nowhere(tmp_path: Path) -> None:
    """Files of the same name at the link's destination don't change."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").write_bytes(b"kept")
    parent = tmp_path / "some"
    with pytest.raises(SwappedError, match="some: another program replaced it"), new_directory(parent / "new") as new:  # noqa: PT012
        (unfinished,) = parent.iterdir()
        replace_by_link(unfinished, other)
        (new / "file").write_bytes(b"content")
        (new / "more").mkdir()
    assert [path.name for path in other.iterdir()] == ["file"]
    assert (other / "file").read_bytes() == b"kept"


def test_a_file_goes_where_its_folder_was_when_the_command_began(tmp_path: Path) -> None:
    parent, other = tmp_path / "some", tmp_path / "other"
    for each in (parent, other):
        each.mkdir()
    file = NewFile(parent / "new")
    replace_by_link(parent, other)
    with pytest.raises(SwappedError, match="some: another program replaced it while kseg was writing"):
        file.write(b"content")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["moved", "other", "some"]


def test_a_folder_that_has_come_into_the_input_is_refused(tmp_path: Path) -> None:
    """It is moved between the first check and the moment from which on it is held open."""
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "some").symlink_to(tmp_path / "orders-0")
    source = tmp_path / "orders-0"
    with pytest.raises(UsageError, match="which kseg reads"), new_directory(tmp_path / "some/new", [source]):
        pass
    assert list(source.iterdir()) == []


def test_a_broker_of_another_user_can_read_what_is_new(tmp_path: Path) -> None:
    with new_directory(tmp_path / "new") as unfinished:
        assert unfinished.stat().st_mode & 0o077 == 0
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o755

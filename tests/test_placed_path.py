"""Paths that replace a user's path: real for the system, and unchanged in text."""

import os
import pickle
from pathlib import Path

import pytest

from kseg.errors import OpenError
from kseg.system.files import open_ranged, read_regular
from kseg.system.placed_path import PlacedPath, Placement, as_path, folder_of, path_of_name, within


class Bytes:
    """Bytes from another place."""

    def __init__(self, content: bytes) -> None:
        self.content, self.size = content, len(content)

    def check(self) -> None:
        """Check nothing."""

    def read(self, position: int, size: int) -> bytes:
        return self.content[position : position + size]

    def stretch_end(self, position: int) -> int:
        return self.size


@pytest.fixture
def archive(tmp_path: Path) -> PlacedPath:
    """Return the directory of the unpacked `disks/support.tar`, with a partition that has a file."""
    (tmp_path / "1" / "orders-0").mkdir(parents=True)
    (tmp_path / "1" / "orders-0" / "0.log").write_bytes(b"own")
    return Placement(tmp_path / "1", "disks/support.tar", Placement(tmp_path, "")).path


def test_text_is_what_the_user_wrote_and_the_system_gets_the_real_path(archive: PlacedPath, tmp_path: Path) -> None:
    log = archive / "orders-0" / "0.log"
    assert (f"{log}", str(archive)) == ("disks/support.tar/orders-0/0.log", "disks/support.tar")
    assert os.fspath(log) == f"{tmp_path}/1/orders-0/0.log"
    assert log.read_bytes() == b"own"


def test_paths_that_are_made_from_one_are_shown_so_too(archive: PlacedPath) -> None:
    log = archive / "orders-0" / "0.log"
    made = (
        *(log.with_name("1.log"), log.with_stem("2"), log.with_suffix(".index"), log.parent, log.absolute()),
        *(*archive.iterdir(), *log.parent.glob("*.log"), *log.parents[:2]),
    )
    assert [str(path).removeprefix("disks/support.tar/") for path in made] == [
        *("orders-0/1.log", "orders-0/2.log", "orders-0/0.index", "orders-0", "orders-0/0.log"),
        *("orders-0", "orders-0/0.log", "orders-0", "disks/support.tar"),
    ]
    with os.scandir(archive) as entries:
        assert [str(archive / entry.name) for entry in entries] == ["disks/support.tar/orders-0"]
    assert str(log.relative_to(archive)) == "orders-0/0.log"


def test_what_is_above_is_shown_as_the_parent_of_the_name(archive: PlacedPath) -> None:
    assert [str(path) for path in archive.parents[:3]] == ["disks", ".", "."]


def test_it_equals_the_ordinary_path(archive: PlacedPath) -> None:
    plain = Path(os.fspath(archive))
    assert archive == plain == archive
    assert {plain: 1}[archive] == 1
    assert sorted([archive / "b", plain / "a"]) == [plain / "a", plain / "b"]


def test_a_name_that_lies_deeper_is_shown_for_what_is_below_it(archive: PlacedPath) -> None:
    Placement(archive / "orders-0", "other", archive.placement)
    assert str(archive / "orders-0" / "0.log") == "other/0.log"
    assert str((archive / "orders-0").parent) == "disks/support.tar"


def test_what_keeps_a_path_placed(archive: PlacedPath) -> None:
    assert str(as_path(archive)) == str(folder_of(archive / "x")) == str(archive)
    assert str(within(archive, f"{os.fspath(archive)}/x")) == f"{archive}/x"
    assert (folder_of("./a/x"), within(None, "./a"), as_path("./a")) == ("./a", "./a", Path("a"))


def test_urls_keep_their_slashes() -> None:
    assert str(path_of_name("s3://bucket/prod") / "x") == "s3://bucket/prod/x"
    assert path_of_name("./bucket") == Path("bucket")


def test_a_file_stands_for_bytes_elsewhere_until_it_is_filled(archive: PlacedPath) -> None:
    log = archive / "1.log"
    log.let_stand_for(Bytes(b"elsewhere"))
    opened = open_ranged(log)
    os.close(opened.descriptor)
    assert (opened.size, opened.source is not None) == (9, True)
    assert read_regular(log) == b"elsewhere"
    assert log.source is None


def test_errors_name_what_the_user_wrote(archive: PlacedPath) -> None:
    with pytest.raises(OpenError, match=r"^disks/support.tar/orders-0: isn't a regular file$"):
        open_ranged(archive / "orders-0")


def test_another_process_gets_what_a_partition_stands_for_with_its_directory_alone(archive: PlacedPath) -> None:
    for number in range(2):
        directory = archive / f"orders-{number + 1}"
        directory.mkdir()
        placed = directory.standing_for(f"partition {number}")
        for segment in range(50):
            (placed / f"{segment}.log").let_stand_for(Bytes(b"%d" % segment))
    sent = pickle.loads(pickle.dumps(archive / "orders-2"))
    assert (str(sent), sent.placement.partition) == ("disks/support.tar/orders-2", "partition 1")
    assert read_regular(sent / "7.log") == b"7"
    assert str(sent.parent) == "disks/support.tar"
    log = pickle.dumps(archive / "orders-2" / "9.log")
    assert len(log) < 1000
    assert read_regular(pickle.loads(log)) == b"9"

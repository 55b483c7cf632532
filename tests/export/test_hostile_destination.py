"""A destination isn't trusted: whatever it contains, nothing outside is touched, and problems are one line."""

import json
import os
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import golden, run
from tests.export import exports
from tests.loops import TAKES_ALL, for_each

MANIFEST = "_kseg/manifest-00000002.json"
BEFORE = "_kseg/manifest-00000001.json"
OTHERS = ("_kseg/runs/0123abcd.json",)


def kseg(*arguments: str | Path) -> run.Run:
    return run.kseg([str(argument) for argument in arguments], golden.ROOT)


def listing(folder: Path) -> dict[str, tuple[int, int, int, bytes | None]]:
    """Return everything below a folder: inode, times of contents and of status, and content."""
    found = {}
    for path in sorted((folder, *folder.rglob("*"))):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else None
        found[str(path)] = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns, content)
    return found


class Place:
    """A source, an export of it with two manifests, and a directory next to it that must stay unchanged."""

    def __init__(self, folder: Path) -> None:
        self.source, self.out, self.outside = folder / "orders-0", folder / "out", folder / "outside"
        self.outside.mkdir()
        exports.write_log(self.source, 0, 10)
        assert self.export().status == 0
        self.first = (self.out / BEFORE).read_bytes()
        exports.write_log(self.source, 10, 10)
        assert self.export().status == 0
        (self.outside / "part-precious.parquet").write_bytes(b"precious")
        self.manifest: dict[str, Any] = json.loads((self.out / MANIFEST).read_bytes())

    def write(self, manifest: object) -> None:
        """Replace the valid manifest."""
        content = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
        (self.out / MANIFEST).write_bytes(content)

    def export(self, *options: str) -> run.Run:
        """Export again, and assert that nothing outside has changed."""
        before = listing(self.outside)
        ran = kseg("export", self.source, self.out, *options)
        assert listing(self.outside) == before
        return ran

    def assert_refused(self, words: str) -> None:
        """Assert that an export, a dry run and --overwrite exit with 2 and one line, and change nothing."""
        before = listing(self.out)
        for options in ((), ("--dry-run",), ("--overwrite",)):
            ran = self.export(*options)
            assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)
            assert words in ran.stderr.decode()
            assert b"Traceback" not in ran.stderr
        assert listing(self.out) == before


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


NO_MANIFESTS = {
    "empty": b"",
    "blank": b" \n",
    "a list": b"[]",
    "null": b"null",
    "a number": b"7",
    "a text": b'"manifest"',
    "not UTF-8": b'{"version": 1, "number": "\xff"}',
    "UTF-16": '{"version": 1}'.encode("utf-16"),
    "another version": b'{"version": 2}',
    "a version that is a list": b'{"version": [1]}',
    "a version that is true": b'{"version": true}',
    "no version": b"{}",
    "deep": b'{"version": 1, "results": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "not a number": b'{"version": 1, "number": NaN}',
    "a number of too many digits": b'{"version": 1, "number": ' + b"9" * 10_000 + b"}",
    "a stub": b'{"version": 1, "number": 2, "run": "0123abcd", "superseded": true}',
    "binary": bytes(range(256)),
}


@for_each("name", NO_MANIFESTS)
def test_what_is_no_manifest_is_one_line(place: Place, name: str) -> None:
    place.write(NO_MANIFESTS[name])
    place.assert_refused("manifest-00000002.json")


def test_a_manifest_that_was_cut_is_one_line(place: Place) -> None:
    whole = (place.out / MANIFEST).read_bytes()
    for size in range(0, len(whole) - 2, 97):
        place.write(whole[:size])
        ran = place.export()
        assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)


def test_a_huge_manifest_is_refused(place: Place) -> None:
    os.truncate(place.out / MANIFEST, 300 << 20)
    ran = place.export("--dry-run")
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)
    assert b"bytes" in ran.stderr


def test_a_manifest_under_another_number_is_refused(place: Place) -> None:
    place.write(place.manifest | {"number": 7})
    place.assert_refused("has the number 7, but its name has another")


OUTSIDE = (
    "/etc/part-x.parquet",
    "../outside/part-precious.parquet",
    "topic=a/../../outside/part-precious.parquet",
    "topic=a/./part-x.parquet",
    "topic=a//part-x.parquet",
    "part-x.parquet\0",
    "",
    ".",
    "_kseg/manifest-00000001.json",
    "_SUCCESS",
    "_delta_log/part-x.parquet",
    "..=/part-x.txt",
    "\ud800=/part-x.parquet",
)


@for_each("path, member", list(product(OUTSIDE, ["path", "attempt"])), ids=ascii)
def test_paths_that_an_export_never_has_are_refused(place: Place, path: str, member: str) -> None:
    manifest = deepcopy(place.manifest)
    manifest["results"][0]["files"][0][member] = path
    place.write(manifest)
    place.assert_refused(f"results[0].files[0].{member}")


def test_absolute_paths_are_not_touched(place: Place) -> None:
    precious = place.outside / "part-precious.parquet"
    for member in ("path", "attempt"):
        place.manifest["results"][0]["files"][0][member] = str(precious)
    place.write(place.manifest)
    place.assert_refused("path of a file")


def test_the_manifest_before_is_not_believed_either(place: Place) -> None:
    before = json.loads(place.first)
    before["results"][0]["files"][0]["path"] = str(place.outside / "part-precious.parquet")
    (place.out / BEFORE).write_text(json.dumps(before), encoding="utf-8")
    ran = place.export()
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)
    assert b"manifest-00000001.json" in ran.stderr


def test_two_files_of_one_path_are_refused(place: Place) -> None:
    files = [result["files"][0] for result in place.manifest["results"]]
    files[1]["path"], files[1]["folder"] = files[0]["path"], files[0]["folder"]
    place.write(place.manifest)
    place.assert_refused("occurs only once")


@pytest.mark.parametrize(
    "column",
    [
        7,
        {},
        {"type": "number"},
        {"type": {"struct": [], "names": []}},
        {"type": {"struct": [["a", "long"], ["a", "long"]], "names": []}},
        {"type": {"decimal": [99, 1]}},
        {"type": {"map": ["record", "long"]}},
        {"type": {"union": 5}},
    ],
    ids=str,
)
def test_columns_that_no_schema_has_are_refused(place: Place, column: object) -> None:
    place.manifest["read"]["decode"] |= {"value": "avro", "columns": {"value": column}}
    place.write(place.manifest)
    place.assert_refused("the options are invalid")


# --- symbolic links ---------------------------------------------------------------------------------------------------


def test_nothing_is_moved_through_a_link_that_leads_outside(place: Place) -> None:
    """A commit was interrupted before its files were moved."""
    for result in place.manifest["results"]:
        for file in result["files"]:
            attempt = place.out / file["attempt"]
            attempt.parent.mkdir(exist_ok=True)
            (place.out / file["path"]).rename(attempt)
    (place.out / "topic=orders").rmdir()
    (place.out / "topic=orders").symlink_to(place.outside, target_is_directory=True)
    ran = place.export()
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)
    assert b"topic=orders: is a symbolic link" in ran.stderr


def test_nothing_is_removed_through_a_link_that_leads_outside(place: Place) -> None:
    """The previous manifest names a file below a link that the valid manifest leaves out."""
    before = json.loads(place.first)
    file = before["results"][0]["files"][0]
    file["folder"], file["path"] = "topic=link", "topic=link/part-precious.parquet"
    (place.out / BEFORE).write_text(json.dumps(before), encoding="utf-8")
    (place.out / "topic=link").symlink_to(place.outside, target_is_directory=True)
    place.assert_refused("topic=link: is a symbolic link")


@pytest.mark.parametrize("folder", ["_kseg", "_kseg/attempts", "_kseg/runs", "_kseg/jobs"])
def test_kseg_own_folders_do_not_lead_outside(place: Place, folder: str) -> None:
    exports.write_log(place.source, 20, 10)
    if (place.out / folder).exists():
        (place.out / folder).rename(place.out / "_moved")
    (place.out / folder).symlink_to(place.outside, target_is_directory=True)
    ran = place.export()
    assert ran.status == 2
    assert ran.stderr.count(b"\n") == 1


def test_the_destination_itself_may_be_a_link(place: Place, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(place.out, target_is_directory=True)
    exports.write_log(place.source, 20, 10)
    assert kseg("export", place.source, tmp_path / "link").status == 0
    assert exports.offsets(place.out, "orders") == list(range(30))


def test_a_file_url_is_the_directory(place: Place) -> None:
    exports.write_log(place.source, 20, 10)
    assert kseg("export", place.source, place.out.as_uri()).status == 0
    assert exports.offsets(place.out, "orders") == list(range(30))


# --- other objects with files' names ----------------------------------------------------------------------------------


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def dangling(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("nowhere")


@for_each(
    "name, make",
    list(
        product(
            [MANIFEST, "_kseg/manifest-00000003.json", "_SUCCESS", "_kseg/report.json", *OTHERS],
            [pipe, folder, dangling],
        )
    ),
    ids=lambda case: f"{case[0]} as {case[1].__name__}",
)
def test_what_is_no_file_hangs_nobody(name: str, make: Callable[[Path], None], tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.out / name).parent.mkdir(exist_ok=True)
    make(place.out / name)
    exports.write_log(place.source, 20, 10)
    ran = place.export()
    assert ran.status in (0, 2)
    assert ran.stderr.count(b"\n") <= 1


# --- a dry run -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--overwrite",), ("--topic", "orders"), ("--no-headers",)], ids=" ".join)
def test_a_dry_run_changes_nothing_at_all(place: Place, options: tuple[str, ...]) -> None:
    """The export's commit was interrupted, and other runs' files remain: a run would move and remove files."""
    file = place.manifest["results"][1]["files"][0]
    (place.out / "_kseg" / "attempts").mkdir(exist_ok=True)
    (place.out / file["path"]).rename(place.out / file["attempt"])
    (place.out / "_kseg" / "attempts" / "0123abcd-0-0123456789ab-0.attempt").write_bytes(b"leftover")
    (place.out / BEFORE).write_bytes(place.first)
    exports.write_log(place.source, 20, 10)
    before = listing(place.out.parent)
    ran = place.export("--dry-run", *options)
    assert ran.status == (2 if "--no-headers" in options else 0)
    assert listing(place.out.parent) == before
    assert kseg("export", place.source, place.out).status == 0
    assert exports.offsets(place.out, "orders") == list(range(30))


def test_a_dry_run_makes_no_destination(place: Place, tmp_path: Path) -> None:
    before = listing(tmp_path)
    assert kseg("export", "--dry-run", place.source, tmp_path / "new" / "place").status == 0
    assert listing(tmp_path) == before


# --- any JSON as any member -------------------------------------------------------------------------------------------

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([-1, 0, 1 << 31, 1 << 63, 1 << 64, 1 << 200])
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["/etc/passwd", "../x", "\0", "\ud800", "x\ny", "orders", "_kseg", "part-x.parquet"])
)
ANY_JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)


def places_of(value: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all members and elements."""
    yield where
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places_of(inner, (*where, name))


def change_value(value: Any, where: tuple[Any, ...], new: Any) -> Any:
    """Return a copy with one value replaced."""
    if not where:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[where[0]] = change_value(value[where[0]], where[1:], new)
    return copy


@pytest.fixture(scope="module")
def shared_place() -> Iterator[Place]:
    """Yield an export that examples restore."""
    with TemporaryDirectory() as scratch:
        place = Place(Path(scratch))
        result = place.manifest["results"][0]
        result["tally"]["losses"] = [
            {"segment": "x.log", "position": 1, "size": 2, "kind": "bad-crc", "detail": "", "first": 3, "end": 4}
        ]
        yield place


@settings(max_examples=300 if TAKES_ALL else 100)
@given(chosen=st.data())
def test_any_json_in_the_place_of_any_member_is_a_line_at_most(shared_place: Place, chosen: st.DataObject) -> None:
    place = shared_place
    where = chosen.draw(st.sampled_from(list(places_of(place.manifest))))
    new = chosen.draw(ANY_JSON)
    place.write(json.dumps(change_value(place.manifest, where, new)).encode("utf-8", "surrogatepass"))
    ran = place.export("--dry-run")
    assert ran.status in (0, 2)
    assert ran.stderr.count(b"\n") == (ran.status == 2)
    ran = place.export()
    assert ran.status in (0, 1, 2)
    if ran.status == 2:
        assert ran.stderr.count(b"\n") == 1
    for name in place.out.glob("_kseg/manifest-*"):
        if name.name not in (Path(MANIFEST).name, Path(BEFORE).name):
            name.unlink()


@settings(max_examples=100)
@given(content=st.binary(max_size=200) | ANY_JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_for_a_manifest_are_a_line(shared_place: Place, content: bytes) -> None:
    shared_place.write(content)
    ran = shared_place.export()
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)

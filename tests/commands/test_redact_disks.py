"""`kseg redact` as its user sees it: a disk for passing on, with everything except its contents."""

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kseg as library
from kseg.coordinators.home_partition import coordinator_partition
from kseg.redaction import PARTS, Redaction
from kseg.rewrite.redact import redact_directory, redact_orders, redact_settings, unfinished_directory
from kseg.rewrite.redacted_names import KAFKAS_TOPICS, NameKind, Names
from tests import golden
from tests.loops import for_each, some_of_each
from tests.run import kseg

DAMAGES = json.loads((golden.ROOT / "damaged" / "damage.json").read_text(encoding="utf-8"))
RANDOM = ("index-random", "time-random")
"""Random bytes in indexes become noise: their findings name other offsets."""
CHOSEN = [
    damage["id"]
    for damage in some_of_each(DAMAGES, lambda damage: damage["damage"])
    if not damage["id"].endswith(RANDOM)
]
JUDGED = ("result", "partitions", "errors", "warnings", "notes", "start")
SIX = 6
"""Bytes of a piece that reveals something."""


def redact(source: Path, target: Path, *options: str) -> dict[str, Any]:
    """Run `kseg redact -o json`, and return its report."""
    ran = kseg(["redact", str(source), "--to", str(target), "-o", "json", "-j", "1", *options], target.parent)
    assert ran.status == 0, ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


def objects(directory: Path, command: str, *options: str) -> Iterator[dict[str, Any]]:
    ran = kseg([command, str(directory), "-o", "json", *options], directory)
    yield from map(json.loads, ran.stdout.splitlines())


def rows(directory: Path, command: str, *options: str) -> Iterator[dict[str, Any]]:
    """Objects of a command without their total."""
    return (each for each in objects(directory, command, *options) if each["type"] != "total")


def findings(directory: Path) -> tuple[Counter[tuple[Any, ...]], Any]:
    """Return verify's findings, without names, positions and sentences; and its forecast of the start."""
    found, judged = Counter[tuple[Any, ...]](), None
    for each in objects(directory, "verify"):
        if each["type"] == "finding":
            found[each["id"], each["severity"], each["firstOffset"], each["lastOffset"]] += 1
        elif each["type"] == "summary":
            judged = tuple(each.get(name) for name in JUDGED)
    return found, judged


NOW = "2026-11-01T00:00:00Z"
OF_SIZES = ("bytesRead", "bytesToDelete", "bytesNotInUse", "availableBytes", "allocatedBytes", "bytes", "position")
OF_PLACES = ("directory", "directories", "path", "file", "detail", "text", "sentence", "startSentence", "command")
OF_MEMBERS = ("leaderMemberId", "lagReason", "groupInstanceId", "instanceId", "lastMember", "host")
OF_NAMES = (
    "reason",
    "transactionalId",
    "clientId",
    "clientHost",
    "memberId",
    "members",
    "leader",
    "metadata",
    *OF_MEMBERS,
)
OTHERS = frozenset((*OF_SIZES, *OF_PLACES, *OF_NAMES))
"""Fields that tell of compressed sizes, of the disk, of where a directory is, and names that are replaced."""


def describe_disk(directory: Path, command: str) -> Counter[str]:
    """Return the output of a command about a disk, without `OTHERS`."""

    def keep(value: Any) -> Any:
        if isinstance(value, list):
            return sorted(map(keep, value), key=repr)
        if isinstance(value, dict):
            return {name: keep(each) for name, each in value.items() if name not in OTHERS}
        return value

    said = objects(directory, command, "--now", NOW)
    found = (keep(each) for each in said if each.get("id") != "disk-nearly-full")  # which is this machine's disk
    return Counter(json.dumps(each, sort_keys=True) for each in found)


def records(directory: Path) -> list[Any]:
    """Return the unchanged values of each record: its place, its timestamp, and the lengths of its parts."""
    found = []
    for partition in library.open(directory).partitions():
        found.append(
            [
                (
                    each.offset,
                    each.timestamp,
                    None if each.key is None else len(each.key),
                    None if each.value is None else len(each.value),
                    [(len(header.key), None if header.value is None else len(header.value)) for header in each.headers],
                )
                for each in partition.records(on_damage="skip")
            ]
        )
    return sorted(found, key=repr)


def contents(directory: Path) -> set[bytes]:
    """Return all keys, values and headers of users' topics."""
    found = set[bytes]()
    for partition in library.open(directory).partitions():
        if partition.topic not in KAFKAS_TOPICS:
            for each in partition.records(on_damage="skip"):
                found |= {part for part in (each.key, each.value) if part}
                found |= {part for header in each.headers for part in (header.key.encode(), header.value) if part}
    return found


def digests(directory: Path) -> dict[str, str]:
    files = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(path.relative_to(directory)): sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key.txt"
    path.write_text("a long secret\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("release", ["0.10.2.2", "2.4.1", "3.9.1", "4.3.1"])
def test_disk_stays_what_it_is_without_its_contents(release: str, restored: Path, tmp_path: Path) -> None:
    source, target = restored / "logs" / release, tmp_path / "shared"
    report = redact(source, target)
    assert report["records"] > 0
    assert findings(target) == findings(source)
    assert records(target) == records(source)
    long = {content for content in contents(source) if len(content) >= SIX}
    assert not long & contents(target)
    stored = b"".join(path.read_bytes() for path in target.rglob("*") if path.is_file())
    texts = {content for content in long if content.isascii() and len(set(content)) > SIX}
    assert texts
    assert not [content for content in texts if content in stored]


def test_archives_are_redacted_like_their_contents(restored: Path, tmp_path: Path) -> None:
    source = restored / "logs" / "2.4.1"
    archive = shutil.make_archive(str(tmp_path / "support"), "gztar", source)
    key = tmp_path / "key"
    key.write_text("a key of our own")
    for name, path in (("unpacked", source), ("archive", Path(archive))):
        redact(path, tmp_path / name, "--key-file", str(key))
    assert records(tmp_path / "archive") == records(tmp_path / "unpacked")


@for_each("directory", CHOSEN, shards=4)
def test_damage_stays(directory: str, restored: Path, tmp_path: Path) -> None:
    source, target = restored / "damaged" / directory, tmp_path / directory
    redact(source, target, "--keep", "topics")
    if (target / directory).is_dir():  # its name is that of a partition
        target /= directory
    assert findings(target) == findings(source)
    assert describe_disk(target, "doctor") == describe_disk(source, "doctor")


@pytest.mark.parametrize("release", ["0.10.2.2", "2.4.1", "3.9.1", "4.3.1"])
def test_commands_say_the_same_of_names_that_stay(release: str, restored: Path, tmp_path: Path) -> None:
    source, target = restored / "logs" / release, tmp_path / release
    redact(source, target, "--keep", "topics,groups")
    for command in ("doctor", "txns", "groups"):
        assert describe_disk(target, command) == describe_disk(source, command), command


def test_names_are_replaced_wherever_they_stand(restored: Path, tmp_path: Path) -> None:
    source, target = restored / "logs" / "4.3.1", tmp_path / "shared"
    redact(source, target)
    topics = {partition.topic for partition in library.open(source).partitions()} - KAFKAS_TOPICS
    groups = [each["group"] for each in rows(source, "groups", "--show", "groups")]
    names = {name.encode() for name in {*topics, *groups} if len(name) >= SIX}
    assert names
    files = [path for path in target.rglob("*") if path.is_file()]
    stored = b"".join(path.read_bytes() for path in files) + b"\0".join(str(path).encode() for path in files)
    assert not [name for name in names if name in stored]
    shown = {
        (each["group"] in names, each["state"], each["lag"]) for each in rows(target, "groups", "--show", "groups")
    }
    assert shown == {(False, each["state"], each["lag"]) for each in rows(source, "groups", "--show", "groups")}


def test_kept_names_stay(restored: Path, tmp_path: Path) -> None:
    source, target = restored / "logs" / "4.3.1", tmp_path / "shared"
    report = redact(source, target, "--keep", "topics,groups")
    assert report["keptNames"] == ["topics", "groups"]
    assert sorted(path.name for path in target.iterdir()) == sorted(path.name for path in source.iterdir())
    groups = [[each["group"] for each in rows(place, "groups", "--show", "groups")] for place in (source, target)]
    assert groups[0] == groups[1]
    assert not {content for content in contents(source) if len(content) >= SIX} & contents(target)


def test_same_key_gives_the_same_bytes(restored: Path, tmp_path: Path, key_file: Path) -> None:
    source = restored / "logs" / "3.9.1"
    for name, options in (
        ("one", ["--key-file", str(key_file)]),
        ("two", ["--key-file", str(key_file)]),
        ("other", []),
    ):
        redact(source, tmp_path / name, *options)
    assert digests(tmp_path / "one") == digests(tmp_path / "two")
    assert digests(tmp_path / "one") != digests(tmp_path / "other")


def test_stopped_run_goes_on_with_its_key(restored: Path, tmp_path: Path, key_file: Path) -> None:
    source = restored / "logs" / "3.9.1"
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    redact(source, whole, "--key-file", str(key_file))
    settings = redact_settings("a long secret", (), [source])
    with suppress(KeyboardInterrupt), unfinished_directory(stopped, settings, [source]) as unfinished:
        done, half, *_ = redact_orders([source], unfinished.directory, settings)
        unfinished.note(redact_directory(done, settings))
        redact_directory(half, settings)
        last = max(path for path in half.target.iterdir() if path.is_file())
        last.write_bytes(last.read_bytes()[:1])  # a killed run had not written it to the end
        raise KeyboardInterrupt
    redact(source, stopped, "--key-file", str(key_file))
    assert digests(stopped) == digests(whole)
    assert not unfinished.directory.exists()


def test_stopped_run_is_not_continued_with_another_key(restored: Path, tmp_path: Path, key_file: Path) -> None:
    source = restored / "logs" / "3.9.1"
    settings = redact_settings("another one", (), [source])
    with suppress(KeyboardInterrupt), unfinished_directory(tmp_path / "stopped", settings, [source]):
        raise KeyboardInterrupt
    ran = kseg(["redact", str(source), "--to", "stopped", "--key-file", str(key_file)], tmp_path)
    assert ran.status == 2
    assert b"was started with another key or --keep; specify the same --key-file, or remove it" in ran.stderr


def test_file_that_is_not_kafkas_becomes_zeros(tmp_path: Path, restored: Path) -> None:
    source = tmp_path / "logs"
    shutil.copytree(restored / "logs" / "3.9.1", source)
    (source / "customers.csv").write_text("name,card\nAlice,4711\n", encoding="utf-8")
    report = redact(source, tmp_path / "shared")
    (name,) = report["zeroFiles"]
    written = tmp_path / "shared" / name
    assert written.read_bytes() == bytes(21)
    assert re.fullmatch(r"\w[\w-]{8}\.csv", written.name)
    assert written.name != "customers.csv"


def test_links_are_followed_and_pipes_reported(restored: Path, tmp_path: Path) -> None:
    elsewhere, source = tmp_path / "disk2", tmp_path / "logs"
    shutil.copytree(restored / "damaged" / "006-torn-one-byte", elsewhere / "orders-0")
    source.mkdir()
    (source / "orders-0").symlink_to(elsewhere / "orders-0")
    (source / "upwards").symlink_to(source)
    os.mkfifo(source / "pipe")
    report = redact(source, tmp_path / "shared")
    assert report["skippedFiles"] == [str(source / "pipe"), str(source / "upwards")]
    (partition,) = (tmp_path / "shared").iterdir()
    assert partition.name.endswith("-0")
    assert [path.suffix for path in partition.iterdir()] == [".log"]


def test_tier_of_local_tiered_storage_stays_one(restored: Path, tmp_path: Path) -> None:
    source, target = restored / "logs" / "4.3.1-tiered-remote", tmp_path / "shared"
    redact(source, target)
    assert findings(target) == findings(source)
    assert records(target) == records(source)
    assert not [path for path in target.rglob("*") if path.name.startswith("tier-txn")]


def test_tier_whose_objects_are_of_a_plugin_is_refused(tmp_path: Path) -> None:
    ran = kseg(["redact", str(golden.ROOT / "tiered"), "--to", "shared"], tmp_path)
    assert ran.status == 2
    assert b"belongs to Aiven's remote tier, which kseg can't redact; omit it" in ran.stderr
    assert not any(tmp_path.iterdir())


def test_nothing_is_written_into_the_input(tmp_path: Path, restored: Path) -> None:
    source = tmp_path / "logs"
    shutil.copytree(restored / "logs" / "3.9.1", source)
    before = digests(source)
    ran = kseg(["redact", str(source), "--to", str(source / "shared")], tmp_path)
    assert ran.status == 2
    assert digests(source) == before


def test_unknown_kind_is_told_with_the_known_ones(restored: Path, tmp_path: Path) -> None:
    ran = kseg(["redact", str(restored / "logs" / "3.9.1"), "--to", "shared", "--keep", "topic"], tmp_path)
    assert ran.status == 2
    assert b"--keep topic: no such kind of names; the kinds are topics, groups, " in ran.stderr
    assert not (tmp_path / "shared").exists()


NAMES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x2FF), min_size=1, max_size=40).filter(str.isprintable)


@given(st.sets(NAMES, min_size=2, max_size=8), st.integers(1, 60))
def test_groups_stay_apart_and_in_their_partitions(names: set[str], count: int) -> None:
    redaction = Redaction.of(PARTS, "key")
    assert redaction is not None
    found = Names(redaction.redactor(), (), {"__consumer_offsets": count})
    replaced = {name: found.name(NameKind.GROUP, name) for name in names}
    assert len(set(replaced.values())) == len(names)
    for name, other in replaced.items():
        assert len(other.encode()) == len(name.encode())
        assert coordinator_partition(other, count) == coordinator_partition(name, count)


def test_short_tail_and_odd_names_stay_nowhere(restored: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "disk" / "orders-0", tmp_path / "shared"
    shutil.copytree(restored / "docs" / "test-1-0", source)
    log = max(source.glob("*.log"))
    log.write_bytes(log.read_bytes() + b"geheimtext")
    for name in ("geheim.log", "geheim2.index", "notes.geheim", "geheim.checkpoint.deleted"):
        (source / name).write_bytes(b"")
    redact(source.parent, target)
    written = b"".join(path.read_bytes() for path in target.rglob("*") if path.is_file())
    names = " ".join(str(path) for path in target.rglob("*"))
    assert b"geheim" not in written
    assert "geheim" not in names
    assert {path.name for path in target.rglob("*") if path.suffix in (".log", ".index")} >= {log.name}


def test_names_that_are_not_utf8_are_replaced(restored: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "disk", tmp_path / "shared"
    partition = source / "geheim\udcff\udcfe-0"
    shutil.copytree(restored / "docs" / "test-1-0", partition)
    redact(source, target)
    assert "geheim" not in " ".join(ascii(str(path)) for path in target.rglob("*"))
    bundle = kseg(["doctor", str(source), "--bundle", str(tmp_path / "facts.tar.zst"), "-q"], tmp_path)
    assert bundle.status in (0, 1), bundle.stderr
    assert (tmp_path / "facts.tar.zst").exists()


def test_bundle_of_nothing_is_not_written(tmp_path: Path) -> None:
    assert kseg(["doctor", "missing", "--bundle", "facts.tar.zst"], tmp_path).status == 2
    assert not (tmp_path / "facts.tar.zst").exists()

"""Damaged objects: each is named in a line, everything else is read, and nothing is left behind."""

import base64
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.tiered.manifest import LARGEST_MANIFEST
from kseg.tiered.segment_bytes import LARGEST_CHUNK, LARGEST_FILE, MOST_CHUNKS
from tests import golden
from tests.loops import TAKES_ALL, for_each
from tests.run import Run, kseg, run_bounded
from tests.tiered import aiven_objects
from tests.tiered.aiven_objects import Plugin

SAMPLES = golden.ROOT / "tiered" / "bucket" / "prod"
KEY = ["--private-key", f"key1={golden.ROOT / 'tiered' / 'private.pem'}"]
Change = Callable[[Path], None]
"""A function that damages the objects in a partition's folder."""


def objects(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.glob(f"*.{suffix}"))


def change_object(suffix: str, change: Callable[[bytes], bytes]) -> Change:
    """Return a change of the second segment's object with a suffix."""

    def damage(folder: Path) -> None:
        path = objects(folder, suffix)[1]
        path.write_bytes(change(path.read_bytes()))

    return damage


def remove_object(suffix: str) -> Change:
    return lambda folder: objects(folder, suffix)[1].unlink()


def swap_objects(suffix: str) -> Change:
    def damage(folder: Path) -> None:
        first, second = objects(folder, suffix)
        contents = first.read_bytes(), second.read_bytes()
        first.write_bytes(contents[1])
        second.write_bytes(contents[0])

    return damage


def edit_manifest(*names: str, value: object) -> Change:
    """Return a change of a field in the second segment's manifest."""

    def edit(content: bytes) -> bytes:
        manifest = json.loads(content)
        fields = manifest
        for name in names[:-1]:
            fields = fields[name]
        fields[names[-1]] = value
        return json.dumps(manifest).encode()

    return change_object("rsm-manifest", edit)


def flip_bytes(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0x40]) + content[middle + 1 :]


FIXED = {"type": "fixed", "originalChunkSize": 1024, "transformedChunkSize": 9, "finalTransformedChunkSize": 9}
DAMAGES: dict[str, tuple[str, Change, str, str]] = {
    "log-cut": (
        "zstd",
        change_object("log", lambda content: content[:-100]),
        "remote-size",
        "has 5189 bytes, but the manifest says 5289",
    ),
    "log-cut-plain": (
        "plain",
        change_object("log", lambda content: content[:4000]),
        "unreadable",
        "ends before byte 4000, so it was truncated",
    ),
    "log-longer": ("plain", change_object("log", lambda content: content + b"x"), "remote-size", "has 5999 bytes"),
    "log-missing": (
        "plain",
        remove_object("log"),
        "remote-missing",
        "isn't there, though the manifest says 5998 bytes",
    ),
    "indexes-missing": (
        "aes",
        remove_object("indexes"),
        "remote-missing",
        "isn't there, though the manifest says 466 bytes",
    ),
    "indexes-cut": ("zstd", change_object("indexes", lambda content: content[:9]), "remote-size", "has 9 bytes"),
    "manifest-missing": (
        "aes",
        remove_object("rsm-manifest"),
        "remote-unfinished",
        "no manifest next to .indexes and .log",
    ),
    "manifest-cut": (
        "zstd",
        change_object("rsm-manifest", lambda content: content[:99]),
        "remote-manifest",
        "isn't JSON",
    ),
    "manifest-of-another": ("aes", swap_objects("rsm-manifest"), "remote-manifest", "is another segment's manifest"),
    "log-of-another": ("aes", swap_objects("log"), "remote-size", "but the manifest says 6166"),
    "chunk-flipped-aes": ("aes", change_object("log", flip_bytes), "unreadable", "the GCM tag doesn't match"),
    "chunk-broken-zstd": (
        "zstd",
        change_object("log", lambda content: bytes(4) + content[4:]),
        "unreadable",
        "chunk 1 of 6: isn't a zstd frame of up to 1024 bytes",
    ),
    "bytes-zeroed-zstd": (
        "zstd",
        change_object("log", lambda content: content[:2700] + bytes(60) + content[2760:]),
        "bad-crc",
        "CRC is",
    ),
    "bit-flipped-plain": ("plain", change_object("log", flip_bytes), "bad-crc", "CRC"),
    "log-zeroed": ("plain", change_object("log", lambda content: bytes(len(content))), "cut-segment", "zeros"),
    "newer-manifest": ("plain", edit_manifest("version", value="7"), "remote-manifest", "has version '7'"),
    "iceberg": ("plain", edit_manifest("version", value=None), "remote-manifest", "kseg reads manifests of version 1"),
    "no-sizes": (
        "zstd",
        edit_manifest("chunkIndex", "transformedChunks", value="!"),
        "remote-manifest",
        "isn't Base64",
    ),
    "bomb": (
        "zstd",
        edit_manifest("chunkIndex", "originalFileSize", value=1 << 40),
        "remote-manifest",
        "a segment can't have 1099511627776 bytes",
    ),
    "segment-too-long": (
        "plain",
        edit_manifest(
            "chunkIndex", value=FIXED | {"originalChunkSize": LARGEST_FILE, "originalFileSize": LARGEST_FILE + 1}
        ),
        "remote-manifest",
        f"a segment can't have {LARGEST_FILE + 1} bytes",
    ),
    "chunk-size-0": (
        "plain",
        edit_manifest("chunkIndex", "originalChunkSize", value=0),
        "remote-manifest",
        "chunks can't have 0 bytes",
    ),
    "stored-chunk-size-0": (
        "plain",
        edit_manifest("chunkIndex", "transformedChunkSize", value=0),
        "remote-manifest",
        "a stored chunk can't have 0 bytes",
    ),
    "chunk-too-many": (
        "zstd",
        edit_manifest("chunkIndex", value=FIXED | {"originalChunkSize": 1, "originalFileSize": MOST_CHUNKS + 1}),
        "remote-manifest",
        f"the segment has {MOST_CHUNKS + 1} chunks; kseg reads up to {MOST_CHUNKS}",
    ),
    "more-chunks-than-bytes": (
        "zstd",
        edit_manifest("chunkIndex", value=FIXED | {"originalChunkSize": 1, "originalFileSize": 5290}),
        "remote-manifest",
        "it has 5290 chunks, though the log has 5289 bytes",
    ),
    "sizes-too-long": (
        "zstd",
        edit_manifest(
            "chunkIndex", "transformedChunks", value=base64.b64encode(zstandard.compress(bytes(10 << 20))).decode()
        ),
        "remote-manifest",
        "its field transformedChunks isn't a zstd frame of up to 37 bytes",
    ),
    "manifest-too-long": (
        "zstd",
        change_object("rsm-manifest", lambda content: content.ljust(LARGEST_MANIFEST + 1)),
        "remote-manifest",
        f"has {LARGEST_MANIFEST + 1} bytes; kseg reads manifests of up to {LARGEST_MANIFEST}",
    ),
    "other-topic": (
        "plain",
        edit_manifest("remoteLogSegmentMetadata", "startOffset", value=5),
        "remote-manifest",
        "base offset is 5, not 164",
    ),
    "other-key": ("aes", edit_manifest("encryption", "aad", value="AAAA"), "unreadable", "the GCM tag doesn't match"),
}


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    shutil.copytree(SAMPLES, tmp_path / "bucket" / "prod")
    return tmp_path / "bucket"


def folder_of(bucket: Path, topic: str) -> Path:
    return next((bucket / "prod").glob(f"{topic}-A*")) / "0"


def findings(ran: Run) -> list[dict[str, object]]:
    return [each for each in map(json.loads, ran.stdout.splitlines()) if each["type"] == "finding"]


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found_and_named(name: str, bucket: Path, unpacked_into: Path, tmp_path: Path) -> None:
    topic, change, finding, words = DAMAGES[name]
    change(folder_of(bucket, topic))
    ran = kseg(["verify", "bucket", *KEY, "-o", "json"], tmp_path)
    assert ran.status == 1
    named = [str(each["sentence"]) for each in findings(ran) if each["id"] == finding]
    assert any(words in sentence for sentence in named), findings(ran)
    others = {str(each["file"]).split("bucket/")[1].split("/")[0] for each in findings(ran) if each["id"] == finding}
    assert others <= {f"{topic}-0", "prod"}


@pytest.mark.parametrize("name", DAMAGES)
def test_rest_of_a_damaged_tier_is_printed(name: str, bucket: Path, unpacked_into: Path, tmp_path: Path) -> None:
    """The first segment of each partition, and all of the others."""
    topic, change, _, _ = DAMAGES[name]
    whole = kseg(["dump", "bucket", *KEY, "-o", "json", "--only", "records"], tmp_path).stdout.splitlines()
    change(folder_of(bucket, topic))
    ran = kseg(["dump", "bucket", *KEY, "-o", "json", "--only", "records"], tmp_path)
    assert ran.status in (0, 1)
    assert b"Traceback" not in ran.stderr
    left = ran.stdout.splitlines()
    must = [line for line in whole if json.loads(line)["topic"] != topic]
    assert set(must) <= set(left)
    assert len(must) < len(left) or name.endswith("-of-another")


def test_without_its_key_a_segment_is_listed_and_the_option_named(
    bucket: Path, unpacked_into: Path, tmp_path: Path
) -> None:
    ran = kseg(["ls", "bucket", "--topic", "aes", "--by", "segment", "-o", "json", "--now", "now"], tmp_path)
    assert (ran.status, ran.stderr) == (0, b"")
    found = [json.loads(line) for line in ran.stdout.splitlines()][:2]
    assert [(each["baseOffset"], each["lastOffset"], each["bytes"], each["keyId"]) for each in found] == [
        (0, 163, 22287, "key1"),
        (164, 229, 5998, "key1"),
    ]
    ran = kseg(["lookup", "bucket", "--topic", "aes", "--offset", "0"], tmp_path)
    assert ran.status == 2
    assert ran.stderr == (
        b"kseg: bucket/aes-0/00000000000000000000.log: is encrypted with the key key1;"
        b" specify --private-key key1=FILE to decrypt it\n"
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", b"isn't an RSA key in PEM without a password"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", b"isn't an RSA key in PEM"),
        (
            (golden.ROOT / "tiered" / "public.pem").read_bytes(),
            b"is a public key; specify the private key of the pair",
        ),
        (bytes(1 << 17), b"has more than 65536 bytes"),
    ],
)
def test_file_that_is_no_private_key_is_wrong_usage(
    content: bytes, words: bytes, bucket: Path, unpacked_into: Path, tmp_path: Path
) -> None:
    (tmp_path / "key.pem").write_bytes(content)
    ran = kseg(["lookup", "bucket", "--topic", "aes", "--offset", "0", "--private-key", "key1=key.pem"], tmp_path)
    assert ran.status == 2
    assert words in ran.stderr
    assert ran.stderr.count(b"\n") == 1


def test_wrong_private_key_is_named(bucket: Path, unpacked_into: Path, tmp_path: Path) -> None:
    wrong = aiven_objects.private_key_file(tmp_path, 7)
    ran = kseg(["lookup", "bucket", "--topic", "aes", "--offset", "0", "--private-key", f"key1={wrong}"], tmp_path)
    assert ran.status == 2
    assert b"which isn't the private key key1" in ran.stderr


def test_missing_library_is_answered_with_the_line_that_installs_it(
    bucket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "Crypto.PublicKey", None)
    wrong = aiven_objects.private_key_file(tmp_path, 1)
    ran = kseg(["lookup", "bucket", "--topic", "aes", "--offset", "0", "--private-key", f"key1={wrong}"], tmp_path)
    assert ran.status == 2
    assert ran.stderr.endswith(b": pycryptodome is missing; run `pip install 'kseg[tiered]'`\n")
    assert ran.stderr.count(b"\n") == 1


def test_nothing_is_written_into_a_tier(bucket: Path, tmp_path: Path) -> None:
    ran = kseg(["salvage", "bucket", "--to", "bucket/prod/saved"], tmp_path)
    assert ran.status == 2
    assert b"which kseg reads; specify" in ran.stderr
    assert not (bucket / "prod" / "saved").exists()


@settings(max_examples=60 if TAKES_ALL else 20)
@given(st.data())
def test_any_bytes_end_in_lines(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Changed, cut or replaced objects: no traceback, a status, nothing left."""
    root = tmp_path_factory.mktemp("hostile")
    shutil.copytree(SAMPLES, root / "b" / "prod")
    path = data.draw(st.sampled_from(sorted(each for each in (root / "b").rglob("*") if each.is_file())))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    path.write_bytes(content)
    for command in ("ls", "verify", "dump"):
        ran = kseg([command, "b", *KEY], root)
        assert ran.status in (0, 1, 2)
        assert b"Traceback" not in ran.stderr


def test_a_bombs_memory_is_bounded(tmp_path: Path) -> None:
    """A chunk that claims a hundred times the available memory."""
    folder = aiven_objects.store(
        tmp_path / "b", Plugin(is_compressing=True), "t", aiven_objects.segments_of(golden.ROOT / "docs/test-1-0")
    )
    manifest = objects(folder, "rsm-manifest")[0]
    fields = json.loads(manifest.read_text())
    size = LARGEST_CHUNK + 1
    fields["chunkIndex"] |= {"type": "fixed", "originalChunkSize": size, "originalFileSize": size}
    fields["chunkIndex"] |= {"transformedChunkSize": 9000, "finalTransformedChunkSize": 9000}
    manifest.write_text(json.dumps(fields))
    ran = run_bounded(["verify", "b"], tmp_path)
    assert ran.status == 1
    assert f"it has {size} bytes; kseg decodes chunks of up to {LARGEST_CHUNK}".encode() in ran.stdout


@for_each("plugin", [Plugin(), Plugin(is_compressing=True)])
def test_chunks_that_an_object_lacks_cost_nothing(plugin: Plugin, tmp_path: Path) -> None:
    """A manifest that claims the largest segment, with an object of a few KB."""
    folder = aiven_objects.store(tmp_path / "b", plugin, "t", aiven_objects.segments_of(golden.ROOT / "docs/test-1-0"))
    manifest = objects(folder, "rsm-manifest")[0]
    fields = json.loads(manifest.read_text())
    size = 1 << 20
    fields["chunkIndex"] = FIXED | {"originalChunkSize": size, "originalFileSize": LARGEST_FILE}
    fields["chunkIndex"] |= {"transformedChunkSize": size, "finalTransformedChunkSize": size}
    manifest.write_text(json.dumps(fields))
    ran = run_bounded(["verify", "b"], tmp_path)
    assert ran.status == 1
    assert f", but the manifest says {2048 * size}".encode() in ran.stdout
    assert ran.stdout.count(b" unreadable: ") <= 2


@pytest.mark.parametrize("stored_size", [8 << 30, 150 << 20], ids=["one chunk", "many chunks"])
def test_memory_is_bounded_where_chunks_claim_to_be_stored_with_more_than_they_hold(
    stored_size: int, tmp_path: Path
) -> None:
    """An object that is mostly a hole, with the size in its manifest: its chunks of 64 KiB take far more there."""
    folder = aiven_objects.store(
        tmp_path / "b", Plugin(is_compressing=True), "t", aiven_objects.segments_of(golden.ROOT / "docs/test-1-0")
    )
    manifest = objects(folder, "rsm-manifest")[0]
    fields = json.loads(manifest.read_text())
    sizes = {"transformedChunkSize": stored_size, "finalTransformedChunkSize": stored_size}
    fields["chunkIndex"] |= {"type": "fixed", "originalChunkSize": 1 << 16, **sizes}
    manifest.write_text(json.dumps(fields))
    os.truncate(objects(folder, "log")[0], 4 * stored_size)
    ran = run_bounded(["verify", "b"], tmp_path)
    assert ran.status == 1
    assert b"chunk 1 of" in ran.stdout

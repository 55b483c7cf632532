"""Tiers in S3, read by ranges from a moto server."""

import json
import os
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests import golden
from tests.export.object_store import CountingStore, redirect_to, serving
from tests.run import kseg
from tests.tiered import aiven_objects
from tests.tiered.aiven_objects import Plugin

SAMPLES = golden.ROOT / "tiered" / "bucket"
KEY = ["--private-key", f"key1={golden.ROOT / 'tiered' / 'private.pem'}"]
NUMBERS = count()


@cache
def _client(url: str) -> Any:
    import botocore.session

    return botocore.session.get_session().create_client("s3", endpoint_url=url)


class Bucket:
    """A bucket and its requests."""

    def __init__(self, store: CountingStore, name: str) -> None:
        self._store, self.name = store, name
        self.url = f"s3://{name}"

    def upload(self, directory: Path) -> None:
        """Upload all files of a directory."""
        client = _client(os.environ["AWS_ENDPOINT_URL"])
        client.create_bucket(Bucket=self.name)
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                key = path.relative_to(directory).as_posix()
                client.put_object(Bucket=self.name, Key=key, Body=path.read_bytes())
        self._store.requests.clear()

    def read_bytes(self, suffix: str) -> list[range]:
        """Return the ranges that were read of objects with a suffix."""
        return [each.bytes for each in self._store.requests if each.method == "GET" and each.path.endswith(suffix)]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[CountingStore, str]]:
    store = CountingStore()
    with serving(store) as url:
        yield store, url


@pytest.fixture
def bucket(server: tuple[CountingStore, str]) -> Iterator[Bucket]:
    store, url = server
    with redirect_to(url):
        yield Bucket(store, f"tiers-{next(NUMBERS)}")


@pytest.mark.parametrize("topic", ["plain", "zstd", "aes"])
def test_objects_in_s3_are_their_segments_byte_for_byte(topic: str, bucket: Bucket, tmp_path: Path) -> None:
    bucket.upload(SAMPLES)
    url = f"{bucket.url}/prod"
    ran = kseg(["salvage", url, "--topic", topic, *KEY, "--to", "there"], tmp_path)
    assert ran.stderr == b""
    kseg(["salvage", str(SAMPLES), "--topic", topic, *KEY, "--to", "here"], tmp_path)
    for path in (tmp_path / "here").rglob("*.log"):
        assert (tmp_path / "there" / path.relative_to(tmp_path / "here")).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("plugin", [Plugin(32768), Plugin(32768, is_compressing=True), Plugin(32768, key=1)])
def test_lookup_reads_fewer_than_three_chunks(plugin: Plugin, bucket: Bucket, tmp_path: Path) -> None:
    source = golden.ROOT / "docs" / "test-1-0"
    aiven_objects.store(tmp_path / "bucket", plugin, "test-1", aiven_objects.segments_of(source))
    bucket.upload(tmp_path / "bucket")
    keys = [f"--private-key=key1={aiven_objects.private_key_file(tmp_path)}"]
    for offset in (203000, 205555, 207777, 209299):
        before = sum(map(len, bucket.read_bytes(".log")))
        ran = kseg(["lookup", bucket.url, "--offset", str(offset), "-o", "json", *keys], tmp_path)
        assert json.loads(ran.stdout)["record"]["offset"] == offset
        assert ran.stderr == b""
        read = sum(map(len, bucket.read_bytes(".log"))) - before
        assert read < 3 * (plugin.chunk_size + 28)


def test_bucket_that_is_not_there_is_named_in_a_line(bucket: Bucket, tmp_path: Path) -> None:
    ran = kseg(["ls", "s3://nowhere/prod"], tmp_path)
    said = b"kseg: s3://nowhere/prod: no such bucket; check its name and the credentials\n"
    assert (ran.status, ran.stdout, ran.stderr) == (2, b"", said)


def test_bucket_without_segments_says_so(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("x")
    bucket.upload(tmp_path / "notes")
    ran = kseg(["verify", bucket.url], tmp_path)
    assert (ran.status, ran.stdout) == (2, b"")
    said = "no partition here; specify a partition's directory, a log directory, or a parent of it"
    assert ran.stderr == f"kseg: {bucket.url}: {said}\n".encode()


def test_store_that_does_not_answer_is_a_failed_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with redirect_to("http://127.0.0.1:9"):
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        ran = kseg(["ls", "s3://tiers/prod"], tmp_path)
    assert (ran.status, ran.stdout) == (3, b"")
    assert ran.stderr.startswith(b"kseg: s3://tiers/prod: can't be read: ")
    assert ran.stderr.count(b"\n") == 1

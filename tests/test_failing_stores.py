"""Stores that break connections, list without an end or answer nonsense: each run ends with a line."""

import itertools
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest

from kseg.store import objects
from tests import golden
from tests.export.object_store import CountingStore, redirect_to, serving
from tests.loops import for_each
from tests.run import kseg, run_bounded

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication

NEVER_ENDS = "the store's listing repeats itself and would never end; repair the store"


def page(keys: Iterable[str], token: str | None) -> bytes:
    """Return an answer of S3's ListObjectsV2 that announces more pages."""
    contents = "".join(
        f"<Contents><Key>{key}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
        for key in keys
    )
    following = "" if token is None else f"<NextContinuationToken>{token}</NextContinuationToken>"
    xmlns = "http://s3.amazonaws.com/doc/2006-03-01/"
    listing = f"<IsTruncated>true</IsTruncated>{following}{contents}"
    return f'<ListBucketResult xmlns="{xmlns}">{listing}</ListBucketResult>'.encode()


ENDLESS: dict[str, Callable[[int], bytes]] = {
    "same-token": lambda _: page(["t-0/a", "t-0/b"], "again"),
    "same-keys": lambda number: page(["t-0/a", "t-0/b"], str(number)),
    "keys-in-turns": lambda number: page(["t-0/a" if number % 2 else "t-0/b"], str(number)),
}


class EndlessStore:
    """A store whose buckets list without an end, in the ways of ENDLESS by name."""

    def __init__(self) -> None:
        self._numbers = count()
        self.requests = 0

    def __call__(self, environ: dict[str, Any], start_response: "StartResponse") -> list[bytes]:
        """Answer a request by WSGI."""
        self.requests += 1
        start_response("200 OK", [("Content-Type", "application/xml")])
        return [ENDLESS[environ["PATH_INFO"].strip("/")](next(self._numbers))]


def test_listing_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "PAGE", 4)
    store = EndlessStore()
    with serving(store) as url, redirect_to(url):
        for command in ("ls s3://BUCKET/logs", "export --dry-run s3://BUCKET/logs out"):
            for name in ENDLESS if command.startswith("ls") else ["same-token"]:
                ran = kseg(command.replace("BUCKET", name).split(), tmp_path)
                assert (ran.status, ran.stdout) == (3, b"")
                assert ran.stderr.splitlines()[-1] == f"kseg: s3://{name}/logs: {NEVER_ENDS}".encode()
    assert store.requests < 50


def test_listing_that_names_nothing_and_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "SECONDS", 1)
    monkeypatch.setitem(ENDLESS, "no-keys", lambda number: page([], str(number)))
    with serving(EndlessStore()) as url, redirect_to(url):
        ran = kseg(["ls", "s3://no-keys"], tmp_path)
    assert (ran.status, ran.stdout) == (3, b"")
    assert ran.stderr == b"kseg: s3://no-keys: can't be read: the store sent nothing for 1 s\n"


def nothing(environ: dict[str, Any], start_response: "StartResponse", _: "WSGIApplication") -> Iterable[bytes]:
    """Close the connection."""
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    start_response("200 OK", [])
    return []


def half(environ: dict[str, Any], start_response: "StartResponse", store: "WSGIApplication") -> Iterator[bytes]:
    """Close the connection in the middle of the body."""
    status, headers = "", []

    def start(told: str, given: list[tuple[str, str]], *_: object) -> Callable[[bytes], object]:
        nonlocal status, headers
        status, headers = told, [header for header in given if header[0].lower() != "content-length"]
        return nowhere

    body = b"".join(store(environ, start))
    start_response(status, [*headers, ("Content-Length", str(len(body) + 1))])
    yield body[: len(body) // 2]
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)


def nowhere(_: bytes) -> object:
    """Discard the bytes of WSGI's old way of writing."""


def headers(environ: dict[str, Any], start_response: "StartResponse", _: "WSGIApplication") -> Iterable[bytes]:
    """Close the connection in the middle of the headers."""
    environ["werkzeug.socket"].sendall(b"HTTP/1.1 206 Partial Content\r\nContent-Type: appli")
    return nothing(environ, start_response, _)


def reset(environ: dict[str, Any], _: "StartResponse", __: "WSGIApplication") -> Iterable[bytes]:
    """Reset the connection, like a router that has lost its state."""
    environ["werkzeug.socket"].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(environ["werkzeug.socket"].detach())
    raise ConnectionResetError


def busy(_: dict[str, Any], start_response: "StartResponse", __: "WSGIApplication") -> Iterable[bytes]:
    """Answer like S3 under load."""
    start_response("503 Slow Down", [("Content-Type", "application/xml")])
    return [b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate</Message></Error>"]


def nonsense(_: dict[str, Any], start_response: "StartResponse", __: "WSGIApplication") -> Iterable[bytes]:
    """Answer as S3 never does."""
    start_response("200 OK", [("Content-Type", "application/xml")])
    return [b"<ListBucketResult><Contents><Size>x</Size></Contents></ListBucketResult>"]


class BreakingStore:
    """A store that breaks every request from some number on, counted from 1, or only one."""

    def __init__(self, store: "WSGIApplication") -> None:
        self._store = store
        self._lock = Lock()
        self._answer: Callable[..., Iterable[bytes]] | None = None
        self._left = 0
        self._most = 0
        self.broken = 0

    def break_from(self, number: int, answer: Callable[..., Iterable[bytes]] | None, most: int = 1 << 30) -> None:
        """Give these answers to at most `most` requests, counted from now; None breaks none."""
        self._left, self._answer, self._most, self.broken = number, answer, most, 0

    def __call__(self, environ: dict[str, Any], start_response: "StartResponse") -> Iterable[bytes]:
        """Answer a request by WSGI."""
        with self._lock:
            self._left -= 1
            is_broken = self._answer is not None and self._left <= 0 and self.broken < self._most
            self.broken += is_broken
        if is_broken and self._answer is not None:
            return self._answer(environ, start_response, self._store)
        return self._store(environ, start_response)


LOOKUP = "lookup s3://tier --topic zstd --offset 200"
REQUESTS = 5
"""Requests of the lookup: the listing, two manifests, an index, the log."""


@for_each(
    "answer, number",
    [
        *((half, number) for number in range(1, REQUESTS + 1)),
        *((headers, number) for number in (1, 2, REQUESTS)),
        (nothing, 1),
        (reset, REQUESTS),
        (busy, 2),
    ],
    ids=lambda case: f"{case[0].__name__} from {case[1]}",
)
def test_store_that_breaks_at_any_request_is_a_line_and_status_3(
    answer: Callable[..., Iterable[bytes]], number: int, broken_store: BreakingStore, tmp_path: Path
) -> None:
    broken_store.break_from(number, answer)
    ran = kseg(LOOKUP.split(), tmp_path)
    said = [line for line in ran.stderr.decode().splitlines() if line.startswith("kseg: s3://tier")]
    assert (ran.status, ran.stdout, len(said)) == (3, b"", 1), ran
    assert broken_store.broken


def test_lookup_asks_as_often_as_it_is_broken_above_and_succeeds_afterwards(
    broken_store: BreakingStore, tmp_path: Path
) -> None:
    broken_store.break_from(REQUESTS + 2, nothing)
    ran = kseg(LOOKUP.split(), tmp_path)
    assert (ran.status, broken_store.broken) == (0, 0), ran


def test_reindex_takes_no_store_that_breaks_for_a_damaged_index(broken_store: BreakingStore, tmp_path: Path) -> None:
    for number in range(9, 13):  # of 12 requests; the last ones are for indexes and snapshots
        broken_store.break_from(number, nothing)
        ran = kseg(["reindex", "s3://tier", "--to", "out", "-q"], tmp_path)
        assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (3, b"", 1), ran
        assert broken_store.broken
        assert not (tmp_path / "out").exists()


def test_export_takes_no_answer_without_bytes_for_the_log(broken_store: BreakingStore, tmp_path: Path) -> None:
    for answer in (nothing, headers, half):
        broken_store.break_from(3, answer)  # after two requests that list
        ran = kseg(["export", "s3://logs", "out"], tmp_path)
        assert (ran.status, ran.stdout) == (3, b""), ran
        assert ran.stderr.startswith(b"kseg: s3://logs/test-1-0/"), ran
        assert broken_store.broken
        assert not (tmp_path / "out").exists()


def test_listing_that_s3_never_writes_is_a_line(broken_store: BreakingStore, tmp_path: Path) -> None:
    broken_store.break_from(1, nonsense)
    ran = kseg(["ls", "s3://tier"], tmp_path)
    assert (ran.status, ran.stdout) == (3, b"")
    assert ran.stderr.decode().splitlines()[-1].startswith("kseg: s3://tier: can't be read: Got invalid list response")


def elsewhere(_: dict[str, Any], start_response: "StartResponse", __: "WSGIApplication") -> Iterable[bytes]:
    """Redirect to another region without its name."""
    start_response("301 Moved Permanently", [("Location", "/elsewhere")])
    return []


def talkative(_: dict[str, Any], start_response: "StartResponse", __: "WSGIApplication") -> Iterable[bytes]:
    """Refuse with a long message of several lines."""
    start_response("403 Forbidden", [("Content-Type", "application/xml")])
    return [b"<Error><Code>Denied</Code><Message>" + b"no " * 100_000 + b"\nsecond line</Message></Error>"]


@for_each(
    "answer, command, status",
    [
        (elsewhere, LOOKUP, 3),
        (elsewhere, "ls s3://tier", 3),
        (elsewhere, "export s3://logs out", 3),
        (elsewhere, f"export {golden.ROOT}/docs s3://logs/out", 3),
        (talkative, LOOKUP, 3),
    ],
    ids=lambda case: f"{case[0].__name__} {case[1].split()[0]}",
)
def test_store_that_redirects_or_talks_without_an_end_is_a_line(
    answer: Callable[..., Iterable[bytes]], command: str, status: int, broken_store: BreakingStore, tmp_path: Path
) -> None:
    broken_store.break_from(1, answer)
    ran = run_bounded(command.split(), tmp_path, memory=2 << 30)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (status, b"", 1), ran
    assert ran.stderr.startswith((b"kseg: s3://", b"kseg: http://127.0.0.1:")), ran
    assert len(ran.stderr) < 1000
    assert 0 < broken_store.broken < 50


def other_region(_: dict[str, Any], start_response: "StartResponse", __: "WSGIApplication") -> Iterable[bytes]:
    """Redirect like S3 after a request to the wrong region."""
    start_response("301 Moved Permanently", [("x-amz-bucket-region", "eu-west-1")])
    return [b"<Error><Code>PermanentRedirect</Code><Message>Use the specified endpoint</Message></Error>"]


def test_bucket_of_another_region_says_what_to_set(broken_store: BreakingStore, tmp_path: Path) -> None:
    broken_store.break_from(1, other_region)
    ran = kseg(["ls", "s3://tier"], tmp_path)
    said = b"kseg: s3://tier: is in another region; set AWS_REGION to the region of the bucket\n"
    assert (ran.status, ran.stdout, ran.stderr) == (2, b"", said)


def no_folders(environ: dict[str, Any], start_response: "StartResponse") -> list[bytes]:
    """Answer like a web server, whose folders can't be listed."""
    start_response("405 Method Not Allowed", [])
    return []


def test_folder_of_a_web_server_says_that_it_cannot_be_listed(tmp_path: Path) -> None:
    with serving(no_folders) as url:
        ran = kseg(["ls", f"{url}/disk"], tmp_path)
    said = f"kseg: {url}/disk: can't be listed, since web servers have no listings; specify the URL of a file\n"
    assert (ran.status, ran.stdout, ran.stderr.decode()) == (2, b"", said)


INTERRUPTED = """
import os, signal, socket, threading
from kseg.__main__ import main

silent, accepted = socket.create_server(("127.0.0.1", 0)), []
os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{silent.getsockname()[1]}"

def interrupt():
    accepted.append(silent.accept())
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
os._exit(main(["ls", "s3://tier"]))
"""
"""Runs kseg with a store that never answers; another thread than the waiting one gets a signal."""


def test_interrupt_ends_a_run_whose_store_says_nothing() -> None:
    """The system chooses the thread. If it wasn't the main one, nothing ended the wait for two minutes."""
    with redirect_to("http://127.0.0.1:9"):
        ran = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (130, b"")


def test_any_number_of_attempts_is_taken(
    broken_store: BreakingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "9" * 30)
    broken_store.break_from(1, None)
    assert kseg(["ls", "s3://tier", "-q"], tmp_path).status == 0


def forgetful(_: dict[str, Any], start_response: "StartResponse", __: "WSGIApplication") -> Iterable[bytes]:
    """Take everything and keep nothing."""
    start_response("200 OK", [("Content-Type", "application/xml")])
    return [b"<ListBucketResult/>"]


def test_store_that_keeps_nothing_is_no_destination(broken_store: BreakingStore, tmp_path: Path) -> None:
    broken_store.break_from(1, forgetful)
    ran = kseg(["export", str(golden.ROOT / "docs"), "s3://logs/out"], tmp_path)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (3, b"", 1), ran
    assert ran.stderr.startswith(b"kseg: s3://logs/out"), ran
    assert broken_store.broken < 100


def test_message_names_no_secret_of_a_url(tmp_path: Path) -> None:
    for url in (
        "s3://user:hunter2@bucket/x",
        "gs://user:hunter2@bucket/x",
        "abfs://user:hunter2@box/x",
        "webhdfs://user:hunter2@127.0.0.1:1/x",
        "s3://bucket/x?endpoint_override=127.0.0.1:1&secret_key=hunter2",
    ):
        with redirect_to("http://127.0.0.1:1") as patch:
            patch.setenv("AWS_MAX_ATTEMPTS", "1")
            ran = run_bounded(["export", url, "out"], tmp_path)
        assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1), ran
        assert b"***" in ran.stderr
        assert b"hunter2" not in ran.stderr


def of_size(size: int, key: str = "t-0/00000000000000000000.log") -> Callable[..., Iterable[bytes]]:
    """Return a store that lists one log of that size."""

    def answer(_: dict[str, Any], start_response: "StartResponse", __: "WSGIApplication") -> Iterable[bytes]:
        modified = "2026-01-01T00:00:00.000Z"
        contents = f"<Key>{key}</Key><Size>{size}</Size><LastModified>{modified}</LastModified>"
        start_response("200 OK", [("Content-Type", "application/xml")])
        return [f"<ListBucketResult><Contents>{contents}</Contents></ListBucketResult>".encode()]

    return answer


def test_sizes_that_no_object_has_are_a_line(broken_store: BreakingStore, tmp_path: Path) -> None:
    for size in (-1, 1 << 63, 1 << 70):
        for command, status in (("ls s3://tier", 3), ("salvage s3://tier --to out", 3), ("export s3://logs out", 3)):
            broken_store.break_from(1, of_size(size))
            ran = kseg(command.split(), tmp_path)
            assert (ran.status, ran.stdout) == (status, b""), (size, ran)
            assert ran.stderr.startswith(b"kseg: s3://"), ran
            assert not (tmp_path / "out").exists()


def test_object_that_was_replaced_since_it_was_listed_is_refused(broken_store: BreakingStore, tmp_path: Path) -> None:
    """It was taken for a log that ends in the middle of a batch."""
    broken_store.break_from(1, of_size(5000, "test-1-0/00000000000000203000.log"), 1)
    ran = kseg(["verify", "s3://logs"], tmp_path)
    assert ran.status
    assert b"00000000000000203000.log has 199858 bytes, but was listed with 5000" in ran.stdout + ran.stderr
    assert b"torn-tail" not in ran.stdout


def test_object_that_is_larger_than_a_file_may_be_is_a_line(broken_store: BreakingStore, tmp_path: Path) -> None:
    broken_store.break_from(1, of_size((1 << 63) - 1), 1)
    ran = kseg(["ls", "s3://tier"], tmp_path)
    said = (
        "s3://tier/t-0/00000000000000000000.log: can't be read: this machine allows no file of"
        " 9223372036854775807 bytes"
    )
    assert (ran.status, ran.stderr.decode()) == (2, f"kseg: {said}\n")


def test_large_log_is_asked_for_piece_by_piece(broken_store: BreakingStore, tmp_path: Path) -> None:
    """It is read in pieces whatever size it claims: all pieces were queued at once."""
    broken_store.break_from(1, of_size(1 << 60), 2)
    ran = run_bounded(["export", "s3://logs", "out"], tmp_path, memory=4 << 30)
    log = b"s3://logs/t-0/00000000000000000000.log"
    said = log + b": can't be read: this machine allows no file of 1152921504606846976 bytes"
    assert (ran.status, ran.stdout, ran.stderr) == (2, b"", b"kseg: " + said + b"\n")


def whole(environ: dict[str, Any], start_response: "StartResponse", store: "WSGIApplication") -> Iterable[bytes]:
    """Answer with the complete object, whatever part of it is requested."""
    environ.pop("HTTP_RANGE", None)
    return store(environ, start_response)


def longer(environ: dict[str, Any], start_response: "StartResponse", store: "WSGIApplication") -> Iterable[bytes]:
    """Answer with more bytes than requested."""
    status, kept = "", []

    def start(told: str, given: list[tuple[str, str]], *_: object) -> Callable[[bytes], object]:
        nonlocal status, kept
        status, kept = told, [header for header in given if header[0].lower() != "content-length"]
        return nowhere

    body = b"".join(store(environ, start)) + bytes(1000)
    start_response(status, [*kept, ("Content-Length", str(len(body)))])
    return [body]


def test_answer_with_other_bytes_than_were_asked_for_is_none(broken_store: BreakingStore, tmp_path: Path) -> None:
    for number, answer in ((REQUESTS, whole), (2, longer), (REQUESTS, longer)):
        broken_store.break_from(number, answer, 1)
        ran = kseg(LOOKUP.split(), tmp_path)
        assert (ran.status, ran.stdout, broken_store.broken) == (3, b"", 1), (number, answer, ran)
        assert b": can't be read: " in ran.stderr


def test_endpoint_that_can_not_be_one_is_named(tmp_path: Path) -> None:
    with redirect_to("localhost:9000"):
        ran = kseg(["ls", "s3://tier"], tmp_path)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)
    said = b"kseg: s3://tier: the store's endpoint 'localhost:9000' isn't a URL; put http:// or https:// before it\n"
    assert ran.stderr == said


@pytest.fixture(scope="module")
def broken_store() -> Iterator[BreakingStore]:
    """Yield a store with a tier in the bucket `tier`, a partition in `logs`; requests aren't repeated."""
    import botocore.session

    store = BreakingStore(CountingStore())
    with serving(store) as url, redirect_to(url) as patch:
        patch.setenv("AWS_MAX_ATTEMPTS", "1")
        client = botocore.session.get_session().create_client("s3", endpoint_url=url)
        client.create_bucket(Bucket="tier")
        folder = next((golden.ROOT / "tiered" / "bucket" / "prod").glob("zstd-*"))
        for path in folder.rglob("*.*"):
            key = path.relative_to(folder.parent).as_posix()
            client.put_object(Bucket="tier", Key=key, Body=path.read_bytes())
        client.create_bucket(Bucket="logs")
        for path in (golden.ROOT / "docs/test-1-0").iterdir():
            client.put_object(Bucket="logs", Key=f"test-1-0/{path.name}", Body=path.read_bytes())
        yield store


class WebHdfs:
    """A directory of this machine, served by WebHDFS."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __call__(self, environ: dict[str, Any], start_response: "StartResponse") -> list[bytes]:
        """Answer a request by WSGI."""
        path = self._root / environ["PATH_INFO"].removeprefix("/webhdfs/v1").strip("/")
        asked = {name: values[0] for name, values in parse_qs(environ["QUERY_STRING"]).items()}
        if asked["op"] == "OPEN":
            start = int(asked["offset"])
            body = path.read_bytes()[start : start + int(asked["length"])]
        elif asked["op"] == "LISTSTATUS":
            body = json.dumps({"FileStatuses": {"FileStatus": [_status(each) for each in path.iterdir()]}}).encode()
        else:
            body = json.dumps({"FileStatus": _status(path)}).encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]


def _status(path: Path) -> dict[str, object]:
    kind = "DIRECTORY" if path.is_dir() else "FILE"
    return {"pathSuffix": path.name, "type": kind, "length": path.stat().st_size, "modificationTime": 1}


def nobody(_: dict[str, Any], start_response: "StartResponse", __: "WSGIApplication") -> Iterable[bytes]:
    """Answer with empty JSON."""
    start_response("200 OK", [("Content-Type", "application/json")])
    return [b"{}"]


def test_namenode_that_breaks_at_any_request_leaves_nothing_out(tmp_path: Path) -> None:
    """One broken answer had the effect that an unlisted folder was taken for empty, and a log for damaged."""
    shutil.copytree(golden.ROOT / "docs/test-1-0", tmp_path / "hdfs/test-1-0")
    store = BreakingStore(WebHdfs(tmp_path / "hdfs"))
    with serving(store) as url:
        command = ["export", url.replace("http", "webhdfs"), "out"]
        for number, answer in itertools.product(range(1, 10), (nothing, headers, half, nobody)):
            store.break_from(number, answer, 1)
            ran = kseg(command, tmp_path)
            if not store.broken:
                break
            assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1), (number, answer, ran)
            assert ran.stderr.startswith(b"kseg: webhdfs://"), ran
            assert not (tmp_path / "out").exists()
        assert (number, ran.status) == (9, 0)


class OddNameNode:
    """A NameNode with a given answer for each path."""

    def __init__(self, **changed: object) -> None:
        self._changed = changed
        self.requests = 0

    def __call__(self, environ: dict[str, Any], start_response: "StartResponse") -> list[bytes]:
        """Answer a request by WSGI."""
        self.requests += 1
        status = {"pathSuffix": "00000000000000000000.log", "type": "FILE", "length": 1, "modificationTime": 1}
        listed = [status | self._changed]
        folder = status | {"type": "DIRECTORY"}
        start_response("200 OK", [("Content-Type", "application/json")])
        is_listing = "LISTSTATUS" in environ["QUERY_STRING"]
        return [json.dumps({"FileStatuses": {"FileStatus": listed}} if is_listing else {"FileStatus": folder}).encode()]


ODD_STATUSES: list[dict[str, object]] = [
    {"length": -1},
    {"length": 1 << 63},
    {"length": "1"},
    {"modificationTime": 1 << 70},
    {"modificationTime": -(1 << 70)},
    {"pathSuffix": 1},
    {"pathSuffix": "../../t-0/00000000000000000000.log"},
    {"type": None},
    {"pathSuffix": "a", "type": "DIRECTORY"},
]


@for_each("changed", ODD_STATUSES)
def test_status_that_no_namenode_gives_is_a_line(changed: dict[str, object], tmp_path: Path) -> None:
    node = OddNameNode(**changed)
    with serving(node) as url:
        ran = kseg(["export", f"{url.replace('http', 'webhdfs')}/d/t-0", "out"], tmp_path)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1), ran
    assert ran.stderr.endswith(b" doesn't answer like HDFS; check the URL\n"), ran
    assert not (tmp_path / "out").exists()
    assert node.requests < 200


def test_answer_of_a_namenode_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kseg.store.web_hdfs.LARGEST_ANSWER", 10)
    with serving(OddNameNode()) as url:
        ran = kseg(["export", f"{url.replace('http', 'webhdfs')}/d/t-0", "out"], tmp_path)
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)
    assert b"/webhdfs/v1/d/t-0 answers with more than 10 bytes" in ran.stderr


def test_namenode_that_says_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kseg.store.web_hdfs.SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ran = kseg(["export", f"webhdfs://127.0.0.1:{silent.getsockname()[1]}/d/t-0", "out"], tmp_path)
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)
    assert ran.stderr.endswith(b"/webhdfs/v1/d/t-0 doesn't answer\n")

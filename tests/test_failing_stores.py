"""Stores that break connections, list without an end or answer nonsense: each run ends in a line."""

from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kseg.store.remote_files import MOST_EMPTY_PAGES
from tests.export.object_store import meant, serving
from tests.run import kseg

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse

NEVER_ENDS = "the store's listing repeats itself and would never end; repair the store"


def page(keys: Iterable[str], token: str | None) -> bytes:
    """An answer of S3's ListObjectsV2 that more follows."""
    contents = "".join(
        f"<Contents><Key>{key}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
        for key in keys
    )
    following = "" if token is None else f"<NextContinuationToken>{token}</NextContinuationToken>"
    xmlns = "http://s3.amazonaws.com/doc/2006-03-01/"
    listing = f"<IsTruncated>true</IsTruncated>{following}{contents}"
    return f'<ListBucketResult xmlns="{xmlns}">{listing}</ListBucketResult>'.encode()


ENDLESS = {
    "same-token": lambda _: page(["t-0/a", "t-0/b"], "again"),
    "same-keys": lambda number: page(["t-0/a", "t-0/b"], str(number)),
    "no-keys": lambda number: page([], str(number)),
    "no-token": lambda _: page(["t-0/a"], None),
    "keys-in-turns": lambda number: page(["t-0/a" if number % 2 else "t-0/b"], str(number)),
}


class EndlessStore:
    """A store whose buckets list without an end, as ENDLESS says by their names."""

    def __init__(self) -> None:
        self._numbers = count()
        self.requests = 0

    def __call__(self, environ: dict[str, Any], start_response: "StartResponse") -> list[bytes]:
        """Answers a request, as WSGI has it."""
        self.requests += 1
        start_response("200 OK", [("Content-Type", "application/xml")])
        return [ENDLESS[environ["PATH_INFO"].strip("/")](next(self._numbers))]


def test_listing_that_never_ends_is_ended(tmp_path: Path) -> None:
    store = EndlessStore()
    with serving(store) as url, meant(url):
        for command in ("ls s3://BUCKET/logs", "export --dry-run s3://BUCKET/logs out"):
            for name in ENDLESS if command.startswith("ls") else ["same-token"]:
                ran = kseg(command.replace("BUCKET", name).split(), tmp_path)
                assert (ran.status, ran.stdout) == (3, b"")
                assert ran.stderr.splitlines()[-1] == f"kseg: s3://{name}/logs/: {NEVER_ENDS}".encode()
    assert store.requests < MOST_EMPTY_PAGES + 50

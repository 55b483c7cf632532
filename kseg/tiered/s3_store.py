"""Remote objects in S3, or in a store that speaks its protocol: listed, and read by ranges, with s3fs' own client."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from kseg.errors import ClusterError, KsegError, OpenError, UsageError, missing_library
from kseg.tiered.layouts import TierLayout, parse_object_name
from kseg.tiered.object_store import StoredObject, broken

SCHEMES = ("s3://", "s3a://")
_FIRST_OBJECTS = 1000
"""As many as one request lists."""


def is_s3(path: str) -> bool:
    """Whether a path is a URL of S3."""
    return path.startswith(SCHEMES)


class S3Store:
    """Objects of a bucket below a prefix. Credentials, region and endpoint are found as by Amazon's own tools."""

    is_near = False

    def __init__(self, url: str) -> None:
        """Takes the URL. Raises UsageError without s3fs, or if the URL names no bucket."""
        try:
            import botocore.session  # noqa: F401
            import s3fs  # noqa: F401
        except ImportError as error:
            raise UsageError(missing_library("s3fs", "s3"), url) from error
        self.name = self.address = url.rstrip("/")
        self._bucket, _, folder = url.partition("://")[2].partition("/")
        self._prefix = f"{folder.strip('/')}/" if folder.strip("/") else ""
        if not self._bucket:
            raise UsageError("names no bucket: s3://BUCKET/PREFIX", url)
        self._clients: dict[int, Any] = {}

    def objects(self) -> Iterator[StoredObject]:
        """See ObjectStore."""
        from kseg.tiered.s3_folder import S3Folder

        with self._named_errors():
            for each in S3Folder(self._bucket, self._prefix).objects():
                if not each.key.endswith("/"):
                    yield StoredObject(each.key.removeprefix(self._prefix), each.size, each.modified_ms)

    def read(self, key: str, start: int, end: int) -> bytes:
        """See ObjectStore."""
        from botocore.exceptions import ClientError

        if start >= end:
            return b""
        try:
            answer = self._client().get_object(
                Bucket=self._bucket, Key=self._prefix + key, Range=f"bytes={start}-{end - 1}"
            )
            with answer["Body"] as body:
                content: bytes = body.read()
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code"))
            if code == "InvalidRange":
                return b""
            if code in ("NoSuchKey", "404"):
                raise broken(f"{self.name}/{key} isn't there any more") from error
            raise self._failure(error, f"{self.name}/{key}") from error
        except self._errors() as error:
            raise self._failure(error, f"{self.name}/{key}") from error
        return content

    def _client(self) -> Any:
        """This process's client: one that was forked can't share its parent's connections."""
        from kseg.tiered.s3_folder import s3_client

        process = os.getpid()
        if process not in self._clients:
            self._clients[process] = s3_client()
        return self._clients[process]

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except self._errors() as error:
            raise self._failure(error, self.name) from error

    def _errors(self) -> tuple[type[Exception], ...]:
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

        return BotoCoreError, ClientError, HTTPClientError

    def _failure(self, error: Exception, place: str) -> OpenError | ClusterError:
        """The store's error in a line. A bucket that isn't there can't be opened; all else the store failed at."""
        reason = str(error).partition("\n")[0]
        if "NoSuchBucket" in reason:
            return OpenError("no such bucket; `aws s3 ls` lists yours", place)
        return ClusterError(f"can't be read: {reason}", place)


def begins_as_tier(url: str) -> bool:
    """Whether the first objects at a URL have names of a remote tier, not those of a broker's own files.

    One request; False also if they can't be listed.
    """
    try:
        store = S3Store(url)
        for stored in islice(store.objects(), _FIRST_OBJECTS):
            name = parse_object_name(f"{store.address}/{stored.key}")
            if name is not None:
                return name.layout is not TierLayout.PLAIN
    except KsegError:
        return False
    return False

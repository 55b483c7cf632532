"""Object stores (S3, Google's, Azure's, HTTP servers) through the library obstore: listed, read by ranges, written.

Another thread waits for answers, so that signals can end a run while a store doesn't answer.
"""

import math
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cached_property
from itertools import chain, pairwise
from threading import Lock, current_thread, main_thread
from typing import Any, NoReturn, TypeVar

from kseg.errors import (
    ClusterError,
    KsegError,
    OpenError,
    UsageError,
    missing_library,
    plural,
    quote,
    reason,
    without_secrets,
)
from kseg.store.location import StoredObject, StoreKind, StoreUrl, content_error, parse_url
from kseg.store.settings import StoreSettings, settings_of
from kseg.system.run_usage import in_threads, result_of

AT_ONCE = 16
"""Concurrent requests."""
MOST_WAITING = 4
"""The most threads that wait for the main one: an abandoned request may still run."""
SECONDS = 120
"""The longest silence of a store in seconds, repeated requests included."""
PAGE = 1000
"""Objects in one answer of S3."""
REQUESTS_OF_RANGE = 4
"""Requests per range of keys: few enough to share the work, and enough to make up for each range's empty request."""
FEW_FOLDERS = 16
"""The most folders whose subfolders are listed too: those of brokers or disks, not of partitions."""
MOST_LEVELS = 3
UNSORTED = "--x-s3"
"""Suffix of bucket names whose objects aren't listed in order."""
LARGEST_SIZE = (1 << 63) - 1
"""The most bytes of a file on any system."""
_NEVER_ENDS = "the store's listing repeats itself and would never end; repair the store"
PIECE = 8 << 20
"""The most bytes in one request, and the size of a part of a written object."""
_CODE = re.compile(r"<Code>([^<]*)</Code>.*?<Message>([^<]*)</Message>", re.DOTALL)
_GENERIC = re.compile(r"^Generic \w+ error: ")
_ELAPSED = re.compile(r" in [\d.]+[mµn]?s(,.*)?$")
_CAUSE = re.compile(r'(?:message|error): "([^"]+)"')
_ODD_KEY = re.compile(r'invalid path: .*?Path "([^"]*)"')
_CURES = (
    (
        ("NoSuchBucket", "ContainerNotFound"),
        "no such bucket; check its name and the credentials",
    ),
    (("incorrectly", "PermanentRedirect"), "is in another region; set AWS_REGION to the region of the bucket"),
    (
        ("MissingAccount",),
        "no account is set; set AZURE_STORAGE_ACCOUNT, or specify az://CONTAINER@ACCOUNT.blob.core.windows.net/PREFIX",
    ),
    (("PROPFIND",), "can't be listed, since web servers have no listings; specify the URL of a file"),
    (
        ("http://169.254.169.254", "metadata.google.internal"),
        "no credentials are set, and this machine provides none; set some as docs/how-to/buckets.md explains",
    ),
)
"""Words in the library's errors, and the advice for each."""
_PANICS = ("RustPanic", "PanicException")
"""Names of obstore's panics: no module exports the classes, and PanicException isn't an Exception."""
_EXTRAS = {StoreKind.S3: "s3", StoreKind.GCS: "gcs", StoreKind.AZURE: "azure", StoreKind.HTTP: "http"}
Given = TypeVar("Given")


class Requests:
    """A thread that waits for answers, so that signals still end the run: the library blocks them while it waits."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MOST_WAITING, "store")

    def answer(self, request: Callable[[], Given], seconds: float) -> Given:
        """Return the result of a request. Raises its error, or TimeoutError after `seconds`.

        Only the main thread receives signals.
        """
        if current_thread() is not main_thread():
            return request()
        return result_of(self._pool.submit(request), seconds)


class ObjectsOfStore:
    """Objects below a URL. The first use makes the first request.

    Raises UsageError without obstore, for a URL without a bucket, or for invalid settings.
    """

    is_near = False

    def __init__(self, url: str) -> None:
        self._url = parse_url(url)
        self.name = self.address = url.rstrip("/")
        self._prefix = f"{self._url.key}/" if self._url.key else ""
        require_library(self._url)

    def __reduce__(self) -> tuple[Callable[[str], "ObjectsOfStore"], tuple[str]]:
        return ObjectsOfStore, (self.name,)

    @cached_property
    def _requests(self) -> Requests:
        return Requests()

    @cached_property
    def _store(self) -> Any:
        try:
            return open_store(self._url, settings_of(self._url))
        except KsegError as error:
            error.path = error.path or self.name
            raise
        except BaseException as error:
            if not _is_librarys(error):
                raise
            raise UsageError(_cure(str(error)) or f"can't be opened: {describe_error(error)}", self.name) from error

    def objects(self) -> Iterator[StoredObject]:
        """See ObjectStore."""
        for found, following in pairwise(chain(self._list_by_key(), [None])):
            assert found is not None
            is_folder = not found.size and following is not None and following.key.startswith(f"{found.key}/")
            if not is_folder:  # a folder's marker: the library omits its slash
                yield found._replace(key=found.key.removeprefix(self._prefix))

    def _list_by_key(self) -> Iterator[StoredObject]:
        """Yield all objects by key; the first answer tells whether concurrent listing of ranges pays for the rest."""
        first = next(self._pages(), [])
        if not first:
            self._refuse_html()
        yield from first
        if len(first) < PAGE:
            return
        above = first[-1].key
        if self._url.kind not in (StoreKind.S3, StoreKind.GCS) or self._url.bucket.endswith(UNSORTED):
            for page in self._pages(skipped=len(first)):
                yield from page
            return
        folders = {found.key.rpartition("/")[0] for found in first}
        per_range = max(REQUESTS_OF_RANGE * len(folders), 1)
        for page in in_threads(lambda ends: self._range(*ends), self._ranges(above, per_range), AT_ONCE):
            yield from page

    def _refuse_html(self) -> None:
        """Raise ClusterError if the store is a web server: the library reads XML pages as empty listings."""
        if self._url.kind not in (StoreKind.S3, StoreKind.GCS):
            return
        told = ""
        with suppress(KsegError, FileNotFoundError):  # the right to list a prefix may not include this request
            told = self._answer(lambda: self._store.get(""), self.name).attributes.get("Content-Type", "")
        if "html" in told.lower():
            raise ClusterError(
                "can't be listed: the answer is an HTML page; correct the store's endpoint, or the proxy", self.name
            )

    def _ranges(self, above: str, per_range: int) -> Iterator[tuple[str, str | None]]:
        """Return consecutive ranges of keys: from above the first key up to the second."""
        for number, folder in enumerate(self._folders(self._prefix, MOST_LEVELS), 1):
            if number % per_range == 0 and folder > above:
                yield above, folder
                above = folder
        yield above, None

    def _folders(self, prefix: str, levels: int) -> Iterator[str]:
        """Return the folders below a prefix in order, with their subfolders if they are few."""
        found = self._answer(lambda: self._store.list_with_delimiter(prefix or None), self.name)
        folders = [f"{each}/" for each in sorted(found["common_prefixes"])]
        for folder in folders:
            yield folder
            if len(folders) < FEW_FOLDERS and levels:
                yield from self._folders(folder, levels - 1)

    def _range(self, above: str, end: str | None) -> list[StoredObject]:
        found: list[StoredObject] = []
        for page in self._pages(above):
            found += page
            if end is not None and found and found[-1].key > end:
                break
        return [each for each in found if end is None or each.key <= end]

    def _pages(self, above: str | None = None, skipped: int = 0) -> Iterator[list[StoredObject]]:
        """Yield the answers of a listing after a key. Raises ClusterError for an endless listing."""
        stream = self._errors(lambda: self._store.list(self._prefix or None, offset=above, chunk_size=PAGE), self.name)
        last = above or ""
        while page := self._answer(lambda: next(stream, None), self.name):
            found = [_object(each) for each in page]
            if max(each.size for each in found) > LARGEST_SIZE:
                raise ClusterError("can't be read: the store reports an object that is larger than any file", self.name)
            if not self._url.bucket.endswith(UNSORTED):
                keys = [last, *(each.key for each in found)]
                # The library strips the slash from folder markers: a file of the same name may come first.
                falls = any(f"{second}/" <= first for first, second in pairwise(keys))
                if falls or any(first == keys[place] for place, first in enumerate(keys[:-2], 2)):
                    raise ClusterError(_NEVER_ENDS, self.name)
                last = keys[-1]
            yield found[skipped:]
            skipped = max(skipped - len(found), 0)

    def stat(self, key: str) -> StoredObject | None:
        """Return an object, or None if it doesn't exist. Raises OpenError, or ClusterError if the store fails."""
        try:
            found = self._answer(lambda: self._store.head(self._prefix + key), f"{self.name}/{key}")
        except FileNotFoundError:
            return None
        return _object(found)._replace(key=key)

    def open(self, key: str, size: int | None = None) -> "ObjectFile":
        """See ObjectStore."""
        return ObjectFile(self, key, size)

    def read(self, key: str, start: int, end: int) -> bytes:
        """See ObjectStore."""
        return self.open(key).read(start, end)

    def fetch(self, key: str, start: int, end: int) -> tuple[bytes, str, int]:
        """Return bytes of an object (fewer at its end), the tag of its version, and its size in bytes.

        Raises the same errors as `read`.
        """
        place = f"{self.name}/{key}"
        try:
            content, meta = self._answer(lambda: self._fetch_range(self._prefix + key, start, end), place)
        except FileNotFoundError as error:
            raise content_error(f"{place} no longer exists") from error
        if len(content) != min(end, meta["size"]) - start:
            raise ClusterError("can't be read: the store returned other bytes than kseg requested", place)
        return content, str(meta["e_tag"] or meta["last_modified"]), meta["size"]

    def _fetch_range(self, path: str, start: int, end: int) -> tuple[bytes, Any]:
        """Return bytes of an object and its metadata. Reads no more of an answer than requested."""
        answer = self._store.get(path, options={"range": (start, end)})
        if answer.range[0] != start or answer.range[1] > end:
            return b"", answer.meta
        return bytes(answer.bytes()), answer.meta

    def put(self, key: str, content: bytes, *, if_absent: bool = False) -> bool:
        """Write an object; with `if_absent`, return False if one exists.

        Raises KsegError if the store fails or doesn't support the condition.
        """
        mode = "create" if if_absent else "overwrite"
        request = lambda: self._store.put(self._prefix + key, content, mode=mode, use_multipart=False)  # noqa: E731
        try:
            self._answer(request, f"{self.name}/{key}", "written")
        except FileExistsError:
            return False
        return True

    @contextmanager
    def create(self, key: str) -> Iterator[Any]:
        """Yield a new object to write to. It appears when all of it is written; a failure leaves nothing."""
        import obstore

        place = f"{self.name}/{key}"
        writer: Any = self._errors(
            lambda: obstore.open_writer(self._store, self._prefix + key, buffer_size=PIECE), place, "written"
        )
        file = _ObjectWriter(lambda piece: self._answer(lambda: writer.write(piece), place, "written"))
        yield file
        file.flush()
        self._answer(writer.close, place, "written")

    def rename(self, key: str, target: str) -> None:
        """Copy an object in the store and remove the original. Raises FileNotFoundError if there is none."""
        self._answer(lambda: self._store.rename(self._prefix + key, self._prefix + target), f"{self.name}/{key}")

    def delete(self, key: str) -> None:
        """Remove an object, if it exists."""
        with suppress(FileNotFoundError):
            self._answer(lambda: self._store.delete(self._prefix + key), f"{self.name}/{key}", "removed")

    def _answer(self, request: Callable[[], Any], place: str, what: str = "read") -> Any:
        """Return the result of a request. FileNotFoundError and FileExistsError pass; others raise as in `_fail`."""
        seconds = math.inf if what == "written" else SECONDS  # many parts may be in flight over a slow connection
        return self._errors(lambda: self._requests.answer(request, seconds), place, what)

    def _errors(self, act: Callable[[], Given], place: str, what: str = "read") -> Given:
        try:
            return act()
        except (FileNotFoundError, FileExistsError, KsegError):
            raise
        except TimeoutError as error:
            raise ClusterError(f"can't be {what}: the store sent nothing for {SECONDS} s", place) from error
        except BaseException as error:
            if not _is_librarys(error):
                raise
            _fail(error, place, what)


def _object(found: Any) -> StoredObject:
    return StoredObject(found["path"], found["size"], int(found["last_modified"].timestamp() * 1000))


class _PastEndError(Exception):
    """The error of a read that starts at or after the end of an object."""


def _fail(error: BaseException, place: str, what: str) -> NoReturn:
    """Raise kseg's error for a library's: OpenError for a missing bucket, ClusterError for other failures."""
    from obstore.exceptions import AlreadyExistsError, PreconditionError

    if isinstance(error, AlreadyExistsError | PreconditionError):
        raise FileExistsError from error
    text = str(error)
    if "InvalidRange" in text or "416 " in text.partition("<")[0]:
        raise _PastEndError from error
    odd = _ODD_KEY.search(text)
    if odd is not None:
        why = f"can't be listed: the key {quote(odd[1])} has an empty or invalid part; specify a folder without it"
        raise OpenError(why, place) from error
    if (cure := _cure(text)) is not None:
        raise OpenError(cure, place) from error
    raise ClusterError(f"can't be {what}: {describe_error(error)}", place) from error


def _cure(text: str) -> str | None:
    """Return the advice for a known error."""
    return next((sentence for codes, sentence in _CURES if any(code in text for code in codes)), None)


def library_errors() -> tuple[type[Exception], ...]:
    """Return the errors that obstore raises: its own, and Python's for an invalid path or setting."""
    from obstore.exceptions import BaseError

    return BaseError, OSError, ValueError, TypeError


def _is_librarys(error: BaseException) -> bool:
    """Return True if obstore raised an error or panicked."""
    return isinstance(error, library_errors()) or type(error).__name__ in _PANICS


class ObjectFile:
    """An object to read from; a change while it is read is an error."""

    def __init__(self, store: ObjectsOfStore, key: str, size: int | None) -> None:
        self._store, self._key, self._size = store, key, size
        self._version: str | None = None
        self._lock = Lock()

    def read(self, start: int, end: int) -> bytes:
        """See StoredBytes."""
        if start >= end:
            return b""
        try:
            content, version, size = self._store.fetch(self._key, start, end)
        except _PastEndError:
            return b""
        with self._lock:
            known = self._version = self._version or version
        if known != version:
            raise content_error(
                f"{self._store.name}/{self._key} changed while kseg was reading it; run the command again"
            )
        if self._size not in (None, size):
            raise content_error(
                f"{self._store.name}/{self._key} has {plural(size, 'byte')}, but was listed with {self._size}"
            )
        return content


class _ObjectWriter:
    """A writable file for pyarrow, which passes its bytes on in pieces."""

    closed = False

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._held = bytearray()
        self._position = 0

    def write(self, piece: Any) -> int:
        self._held += piece
        self._position += len(piece)
        if len(self._held) >= PIECE:
            self.flush()
        return len(piece)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Pass the buffered bytes on."""
        self._write(bytes(self._held))
        self._held.clear()

    def close(self) -> None:
        """Do nothing: the file is complete when its context ends."""


def describe_error(error: BaseException) -> str:
    """Return the library's error in one line: the store's own code and words, or the reason for a missing answer."""
    text, _, details = str(error).partition("\n\nDebug source")
    found = _CODE.search(text)
    if found is not None:
        return reason(Exception(f"{found[1]}: {found[2]}"))
    request, _, outcome = _GENERIC.sub("", text).rpartition("Error performing ")[2].partition(" - ")
    causes = _CAUSE.findall(details)
    if not outcome:
        return reason(Exception(without_secrets(request)))
    asked = without_secrets(_ELAPSED.sub("", request))
    return reason(Exception(f"{asked}: {causes[-1] if causes else outcome.strip().removesuffix(':')}"))


def require_library(url: StoreUrl) -> None:
    """Raise UsageError without obstore."""
    try:
        import obstore  # noqa: F401
    except ImportError as error:
        raise UsageError(missing_library("obstore", _EXTRAS[url.kind]), f"{url.root}/{url.key}".rstrip("/")) from error


def open_store(url: StoreUrl, settings: StoreSettings) -> Any:
    """Return obstore's store for a URL's bucket or host."""
    from obstore.store import AzureStore, GCSStore, HTTPStore, S3Store

    backoff = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2}
    retry: Any = {"max_retries": settings.retries, "retry_timeout": timedelta(seconds=SECONDS), "backoff": backoff}
    client: Any = {"timeout": "10 min", "read_timeout": "60 s", "connect_timeout": "5 s", **settings.client}
    options: Any = dict(settings.options)
    match url.kind:
        case StoreKind.S3:
            keys: Any = settings.credentials
            return S3Store(
                url.bucket, config=options, client_options=client, retry_config=retry, credential_provider=keys
            )
        case StoreKind.GCS:
            return GCSStore(url.bucket, config=options, client_options=client, retry_config=retry)
        case StoreKind.AZURE:
            return AzureStore(url.bucket, config=options, client_options=client, retry_config=retry)
    return HTTPStore(url.root, client_options=client, retry_config=retry)

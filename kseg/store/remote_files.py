"""Sources in object stores and HDFS: listed, read by ranges, and kept apart from destinations."""

import errno
import getpass
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from functools import cache, partial
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from kseg.errors import ClusterError, KsegError, OpenError, UsageError, missing_library, reason, without_secrets
from kseg.store.location import require_all
from kseg.store.target import check_outside
from kseg.system.new_directory import scratch_directory
from kseg.system.run_usage import in_threads

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


SCHEME = "webhdfs"
SCHEMES = ("hdfs", "viewfs", SCHEME)
DEFAULT_PORT = 9870
"""`dfs.namenode.http-address` since Hadoop 3."""


def web_file_system(root: str) -> Any:
    """Pyarrow's file system for webhdfs://[USER@]NAMENODE[:PORT]/. Raises UsageError if fsspec or requests is missing.

    The user is that of the URL, of HADOOP_USER_NAME, or of this process, as with Hadoop's own clients.
    """
    try:
        from kseg.store.web_hdfs import WebHdfs
    except ImportError as error:
        raise UsageError(missing_library(str(error.name), "hdfs"), root) from error
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    place = urlsplit(root)
    user = unquote(place.username or "") or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    return PyFileSystem(FSSpecHandler(WebHdfs(place.hostname, place.port or DEFAULT_PORT, user=user)))


def no_libhdfs(root: str, why: str) -> UsageError:
    """What to say where pyarrow can't load libhdfs, or the JVM that it needs; `why` is what pyarrow says."""
    name = urlsplit(root).hostname or "NAMENODE"
    return UsageError(
        f"{why}: libhdfs needs JAVA_HOME, and ARROW_LIBHDFS_DIR and CLASSPATH of a Hadoop client;"
        f" {SCHEME}://{name}:{DEFAULT_PORT}/… needs neither",
        root,
    )


AT_ONCE = 16
"""Requests that are under way at the same time."""
REQUESTS_OF_RANGE = 4
"""About how many requests a range of keys takes: few enough to share, and many enough for what a range asks in vain."""
FEW_FOLDERS = 16
"""So few folders are looked into for theirs: brokers' or disks', not partitions."""
MOST_LEVELS = 3
LARGEST_ANSWER = 64 << 20
"""Bytes of a listing, or of an error: a listing names 1,000 objects, each with 1,024 bytes at most."""
MOST_EMPTY_PAGES = 100
"""Answers of a listing, one after another, in which nothing is named though more should follow."""


class S3Object(NamedTuple):
    """An object: its key, bytes, and milliseconds since 1970 of its last change."""

    key: str
    size: int
    modified_ms: int


class S3Folder:
    """A bucket's objects whose keys begin with a prefix. Errors are botocore's."""

    def __init__(self, bucket: str, prefix: str) -> None:
        self._bucket, self._prefix = bucket, prefix
        self._client = s3_client()

    def objects(self) -> Iterator[S3Object]:
        """All of them, by key."""
        answer = next(self._pages())
        first = [_object(found) for found in answer.get("Contents", ())]
        yield from first
        if not answer["IsTruncated"]:
            return
        folders = {found.key.rpartition("/")[0] for found in first}
        per_range = max(REQUESTS_OF_RANGE * len(folders), 1)
        above = first[-1].key if first else ""
        for found in in_threads(lambda ends: self._listed(*ends), self._ranges(above, per_range), AT_ONCE):
            yield from found

    def _ranges(self, above: str, per_range: int) -> Iterator[tuple[str, str | None]]:
        """Ranges of keys that follow each other: from above the first, up to the second."""
        for number, folder in enumerate(self._folders(self._prefix, above, MOST_LEVELS), 1):
            if number % per_range == 0 and folder > above:
                yield above, folder
                above = folder
        yield above, None

    def _folders(self, prefix: str, above: str, levels: int) -> Iterator[str]:
        """Folders below a prefix, in order; where they are few, those below them."""
        pages = self._pages(above, Prefix=prefix, Delimiter="/")
        answer = next(pages)
        folders = _names(answer, "CommonPrefixes")
        if not answer["IsTruncated"] and len(folders) < FEW_FOLDERS and levels:
            for folder in folders:
                yield folder
                yield from self._folders(folder, above, levels - 1)
            return
        yield from folders
        for answer in pages if folders else ():
            yield from _names(answer, "CommonPrefixes")

    def _listed(self, above: str, end: str | None) -> list[S3Object]:
        """The objects of a range."""
        found: list[S3Object] = []
        for answer in self._pages(above):
            found += (_object(each) for each in answer.get("Contents", ()))
            if end is not None and found and found[-1].key > end:
                break
        return [each for each in found if above < each.key and (end is None or each.key <= end)]

    def _pages(self, above: str = "", **wanted: str) -> Iterator[dict[str, Any]]:
        """The answers of a listing, up to its last. Raises ClusterError if they would go on without an end."""
        wanted = {"Bucket": self._bucket, "Prefix": self._prefix, **wanted}
        place = {"StartAfter": above} if above else {}
        last, empty_pages = "", 0
        while True:
            answer: dict[str, Any] = self._client.list_objects_v2(**wanted, **place)
            yield answer
            if not answer["IsTruncated"]:
                return
            names = _names(answer, "Contents") + _names(answer, "CommonPrefixes")
            empty_pages = 0 if names else empty_pages + 1
            token = answer["NextContinuationToken"]
            if not token or (names and max(names) <= last) or empty_pages > MOST_EMPTY_PAGES:
                url = f"s3://{self._bucket}/{wanted['Prefix']}"
                raise ClusterError("the store's listing repeats itself and would never end; repair the store", url)
            last, place = max(names, default=last), {"ContinuationToken": token}


def _names(answer: dict[str, Any], field: str) -> list[str]:
    """Keys of objects, or names of folders, in an answer."""
    return [each["Key" if field == "Contents" else "Prefix"] for each in answer.get(field, ())]


def _object(found: dict[str, Any]) -> S3Object:
    return S3Object(found["Key"], found["Size"], int(found["LastModified"].timestamp() * 1000))


def s3_client() -> Any:
    """Botocore's client, which finds credentials where pyarrow does.

    Raises ImportError without botocore, UsageError for an endpoint or a region that can't be one.
    """
    from botocore.config import Config
    from botocore.session import get_session

    endpoint = os.environ.get("AWS_ENDPOINT_URL") or None
    region = os.environ.get("AWS_REGION", os.environ.get("AWS_DEFAULT_REGION"))
    style = {"addressing_style": "path"} if endpoint else {}
    config = Config(max_pool_connections=AT_ONCE, s3=style)
    try:
        client = get_session().create_client("s3", region_name=region, endpoint_url=endpoint, config=config)
    except ValueError as error:
        raise UsageError(f"AWS_ENDPOINT_URL or AWS_REGION isn't usable: {error}") from error
    client.meta.events.register("before-parse.s3.ListObjectsV2", _parse)
    client.meta.events.register("before-call.s3.HeadBucket", _refuse)
    client.meta.events.register("before-send.s3", partial(_send, client._endpoint.http_session))
    return client


def _refuse(**_: Any) -> None:
    """Keeps botocore from asking for a bucket's region where an answer doesn't name it: a redirect is asked again."""
    from botocore.exceptions import ClientError

    raise ClientError({"ResponseMetadata": {"HTTPHeaders": {}}}, "HeadBucket")


def _send(session: Any, request: Any, **_: Any) -> Any:
    """Sends a request as botocore does, which reads an answer to its end however far that is.

    Raises botocore's errors, ClusterError for an answer that is too long.
    """
    from botocore.exceptions import ConnectionClosedError
    from urllib3.exceptions import HTTPError

    is_streamed, request.stream_output = request.stream_output, True
    answer = session.send(request)
    answer.raw.stream = partial(_bounded, answer.raw.stream, request.url)
    if not is_streamed:
        try:
            _ = answer.content
        except HTTPError as error:
            raise ConnectionClosedError(error=error, request=request, endpoint_url=request.url) from error
    return answer


def _bounded(pieces: Callable[[], Iterator[bytes]], url: str) -> Iterator[bytes]:
    size = 0
    for piece in pieces():
        size += len(piece)
        if size > LARGEST_ANSWER:
            raise ClusterError(f"answers with more than {LARGEST_ANSWER} bytes; repair the store", url)
        yield piece


def s3_errors() -> tuple[type[Exception], ...]:
    """Whatever botocore raises where S3 fails or answers nonsense: its own errors, and those that it lets through."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError
    from urllib3.exceptions import HTTPError

    return BotoCoreError, ClientError, ResponseParserError, HTTPError


def system_errors() -> tuple[type[Exception], ...]:
    """Whatever pyarrow's file systems raise: not all of it is an OSError."""
    from pyarrow import ArrowException

    return OSError, ArrowException


def read_object(client: Any, bucket: str, key: str, start: int, end: int) -> bytes:
    """Bytes of an object, fewer at its end.

    Raises `s3_errors`, also if other bytes come: some stores don't know of ranges.
    """
    from botocore.exceptions import ResponseStreamingError

    answer = client.get_object(Bucket=bucket, Key=key, Range=f"bytes={start}-{end - 1}")
    if "ContentLength" not in answer:  # headers that end early look like an answer without bytes
        raise ResponseStreamingError(error="the connection broke in the answer's headers")
    is_wanted = answer.get("ContentRange", "bytes 0-").startswith(f"bytes {start}-")
    with closing(answer["Body"]) as body:  # as a context manager it would give urllib3's stream
        content: bytes = body.read(end - start) if is_wanted else b""
        if not is_wanted or body.read(1):  # which also finds out whether it has ended too early
            raise ResponseStreamingError(error="the store gave other bytes than were asked for")
    return content


class _S3File:
    """An object, read by botocore: pyarrow takes an answer whose headers broke for as many zeros as it asked for."""

    def __init__(self, url: str) -> None:
        self._bucket, _, self._key = url.partition("://")[2].partition("/")
        self._client = _shared_client(os.getpid(), os.environ.get("AWS_ENDPOINT_URL"))

    def size(self) -> int:
        """The object's bytes."""
        size: int = self._client.head_object(Bucket=self._bucket, Key=self._key)["ContentLength"]
        return size

    def read_at(self, size: int, position: int) -> bytes:
        """Bytes from a position on."""
        return read_object(self._client, self._bucket, self._key, position, position + size) if size else b""


@cache
def _shared_client(_process: int, _endpoint: str | None) -> Any:
    """A process's client for one endpoint; one that was forked can't share its parent's connections."""
    return s3_client()


def _parse(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Reads an answer instead of botocore, which takes ten times as long; gives and raises what botocore would."""
    if response_dict["status_code"] >= 300:
        return
    from xml.etree import ElementTree

    from botocore.parsers import ResponseParserError

    try:
        # The store is trusted as far as by botocore.
        listing = _listing(ElementTree.fromstring(response_dict["body"]))  # noqa: S314
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise ResponseParserError("the answer isn't a listing of objects") from error
    customized_response_dict.update(listing)
    response_dict["body"] = b"<ListBucketResult/>"


def _listing(root: "Element") -> dict[str, Any]:
    """The fields of a listing. Raises LookupError or ValueError for one that S3 doesn't write."""
    names = root.tag.removesuffix("ListBucketResult")
    contents = [{part.tag: part.text for part in each} for each in root.iterfind(f"{names}Contents")]
    key, size, modified = (f"{names}{name}" for name in ("Key", "Size", "LastModified"))
    return {
        "Contents": [
            {
                "Key": each[key] or "",
                "Size": _object_size(each[size]),
                "LastModified": datetime.fromisoformat(each[modified] or ""),
            }
            for each in contents
        ],
        "CommonPrefixes": [
            {"Prefix": each.text or ""} for each in root.iterfind(f"{names}CommonPrefixes/{names}Prefix")
        ],
        "IsTruncated": root.findtext(f"{names}IsTruncated") == "true",
        "NextContinuationToken": root.findtext(f"{names}NextContinuationToken"),
        "EncodingType": root.findtext(f"{names}EncodingType"),
    }


def _object_size(text: str | None) -> int:
    size = int(text or 0)
    if not 0 <= size <= LARGEST_SIZE:
        raise ValueError(size)
    return size


LARGEST_SIZE = (1 << 63) - 1
"""The most bytes that a file of any system may have."""
PIECE = 8 << 20
"""Bytes that a request asks for."""
PIECES_AT_ONCE = 4
"""Requests for pieces of a file that are under way at the same time."""
S3 = ("s3://", "s3a://")
UNSORTED = "--x-s3"
"""Ends the names of buckets whose objects aren't listed in order."""
SMALL_FILES = ("leader-epoch-checkpoint", ".txnindex", ".snapshot")
"""Ends of names of files that say something about a partition as a whole."""


class RemoteFile(NamedTuple):
    """A file as it was listed: bytes, and milliseconds since 1970 of its last change."""

    url: str
    size: int
    modified_ms: int


def is_remote(path: str) -> bool:
    """Whether a path is a URL."""
    return "://" in path


@cache
def file_system(root: str) -> Any:
    """Pyarrow's file system for the URLs that begin so. Raises UsageError if pyarrow knows none."""
    from pyarrow import fs

    if root.startswith(f"{SCHEME}://"):
        return web_file_system(root)
    try:
        return fs.FileSystem.from_uri(_with_environment(root))[0]
    except system_errors() as error:
        first = reason(error)  # of a line for each place where a library isn't
        if "libhdfs" in first or "libjvm" in first:
            raise no_libhdfs(root, first) from error
        raise UsageError(f"no file system for it: {first}", root) from error


def _with_environment(root: str) -> str:
    """An S3 URL with the endpoint of AWS_ENDPOINT_URL, which pyarrow doesn't look at."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    if not root.startswith("s3://") or not endpoint:
        return root
    scheme, _, place = endpoint.partition("://")
    region = os.environ.get("AWS_REGION", os.environ.get("AWS_DEFAULT_REGION", "us-east-1"))
    return f"{root}?endpoint_override={place}&scheme={scheme}&region={region}"


def locate(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it. Raises UsageError if there is none, or the URL has a password."""
    require_no_password(url)
    scheme, _, path = url.partition("://")
    authority, _, rest = path.partition("/")
    if scheme in ("s3", "s3a", "gs", "abfs", "abfss"):
        return file_system(f"{'s3' if scheme == 's3a' else scheme}://{authority}"), path.rstrip("/")
    return file_system(f"{scheme}://{authority}/"), "/" + rest.rstrip("/")


def require_no_password(url: str) -> None:
    """Raises UsageError for a URL with a password or a key: it would be in reports and in what other tools say."""
    if without_secrets(url) != url:
        raise UsageError("has a password: take it out, and give credentials by the environment or a profile", url)


def is_hdfs(url: str) -> bool:
    """Whether a URL is one of HDFS, which renames files as disks do."""
    return url.partition("://")[0] in SCHEMES


def list_files(url: str, *, may_be_missing: bool = False) -> Iterator[RemoteFile]:
    """The files at a URL and below it; of S3, with s3fs, by several requests at once.

    may_be_missing: a folder that isn't there has no files. Raises OpenError if it can't be listed, UsageError if the
    URL has a password.
    """
    require_no_password(url)
    listed = _objects(url) if url.startswith(S3) else None
    if listed is None or not (listed or may_be_missing):
        return _list_files(url, may_be_missing)
    return iter(listed)


def _objects(url: str) -> list[RemoteFile] | None:
    """The objects of S3; None if botocore isn't there, or can't list the bucket in order: then pyarrow does.

    Raises OpenError if they can't be listed.
    """
    if not _has_botocore():
        return None
    start, _, path = url.partition("://")
    bucket, _, folder = path.strip("/").partition("/")
    if bucket.endswith(UNSORTED):
        return None
    try:
        objects = list(S3Folder(bucket, f"{folder}/" if folder else "").objects())
    except s3_errors() as error:
        raise OpenError(f"can't be listed: {reason(error)}", url) from error
    is_file = [found for found in objects if not found.key.endswith("/")]
    return [RemoteFile(f"{start}://{bucket}/{found.key}", found.size, found.modified_ms) for found in is_file]


def _list_files(url: str, may_be_missing: bool) -> Iterator[RemoteFile]:
    from pyarrow import fs

    system, path = locate(url)
    try:
        found = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=may_be_missing))
    except system_errors() as error:
        raise OpenError(f"can't be listed: {reason(error)}", url) from error
    prefix = url.rstrip("/").removesuffix(path)
    for info in found:
        if info.type == fs.FileType.File:
            if info.size is None or info.size < 0:
                raise OpenError("can't be listed: the store names a file without its size", prefix + info.path)
            yield RemoteFile(prefix + info.path, info.size, (info.mtime_ns or 0) // 1_000_000)


def copy_range(url: str, target: Path, start: int, end: int) -> None:
    """Copies bytes of a file to the same place of a local one. Raises OpenError if they can't be read."""
    with _copying(url, target, start) as (file, descriptor):
        _copy(file, descriptor, start, end)


def copy_file(url: str, target: Path) -> None:
    """Copies a whole file. Raises OpenError if it can't be read."""
    with _copying(url, target) as (file, descriptor):
        _copy(file, descriptor, 0, file.size())


@contextmanager
def _copying(url: str, target: Path, start: int | None = None) -> Iterator[tuple[Any, int]]:
    """The file, and the descriptor of one on this machine to write to."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        with _opened(url) as file:
            yield file, descriptor
    except system_errors() as error:
        raise OpenError(f"can't be read: {reason(error)}", url, start) from error
    finally:
        os.close(descriptor)


@contextmanager
def _opened(url: str) -> Iterator[Any]:
    """A file that is read from any position. Raises OSError, in the block too."""
    if not (url.startswith(S3) and _has_botocore()):
        system, path = locate(url)
        with system.open_input_file(path) as file:
            yield file
        return
    try:
        yield _S3File(url)
    except s3_errors() as error:
        raise OSError(reason(error)) from error


def _has_botocore() -> bool:
    try:
        import botocore.session  # noqa: F401
    except ImportError:
        return False
    return True


def read_range(url: str, start: int, end: int) -> bytes:
    """Bytes of a file. Raises OpenError if they can't be read."""
    try:
        with _opened(url) as file:
            found: bytes = file.read_at(end - start, start)
            require_all(found, end - start)
            return found
    except system_errors() as error:
        raise OpenError(f"can't be read: {reason(error)}", url, start) from error


def _copy(file: Any, descriptor: int, start: int, end: int) -> None:
    """Copies the bytes, several pieces at once."""

    def copy(position: int) -> None:
        size = min(PIECE, end - position)
        found = file.read_at(size, position)
        require_all(found, size)
        os.pwrite(descriptor, found, position)

    for _ in in_threads(copy, range(start, end, PIECE), PIECES_AT_ONCE):
        pass


def put_if_absent(url: str, content: bytes) -> bool:
    """Writes an object unless one is there; False if one is. By s3fs: pyarrow's put has no conditions.

    Raises KsegError where no such put can be had, OSError if it fails.
    """
    try:
        import s3fs
    except ImportError as error:
        raise KsegError(missing_library("s3fs", "s3"), url) from error
    scheme, _, path = url.partition("://")
    if scheme not in ("s3", "s3a"):
        raise KsegError("this storage can't create an object only where there is none: choose another place", url)
    region = os.environ.get("AWS_REGION", os.environ.get("AWS_DEFAULT_REGION"))
    settings = {"endpoint_url": os.environ.get("AWS_ENDPOINT_URL") or None, "client_kwargs": {"region_name": region}}
    try:
        s3fs.S3FileSystem(**settings).pipe_file(path, content, chunksize=len(content) + 1, mode="create")
    except FileExistsError:
        return False
    except s3_errors() as error:
        raise OSError(reason(error)) from error
    except OSError as error:
        if error.errno == errno.EINVAL:  # some stores don't say which condition failed
            return False
        raise
    return True


@contextmanager
def local_directory(url: str, endings: Iterable[str]) -> Iterator[Path]:
    """A directory on this machine, named as the one at the URL, with those of its files whose names end so."""
    with scratch_directory() as scratch:
        directory = scratch / url.rstrip("/").rpartition("/")[2]
        directory.mkdir()
        for file in list_files(url):
            name = file.url.rpartition("/")[2]
            if name.endswith(tuple(endings)) and file.url.rpartition("/")[0] == url.rstrip("/"):
                copy_range(file.url, directory / name, 0, file.size)
        yield directory


_SAME_SCHEME = {"s3a": "s3", "s3n": "s3"}


def check_destination(destination: str, inputs: Iterable[str | None]) -> None:
    """Raises UsageError if files of the destination would lie among those that are read, or the other way round.

    Inputs are paths, globs or URLs.
    """
    read = [place for each in inputs if each is not None for place in _places(each)]
    (target,) = _places(destination, is_glob=False)
    if not is_remote(target):
        check_outside(target, (place for place in read if not is_remote(place)))
        return
    for place in read:
        if f"{target}/".startswith(f"{place}/"):
            raise UsageError(f"is inside {place}, which is read: kseg writes nothing there", destination)
        if f"{place}/".startswith(f"{target}/"):
            raise UsageError(f"contains {place}, which is read: kseg writes nothing there", destination)


def local_places(path: str) -> list[str]:
    """The places of this machine that a path or glob means; none for a URL of a store."""
    return [place for place in _places(path) if not is_remote(place)]


def _places(path: str, *, is_glob: bool = True) -> Iterator[str]:
    """A path as it is, a glob's matches too, a URL as all that mean the same place have it."""
    if not is_remote(path):
        yield path
        if is_glob:
            yield from glob(path)  # noqa: PTH207  an absolute one too
        return
    scheme, _, place = path.partition("://")
    if scheme == "file":
        yield f"/{place.partition('/')[2]}"
    else:
        parts = [part for part in place.split("/") if part]
        yield f"{_SAME_SCHEME.get(scheme, scheme)}://{'/'.join(parts)}"

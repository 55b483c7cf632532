"""HDFS over WebHDFS, through fsspec: every failure is an OSError, and no listing or file is silently incomplete."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

from fsspec.implementations.webhdfs import WebHDFile, WebHDFS
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from requests.exceptions import ConnectionError as NoConnection
from requests.exceptions import JSONDecodeError, Timeout
from urllib3.exceptions import HTTPError

from kseg.store.location import require_all

SECONDS = 60
"""The longest silence in seconds; botocore has the same timeout."""
LARGEST_ANSWER = 256 << 20
"""The most bytes of an answer: a folder of HDFS has at most a million entries."""
LARGEST_SIZE, _LAST_MS = (1 << 63) - 1, (1 << 42) - 1
"""The largest plausible file in bytes, and the latest plausible time in milliseconds since 1970 (the year 2109)."""
MOST_LEVELS = 128
"""The most nested folders."""


class _NoHdfsError(ValueError):
    """The error of an answer that no HDFS server gives."""


class _BoundedAdapter(HTTPAdapter):
    """An adapter with a timeout and a size limit, without decompression: neither requests nor fsspec has limits."""

    def send(self, request: PreparedRequest, *_: Any, **options: Any) -> Response:
        """Return the answer with its bytes. Raises OSError if it is too long or doesn't come."""
        response = super().send(request, **{**options, "stream": True, "timeout": SECONDS})
        try:
            content = response.raw.read(LARGEST_ANSWER + 1)
        except HTTPError as error:
            raise NoConnection(error, request=request) from error
        if len(content) > LARGEST_ANSWER:
            response.close()
            raise OSError(f"{str(request.url).partition('?')[0]} answers with more than {LARGEST_ANSWER} bytes")
        response.raw = BytesIO(content)
        return response


class WebHdfsFile(WebHDFile):  # type: ignore[misc]
    """A file that has all requested bytes: fsspec returns a DataNode's error page as content."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        with _as_system_errors(self.fs.url):
            found: bytes = super()._fetch_range(start, end)
        require_all(found, max(0, min(self.size, end) - max(start, 0)))
        return found

    def _initiate_upload(self) -> None:
        with _as_system_errors(self.fs.url):
            super()._initiate_upload()


class WebHdfs(WebHDFS):  # type: ignore[misc]
    """A file system that reports modification times, and doesn't mistake a failure for a missing file."""

    def info(self, path: str) -> dict[str, Any]:
        """Return a file's or folder's status. Raises FileNotFoundError, OSError."""
        with _as_system_errors(self.url):
            return super().info(path)  # type: ignore[no-any-return]

    def ls(self, path: str, detail: bool = False, **options: Any) -> list[Any]:
        """Return the content of a folder. Raises FileNotFoundError, OSError."""
        with _as_system_errors(self.url):
            if path.count("/") > MOST_LEVELS:
                raise _NoHdfsError(path)
            return super().ls(path, detail, **options)  # type: ignore[no-any-return]

    def walk(self, path: str, *arguments: Any, **options: Any) -> Iterator[Any]:
        """Yield folders and their contents. Raises OSError for one that can't be listed, which fsspec would omit."""
        yield from super().walk(path, *arguments, **options, on_error=_raise_unless_gone)

    def exists(self, path: str, **_: Any) -> bool:
        """Return True if a path exists."""
        return self._type(path) is not None

    def isfile(self, path: str) -> bool:
        """Return True if a path is a file."""
        return self._type(path) == "file"

    def isdir(self, path: str) -> bool:
        """Return True if a path is a folder."""
        return self._type(path) == "directory"

    def _connect(self) -> None:
        super()._connect()
        for scheme in ("http://", "https://"):
            self.session.mount(scheme, _BoundedAdapter())

    def replace(self, path: str, target: str) -> None:
        """Move a file, replacing an existing one."""
        self._call("RENAME", method="put", path=path, destination=target, renameoptions="OVERWRITE")

    def _type(self, path: str) -> str | None:
        try:
            return str(self.info(path)["type"])
        except FileNotFoundError:
            return None

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **options: Any) -> WebHdfsFile:
        options |= {"tempdir": self.tempdir, "block_size": block_size or self.blocksize}
        return WebHdfsFile(self, path, mode=mode, **options)

    def _call(self, *arguments: Any, **options: Any) -> Response:
        with _as_system_errors(self.url):
            return super()._call(*arguments, **options)  # type: ignore[no-any-return]

    @staticmethod
    def _process_info(info: dict[str, Any]) -> dict[str, Any]:
        name, size, changed_ms = info["pathSuffix"], info["length"], info["modificationTime"]
        is_name = isinstance(name, str) and "/" not in name and name not in (".", "..")
        if not is_name or not 0 <= size <= LARGEST_SIZE or not 0 <= changed_ms <= _LAST_MS:
            raise _NoHdfsError(name)
        changed: dict[str, Any] = WebHDFS._process_info(info)
        return changed | {"mtime": changed_ms / 1000}


@contextmanager
def _as_system_errors(url: str) -> Iterator[None]:
    """Convert the errors of fsspec and requests to OSError; `url`: the service's."""
    try:
        yield
    except (NoConnection, Timeout) as error:
        asked = url if error.request is None else error.request.url
        raise OSError(f"{str(asked).partition('?')[0]} doesn't answer") from error
    except (_NoHdfsError, JSONDecodeError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise OSError(f"{url} doesn't answer like HDFS; check the URL") from error
    except (RuntimeError, ValueError) as error:
        raise OSError(str(error)) from error


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error

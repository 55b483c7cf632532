"""HDFS over WebHDFS, by fsspec: whatever goes wrong is an OSError, and nothing is left out of a listing or a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fsspec.implementations.webhdfs import WebHDFile, WebHDFS
from requests import Response
from requests.exceptions import ConnectionError as NoConnection

from kseg.store.location import require_all

LARGEST_ANSWER = 256 << 20
"""Bytes: some hundred thousand files of a folder, or more of a file than is asked for at once."""


class WebHdfsFile(WebHDFile):  # type: ignore[misc]
    """A file, whose bytes are as many as were asked for: fsspec takes a DataNode's refusal for them."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        with _as_system_errors(self.fs.url):
            found: bytes = super()._fetch_range(start, end)
        require_all(found, max(0, min(self.size, end) - max(start, 0)))
        return found

    def _initiate_upload(self) -> None:
        with _as_system_errors(self.fs.url):
            super()._initiate_upload()


class WebHdfs(WebHDFS):  # type: ignore[misc]
    """A file system that tells when files were changed, and takes no failure for a file that isn't there."""

    def _connect(self) -> None:
        super()._connect()
        self.session.stream = True  # an answer is read below, as far as it may go
        self.session.hooks["response"].append(_read_whole)

    def info(self, path: str) -> dict[str, Any]:
        """A file's or folder's status. Raises FileNotFoundError, OSError."""
        with _as_system_errors(self.url):
            return super().info(path)  # type: ignore[no-any-return]

    def ls(self, path: str, detail: bool = False, **options: Any) -> list[Any]:
        """What a folder holds. Raises FileNotFoundError, OSError."""
        with _as_system_errors(self.url):
            return super().ls(path, detail, **options)  # type: ignore[no-any-return]

    def walk(self, path: str, *arguments: Any, **options: Any) -> Iterator[Any]:
        """Folders and what they hold. Raises OSError for one that can't be listed: fsspec leaves it out."""
        yield from super().walk(path, *arguments, **options, on_error=_raise_unless_gone)

    def exists(self, path: str, **_: Any) -> bool:
        """Whether something is there."""
        return self._type(path) is not None

    def isfile(self, path: str) -> bool:
        """Whether a file is there."""
        return self._type(path) == "file"

    def isdir(self, path: str) -> bool:
        """Whether a folder is there."""
        return self._type(path) == "directory"

    def replace(self, path: str, target: str) -> None:
        """Moves a file, in the place of one that is there."""
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
        changed: dict[str, Any] = WebHDFS._process_info(info)
        return changed | {"mtime": info["modificationTime"] / 1000}


def _read_whole(response: Response, **_: Any) -> None:
    """Reads an answer, which may be endless. Raises ValueError for one that is too large."""
    content = bytearray()
    for piece in response.iter_content(1 << 20):
        content += piece
        if len(content) > LARGEST_ANSWER:
            response.close()
            raise ValueError(f"answers with more than {LARGEST_ANSWER} bytes")
    response._content = bytes(content)  # as reading it at once leaves it


@contextmanager
def _as_system_errors(url: str) -> Iterator[None]:
    """Turns the errors of fsspec and requests into OSError; `url`: the service's."""
    try:
        yield
    except NoConnection as error:
        asked = url if error.request is None else error.request.url
        raise OSError(f"{str(asked).partition('?')[0]} doesn't answer") from error
    except (RuntimeError, ValueError) as error:
        raise OSError(str(error)) from error
    except (LookupError, TypeError) as error:
        raise OSError(f"{url} answers as no HDFS does") from error


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error

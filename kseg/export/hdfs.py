"""HDFS over HTTP (WebHDFS), by fsspec, for machines without libhdfs, and what to say where that is missing."""

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from kseg.errors import UsageError, missing_library

if TYPE_CHECKING:
    import requests

SCHEME = "webhdfs"
SCHEMES = ("hdfs", "viewfs", SCHEME)
DEFAULT_PORT = 9870
"""`dfs.namenode.http-address` since Hadoop 3."""


def web_file_system(root: str) -> Any:
    """Pyarrow's file system for webhdfs://[USER@]NAMENODE[:PORT]/. Raises UsageError if fsspec or requests is missing.

    The user is that of the URL, of HADOOP_USER_NAME, or of this process, as with Hadoop's own clients.
    """
    try:
        from fsspec.implementations.webhdfs import WebHDFS
    except ImportError as error:
        raise UsageError(missing_library(str(error.name), "hdfs"), root) from error
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    class WebHdfs(WebHDFS):  # type: ignore[misc]
        """Raises OSError alone, tells when files were changed, and takes no failure for a file that isn't there."""

        def _type(self, path: str) -> str | None:
            try:
                return str(self.info(path)["type"])
            except FileNotFoundError:
                return None

        def exists(self, path: str, **_: Any) -> bool:
            return self._type(path) is not None

        def isfile(self, path: str) -> bool:
            return self._type(path) == "file"

        def isdir(self, path: str) -> bool:
            return self._type(path) == "directory"

        def _call(self, *arguments: Any, **options: Any) -> "requests.Response":
            with _as_system_errors(self.url):
                return super()._call(*arguments, **options)  # type: ignore[no-any-return]

        @staticmethod
        def _process_info(info: dict[str, Any]) -> dict[str, Any]:
            changed: dict[str, Any] = WebHDFS._process_info(info)
            return changed | {"mtime": info["modificationTime"] / 1000}

        def replace(self, path: str, target: str) -> None:
            """Moves a file, in the place of one that is there."""
            self._call("RENAME", method="put", path=path, destination=target, renameoptions="OVERWRITE")

    place = urlsplit(root)
    user = unquote(place.username or "") or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    return PyFileSystem(FSSpecHandler(WebHdfs(place.hostname, place.port or DEFAULT_PORT, user=user)))


@contextmanager
def _as_system_errors(url: str) -> Iterator[None]:
    """Turns the errors of fsspec and requests into OSError; `url`: the service's."""
    from requests.exceptions import ConnectionError as NoConnection

    try:
        yield
    except NoConnection as error:
        asked = url if error.request is None else error.request.url
        raise OSError(f"{str(asked).partition('?')[0]} doesn't answer") from error
    except (RuntimeError, ValueError) as error:
        raise OSError(str(error)) from error


def no_libhdfs(root: str, why: str) -> UsageError:
    """What to say where pyarrow can't load libhdfs, or the JVM that it needs; `why` is what pyarrow says."""
    name = urlsplit(root).hostname or "NAMENODE"
    return UsageError(
        f"{why}: libhdfs needs JAVA_HOME, and ARROW_LIBHDFS_DIR and CLASSPATH of a Hadoop client;"
        f" {SCHEME}://{name}:{DEFAULT_PORT}/… needs neither",
        root,
    )

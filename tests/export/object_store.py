"""A store for tests, a moto server in this process, and its requests."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Barrier, Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

import pytest
from botocore.loaders import create_loader
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from kseg.store import remote_files as remote

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

LOADER = cache(create_loader)
"""botocore's data about S3, loaded once: each session would load it again, which takes longer than a request."""
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_EC2_METADATA_DISABLED": "true"}


@contextmanager
def serving(application: "WSGIApplication") -> Iterator[str]:
    """Yield the URL of a server on this machine."""
    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()


@contextmanager
def redirect_to(url: str) -> Iterator[pytest.MonkeyPatch]:
    """Redirect s3:// URLs to the store at a URL."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL": url, "AWS_REGION": "us-east-1"}.items():
            patch.setenv(name, value)
        patch.setattr("botocore.session.create_loader", LOADER)
        remote._store_at.cache_clear()
        yield patch
        remote._store_at.cache_clear()


class Request(NamedTuple):
    """A request: the method, the key or bucket, the query string, and the range of bytes."""

    method: str
    path: str
    query: dict[str, list[str]]
    bytes: range

    @property
    def is_listing(self) -> bool:
        """True if it lists objects."""
        return "list-type" in self.query


class CountingStore:
    """A store that records its requests."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._held: list[Callable[[Request], bool]] = []
        self._barrier = Barrier(1)
        self._lock = Lock()
        self._backend = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Answer a request according to WSGI."""
        first, _, last = environ.get("HTTP_RANGE", "").removeprefix("bytes=").partition("-")
        asked = range(int(first), int(last) + 1) if first else range(0)
        query = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
        request = Request(environ["REQUEST_METHOD"], environ["PATH_INFO"], query, asked)
        with self._lock:
            self.requests.append(request)
            is_held = bool(self._held) and self._held[-1](request)
            if is_held:
                self._held.pop()
        if is_held:
            self._barrier.wait()
        return self._backend(environ, start_response)

    def expect_at_once(self, count: int, is_meant: Callable[[Request], bool]) -> None:
        """Hold the next `count` matching requests until all have arrived; they fail if some don't arrive."""
        self.requests.clear()
        self._held, self._barrier = [is_meant] * count, Barrier(count, timeout=60)

    @property
    def were_at_once(self) -> bool:
        """True if as many requests as expected were concurrent: one that failed may have been sent again."""
        return not self._held and not self._barrier.broken

"""Iceberg catalogs on this machine: REST, Hive, PostgreSQL, and Glue with Amazon's rule for concurrent updates."""

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from moto.glue.models import glue_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug import Request, Response

from tests import golden
from tests.spark.connectors import SPARK
from tests.spark.processes import free_port, is_listening, running, wait_until
from tests.stores.servers import serving

sys.path.insert(0, str(golden.ROOT.parent / "tools"))
import peer_spark

Properties = Mapping[str, str]
"""Properties of a catalog in pyiceberg's configuration."""
_ICEBERG, _JETTY = "1.10.1", "11.0.24"
_REST_JARS = (
    *(f"org.apache.iceberg:iceberg-{name}:{_ICEBERG}" for name in ("core", "api", "common", "bundled-guava")),
    f"org.apache.iceberg:iceberg-core:{_ICEBERG}:tests",
    "com.github.ben-manes.caffeine:caffeine:2.9.3",
    "org.apache.httpcomponents.client5:httpclient5:5.4.4",
    "org.apache.httpcomponents.core5:httpcore5:5.3.4",
    "org.xerial:sqlite-jdbc:3.46.1.3",
    *(f"org.eclipse.jetty:jetty-{name}:{_JETTY}" for name in ("server", "servlet", "security", "http", "io", "util")),
    "org.eclipse.jetty.toolchain:jetty-jakarta-servlet-api:5.0.2",
)
_OPENED = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "net")]
_POSTGRES_USER = "postgres"
"""The user of Debian's package: PostgreSQL refuses to run as root."""


@contextmanager
def sqlite(folder: Path) -> Iterator[Properties]:
    """Yield a catalog in a file."""
    yield {"uri": f"sqlite:///{folder}/lake.db"}


@contextmanager
def rest(folder: Path) -> Iterator[Properties]:
    """Yield the REST catalog of Iceberg's own tests."""
    jars = peer_spark.fetched_jars(_REST_JARS, folder)
    with _java("RestCatalog", [*map(str, jars), f"{SPARK}/pyspark/jars/*"], folder) as port:
        yield {"uri": f"http://127.0.0.1:{port}"}


@contextmanager
def hive(folder: Path) -> Iterator[Properties]:
    """Yield the metastore of Hive 2, which Spark brings."""
    with _java("HiveMetastore", [f"{SPARK}/pyspark/jars/*"], folder) as port:
        yield {"uri": f"thrift://127.0.0.1:{port}", "hive.hive2-compatible": "true"}


@contextmanager
def _java(program: str, jars: list[str], folder: Path) -> Iterator[int]:
    """Yield the port of a program of this folder."""
    assert SPARK.is_dir(), f"{SPARK} is missing: make .venv/spark-4.1/installed"
    source, path = Path(__file__).with_name(f"{program}.java"), ":".join(jars)
    subprocess.run(["javac", "-nowarn", "-cp", path, "-d", str(folder / "classes"), str(source)], check=True)
    port = free_port()
    command = ["java", "-Xmx400m", *_OPENED, "-cp", f"{folder}/classes:{path}", program, str(port), str(folder)]
    with running(command, folder / "server.log", cwd=folder) as process:
        wait_until(lambda: is_listening(port), f"{program} listens", process)
        yield port


@contextmanager
def postgresql(folder: Path) -> Iterator[Properties]:
    """Yield a catalog in a new PostgreSQL database."""
    programs = shutil.which("postgres") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/postgres")), None)
    assert programs is not None, "PostgreSQL isn't installed: apt install postgresql"
    own: dict[str, Any] = {"user": _POSTGRES_USER, "extra_groups": []} if os.geteuid() == 0 else {}
    port, log = free_port(), folder / "server.log"
    settings = ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-p", str(port)]
    with tempfile.TemporaryDirectory() as data:  # another user can't reach pytest's folders
        if own:
            shutil.chown(data, _POSTGRES_USER)
        initdb = [str(Path(programs).with_name("initdb")), "-D", data, "-A", "trust", "-U", "kseg", "--no-sync"]
        subprocess.run(initdb, cwd=data, check=True, capture_output=True, **own)
        with running([programs, "-D", data, *settings], log, cwd=data, **own) as process:
            wait_until(lambda: is_listening(port), "PostgreSQL listens", process)
            yield {"uri": f"postgresql+psycopg2://kseg@127.0.0.1:{port}/postgres"}


@contextmanager
def glue(_: Path) -> Iterator[Properties]:
    """Yield Glue, and S3 with a bucket `lake`, at the endpoint that the properties name."""
    with serving(Glue()) as url:
        yield {"type": "glue", "glue.endpoint": url, "glue.region": REGION, "s3.endpoint": url, "s3.region": REGION}


REGION = "us-east-1"
_ACCOUNT_OF_MOTO = "123456789012"


class Glue:
    """A moto server that refuses an update of a table whose version isn't the current one, as Amazon's Glue does."""

    def __init__(self) -> None:
        self._backend = DomainDispatcherApplication(create_backend_app)
        self._updates = Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Answer a request according to WSGI."""
        request = Request(environ)
        if request.headers.get("X-Amz-Target") != "AWSGlue.UpdateTable":
            return self._backend(environ, start_response)
        with self._updates:
            body = request.get_data()
            wanted = json.loads(body)
            tables = glue_backends[_ACCOUNT_OF_MOTO][REGION]
            now = tables.get_table(wanted["DatabaseName"], wanted["TableInput"]["Name"]).as_dict()["VersionId"]
            if wanted.get("VersionId") != now:
                refusal = {"__type": "ConcurrentModificationException", "message": "the table has changed"}
                answer = Response(json.dumps(refusal), 400, mimetype="application/x-amz-json-1.1")
                return answer(environ, start_response)
            return list(self._backend({**environ, "wsgi.input": io.BytesIO(body)}, start_response))

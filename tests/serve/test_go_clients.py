"""franz-go and sarama read the same as the disk has, except for directories that they can't read. Needs Go."""

import json
import subprocess
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from kseg.serve.values import ServeSettings
from tests import golden
from tests.serve.reading import Got
from tests.serve.running import PATIENCE, Running, log_directories, serving
from tests.serve.test_clients import BROKERS, STRAY, expected_records
from tests.serve.test_java_clients import rising
from tests.serve.test_python_clients import FALLING_OFFSETS, names

pytestmark = pytest.mark.go

ROOTS = (*BROKERS, golden.ROOT / "damaged")
TIMES = {
    *("append-gzip-0", "append-in-place-v1"),  # they ignore the append time in the wrapper
    *("timestamps-v1", "timestamps-v2", "varints", *names("time-delta-min")),  # timestamps beyond Go's nanoseconds
}
CANNOT: dict[str, set[str]] = {
    "franz": {
        *TIMES,
        "unused-attributes",  # it rejects bits that Kafka ignores
        *names(FALLING_OFFSETS),  # it reads them again and again
    },
    "sarama": {
        *TIMES,
        *names(FALLING_OFFSETS),
    },
}


@pytest.fixture(scope="module", params=CANNOT)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that reads all partitions of a server."""
    program = tmp_path_factory.mktemp("go") / str(request.param)
    source = Path(__file__).with_name("go") / str(request.param)
    subprocess.run(["go", "build", "-mod=readonly", "-o", program], cwd=source, check=True)
    return program


def read(client: Path, running: Running) -> dict[str, list[Got]]:
    """Return all records by `topic-partition`. The client must get through all partitions."""
    ran = subprocess.run([client, running.bootstrap], capture_output=True, timeout=PATIENCE, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    found: dict[str, list[Got]] = {str(each): [] for each in running.served.partitions}
    for line in map(json.loads, ran.stdout.splitlines()):
        assert "error" not in line, line
        found[line["partition"]].append(_got(line))
    return found


def _got(line: dict[str, Any]) -> Got:
    headers = tuple((str(b64decode(key or ""), "utf-8", "replace"), _bytes(value)) for key, value in line["headers"])
    return Got(line["offset"], line["timestamp"], _bytes(line["key"]), _bytes(line["value"]), headers)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


@pytest.mark.parametrize("root", ROOTS, ids=lambda path: path.name)
def test_it_reads_what_is_on_the_disk(client: Path, root: Path) -> None:
    directories = [each for each in log_directories(root) if each.name not in CANNOT[client.name] | STRAY.keys()]
    with serving(*directories, settings=ServeSettings(mends_lz4=True)) as running:
        got, wanted = read(client, running), expected_records(running)
    assert got == {name: [*rising(records)] for name, records in wanted.items()}

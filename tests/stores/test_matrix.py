"""Each command with each way to reach an object store: output as for local files, and no secret anywhere."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count, zip_longest
from pathlib import Path
from string import Template
from threading import Event, Thread
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.export import exports
from tests.loops import TAKES_ALL
from tests.stores.conftest import Store
from tests.stores.servers import MARK, ROLE, spellings
from tests.stores.table import (
    COMMANDS,
    LIMITS,
    OF_DISKS,
    SETTINGS,
    SPARK_COMMANDS,
    SPARK_SETTINGS,
    Command,
    Setting,
)

pytestmark = pytest.mark.stores

KSEG = Path(sys.executable).with_name("kseg")
LARGEST_FILE = 4 << 20
"""The largest file that is searched while a command runs."""
_KEPT = ("PATH", "LANG", "JAVA_HOME", "KSEG_KERNEL")
_CHANGING = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]+Z|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Pattern of file times and random names."""
NUMBERS = count()


class Ran(NamedTuple):
    """The output of a command line. seen: what others could see while it ran."""

    status: int
    stdout: bytes
    stderr: bytes
    seen: bytes


class Watch:
    """A watch over what others see of running commands: their command lines, and files below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: set[bytes] = set()
        self._is_over = Event()

    @property
    def seen(self) -> bytes:
        """Everything that was seen."""
        return b"\n".join(self._found)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look repeatedly."""
        thread = Thread(target=self._look_again)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()
            self.look()

    def _look_again(self) -> None:
        while not self._is_over.wait(0.25):
            self.look()

    def look(self) -> None:
        """Look once; files that disappear meanwhile don't matter."""
        files = (Path(folder, name) for folder, _, names in os.walk(self._folder) for name in names)
        for path in (*Path("/proc").glob("[0-9]*/cmdline"), *files):
            try:
                if path.name == "cmdline" or (path.is_file() and path.stat().st_size < LARGEST_FILE):
                    self._found.add(path.read_bytes())
            except OSError:
                continue


class Place(NamedTuple):
    """The place of a command. root: of its input files. out: of its exports. home: the user's settings."""

    folder: Path
    home: Path
    root: str
    out: str
    environment: Mapping[str, str] = {}


def run(line: str, place: Place) -> Ran:
    """Run a command, with only the variables of this process that programs need."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    temporary = place.folder / "tmp"
    temporary.mkdir(exist_ok=True)
    lake = {"URI": f"sqlite:///{place.folder}/lake.db", "WAREHOUSE": f"{place.root}/lake"}
    fixed = {"HOME": str(place.home), "TMPDIR": str(temporary), "AWS_EC2_METADATA_DISABLED": "true"}
    fixed |= {f"PYICEBERG_CATALOG__LAKE__{name}": value for name, value in lake.items()}
    watch = Watch(place.folder)
    with watch.watching():
        ended = subprocess.run(
            [KSEG, *shlex.split(line)],
            cwd=place.folder,
            env={**kept, **fixed, **place.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
    return Ran(ended.returncode, ended.stdout, ended.stderr, watch.seen)


def run_command(command: Command, place: Place, local: Path) -> list[Ran]:
    """Run a command, an export twice. Places and varying parts are removed from its output."""
    line = Template(command.line).substitute(url=place.root, local=local, out=place.out)
    ran = [run(line, place) for _ in range(2 if command.has_rows else 1)]
    names = {place.root: b"ROOT", place.out: b"OUT", str(place.folder / "saved"): b"OUT"}
    found = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))).encode())
    same = [found.sub(lambda match: names[match[0].decode()], each.stdout) for each in ran]
    if command.has_rows or command.line.startswith("salvage"):
        same = [_CHANGING.sub(b"CHANGING", each) for each in same]
    return [each._replace(stdout=stdout) for each, stdout in zip(ran, same, strict=True)]


def read_written(command: Command, folder: Path) -> dict[str, Any]:
    """Return what a command wrote into a folder: an export's rows by topic, or else the files."""
    if not command.has_rows:
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found: dict[str, list[Any]] = {}
    for path in folder.rglob("topic=*/*.parquet"):
        found.setdefault(path.parent.name, []).extend(exports.rows_of(pq.ParquetFile(path).read()))
    if command.name == "delta":
        counted = DeltaTable(str(folder)).to_pyarrow_table().num_rows
    elif command.name == "iceberg":
        metadata = json.loads(max(folder.glob("metadata/*.metadata.json")).read_text())
        counted = sum(int(each["summary"]["added-records"]) for each in metadata["snapshots"])
    else:
        counted = sum(map(len, found.values()))
    return {"rows by the table's log": counted, **{topic: sorted(each) for topic, each in found.items()}}


Expected = Callable[[Command, int], tuple[list[Ran], dict[str, Any]]]


@pytest.fixture(scope="module")
def local_run(local: Path, tmp_path_factory: pytest.TempPathFactory) -> Expected:
    """Return a command's output and files for the same local files, below a root as long as the URL."""

    @cache
    def run_here(command: Command, length: int) -> tuple[list[Ran], dict[str, Any]]:
        folder = tmp_path_factory.mktemp("expected")
        root = "here".ljust(length, "_")
        (folder / root).symlink_to(local)
        place = Place(folder, folder, root, f"{folder}/out")
        ran = run_command(command, place, local)
        assert ran[0].status in (0, 1), ran[0].stderr
        assert b"Traceback" not in ran[0].stderr, ran[0].stderr
        return ran, read_written(command, folder / ("out" if "$out" in command.line else "saved"))

    return run_here


def place_of(setting: Setting, store: Store, folder: Path) -> Place:
    """Make a folder and a home with the user's settings."""
    fill = {**store.names, "home": str(folder / "home")}
    (folder / "work").mkdir()
    (folder / "home").mkdir()
    for name, content in setting.files.items():
        path = folder / "home" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(Template(content).substitute(fill))
    environment = {name: Template(value).substitute(fill) for name, value in setting.environment.items()}
    url = Template(setting.url).substitute(fill)
    return Place(folder / "work", folder / "home", url, f"{url}/out-{next(NUMBERS)}", environment)


@pytest.fixture
def store(request: pytest.FixtureRequest, setting: Setting) -> Store:
    found = request.getfixturevalue(setting.store)
    assert isinstance(found, Store)
    return found


@pytest.fixture
def place(setting: Setting, store: Store, tmp_path: Path) -> Iterator[Place]:
    """Yield the place of a cell; afterwards, assert that no secret is in what it left, there or in the store."""
    place = place_of(setting, store, tmp_path)
    yield place
    if store.objects is not None:
        store.download(place.out.removeprefix(place.root).strip("/"), place.folder / "stored")
    watch = Watch(place.folder)
    watch.look()
    require_no_secret(watch.seen, store)


def require_no_secret(text: bytes, store: Store) -> None:
    """Assert that a text has no secret in any spelling. All cells use this check."""
    secrets = {MARK, *(spelled for secret in store.secrets() for spelled in spellings(secret))}
    found = [match for secret in secrets if (match := re.search(b".{,60}" + re.escape(secret.encode()), text))]
    assert not found, f"a secret is visible: {found[0][0]!r}"


def run_cell(command: Command, place: Place, store: Store, local: Path) -> list[Ran]:
    """Run a command in a cell, and assert that nobody saw a secret meanwhile."""
    if store.s3 is not None:
        store.s3.signers.clear()
        store.s3.by_proxy = 0
    ran = run_command(command, place, local)
    for each in ran:
        require_no_secret(each.stdout + each.stderr + each.seen, store)
    return ran


def pairs(settings: Iterable[Setting], commands: Sequence[Command]) -> Iterator[tuple[Setting, Command]]:
    """Yield each store's first setting with all commands, and other settings with commands of different requests."""
    stores: set[str] = set()
    for setting in settings:
        takes_all = TAKES_ALL or setting.store not in stores
        stores.add(setting.store)
        yield from ((setting, command) for command in commands if takes_all or command.is_of_all)


def choose_cells(cells: Iterable[tuple[Setting, Command]], *, limited: bool = False) -> list[Any]:
    """Return the possible or impossible cells, with names of both parts."""
    return [
        pytest.param(setting, command, id=f"{setting.name}-{command.name}")
        for setting, command in cells
        if any(limit.includes(setting, command) for limit in LIMITS) is limited
    ]


def check_cell(setting: Setting, command: Command, place: Place, store: Store, local: Path, expected: Expected) -> None:
    """Assert that it printed and wrote the same as for local files, with the identity of the setting."""
    ran = run_cell(command, place, store, local)
    signed, by_proxy = (set(store.s3.signers), store.s3.by_proxy) if store.s3 else (set(), 0)
    ran_here, written_here = expected(command, len(place.root))
    for there, here in zip(ran, ran_here, strict=True):
        lines, lines_here = there.stdout.splitlines(), here.stdout.splitlines()
        differences = (pair for pair in zip_longest(lines, lines_here) if pair[0] != pair[1])
        assert (there.status, next(differences, None)) == (here.status, None), there.stderr.decode()
    if "$out" in command.line:
        store.download(place.out.removeprefix(place.root).strip("/"), place.folder / "out")
    assert read_written(command, place.folder / ("out" if "$out" in command.line else "saved")) == written_here
    if store.s3 is not None:
        roles = dict.fromkeys(store.s3.keys_of_roles(), ROLE)
        signers = {each._replace(key=roles.get(each.key, each.key)) for each in signed}
        assert (signers, by_proxy > 0) == (set(setting.signers), setting.has_proxy)


@pytest.mark.parametrize(
    ("setting", "command"), choose_cells([*pairs(SETTINGS, COMMANDS), *pairs(SETTINGS[:1], OF_DISKS)])
)
def test_same_as_on_this_machine(
    setting: Setting, command: Command, place: Place, store: Store, local: Path, local_run: Expected
) -> None:
    check_cell(setting, command, place, store, local, local_run)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("setting", "command"),
    choose_cells(pairs([each for each in SETTINGS if each.name in SPARK_SETTINGS], SPARK_COMMANDS)),
)
def test_same_by_spark(
    setting: Setting, command: Command, place: Place, store: Store, local: Path, local_run: Expected
) -> None:
    check_cell(setting, command, place, store, local, local_run)


@pytest.mark.parametrize(
    "setting", [each for each in SETTINGS if each.name == "s3-credential-process"], ids=["s3-credential-process"]
)
@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg --catalog lake"])
def test_program_that_gives_credentials_is_asked_once(kind: str, place: Place) -> None:
    asked, program = place.home / "asked", place.home / "program"
    program.write_text(f"#!/bin/sh\necho >>{asked}\ncat {place.home}/process.json\n")
    program.chmod(0o755)
    config = place.home / "config"
    config.write_text(re.sub("credential_process = .*", f"credential_process = {program}", config.read_text()))
    ran = run(f"export {place.root}/logs {place.out} -j 1 --format {kind}", place)
    assert (ran.status, asked.read_text()) == (0, "\n"), ran.stderr


@pytest.mark.parametrize(("setting", "command"), choose_cells(pairs(SETTINGS, COMMANDS), limited=True))
def test_limit_is_said(setting: Setting, command: Command, place: Place, store: Store, local: Path) -> None:
    ran = run_cell(command, place, store, local)[0]
    limit = next(each for each in LIMITS if each.includes(setting, command))
    assert ran.status in (2, 3), ran.stdout
    said = [line for line in ran.stderr.decode().splitlines() if "://" in line]
    assert len(said) == 1, ran.stderr
    assert limit.message in said[0]

"""Command lines that read the files of a case, and their results, which are the same with both kernels."""

import os
import re
import shutil
from contextlib import AbstractContextManager, nullcontext
from itertools import product
from pathlib import Path
from random import Random
from typing import NamedTuple
from unittest.mock import patch
from uuid import UUID

import pyarrow.parquet as pq

from tests import run
from tests.fuzz.cases import Case
from tests.fuzz.definitions import FOLDER
from tests.terminal import kseg_on_terminal

RELEASES = (
    *("0.8", "0.9", "0.10.0.1", "0.10.1", "0.10.2", "0.11.0.0", "0.11", "1.0", "2.0.0", "2.0", "2.1", "2.2", "2.4"),
    *("2.8", "3.0", "3.1", "3.2", "3.6", "4.0", "4.2", "4.3"),
)
NEW = "new"
"""The directory for commands' output."""
NOW = "--now 1700000000000"

OF_LOGS = (
    "dump LOG",
    "dump --print-data-log LOG",
    "dump --shallow LOG",
    "dump -o json LOG",
    "dump -o csv LOG",
    "dump -o table LOG",
    "dump --like RELEASE LOG",
    "dump --like RELEASE --print-data-log LOG",
    "dump --like RELEASE --deep-iteration LOG",
    "dump --like RELEASE --print-data-log --skip-record-metadata LOG",
    "dump --max-bytes 777 LOG",
    "dump --value-decoder json --key-decoder int64 -o json LOG",
    "dump --offsets-decoder LOG",
    "dump --transaction-log-decoder LOG",
    "dump --cluster-metadata-decoder LOG",
    "dump --remote-log-metadata-decoder LOG",
    "dump --share-group-state-decoder LOG",
    "dump --redact keys --redact values --redact headers --redact-key k -o json LOG",
    "dump --template OFFSETS LOG",
    "explain LOG",
    "explain -o json LOG",
    "explain -o html --batch 1 LOG",
    "explain -o svg --offset OFFSET LOG",
)
OF_FILES = (
    "dump FILE",
    "dump --like RELEASE FILE",
    "dump -o json FILE",
    "dump --index-sanity-check FILE",
    "dump --verify-index-only FILE",
    "dump --like RELEASE --verify-index-only FILE",
    "explain FILE",
    "explain -o json FILE",
)
OF_PARTITIONS = (
    "dump PARTITION",
    "dump -o json PARTITION",
    "dump -o kcat PARTITION",
    "dump --from-offset OFFSET --limit 5 PARTITION",
    "dump --tail 3 --isolation read_committed PARTITION",
    "dump --from-time TIME --grep a -o json PARTITION",
    "dump --sample 0.3 --no-control --header name --template OFFSETS PARTITION",
    f"ls {NOW} PARTITION",
    f"ls {NOW} --deep -o json PARTITION",
    f"ls {NOW} --from-offset OFFSET -o csv PARTITION",
    "lookup --offset OFFSET PARTITION",
    "get --offset OFFSET PARTITION",
    "lookup --timestamp TIME --print-data-log PARTITION",
    "lookup --timestamp latest -o json PARTITION",
    "lookup --timestamp max-timestamp -o json PARTITION",
    "verify PARTITION",
    "verify -o json .",
    f"report {NOW} PARTITION",
    f"report {NOW} -o json --show-keys .",
    f"report {NOW} -o json --quick .",
    "salvage --dry-run PARTITION",
    "salvage --dry-run --drop-unreadable PARTITION",
    f"salvage --to {NEW} -o json PARTITION",
    "reindex --dry-run PARTITION",
    f"reindex --to {NEW} .",
    f"slice --to {NEW} --from-offset OFFSET PARTITION",
    f"slice --to {NEW} --to-offset OFFSET --drop-key a PARTITION",
    f"compact --to {NEW} {NOW} PARTITION",
    f"compact --dry-run {NOW} PARTITION",
    f"retain {NOW} PARTITION",
    f"retain {NOW} -o timeline .",
    f"txns {NOW} -o json PARTITION",
    f"groups {NOW} -o json PARTITION",
    f"groups {NOW} --show commits PARTITION",
    f"groups {NOW} -o reset-csv .",
    "metadata -o json PARTITION",
    "metadata -o commands PARTITION",
    "plan-move .",
    f"export PARTITION {NEW} -j 1 -q",
    f"export . {NEW} -j 1 -q --batch-columns --isolation read_committed",
    f"export . {NEW} -j 1 -q --batch-columns --control",
    f"export PARTITION {NEW} -j 1 -q --latest-per-key --value-decoder json",
    f"export . {NEW} --dry-run",
)
OF_CAPTURES = ("protocol FILE", "protocol -o json FILE")
_AVRO, _PROTOBUF = "--value-decoder avro --schema", "--value-decoder protobuf --schema"
_SET = f"{FOLDER}/order.set"
_REGISTERED = "--schema-registry _schemas-0"
OF_DEFINITIONS = (
    f"dump -o json {_AVRO} {FOLDER}/order.avsc orders-0",
    f"dump --print-data-log {_AVRO} {FOLDER}/ids.json orders-0",
    f"dump -o csv {_AVRO} {FOLDER} --strict orders-0",
    f"dump -o json {_PROTOBUF} {_SET} --message shop.Order orders-0",
    f"dump -o table {_PROTOBUF} {_SET} --message shop.Order.Line orders-0",
    f"dump {_PROTOBUF} {_SET} --message shop.Price orders-0",
    f"dump -o json --value-decoder avro {_REGISTERED} orders-0",
    f"dump -o json --value-decoder protobuf {_REGISTERED} orders-0",
    f"dump -o table --value-decoder auto --key-decoder auto {_REGISTERED} orders-0",
    "dump --print-data-log --value-decoder json-pretty orders-0",
    "dump -o json --value-decoder json --key-decoder msgpack --strict orders-0",
    "dump -o json --value-decoder msgpack _schemas-0",
    f"export orders-0 {NEW} -j 1 -q {_AVRO} {FOLDER}/order.avsc --on-mismatch raw",
    f"export orders-0 {NEW} -j 1 -q {_AVRO} {FOLDER}/ids.json --decoded text",
    f"export orders-0 {NEW} -j 1 -q {_PROTOBUF} {_SET} --message shop.Order --on-mismatch raw --keep-raw undecoded",
    f"export orders-0 {NEW} -j 1 -q --value-decoder json --schema {FOLDER}/object.json --on-mismatch raw",
    f"export orders-0 {NEW} -j 1 -q --value-decoder json --schema {FOLDER}/object.json",
    f"export orders-0 {NEW} -j 1 -q --value-decoder avro {_REGISTERED} --on-mismatch raw",
    f"export orders-0 {NEW} -j 1 -q --value-decoder protobuf {_REGISTERED} --on-mismatch raw",
    f"export orders-0 {NEW} -j 1 -q --value-decoder json {_REGISTERED} --on-mismatch raw",
    f"export orders-0 {NEW} -j 1 -q --value-decoder auto --decoded text {_REGISTERED}",
    f"export orders-0 {NEW} --dry-run --value-decoder avro {_REGISTERED} --on-mismatch raw",
    f"query RECORDS orders-0 -o json {_AVRO} {FOLDER}/order.avsc --on-mismatch raw",
    f"query RECORDS orders-0 -o csv {_PROTOBUF} {_SET} --message shop.Order --on-mismatch raw",
    f"query RECORDS orders-0 -o table --value-decoder json --schema {FOLDER}/object.json --on-mismatch raw",
)
OF_DISKS = (
    "plan-move disk1 disk2",
    "plan-move disk1 disk2 --within 0 --cluster-metadata other -o csv",
    "plan-move disk1 disk2 --topic orders",
    "rebuild-metadata . --node-id 1 --dry-run",
    "rebuild-metadata disk1 disk2 other --node-id 2 --dry-run -o table",
    f"rebuild-metadata disk1 --node-id 1 --accept-loss --to {NEW}",
    f"rebuild-metadata other disk1 --node-id 1 --endpoint CONTROLLER://a:9093 --accept-loss -o json --to {NEW}",
    "metadata disk1",
    "metadata -o json other",
    "metadata -o csv --show voters disk1",
    "metadata -o table --show partitions --at OFFSET disk1",
    "metadata -o commands --keep-brokers disk1",
    "metadata --settings -o json disk1",
    "dump FILE",
    "dump -o json FILE",
    "explain FILE",
    "explain -o json FILE",
    f"ls . {NOW}",
    f"ls . {NOW} --deep -o json",
    f"doctor {NOW} -o json .",
    f"doctor {NOW} disk1 disk2",
    "verify .",
    "verify -o json disk1 disk2",
    "diff disk1 other -o json --records",
    "diff disk1 disk2 other --leader other",
    "salvage . --dry-run",
    "salvage . --dry-run -o json --drop-unreadable",
    f"salvage disk1 disk2 other -o json --to {NEW}",
    f"salvage disk1 disk2 other --cluster-metadata other --keep-diverged {NEW}-diverged --to {NEW}",
    "lookup --offset OFFSET --print-data-log PARTITION",
    "lookup --timestamp TIME --topic orders --partition 1 .",
    "dump --merge time -o json --limit 50 .",
    f"groups {NOW} . --show commits -o json",
    f"txns . {NOW} -o json",
    f"retain . {NOW} -o json",
    f"reindex --to {NEW} --cluster-metadata other disk1 disk2",
    f"compact --to {NEW} {NOW} PARTITION",
    f"export disk1 disk2 other {NEW} -j 1 -q",
    "where --group orders .",
)
OF_NAMES = (
    f"report {NOW} broker",
    f"report {NOW} --show-keys --price 0.1 broker",
    f"report {NOW} --show-keys -o text broker",
    f"report {NOW} --quick -o json .",
    f"ls {NOW} broker",
    f"ls {NOW} -o table broker",
    f"ls {NOW} -o csv --csv-safe --by segment .",
    f"doctor {NOW} broker",
    f"doctor {NOW} -o json broker",
    "verify broker",
    f"retain {NOW} broker",
    f"retain {NOW} -o timeline broker",
    f"groups {NOW} broker",
    f"groups {NOW} -o table --show members broker",
    f"groups {NOW} -o csv --show commits broker",
    f"groups {NOW} -o table --show share-partitions broker",
    f"groups {NOW} -o reset-csv broker",
    f"txns {NOW} broker",
    f"txns {NOW} -o table --open broker",
    "metadata broker",
    "metadata -o csv --show configs broker",
    "metadata -o table --show topics --show acls broker",
    "metadata -o table --show quotas --show scram --show tokens broker",
    "metadata -o commands broker",
    "metadata --settings broker",
    "rebuild-metadata broker --node-id 1 --dry-run",
    "plan-move broker broker2 -o text",
    "plan-move broker broker2 --within 0",
    "where --group NAME broker",
    "where --transactional-id NAME -o json broker",
    "lookup --offset 0 --print-data-log PARTITION",
    "lookup --offset 0 --topic NAME --partition 0 broker",
    "get --offset 1 --field header:NAME PARTITION",
    "dump --print-data-log PARTITION",
    "dump -o kcat PARTITION",
    "dump -o table --fields topic,file,key,value,headers .",
    "dump -o csv --csv-safe --fields topic,file,key,value,headers PARTITION",
    "dump --offsets-decoder --print-data-log LOG",
    "dump --cluster-metadata-decoder --print-data-log LOG",
    "dump FILE",
    "explain FILE",
    "explain -o html LOG",
    "explain -o svg --batch 0 LOG",
    f"export broker {NEW} -j 1 -q",
    f"export broker {NEW} --dry-run",
    f"salvage --to {NEW} broker",
    "salvage --dry-run PARTITION",
    "diff broker broker -o table --records",
    f"compact --dry-run {NOW} broker",
    f"slice --to {NEW} --from-offset 1 PARTITION",
    "protocol frames",
    "protocol --print-data-log frames",
    "protocol -o json frames",
    "protocol --count frames",
    "query SQL broker",
)


class Outcome(NamedTuple):
    """A command's exit status, output, and written files: contents by path."""

    status: int
    stdout: bytes
    stderr: bytes
    files: dict[str, object]


def lines_of(case: Case) -> tuple[str, ...]:
    """Return the command lines that fit the files of a case."""
    for lines, begin in _BY_FOLDER:
        if any(path.startswith(begin) for path in case.files):
            return lines
    has_log = any(path.endswith(".log") for path in case.files)
    return (*(OF_LOGS if has_log else ()), *OF_FILES, *OF_PARTITIONS)


_BY_FOLDER = ((OF_CAPTURES, "clients.pcap"), (OF_DEFINITIONS, FOLDER), (OF_DISKS, "disk1/"), (OF_NAMES, "broker/"))
"""Command lines for cases in which a path begins like this."""


def some_commands(case: Case, random: Random, count: int) -> list[list[str]]:
    """Return `count` command lines for a case, with names of its files and numbers from them."""
    choices = _choices(case)
    numbers = _numbers(case, random)
    # One draw per name, however many names there are, so that a smaller case gets the same checks.
    chosen = [{word: names[int(random.random() * len(names))] for word, names in choices.items()} for _ in range(count)]
    lines = random.choices(lines_of(case), k=count)
    return [_fill(line, numbers | names) for line, names in zip(lines, chosen, strict=True)]


def all_commands(case: Case, random: Random) -> list[list[str]]:
    """Return each command line for a case, with each of its files and each release."""
    choices, numbers, found = _choices(case), _numbers(case, random), []
    for line in lines_of(case):
        words = [word for word in choices if word in line.split()]
        for names in product(*(choices[word] for word in words)):
            found.append(_fill(line, numbers | dict(zip(words, names, strict=True))))
    return found


def _choices(case: Case) -> dict[str, list[str]]:
    return {
        "LOG": [path for path in case.files if path.endswith(".log")] or ["none.log"],
        "FILE": list(case.files),
        "PARTITION": sorted({path.rpartition("/")[0] for path in case.files if path.endswith(".log")} - {""}) or ["."],
        "RELEASE": list(RELEASES),
    }


def _numbers(case: Case, random: Random) -> dict[str, str]:
    """Return an offset and a time that may have records."""
    log = next((content for path, content in case.files.items() if path.endswith(".log")), b"")
    offset = int.from_bytes(log[:8], "big", signed=True) + random.randrange(30)
    time = int.from_bytes(log[27:35], "big", signed=True)
    return {
        "OFFSET": str(max(offset, 0)),
        "TIME": str(time if 0 <= time < 1 << 45 else 1_700_000_000_000),
        "OFFSETS": "{offset} {key} {value}",
        "NAME": _name(case),
        "header:NAME": f"header:{_name(case)}",
        "SQL": "select * from segments order by all",
        "RECORDS": "select * from records",
    }


def _name(case: Case) -> str:
    """Return a topic name from a case, or another one."""
    topics = [path.split("/")[1].rpartition("-")[0] for path in case.files if path.count("/") > 1]
    return next((topic for topic in topics if not topic.startswith("_")), "orders")


def _fill(line: str, values: dict[str, str]) -> list[str]:
    return [values.get(word, word) for word in line.split()]


def outcome(arguments: list[str], directory: Path, kernel: str) -> Outcome:
    """Run kseg with a kernel, and remove its files."""
    os.environ["KSEG_KERNEL"] = kernel
    try:
        with _known_ids() if arguments[0] == "rebuild-metadata" else nullcontext():
            status, stdout, stderr = run.kseg(arguments, directory)
        kept = _NOW.sub(b"", stdout) if arguments[0] == "salvage" else _AVAILABLE.sub(b'"availableBytes":0', stdout)
        return Outcome(status, kept, stderr, _files(directory / NEW))
    finally:
        _take_away(directory)


def _known_ids() -> AbstractContextManager[object]:
    """Patch the ids of new log directories to a constant."""
    return patch("uuid.uuid4", return_value=UUID(int=1 << 127))


def on_terminal(arguments: list[str], directory: Path) -> str:
    """Return kseg's output on a terminal without colours, and remove its files."""
    try:
        return kseg_on_terminal(arguments, directory, NO_COLOR="1")
    finally:
        _take_away(directory)


def _take_away(directory: Path) -> None:
    for name in (NEW, f"{NEW}-diverged"):
        shutil.rmtree(directory / name, ignore_errors=True)


_OF_A_RUN = re.compile(rb'[0-9a-f]{8}-\d+-[0-9a-f]{12}|"(seconds|modifiedMs)": *[0-9.]+|"run": *"[0-9a-f]+"')
"""The parts that differ between two runs of an export: its name, its attempts' names, and times."""

_AVAILABLE = re.compile(rb'"availableBytes": *\d+')
"""Free disk space, which other processes change."""

_NOW = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
"""The times of a salvage and its files, which differ between two reports."""


def _files(directory: Path) -> dict[str, object]:
    """Return Parquet files as their rows, others as bytes."""
    paths = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return {path.relative_to(directory).as_posix(): _content(path) for path in paths}


def _content(path: Path) -> object:
    if path.suffix == ".parquet":
        rows = pq.ParquetFile(path).read()
        return rows.schema, repr(rows.to_pylist())  # as text: NaN differs from itself
    return _OF_A_RUN.sub(b"", path.read_bytes())

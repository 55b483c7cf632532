"""Command lines that read a case's files, and what they gave: by either kernel the same."""

import os
import re
import shutil
from itertools import product
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyarrow.parquet as pq

from tests import run
from tests.fuzz.cases import Case
from tests.fuzz.schemas import AVRO, DESCRIPTORS, JSON, RECORDS, REGISTRY

RELEASES = (
    *("0.8", "0.9", "0.10.0.1", "0.10.1", "0.10.2", "0.11.0.0", "0.11", "1.0", "2.0.0", "2.0", "2.1", "2.2", "2.4"),
    *("2.8", "3.0", "3.1", "3.2", "3.6", "4.0", "4.2", "4.3"),
)
NEW = "new"
"""The directory that commands write."""
NOW = "--now 1700000000000"
DECODERS = ("avro", "protobuf", "json", "auto")

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
    "groups -o json PARTITION",
    "groups --show commits PARTITION",
    "groups -o reset-csv .",
    "metadata -o json PARTITION",
    "metadata --as-commands PARTITION",
    "plan-move .",
    "plan-move -o json --within 0 .",
    "rebuild-metadata --node-id 9 --dry-run .",
    f"rebuild-metadata --node-id 9 --endpoint C://localhost:9093 --accept-loss --to {NEW} -o json .",
    f"doctor {NOW} .",
    f"doctor {NOW} -o json PARTITION",
    "diff PARTITION .",
    "diff -o json . PARTITION",
    f"report {NOW} --show-keys .",
    "metadata --settings .",
    "ls --name disk .",
    "dump --all-replicas -o json .",
    "dump --merge time -o csv .",
    "query COUNTS -o json .",
    "query RECORDS -o json .",
    f"export PARTITION {NEW} -j 1 -q",
    f"export . {NEW} -j 1 -q --batch-columns --isolation read_committed",
    f"export . {NEW} -j 1 -q --batch-columns --control",
    f"export PARTITION {NEW} -j 1 -q --latest-per-key --value-decoder json",
    f"export . {NEW} --dry-run",
)
OF_SCHEMAS = (
    *(f"dump -o json --value-decoder {name} --schema-registry {REGISTRY} {RECORDS}" for name in DECODERS),
    f"dump -o json --value-decoder avro --schema {AVRO} {RECORDS}",
    f"dump --strict --print-data-log --value-decoder protobuf --schema {DESCRIPTORS} --message shop.Order {RECORDS}",
    *(f"export {RECORDS} {NEW} -j 1 -q --value-decoder {name} --schema-registry {REGISTRY}" for name in DECODERS),
    f"export {RECORDS} {NEW} -j 1 -q --value-decoder avro --schema {AVRO}",
    f"export {RECORDS} {NEW} -j 1 -q --value-decoder json --schema {JSON}",
    f"export {RECORDS} {NEW} -j 1 -q --value-decoder protobuf --schema {DESCRIPTORS} --message shop.Order",
    f"query COUNTS -o json --value-decoder avro --schema-registry {REGISTRY} {RECORDS}",
    f"metadata {REGISTRY}",
)
OF_CAPTURES = ("protocol FILE", "protocol -o json FILE")


class Outcome(NamedTuple):
    """How a command ended, what it printed, and the files it wrote: contents by path."""

    status: int
    stdout: bytes
    stderr: bytes
    files: dict[str, object]


def lines_of(case: Case) -> tuple[str, ...]:
    """The command lines that fit a case's files."""
    if any(path.endswith(".pcap") for path in case.files):
        return OF_CAPTURES
    if AVRO in case.files:
        return OF_SCHEMAS
    has_log = any(path.endswith(".log") for path in case.files)
    return (*(OF_LOGS if has_log else ()), *OF_FILES, *OF_PARTITIONS)


def some_commands(case: Case, random: Random, count: int) -> list[list[str]]:
    """So many command lines for a case, with names of its files and numbers out of them."""
    choices = _choices(case)
    numbers = _numbers(case, random)
    # One draw for each, however many names there are: a smaller case is asked the same.
    chosen = [{word: names[int(random.random() * len(names))] for word, names in choices.items()} for _ in range(count)]
    lines = random.choices(lines_of(case), k=count)
    return [_filled(line, numbers | names) for line, names in zip(lines, chosen, strict=True)]


def all_commands(case: Case, random: Random) -> list[list[str]]:
    """Each command line for a case, with each of its files and each release."""
    choices, numbers, found = _choices(case), _numbers(case, random), []
    for line in lines_of(case):
        words = [word for word in choices if word in line.split()]
        for names in product(*(choices[word] for word in words)):
            found.append(_filled(line, numbers | dict(zip(words, names, strict=True))))
    return found


def _choices(case: Case) -> dict[str, list[str]]:
    return {
        "LOG": [path for path in case.files if path.endswith(".log")] or ["none.log"],
        "FILE": list(case.files),
        "PARTITION": sorted({path.partition("/")[0] for path in case.files if "/" in path}) or ["."],
        "RELEASE": list(RELEASES),
    }


def _numbers(case: Case, random: Random) -> dict[str, str]:
    """An offset and a time about which there may be records."""
    log = next((content for path, content in case.files.items() if path.endswith(".log")), b"")
    offset = int.from_bytes(log[:8], "big", signed=True) + random.randrange(30)
    time = int.from_bytes(log[27:35], "big", signed=True)
    return {
        "OFFSET": str(max(offset, 0)),
        "TIME": str(time if 0 <= time < 1 << 45 else 1_700_000_000_000),
        "OFFSETS": "{offset} {key} {value}",
        "COUNTS": "SELECT topic, partition, count(*) FROM records GROUP BY ALL ORDER BY ALL",
        "RECORDS": "SELECT * FROM batches ORDER BY ALL LIMIT 9",
    }


def _filled(line: str, values: dict[str, str]) -> list[str]:
    return [values.get(word, word) for word in line.split()]


def outcome(arguments: list[str], directory: Path, kernel: str) -> Outcome:
    """Runs kseg with a kernel; what it writes is taken away again."""
    os.environ["KSEG_KERNEL"] = kernel
    try:
        status, stdout, stderr = run.kseg(arguments, directory)
        changing = _CHANGING.get(arguments[0])
        return Outcome(
            status, stdout if changing is None else changing.sub(b"", stdout), stderr, _files(directory / NEW)
        )
    finally:
        shutil.rmtree(directory / NEW, ignore_errors=True)


_OF_A_RUN = re.compile(rb'[0-9a-f]{8}-\d+-[0-9a-f]{12}|"(seconds|modifiedMs)": *[0-9.]+|"run": *"[0-9a-f]+"')
"""What differs between two runs of an export: its name, those of attempts, and times."""

_CHANGING = {
    "salvage": re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"),
    "doctor": re.compile(rb'^.*("type":"disk"| in use, ).*\n', re.MULTILINE),
}
"""What differs between two runs: when a salvage ran and its files were written; how full the disk is."""


def _files(directory: Path) -> dict[str, object]:
    """Parquet files as their rows, others as bytes."""
    paths = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return {path.relative_to(directory).as_posix(): _content(path) for path in paths}


def _content(path: Path) -> object:
    if path.suffix == ".parquet":
        return repr(pq.ParquetFile(path).read().to_pylist())  # not the values: NaN isn't equal to itself
    return _OF_A_RUN.sub(b"", path.read_bytes())

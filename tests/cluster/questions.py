"""Questions about a cluster's disks, and the ways to ask kseg: all answers must be the same."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import kseg
from kseg.api.partition import Partition
from tests.run import kseg as run

Ends = dict[tuple[object, object], object]
Found = dict[tuple[str, int], list[tuple[int, str]]]
Ask = Callable[[Path, Sequence[str], Sequence[str]], Mapping[Any, Any]]


def lines(root: Path, command: Sequence[str], paths: Sequence[str], choice: Sequence[str]) -> list[dict[str, object]]:
    ran = run([*command, *paths, *choice], root)
    assert ran.status in (0, 1), ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def by_partition(rows: Iterable[tuple[object, object, object, object]]) -> Found:
    found: Found = {}
    for topic, partition, offset, value in rows:
        if topic and not str(topic).startswith("__"):
            text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
            found.setdefault((str(topic), int(str(partition))), []).append((int(str(offset)), text))
    return {key: sorted(rows) for key, rows in sorted(found.items())}


def of_rows(rows: Iterable[Mapping[str, object]]) -> Found:
    return by_partition((row["topic"], row["partition"], row["offset"], row.get("value")) for row in rows)


def ask_dump(root: Path, paths: Sequence[str], choice: Sequence[str]) -> Found:
    return of_rows(lines(root, ["dump", "-o", "json", "--only", "records"], paths, choice))


def dumped_as_csv(root: Path, paths: Sequence[str], choice: Sequence[str]) -> Found:
    ran = run(["dump", "-o", "csv", "--fields", "topic,partition,offset,value", *paths, *choice], root)
    return of_rows(csv.DictReader(io.StringIO(ran.stdout.decode())))


def _new_directory(root: Path, what: str, paths: Sequence[str], choice: Sequence[str]) -> Path:
    """Return a new directory outside of all paths read, even if the disks' parent is read."""
    return root.parents[1] / f"{what}-{'-'.join(paths).replace('/', '_')}-{len(choice)}"


def ask_export(root: Path, paths: Sequence[str], choice: Sequence[str]) -> Found:
    destination = _new_directory(root, "out", paths, choice)
    ran = run(["export", *paths, str(destination), *choice], root)
    assert ran.status == 0, ran.stdout
    return of_rows(pq.read_table(destination, columns=["topic", "partition", "offset", "value"]).to_pylist())


def ask_query(root: Path, paths: Sequence[str], choice: Sequence[str]) -> Found:
    sql = 'SELECT topic, partition, "offset", as_text(value) AS value FROM records'
    return of_rows(lines(root, ["query", sql, "-o", "json"], paths, choice))


def ask_open(root: Path, paths: Sequence[str], choice: Sequence[str]) -> Found:
    with kseg.open(*(root / path for path in paths), topic=choice[1::2]) as directory:
        return by_partition(
            (topic, number, record.offset, record.value)
            for topic in directory.topics
            for number in sorted({each.partition for each in directory.partitions(topic) if each.state is None})
            for record in directory.partition(topic, number).records()
        )


def ask_joined(root: Path, paths: Sequence[str], choice: Sequence[str]) -> Found:
    with kseg.open_cluster([root / path for path in paths]) as cluster:
        return by_partition(
            (topic.name, part.partition, record.offset, record.value)
            for topic in cluster.topics.values()
            for part in topic.partitions
            for record in part.records()
        )


def ask_salvage(root: Path, paths: Sequence[str], choice: Sequence[str]) -> Found:
    target = _new_directory(root, "saved", paths, choice)
    run(["salvage", *paths, "--to", str(target), *choice], root)
    return ask_dump(target, ["."], ())


RECORDS_ASKED: tuple[Ask, ...] = (ask_dump, dumped_as_csv, ask_export, ask_query, ask_open, ask_joined, ask_salvage)


def _by_lookup(root: Path, time: str, paths: Sequence[str], choice: Sequence[str]) -> Ends:
    with kseg.open(*(root / path for path in paths), topic=choice[1::2]) as directory:
        known = {(each.topic, each.partition) for each in directory.partitions() if each.state is None}
    found: Ends = {}
    for topic, number in known:
        if topic is not None and number is not None and not topic.startswith("__"):
            asked = ["lookup", "--timestamp", time, "-o", "json", "--topic", topic, "--partition", str(number)]
            found[topic, number] = lines(root, asked, paths, ())[0]["offset"]
    return found


def _by_query(root: Path, column: str, table: str, paths: Sequence[str], choice: Sequence[str]) -> Ends:
    sql = f"SELECT topic, partition, {column} AS e FROM {table} GROUP BY ALL"
    rows = lines(root, ["query", sql, "-o", "json"], paths, choice)
    return {(row["topic"], row["partition"]): row["e"] for row in rows if not str(row["topic"]).startswith("__")}


def _by_opening(root: Path, asked: Callable[[Partition], object], paths: Sequence[str]) -> Ends:
    with kseg.open_cluster([root / path for path in paths]) as cluster:
        parts = [part for topic in cluster.topics.values() for part in topic.partitions]
        return {
            (part.topic, part.partition): asked(part)
            for part in parts
            if part.topic is not None and not part.topic.startswith("__")
        }


def ends_by_lookup(root: Path, paths: Sequence[str], choice: Sequence[str]) -> Ends:
    return _by_lookup(root, "latest", paths, choice)


def ends_by_commits(root: Path, paths: Sequence[str], _: Sequence[str]) -> Ends:
    rows = lines(root, ["groups", "-o", "json"], paths, ())
    return {(row["topic"], row["partition"]): row["logEndOffset"] for row in rows if row["type"] == "commit"}


def ends_by_query(root: Path, paths: Sequence[str], choice: Sequence[str]) -> Ends:
    return _by_query(root, 'max("lastOffset") + 1', "batches", paths, choice)


def ends_by_opening(root: Path, paths: Sequence[str], _: Sequence[str]) -> Ends:
    return _by_opening(root, Partition.log_end_offset, paths)


ENDS_ASKED: tuple[Ask, ...] = (ends_by_lookup, ends_by_commits, ends_by_query, ends_by_opening)


def starts_by_lookup(root: Path, paths: Sequence[str], choice: Sequence[str]) -> Ends:
    return _by_lookup(root, "earliest", paths, choice)


def starts_by_query(root: Path, paths: Sequence[str], choice: Sequence[str]) -> Ends:
    return _by_query(root, 'min("offset")', "records", paths, choice)


def starts_by_opening(root: Path, paths: Sequence[str], _: Sequence[str]) -> Ends:
    return _by_opening(root, Partition.log_start_offset, paths)


STARTS_ASKED: tuple[Ask, ...] = (starts_by_lookup, starts_by_query, starts_by_opening)

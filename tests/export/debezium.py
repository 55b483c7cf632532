"""Topics of change events as Debezium writes them, made by a model of a database whose final rows are known."""

import json
from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.log_files import NewBatch, NewRecord, write_segment

Row = dict[str, Any]
TIME = 1_714_000_000_000


@dataclass
class Database:
    """A table of a database with the primary key `id`, and the topic of its changes.

    partition_count: of the topic. The changes of a key are in all partitions, and only positions tell their order.
    connector: postgresql, or mysql with positions in binlogs. has_schema: whether values have Connect's schemas.
    """

    seed: int = 1
    partition_count: int = 3
    connector: str = "postgresql"
    has_schema: bool = False
    rows: dict[int, Row] = field(default_factory=dict)
    logs: dict[int, list[NewRecord]] = field(default_factory=dict)
    batches: dict[int, list[NewBatch]] = field(default_factory=dict)
    columns: list[str] = field(default_factory=lambda: ["name", "amount"])
    position: int = 1000
    changes: int = 0
    next_id: int = 1

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.logs = {partition: [] for partition in range(self.partition_count)}
        self.batches = {partition: [] for partition in range(self.partition_count)}

    def snapshot(self, count: int) -> None:
        """Add rows that the connector finds when it starts."""
        for _ in range(count):
            self._insert("r")

    def change(self, count: int) -> None:
        """Make changes of all kinds."""
        for _ in range(count):
            kind = self.random.random()
            if kind < 0.3 or not self.rows:
                self._insert("c")
            elif kind < 0.8:
                self._update(self._any_id())
            elif kind < 0.92:
                self._delete(self._any_id())
            else:
                self._move(self._any_id())

    def add_column(self, name: str) -> None:
        """Add a column, which only later rows have."""
        self.columns.append(name)

    def _any_id(self) -> int:
        return self.random.choice(list(self.rows))

    def _new_row(self, own: int) -> Row:
        values: Row = {
            "id": own,
            "name": f"name {self.random.randrange(10**6)}",
            "amount": self.random.randrange(1000) + 0.5,
        }
        values |= {name: f"2024-01-{self.random.randrange(10, 28)}" for name in self.columns[2:]}
        return values

    def _insert(self, op: str) -> None:
        own, self.next_id = self.next_id, self.next_id + 1
        self.rows[own] = self._new_row(own)
        self._emit(own, op, None, self.rows[own])

    def _update(self, own: int) -> None:
        before, self.rows[own] = self.rows[own], self._new_row(own)
        self._emit(own, "u", before, self.rows[own])

    def _delete(self, own: int) -> None:
        self._emit(own, "d", self.rows.pop(own), None)

    def _move(self, own: int) -> None:
        """Change the key of a row: Debezium deletes the old one and inserts the new one."""
        row = self.rows[own]
        self._delete(own)
        new, self.next_id = self.next_id, self.next_id + 1
        self.rows[new] = {**row, "id": new}
        self._emit(new, "c", None, self.rows[new])

    def _partition_of(self, own: int) -> int:
        """Return any partition: a custom partitioner may change its mind for each change."""
        return self.random.randrange(self.partition_count)

    def source(self) -> Row:
        """Return the source block at the current position."""
        common = {"version": "2.7.0.Final", "connector": self.connector, "name": "srv", "ts_ms": TIME + self.changes}
        if self.connector == "mysql":
            place = {"file": f"binlog.{self.position // 500:06}", "pos": self.position % 500, "row": 0, "server_id": 1}
        else:
            place = {"lsn": self.position, "txId": self.changes, "xmin": None}
        return {**common, "snapshot": "false", "db": "inventory", "table": "customers", **place}

    def _emit(self, own: int, op: str, before: Row | None, after: Row | None) -> None:
        self.position += self.random.randrange(1, 9)
        self.changes += 1
        partition = self._partition_of(own)
        value = {"before": before, "after": after, "source": self.source(), "op": op, "ts_ms": TIME + self.changes + 5}
        self._write(partition, {"id": own}, value)
        if op == "d":
            self._write(partition, {"id": own}, None)

    def _write(self, partition: int, key: Row, value: Row | None) -> None:
        texts = [None if each is None else self._text(each) for each in (key, value)]
        self.logs[partition].append(NewRecord(texts[0], texts[1]))

    def _text(self, payload: Row) -> bytes:
        if self.has_schema:
            return json.dumps(
                {"schema": {"type": "struct", "fields": []}, "payload": payload}, separators=(",", ":")
            ).encode()
        return json.dumps(payload, separators=(",", ":")).encode()

    def expected(self) -> list[Row]:
        """Return the rows of the table, with all columns, in the order of keys."""
        return [{"id": own, **{name: row.get(name) for name in self.columns}} for own, row in sorted(self.rows.items())]

    def write(self, directory: Path, topic: str = "srv.customers", late: Container[int] = ()) -> None:
        """Append the new records to the logs of the topic's partitions, except late ones; earlier batches stay."""
        for partition, records in self.logs.items():
            if partition in late:
                continue
            own = self.batches[partition]
            first = own[-1].next_offset if own else 0
            own += [NewBatch(records[start : start + 100], start) for start in range(first, len(records), 100)]
            write_segment(directory / f"{topic}-{partition}", own)

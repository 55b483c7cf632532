"""Exports with decoded values: CPU seconds for a million records, with typed columns and with JSON text.

python -m bench.typed [--records N]      needs the extras arrow, avro and protobuf
"""

import argparse
import io
import json
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

import kseg
from kseg.export.commit.order import execute_here
from kseg.export.planning import Export
from kseg.export.run import run_export
from kseg.export.settings import ColumnDecoding, DecodedAs, ReadOptions

REPEATS = 3
PER_BATCH = 100
LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "n", "type": "int"}, {"name": "article", "type": "string"}],
}
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "note", "type": ["null", "string"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]}},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "paid", "type": "boolean"},
    ],
}
PROTOBUF = """
syntax = "proto3";
package shop;
message Order {
  int64 id = 1;
  string customer = 2;
  int64 at = 3;
  double price = 4;
  optional string note = 5;
  Kind kind = 6;
  repeated Line lines = 7;
  bool paid = 8;
}
message Line { int32 n = 1; string article = 2; }
enum Kind { NEW = 0; OLD = 1; }
"""
_LINE = {"type": "object", "properties": {"n": {"type": "integer"}, "article": {"type": "string"}}}
JSON = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "customer": {"type": "string"},
        "at": {"type": "integer"},
        "price": {"type": "number"},
        "note": {"type": ["null", "string"]},
        "kind": {"enum": ["NEW", "OLD"]},
        "lines": {"type": "array", "items": _LINE},
        "paid": {"type": "boolean"},
    },
}
START = datetime(2026, 11, 1, tzinfo=UTC)


def order(number: int) -> dict[str, Any]:
    """Return a value in its JSON form."""
    return {
        "id": number,
        "customer": f"customer-{number % 1000}",
        "at": 1_793_491_200_000 + number,
        "price": 12.5 + number % 100,
        "note": "x" if number % 2 else None,
        "kind": "OLD" if number % 3 else "NEW",
        "lines": [{"n": 1, "article": "pen"}, {"n": 2, "article": "ink"}],
        "paid": True,
    }


def avro_values(count: int, folder: Path) -> tuple[Iterator[bytes], ColumnDecoding]:
    """Return bare values, and their decoder."""
    (folder / "order.avsc").write_text(json.dumps(AVRO))
    schema = fastavro.parse_schema(AVRO)

    def value(number: int) -> bytes:
        changed = {"at": START + timedelta(milliseconds=number), "price": Decimal("12.50") + number % 100}
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, schema, {**order(number), **changed})
        return stream.getvalue()

    return map(value, range(count)), ColumnDecoding(value="avro", schema=str(folder / "order.avsc"))


def protobuf_values(count: int, folder: Path) -> tuple[Iterator[bytes], ColumnDecoding]:
    """Return bare messages, and their decoder."""
    (folder / "order.proto").write_text(PROTOBUF)
    descriptors = folder / "order.set"
    protoc.main(["protoc", f"-I{folder}", f"--descriptor_set_out={descriptors}", "order.proto"])
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors.read_bytes()).file:
        pool.AddSerializedFile(file.SerializeToString())
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))

    def value(number: int) -> bytes:
        given = {name: each for name, each in order(number).items() if each is not None}
        content: bytes = made(**{**given, "kind": int(given["kind"] == "OLD")}).SerializeToString()
        return content

    return map(value, range(count)), ColumnDecoding(value="protobuf", schema=str(descriptors), message="shop.Order")


def json_values(count: int, folder: Path) -> tuple[Iterator[bytes], ColumnDecoding]:
    """Return JSON texts, and their decoder."""
    (folder / "order.json").write_text(json.dumps(JSON))
    values = (json.dumps(order(number)).encode() for number in range(count))
    return values, ColumnDecoding(value="json", schema=str(folder / "order.json"))


KINDS = {"avro": avro_values, "protobuf": protobuf_values, "json": json_values}


def write_log(directory: Path, values: Iterator[bytes]) -> None:
    """Write a segment of these values."""
    directory.mkdir()
    with (directory / f"{0:020}.log").open("wb") as file:
        builder = kseg.RecordsBuilder()
        for value in values:
            builder.append(1, b"key", value)
            if builder.count == PER_BATCH:
                file.write(builder.build().raw)
                builder = kseg.RecordsBuilder(builder.next_offset)
        if builder.count:
            file.write(builder.build().raw)


def seconds(source: Path, decoding: ColumnDecoding, count: int) -> float:
    """Return CPU seconds for a million records, the best of several runs."""
    taken = []
    for _ in range(REPEATS):
        out = source.parent / "out"
        start = time.process_time()
        report = run_export(Export((str(source),), str(out), read=ReadOptions(decode=decoding)), execute_here)
        taken.append(time.process_time() - start)
        assert (report.partitions[0].records_out, report.partitions[0].undecoded) == (count, 0)
        shutil.rmtree(out)
    return min(taken) * 1e6 / count


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--records", type=int, default=100_000, help="records of each kind")
    count = parser.parse_args().records
    print("| values | bytes alone | JSON text | typed | typed ÷ text |\n|---|---|---|---|---|")
    for name, make in KINDS.items():
        with TemporaryDirectory() as folder:
            values, text = make(count, Path(folder))
            source = Path(folder) / f"{name}-0"
            write_log(source, values)
            typed = ColumnDecoding(text.key, text.value, text.schema, text.message, decoded_as=DecodedAs.TYPED)
            plain, slow, quick = (seconds(source, each, count) for each in (ColumnDecoding(), text, typed))
        print(f"| {name} | {plain:.1f} s | {slow:.1f} s | {quick:.1f} s | {quick / slow:.2f} |", flush=True)


if __name__ == "__main__":
    main()

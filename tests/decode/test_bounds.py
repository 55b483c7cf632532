"""Schemas and values that are made to be endless, huge or deep cost little, and end in a line."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import IO, Any

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

from kseg.decode.decoded import Decoded, decoded_text
from kseg.decode.values import DecoderOptions, value_decoder
from kseg.errors import KsegError
from tests import golden
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each
from tests.run import Run

MEMORY = 1 << 30


def kseg(directory: Path, *arguments: str, stdin: IO[bytes] | None = None) -> subprocess.CompletedProcess[str]:
    """A run with little memory: one that would fill it fails at once."""
    return subprocess.run(
        [Path(sys.executable).with_name("kseg"), *arguments],
        cwd=directory,
        stdin=stdin,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )


SEVERAL = """
import json, sys
from pathlib import Path
from tests.run import kseg
for line in json.load(sys.stdin):
    ran = kseg(line.split(), Path())
    print(json.dumps([ran.status, ran.stdout.decode(), ran.stderr.decode()]))
"""


def kseg_runs(directory: Path, lines: Sequence[str]) -> Iterator[tuple[str, Run]]:
    """Runs of several command lines in one process with little memory."""
    ran = subprocess.run(
        [sys.executable, "-c", SEVERAL],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(golden.ROOT.parent)},
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    for line, result in zip(lines, ran.stdout.splitlines(), strict=True):
        status, stdout, stderr = json.loads(result)
        yield line, Run(status, stdout.encode(), stderr.encode())


READING = [
    "dump orders-0 --value-decoder avro --schema PATH",
    "dump orders-0 --value-decoder protobuf --message a --schema PATH",
    "dump orders-0 --value-decoder avro --schema-registry PATH",
    "export orders-0 new --value-decoder avro --schema PATH",
    "export orders-0 new --value-decoder protobuf --message a --schema PATH",
    "export orders-0 new --value-decoder avro --schema-registry PATH",
    "reindex lost-0 --to new --cluster-metadata PATH",
    "slice lost-0 --to new --cluster-metadata PATH",
]
"""Command lines with an option that names a file."""


@pytest.mark.parametrize("path", ["pipe", "/dev/zero", "large"])
def test_a_pipe_a_device_and_a_huge_file_are_refused_at_once(path: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    for name in ("orders-0", "lost-0"):
        write_segment(tmp_path / name, [NewBatch([NewRecord(None, b"value", 0)])])
    (tmp_path / "lost-0/partition.metadata").write_text("")
    for line, ran in kseg_runs(tmp_path, [line.replace("PATH", path) for line in READING]):
        assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1), (line, ran.stderr)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("form", ["json", "csv", "text"])
def test_build_takes_no_endless_line(form: str, tmp_path: Path) -> None:
    with Path("/dev/zero").open("rb") as zeros:
        ran = kseg(tmp_path, "build", "-", "--input-format", form, "--to", "new", stdin=zeros)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1), ran.stderr
    assert "line 1 has more than" in ran.stderr


def avro(tmp_path: Path, schema: object, data: bytes) -> Decoded | str:
    """Return the value that a schema decodes, or the reason for refusing it."""
    path = tmp_path / "schema.avsc"
    path.write_text(schema if isinstance(schema, str) else json.dumps(schema))
    try:
        return value_decoder("avro", DecoderOptions(path), "value")(data, ())
    except KsegError as error:
        return str(error)


LIST = {"type": "record", "name": "List", "fields": [{"name": "next", "type": ["null", "List"]}]}


def doubling(levels: int) -> dict[str, Any]:
    """A record that holds the one before twice: 2 to the power of the levels, and not a byte."""
    record: dict[str, Any] = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": "null"}]}
    for level in range(1, levels):
        fields = [{"name": "a", "type": record}, {"name": "b", "type": f"R{level - 1}"}]
        record = {"type": "record", "name": f"R{level}", "fields": fields}
    return record


def chain(levels: int) -> list[dict[str, Any]]:
    """Records each of which holds the one before."""
    return [
        {"type": "record", "name": f"R{level}", "fields": [{"name": "a", "type": f"R{level - 1}" if level else "int"}]}
        for level in range(levels)
    ]


def nest(levels: int) -> str:
    return '{"type":"array","items":' * levels + '"long"' + "}" * levels


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        (nest(300), "nested more than 200 levels deep"),
        (nest(60_000), "isn't JSON"),
        (nest(200_000), "has more than 2097152 bytes"),
        ("[" + "0," * 900_000 + "0]", "has more than 200000 values"),
        (chain(1000), "contain each other more than 200 levels deep"),
        (doubling(25), "values that take no bytes"),
        ({"type": "array", "items": doubling(25)}, "lists of values that take no bytes"),
        (
            {"type": "record", "name": "X", "fields": [{"name": "a", "type": "../../X"}]},
            "the Avro schema isn't valid: ../../X",
        ),
    ],
    ids=["deep", "deeper", "deepest", "wide", "chain", "doubling", "doubling list", "elsewhere"],
)
def test_an_avro_schema_that_could_cost_much_is_refused(schema: object, complaint: str, tmp_path: Path) -> None:
    found = avro(tmp_path, schema, b"")
    assert isinstance(found, str)
    assert complaint in found


@pytest.mark.parametrize("levels", [1000, 100_000, 1_000_000])
def test_an_avro_value_that_is_nested_too_deeply_stays_bytes(levels: int, tmp_path: Path) -> None:
    data = b"\2" * levels + b"\0"
    found = avro(tmp_path, LIST, data)
    assert isinstance(found, Decoded)
    assert found.value == data
    assert found.reason is not None


def test_an_avro_value_nested_as_people_do_is_read(tmp_path: Path) -> None:
    found = avro(tmp_path, LIST, b"\2\2\2\0")
    assert found == Decoded({"next": {"next": {"next": {"next": None}}}})


def test_a_record_without_end_stays_bytes(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}
    found = avro(tmp_path, schema, b"\2")
    assert isinstance(found, Decoded)
    assert found.value == b"\2"


def test_many_nulls_for_a_byte_stay_bytes(tmp_path: Path) -> None:
    fields = [{"name": f"n{number}", "type": "null"} for number in range(100)] + [{"name": "b", "type": "boolean"}]
    data = b"\x80\x89\x7a" + b"\1" * 1_000_000 + b"\0"
    found = avro(tmp_path, {"type": "array", "items": {"type": "record", "name": "X", "fields": fields}}, data)
    assert isinstance(found, Decoded)
    assert found.value == data


def test_schemas_beside_the_one_that_is_given_are_found_and_bounded(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "A", "fields": [{"name": "b", "type": "B"}]}
    (tmp_path / "B.avsc").write_text('{"type":"record","name":"B","fields":[{"name":"n","type":"int"}]}')
    assert avro(tmp_path, schema, b"\2") == Decoded({"b": {"n": 1}})
    (tmp_path / "B.avsc").unlink()
    os.mkfifo(tmp_path / "B.avsc")
    assert "isn't a regular file" in str(avro(tmp_path, schema, b"\2"))


def test_a_schema_file_may_have_any_name(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"type":"record","name":"B","fields":[{"name":"n","type":"int"}]}')
    decode = value_decoder("avro", DecoderOptions(tmp_path / "schema.json"), "value")
    assert decode(b"\2", ()) == Decoded({"n": 1})


# --- Protobuf --------------------------------------------------------------------------------------------------------


def message(name: str, count: int, repeated: str | None = None, own: str | None = None) -> DescriptorProto:
    """A message with so many numbers, and others inside."""
    made = DescriptorProto(name=name)
    for number in range(1, count + 1):
        made.field.add(name=f"f{number}", number=number, type=3, label=1)
    if repeated:
        made.field.add(name="r", number=count + 1, type=11, label=3, type_name=repeated)
    if own:
        made.field.add(name="o", number=count + 2, type=11, label=1, type_name=own)
    return made


def proto(name: str, *messages: DescriptorProto, imports: Sequence[str] = ()) -> FileDescriptorProto:
    return FileDescriptorProto(name=name, package="p", syntax="proto3", message_type=messages, dependency=imports)


def protobuf(tmp_path: Path, files: list[FileDescriptorProto], name: str, data: bytes) -> Decoded | str:
    """Return the message that a descriptor set decodes, or the reason for refusing it."""
    path = tmp_path / "set"
    path.write_bytes(FileDescriptorSet(file=files).SerializeToString())
    try:
        return value_decoder("protobuf", DecoderOptions(path, name), "value")(data, ())
    except KsegError as error:
        return str(error)


@pytest.mark.parametrize(
    "files",
    [
        [proto("a", message("M", 1), imports=["a"])],
        [proto("a", message("M", 1), imports=["b"]), proto("b", message("N", 1), imports=["a"])],
        [proto(f"f{number}", message(f"M{number}", 1), imports=[f"f{number + 1}"]) for number in range(3000)],
    ],
    ids=["itself", "each other", "a long way"],
)
def test_imports_that_lead_nowhere_are_refused(files: list[FileDescriptorProto], tmp_path: Path) -> None:
    assert isinstance(protobuf(tmp_path, files, "p.M", b""), str)


def test_a_huge_descriptor_set_is_refused(tmp_path: Path) -> None:
    (tmp_path / "set").write_bytes(b"\x0a\0" * (7 << 20))
    with pytest.raises(KsegError, match="has more than 4194304 bytes"):
        value_decoder("protobuf", DecoderOptions(tmp_path / "set", "p.M"), "value")


@pytest.mark.parametrize("count", [20_000, 500_000])
def test_small_messages_with_many_fields_stay_bytes(count: int, tmp_path: Path) -> None:
    files = [proto("a", message("M", 5000), message("R", 0, repeated="p.M"))]
    found = protobuf(tmp_path, files, "p.R", b"\x0a\0" * count)
    assert isinstance(found, Decoded)
    assert "more than 4194304 fields" in str(found.reason)


def test_many_messages_with_few_fields_are_read(tmp_path: Path) -> None:
    files = [proto("a", message("M", 5), message("R", 0, repeated="p.M"))]
    found = protobuf(tmp_path, files, "p.R", b"\x0a\2\x08\1" * 20_000)
    assert isinstance(found, Decoded)
    assert (found.reason, found.value["r"][-1]["f1"]) == (None, "1")  # type: ignore[index, call-overload]


@pytest.mark.parametrize("levels", [150, 10_000])
def test_a_message_that_is_nested_too_deeply_stays_bytes(levels: int, tmp_path: Path) -> None:
    data = b""
    for _ in range(levels):
        size, length = len(data), b""
        while size > 127:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        data = b"\x12" + length + bytes([size]) + data
    found = protobuf(tmp_path, [proto("a", message("M", 0, own="p.M"))], "p.M", data)
    assert isinstance(found, Decoded)
    assert found.value == data


# --- values of other kinds -------------------------------------------------------------------------------------------

DEEP = [b"[" * levels + b"]" * levels for levels in (150, 300, 900, 990, 5000, 200_000)]
DEEP += [b'{"a":' * levels + b"1" + b"}" * levels for levels in (150, 300, 900)]
DEEP += [b"\x91" * levels + b"\0" for levels in (150, 300, 900, 5000)]


DECODERS = ["json", "msgpack", "auto"]


@for_each("name, data", list(product(DECODERS, DEEP)), ids=lambda case: f"{case[0]} {case[1][:4]!r} {len(case[1])}")
def test_what_is_decoded_can_be_printed(name: str, data: bytes) -> None:
    decoded = value_decoder(name, DecoderOptions(), "value")(data, ())
    assert decoded_text(decoded.value, pretty=True)


def test_deep_values_are_printed_in_every_form(tmp_path: Path) -> None:
    write_segment(tmp_path / "deep-0", [NewBatch([NewRecord(None, data, 0) for data in DEEP])])
    every = [f"dump deep-0 --value-decoder {name} -o {form}" for name in DECODERS for form in ("json", "csv", "table")]
    for line, ran in kseg_runs(tmp_path, every):
        assert (ran.status, b"Traceback" in ran.stderr) == (0, False), (line, ran.stderr)


def test_the_sample_is_read_with_so_little_memory() -> None:
    assert kseg(golden.ROOT, "verify", "docs/test-1-0").returncode == 0

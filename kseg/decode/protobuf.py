"""Protobuf through Google's library, with bounds on the expansion of descriptors."""

import os
import re
import subprocess
import sys
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any, cast

from kseg.decode.avro import find_references
from kseg.decode.decoded import Headers, Json, NotDecodable, Part, ValueDecoder, decoder, library, one_line
from kseg.decode.schema_registry import RegisteredSchema, Registry
from kseg.decode.simple_values import Indexed, parse_indexed, parse_wire
from kseg.errors import UsageError, missing_library
from kseg.system.files import read_small
from kseg.system.new_directory import scratch_directory

MOST_FIELDS = 1 << 22
"""The most fields of all messages in a value, including those at their defaults."""
_SMALLEST = 2
"""The fewest bytes of a nested message: a tag, and a length of 0."""
_VARINT, _LENGTH, _START, _END = 0, 2, 3, 4
_FIXED = {1: 8, 5: 4}

Descriptor = Any


class FieldCounts:
    """A counter of the fields that a message of a type will have in memory."""

    def __init__(self, descriptor: Descriptor) -> None:
        self.descriptor = descriptor
        self._most_fields = _most_fields(descriptor)

    def check(self, data: bytes) -> None:
        """Raise NotDecodable if nested messages would have too many fields."""
        if len(data) // _SMALLEST * self._most_fields > MOST_FIELDS and _count(data, self.descriptor) > MOST_FIELDS:
            raise NotDecodable(f"its messages would have more than {MOST_FIELDS} fields")


def _most_fields(descriptor: Descriptor) -> int:
    """Return the largest number of fields among a type and all types within it."""
    waiting, seen, widest = [descriptor], {descriptor.full_name}, 0
    while waiting:
        for field in waiting.pop().fields:
            inner = field.message_type
            if inner is not None:
                widest = max(widest, len(inner.fields))
                if inner.full_name not in seen:
                    seen.add(inner.full_name)
                    waiting.append(inner)
    return widest


def _count(data: bytes, descriptor: Descriptor) -> int:
    """Return the number of fields in nested messages, as far as they are readable; counting stops at the limit."""
    waiting, total = [(0, len(data), descriptor)], 0
    while waiting and total <= MOST_FIELDS:
        position, end, own = waiting.pop()
        groups = [own]
        fields = groups[-1].fields_by_number
        while position < end:
            tag, position = _varint(data, position, end)
            number, kind = tag >> 3, tag & 7
            inner = fields[number].message_type if number in fields else None
            if kind == _VARINT:
                _, position = _varint(data, position, end)
            elif kind == _LENGTH:
                size, position = _varint(data, position, end)
                if inner is not None:
                    total += len(inner.fields)
                    waiting.append((position, min(position + size, end), inner))
                position += size
            elif kind == _START and inner is not None:
                total += len(inner.fields)
                groups.append(inner)
                fields = inner.fields_by_number
            elif kind == _END and len(groups) > 1:
                groups.pop()
                fields = groups[-1].fields_by_number
            else:
                position += _FIXED.get(kind, 0)
    return total


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return a number and the position after it; a truncated number has the value of its bytes."""
    value = shift = 0
    while position < end:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128 or shift >= 70:
            break
    return value, position


ReadIndexed = Callable[[Indexed], Json]
"""A function that reads a message of a file, or raises NotDecodable."""

MAIN_FILE = "registered-schema.proto"
WELL_KNOWN = "google/protobuf/"
COMPILER = "grpc_tools"
COMPILER_SECONDS = 60
MOST_PARTS = 64
"""The most parts in the import path of a registered file."""
LARGEST_DESCRIPTORS = 4 << 20
"""The largest size of a descriptor set file, in bytes."""

FileProtos = dict[str, Descriptor]
"""File descriptors by import name."""


def protobuf(module: str) -> ModuleType:
    """Return a module of the library. Raises UsageError if it isn't installed."""
    return library(f"google.protobuf.{module}", "protobuf")


def protobuf_decoder(path: Path, message_name: str | None, part: Part) -> ValueDecoder:
    """Return a decoder of one message type of a descriptor set (`protoc --include_imports --descriptor_set_out`).

    Messages may be bare, or come after a schema id and message indexes; bare ones never begin like such an id.

    Raises:
        UsageError: the file isn't a descriptor set, the message isn't in it, or the library is missing.
        OpenError: the file can't be read.
    """
    files = _descriptor_set(path)
    try:
        pool = _pool(files)
        descriptor = _message_named(pool, files, message_name)
    except NotDecodable as error:
        raise UsageError(error.message, path) from error

    counts = FieldCounts(descriptor)

    def read(data: bytes, headers: Headers) -> Json:
        message = parse_wire(data, headers, part)
        return _message_json(pool, counts, data if message is None else parse_indexed(message).body)

    return decoder(read)


def _descriptor_set(path: Path) -> FileProtos:
    descriptors = protobuf("descriptor_pb2")
    content = read_small(path, LARGEST_DESCRIPTORS)
    try:
        files = descriptors.FileDescriptorSet.FromString(content).file
    except protobuf("message").DecodeError as error:
        raise UsageError(f"the file isn't a descriptor set: {one_line(error)}", path) from error
    if not files:
        raise UsageError("the file isn't a descriptor set: it describes no file", path)
    return {file.name: file for file in files}


def _message_named(pool: Descriptor, files: FileProtos, name: str | None) -> Descriptor:
    known = [f"{file.package}.{message.name}".lstrip(".") for file in files.values() for message in file.message_type]
    if name is None:
        raise NotDecodable(f"no message is given; specify one of {one_line(', '.join(known))}")
    try:
        return pool.FindMessageTypeByName(name)
    except KeyError as error:
        raise NotDecodable(
            f"there is no message {one_line(name)}; specify one of {one_line(', '.join(known))}"
        ) from error


def _pool(files: FileProtos) -> Descriptor:
    """Return a pool with these files and the imported ones of Protobuf. Raises NotDecodable."""
    pool = protobuf("descriptor_pool").DescriptorPool()
    added: set[str] = set()

    def add(name: str) -> None:
        if name in added:
            return
        added.add(name)
        file = files.get(name) or _well_known(name)
        for imported in file.dependency:
            add(imported)
        pool.AddSerializedFile(file.SerializeToString())

    try:
        for name in files:
            add(name)
        for name in files:
            pool.FindFileByName(name)
    except (TypeError, KeyError, RecursionError) as error:
        raise NotDecodable(f"the descriptors don't fit together: {one_line(error)}") from error
    return pool


def _well_known(name: str) -> Descriptor:
    """Return the descriptor of a file that comes with Protobuf. Raises NotDecodable for any other."""
    path = PurePosixPath(name)
    if not name.startswith(WELL_KNOWN) or len(path.parts) != 3 or not path.stem.isidentifier():
        raise NotDecodable(f"the import {one_line(name)} is missing")
    try:
        module = protobuf(f"{path.stem}_pb2")
    except UsageError as error:
        raise NotDecodable(f"the import {one_line(name)} is missing") from error
    file = protobuf("descriptor_pb2").FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    return file


def _message_json(pool: Descriptor, counts: FieldCounts, data: bytes) -> Json:
    descriptor = counts.descriptor
    counts.check(data)
    json_format = protobuf("json_format")
    errors = protobuf("message").DecodeError
    message = protobuf("message_factory").GetMessageClass(descriptor)()
    try:
        message.ParseFromString(data)
        value = json_format.MessageToDict(
            message,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
            descriptor_pool=pool,
        )
    # AttributeError: for example, a set's own google.protobuf.Timestamp has other fields than Protobuf's.
    except (errors, json_format.Error, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise NotDecodable(f"the value isn't a {descriptor.full_name}: {one_line(error)}") from error
    return cast(Json, value)


class RegisteredFile:
    """A registered file with its imports. Raises NotDecodable if one of them can't be used."""

    def __init__(self, registry: Registry, schema: RegisteredSchema) -> None:
        files = _registered_files(registry, schema)
        self.pool = _pool(files)
        self._file = self.pool.FindFileByName(MAIN_FILE)
        self._files = files

    def message(self, indexes: Iterable[int]) -> Descriptor:
        """Return the message type at the given indexes, each of which selects within the message before."""
        return _message_at(self._file, indexes)

    @property
    def message_count(self) -> int:
        """Return the number of message types in the file, excluding nested types."""
        return len(self._file.message_types_by_name)

    def descriptors(self) -> bytes:
        """Return all files as a serialized descriptor set."""
        files = self._files.values()
        return cast(bytes, protobuf("descriptor_pb2").FileDescriptorSet(file=files).SerializeToString())


def registered_protobuf_reader(registry: Registry, schema: RegisteredSchema) -> ReadIndexed:
    """Return a reader of messages of a registered file.

    Raises NotDecodable if the file, or an imported one, can't be used.
    """
    file = RegisteredFile(registry, schema)
    counts: dict[tuple[int, ...], FieldCounts] = {}

    def read(message: Indexed) -> Json:
        indexes = tuple(message.indexes)
        if indexes not in counts:
            counts[indexes] = FieldCounts(file.message(indexes))
        return _message_json(file.pool, counts[indexes], message.body)

    return read


def described_message(path: Path, message_name: str | None) -> tuple[bytes, str]:
    """Return a descriptor set's bytes, and the full name of a message. Raises the errors of `protobuf_decoder`."""
    files = _descriptor_set(path)
    try:
        name = _message_named(_pool(files), files, message_name).full_name
    except NotDecodable as error:
        raise UsageError(error.message, path) from error
    return read_small(path, LARGEST_DESCRIPTORS), name


def message_pool(descriptors: bytes) -> Descriptor:
    """Return a pool with the files of a serialized descriptor set. Raises NotDecodable if they are incompatible."""
    files = protobuf("descriptor_pb2").FileDescriptorSet.FromString(descriptors).file
    return _pool({file.name: file for file in files})


def _message_at(file: Descriptor, indexes: Iterable[int]) -> Descriptor:
    proto = protobuf("descriptor_pb2").FileDescriptorProto()
    file.CopyToProto(proto)
    names = [proto.package] if proto.package else []
    messages = proto.message_type
    for index in indexes:
        if not 0 <= index < len(messages):
            raise NotDecodable(f"the schema has no message of index {index}")
        names.append(messages[index].name)
        messages = messages[index].nested_type
    return file.pool.FindMessageTypeByName(".".join(names))


def _registered_files(registry: Registry, schema: RegisteredSchema) -> FileProtos:
    texts = {MAIN_FILE: schema.text}
    for referring in (schema, *find_references(registry, schema)):
        for reference in referring.references:
            needed = registry.resolve_reference(reference)
            if needed is not None:
                texts[reference.name] = needed.text
    serialized = {name: _parse_serialized(name, text) for name, text in texts.items()}
    if all(file is not None for file in serialized.values()):
        return serialized
    return _compile(texts)


def _parse_serialized(name: str, text: str) -> Descriptor | None:
    """Return the base64 descriptor that clients may register instead of a source, or None for other texts."""
    descriptors = protobuf("descriptor_pb2")
    try:
        file = descriptors.FileDescriptorProto.FromString(b64decode(text, validate=True))
    except (Base64Error, ValueError, protobuf("message").DecodeError):
        return None
    file.name = name
    return file


def _compile(texts: dict[str, str]) -> FileProtos:
    """Return the descriptors of source files, compiled by protoc. Raises NotDecodable, or UsageError without protoc."""
    compiler = find_spec(COMPILER)
    if compiler is None or compiler.origin is None:
        raise UsageError(missing_library(f"{COMPILER}, which compiles .proto files,", "protobuf"))
    well_known = Path(compiler.origin).parent / "_proto"
    with scratch_directory() as folder:
        for name, text in texts.items():
            _write(folder, name, text)
        result = folder / "descriptors"
        arguments = [f"-I{folder}", f"-I{well_known}", "--include_imports", f"--descriptor_set_out={result}", MAIN_FILE]
        _run_compiler(arguments, folder)
        if result.stat().st_size > LARGEST_DESCRIPTORS:
            raise NotDecodable(f"the schema compiles to more than {LARGEST_DESCRIPTORS} bytes")
        return _descriptor_set(result)


def _write(folder: Path, name: str, text: str) -> None:
    path = PurePosixPath(name)
    # Names come from the registry: they must not lead out of the folder.
    is_inside = 0 < len(path.parts) <= MOST_PARTS and not path.is_absolute() and ".." not in path.parts
    if not is_inside or any(not char.isprintable() for char in name):
        raise NotDecodable(f"the import {one_line(name)} isn't a relative path of at most {MOST_PARTS} parts")
    try:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    except (OSError, UnicodeEncodeError) as error:
        raise NotDecodable(f"the import {one_line(name)} can't be written: {one_line(error)}") from error


_LOGGED = re.compile("^(WARNING: All log messages|[IWEF][0-9]{4} ).*\n", re.MULTILINE)
"""Pattern of protoc's log lines, which don't describe the problem."""


def _run_compiler(arguments: list[str], folder: Path) -> None:
    command = [sys.executable, "-P", "-m", f"{COMPILER}.protoc", *arguments]
    try:
        # The arguments are kseg's own; names from the registry are only names of files in the folder.
        ran = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=COMPILER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotDecodable(f"protoc failed to run: {one_line(error)}") from error
    if ran.returncode:
        told = _LOGGED.sub("", ran.stderr).replace(f"{folder}{os.sep}", "")
        raise NotDecodable(f"the schema doesn't compile: {one_line(told)}")

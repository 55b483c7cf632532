"""JSON objects as Arrow arrays, parsed by pyarrow many at once; the types of fields come from their values."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from kseg.decode.decoded import one_line
from kseg.export.columns.column_types import MismatchError, NamesError

UNREADABLE = (pa.ArrowException, UnicodeDecodeError)
"""Errors of pyarrow for texts that it can't read together, or at all."""
_BLOCK = 4 << 20
_MOST_WRAPPERS = 32
"""The most distinct schemas that are cut off in one go: those beyond are parsed with their values."""
_LINE_ENDS = "[\r\n]"
_PAYLOAD = b'"payload":'
_PREFIX = "JSON parse error: "
_BEGINNING = r"^\s*\{"
_NO_OBJECT = "the text isn't one JSON object"


def read_objects(texts: pa.Array) -> pa.Table:
    """Return a row for each text, with a column for each member. texts: bytes without nulls.

    Raises one of UNREADABLE if a text isn't one JSON object, or if a member has values of several types.
    """
    data = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts), b"\n")[0].as_buffer()
    has_lines = pc.any(pc.match_substring_regex(texts, _LINE_ENDS)).as_py()
    size = max(_BLOCK, 2 * (pc.max(pc.binary_length(texts)).as_py() or 0))
    found = _read(data, size, pa.schema([]), has_lines=bool(has_lines))
    if _has_times(found.schema):  # texts that look like a time stay text
        found = _read(data, size, pa.schema(list(map(_without_times, found.schema))), has_lines=bool(has_lines))
    if found.num_rows != len(texts):
        raise pa.ArrowInvalid(_NO_OBJECT)
    return found


def _read(data: Any, size: int, known: pa.Schema, *, has_lines: bool) -> pa.Table:
    return arrow_json.read_json(
        pa.BufferReader(data),
        read_options=arrow_json.ReadOptions(block_size=size),
        parse_options=arrow_json.ParseOptions(explicit_schema=known, newlines_in_values=has_lines),
    )


def _has_times(fields: Any) -> bool:
    return any(
        pa.types.is_timestamp(kind) or _has_times(_inner_fields(kind)) for kind in (each.type for each in fields)
    )


def _inner_fields(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(place) for place in range(kind.num_fields)]


def _without_times(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_timestamp(kind):
        return field.with_type(pa.string())
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct(list(map(_without_times, _inner_fields(kind)))))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_without_times(kind.value_field)))
    return field


def without_schemas(texts: pa.Array) -> pa.Array:
    """Return the payloads of Kafka Connect's JSON, whose converter adds the same schema to each value.

    Other texts stay as they are: parsing finds their payload.
    """
    left = pc.starts_with(texts, b'{"schema"')
    for _ in range(_MOST_WRAPPERS):
        place = pc.index(left, True).as_py()
        if place < 0:
            break
        prefix = _prefix(texts[place].as_py())
        is_its = pc.and_(pc.starts_with(texts, prefix), pc.ends_with(texts, b"}")) if prefix else None
        if is_its is not None:
            texts = pc.if_else(is_its, pc.binary_slice(texts, len(prefix), -1), texts)
        seen = is_its if is_its is not None else pa.array([row == place for row in range(len(texts))])
        left = pc.and_(left, pc.invert(pc.fill_null(seen, False)))
    return texts


def _prefix(text: bytes) -> bytes:
    """Return the text up to its payload, if a schema precedes it and nothing follows; else nothing."""
    for end in _places(text):
        with suppress(ValueError):
            if set(json.loads(text[:end] + b"null}")) == {"schema", "payload"}:
                return text[:end]
    return b""


def _places(text: bytes) -> Iterator[int]:
    """Yield the ends of all words that may begin the payload."""
    found = text.find(_PAYLOAD)
    while found >= 0:
        yield found + len(_PAYLOAD)
        found = text.find(_PAYLOAD, found + 1)


def read_in_parts(texts: pa.Array, rows: pa.Array, read: Callable[[pa.Array], None]) -> dict[int, str]:
    """Read rows of texts together, or in halves where that fails; return the reasons where a single one fails."""
    is_object = pc.match_substring_regex(texts.take(rows), _BEGINNING)
    failures = dict.fromkeys(rows.filter(pc.invert(is_object)).to_pylist(), _NO_OBJECT)
    rows = rows.filter(is_object)
    waiting = [rows] if len(rows) else []
    while waiting:
        own = waiting.pop()
        try:
            read(own)
        except (*UNREADABLE, MismatchError, NamesError) as error:
            if len(own) == 1:
                failures[own[0].as_py()] = one_line(str(error).removeprefix(_PREFIX).removesuffix(" in row 0"))
            else:
                half = len(own) // 2
                waiting += [own.slice(half), own.slice(0, half)]  # the first half is read next
    return failures

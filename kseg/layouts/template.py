"""Templates of printed lines: fields, kinds, marked parts, zones, and the compiler to programs."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache, lru_cache

from kseg.errors import UsageError
from kseg.formats.codes import CODEC_NAMES
from kseg.formats.file_names import FileKind
from kseg.kernel.contract import ZONE_CYCLE, ZONE_CYCLE_START, Op, Program, Slot, Template, Text, Words, Zone
from kseg.named_tuple import NamedTuple
from kseg.releases import Since


class LineField(NamedTuple):
    """The content of a hole: an operation, its slot or text, and the words for its numbers if it shows words."""

    op: int
    source: int | None
    words: Words | None = None


BOOLEANS = Words(0, (b"false", b"true"))
TIMESTAMP_TYPES = Words(-1, (b"NoTimestampType", b"CreateTime", b"LogAppendTime"))
CODECS = Words(0, tuple(name.encode() for name in (*CODEC_NAMES, "unknown")))
CAPITAL_CODECS = Words(0, tuple(word.upper() for word in CODECS.texts))
SCALA_CODECS = Words(
    0,
    (
        b"NoCompressionCodec",
        b"GZIPCompressionCodec",
        b"SnappyCompressionCodec",
        b"LZ4CompressionCodec",
        b"UnknownCompressionCodec",
    ),
)


def _number(slot: int) -> LineField:
    return LineField(Op.INTEGER, slot)


def _word(slot: int, words: Words) -> LineField:
    return LineField(Op.WORD, slot, words)


FIELDS: dict[str, LineField] = {
    "baseOffset": _number(Slot.BASE_OFFSET),
    "lastOffset": _number(Slot.LAST_OFFSET),
    "count": _number(Slot.COUNT),
    "baseSequence": _number(Slot.BASE_SEQUENCE),
    "lastSequence": _number(Slot.LAST_SEQUENCE),
    "producerId": _number(Slot.PRODUCER_ID),
    "producerEpoch": _number(Slot.PRODUCER_EPOCH),
    "partitionLeaderEpoch": _number(Slot.PARTITION_LEADER_EPOCH),
    "isTransactional": _word(Slot.IS_TRANSACTIONAL, BOOLEANS),
    "isControl": _word(Slot.IS_CONTROL, BOOLEANS),
    "hasDeleteHorizon": _word(Slot.HAS_DELETE_HORIZON, BOOLEANS),
    "baseTimestamp": _number(Slot.BASE_TIMESTAMP),
    "maxTimestamp": _number(Slot.MAX_TIMESTAMP),
    "timestampType": _word(Slot.TIMESTAMP_TYPE, TIMESTAMP_TYPES),
    "position": _number(Slot.POSITION),
    "size": _number(Slot.SIZE),
    "magic": _number(Slot.MAGIC),
    "compression": _word(Slot.CODEC, CODECS),
    "compression:capital": _word(Slot.CODEC, CAPITAL_CODECS),
    "compression:scala": _word(Slot.CODEC, SCALA_CODECS),
    "crc": _number(Slot.CRC),
    "isValid": _word(Slot.IS_VALID, BOOLEANS),
    "attributes": _number(Slot.ATTRIBUTES),
    "offset": _number(Slot.OFFSET),
    "timestamp": _number(Slot.TIMESTAMP),
    "timestamp:iso": LineField(Op.JSON_TIME, Slot.TIMESTAMP),
    "time": LineField(Op.TIME, Slot.TIMESTAMP),
    "sequence": _number(Slot.SEQUENCE),
    "keySize": _number(Slot.KEY_SIZE),
    "valueSize": _number(Slot.VALUE_SIZE),
    "headerCount": _number(Slot.HEADER_COUNT),
    "headerKeys": LineField(Op.HEADER_KEYS, None),
    "headers": LineField(Op.JSON_HEADERS, None),
    "headers:json": LineField(Op.JSON_HEADERS, None),
    "headers:csv": LineField(Op.CSV_HEADERS, None),
    "key": LineField(Op.TEXT, Text.KEY),
    "key:json": LineField(Op.JSON_TEXT, Text.KEY),
    "key:csv": LineField(Op.CSV_TEXT, Text.KEY),
    "key:safe": LineField(Op.CSV_SAFE_TEXT, Text.KEY),
    "value": LineField(Op.TEXT, Text.VALUE),
    "value:json": LineField(Op.JSON_TEXT, Text.VALUE),
    "value:csv": LineField(Op.CSV_TEXT, Text.VALUE),
    "value:safe": LineField(Op.CSV_SAFE_TEXT, Text.VALUE),
    "decoded": LineField(Op.TEXT, Text.DECODED),
    "keyDecoded": LineField(Op.TEXT, Text.KEY_DECODED),
    "keyDecoded:json": LineField(Op.JSON_TEXT, Text.KEY_DECODED),
    "keyDecoded:csv": LineField(Op.CSV_TEXT, Text.KEY_DECODED),
    "keyDecoded:safe": LineField(Op.CSV_SAFE_TEXT, Text.KEY_DECODED),
    "valueDecoded": LineField(Op.TEXT, Text.VALUE_DECODED),
    "valueDecoded:json": LineField(Op.JSON_TEXT, Text.VALUE_DECODED),
    "valueDecoded:csv": LineField(Op.CSV_TEXT, Text.VALUE_DECODED),
    "valueDecoded:safe": LineField(Op.CSV_SAFE_TEXT, Text.VALUE_DECODED),
    "keyError": LineField(Op.TEXT, Text.KEY_ERROR),
    "keyError:json": LineField(Op.JSON_TEXT, Text.KEY_ERROR),
    "keyError:csv": LineField(Op.CSV_TEXT, Text.KEY_ERROR),
    "keyError:safe": LineField(Op.CSV_SAFE_TEXT, Text.KEY_ERROR),
    "valueError": LineField(Op.TEXT, Text.VALUE_ERROR),
    "valueError:json": LineField(Op.JSON_TEXT, Text.VALUE_ERROR),
    "valueError:csv": LineField(Op.CSV_TEXT, Text.VALUE_ERROR),
    "valueError:safe": LineField(Op.CSV_SAFE_TEXT, Text.VALUE_ERROR),
    "recordCrc": _number(Slot.RECORD_CRC),
    "recordIsValid": _word(Slot.RECORD_IS_VALID, BOOLEANS),
    "recordMagic": _number(Slot.RECORD_MAGIC),
    "recordCompression:capital": _word(Slot.RECORD_CODEC, CAPITAL_CODECS),
    "recordCompression:scala": _word(Slot.RECORD_CODEC, SCALA_CODECS),
    "controlType": _number(Slot.CONTROL_TYPE),
    "controlVersion": _number(Slot.CONTROL_VERSION),
    "coordinatorEpoch": _number(Slot.COORDINATOR_EPOCH),
    "timestampDelta": _number(Slot.TIMESTAMP_DELTA),
    "recordAttributes": _number(Slot.RECORD_ATTRIBUTES),
}


@cache
def _own_fields() -> dict[str, LineField]:
    """Return the holes of a user's own lines.

    `{key:json}` is a complete value there, not the part after a member's name.
    """
    return {
        name: field._replace(op=Op.JSON_VALUE) if field.op == Op.JSON_TEXT else field for name, field in FIELDS.items()
    }


_INDEXED = frozenset({FileKind.LOG, FileKind.OFFSET_INDEX})
_TIMED = _INDEXED | {FileKind.TIME_INDEX}
_TRANSACTIONAL = _TIMED | {FileKind.TRANSACTION_INDEX, FileKind.PRODUCER_SNAPSHOT}

DUMPED_KINDS: Since[frozenset[FileKind]] = (
    ((0, 8), _INDEXED),
    ((0, 10, 1), _TIMED),
    ((0, 11), _TRANSACTIONAL),
    ((3, 3), _TRANSACTIONAL | {FileKind.METADATA_SNAPSHOT}),
)

NAMES_UNKNOWN_FILES: Since[bool] = (((0, 8), False), ((0, 11), True))
"""True if the tool reports a file of an unknown kind, on stdout and stderr; earlier releases skip it silently."""

DUMPING = "Dumping {path}"
UNREAD_RECORDS = "kseg: the records of {count} batches weren't checked; run without --shallow to check them"
IGNORING = "Ignoring unknown file {path}"


_WEEK_MS = 7 * 86_400_000


@lru_cache
def zone_table(zone: tzinfo) -> Zone:
    """Return a zone's offsets; empty for UTC. Tries each week, since libraries don't list them."""
    if zone == UTC:
        return ()
    if isinstance(zone, timezone):
        return ((0, _offset_at(0, zone)),)
    found = [(0, _offset_at(0, zone))]
    for end in range(_WEEK_MS, ZONE_CYCLE_START + ZONE_CYCLE + _WEEK_MS, _WEEK_MS):
        offset = _offset_at(end, zone)
        if offset != found[-1][1]:
            found.append((_change(end - _WEEK_MS, end, zone), offset))
    return tuple(found)


def _change(before: int, after: int, zone: tzinfo) -> int:
    """Return the first second with another offset than before, in milliseconds."""
    old = _offset_at(before, zone)
    while after - before > 1000:
        middle = (before + after) // 2000 * 1000
        before, after = (middle, after) if _offset_at(middle, zone) == old else (before, middle)
    return after


def _offset_at(ms: int, zone: tzinfo) -> int:
    offset = datetime.fromtimestamp(ms // 1000, zone).utcoffset()
    assert offset is not None
    return offset // timedelta(seconds=1)


PATH = "\0path\0"
"""The placeholder of a file's path in templates that are the same for all files."""
_PIECE = re.compile(r"\\[{}]|\{([A-Za-z:]+)([}?!])|[{}]|[^{}\\]+|\\")


@lru_cache(maxsize=256)
def compile_template(text: str) -> Template:
    """Compile one line, with its line end if it has one; texts are decoded from UTF-8 as in Java.

    Raises UsageError for an unknown field or unpaired braces.
    """
    return _compile(text, FIELDS)


@lru_cache(maxsize=256)
def compile_raw(text: str) -> Template:
    """Return the same for a user's own line, which shows texts unchanged."""
    return _compile(text, _own_fields())._replace(is_raw=True)


def raw_program(program: Program) -> Program:
    """Return the program, changed to show texts unchanged."""
    return mapped_program(program, lambda template: template._replace(is_raw=True))


def zoned_program(program: Program, zone: Zone) -> Program:
    """Return a copy of the program that prints timestamps in a time zone."""
    return mapped_program(program, lambda template: template._replace(zone=zone)) if zone else program


def compile_endings(start: str, ends: Iterable[str]) -> tuple[Template, ...]:
    """Return the lines that begin with `start`, each with another end, as compile_template does one by one."""
    compiler = _Compiler(FIELDS)
    compiler.take_all(start)
    return tuple(_finish(compiler, end) for end in ends)


def _finish(compiler: "_Compiler", end: str) -> Template:
    compiler = compiler.copy()
    compiler.take_all(end)
    return compiler.template()


def _compile(text: str, fields: Mapping[str, LineField]) -> Template:
    return _finish(_Compiler(fields), text)


def fill(template: Template, marker: str, text: str) -> Template:
    """Replace a marker in the template's literal parts by a text that differs from file to file.

    Bytes that aren't UTF-8, as in file names, become \\udcNN.
    """
    old, new = marker.encode(), text.encode("utf-8", "backslashreplace")
    if old not in template.literals:
        return template
    ops, literals = list(template.ops), template.literals
    for at, code in enumerate(ops[::3]):
        start, size = ops[3 * at + 1], ops[3 * at + 2]
        if code == Op.LITERAL and template.literals.find(old, start, start + size) >= 0:
            literal = template.literals[start : start + size].replace(old, new)
            ops[3 * at + 1 : 3 * at + 3] = len(literals), len(literal)
            literals += literal
    return template._replace(ops=tuple(ops), literals=literals)


def fill_program(program: Program, marker: str, text: str) -> Program:
    """Return the program with its templates filled."""
    return mapped_program(program, lambda template: fill(template, marker, text))


def mapped_program(program: Program, change: Callable[[Template], Template]) -> Program:
    """Return the program with each of its templates changed."""
    batch, record = ([each and change(each) for each in templates] for templates in (program.batch, program.record))
    control = None if program.control is None else tuple(map(change, program.control))
    return Program((batch[0], batch[1], batch[2]), (record[0], record[1], record[2]), control)


_TEXT_OPS = (Op.TEXT, Op.JSON_TEXT, Op.JSON_VALUE, Op.CSV_TEXT, Op.CSV_SAFE_TEXT)
_SKIPS = (Op.SKIP_IF_NULL, Op.SKIP_IF_ZERO, Op.SKIP_UNLESS_NULL, Op.SKIP_UNLESS_ZERO, Op.SKIP_IF_NEGATIVE)
_ESCAPES = {"\\{": "{", "\\}": "}"}


class _Compiler:
    def __init__(self, fields: Mapping[str, LineField]) -> None:
        self._fields = fields
        self.ops: list[int] = []
        self.literals = bytearray()
        self.words: list[Words] = []

    def copy(self) -> "_Compiler":
        """Return a compiler that continues independently."""
        other = _Compiler(self._fields)
        other.ops, other.literals, other.words = self.ops[:], self.literals[:], self.words[:]
        return other

    def template(self) -> Template:
        """Return the compiled line."""
        return Template(tuple(self.ops), bytes(self.literals), tuple(self.words))

    def take_all(self, text: str) -> None:
        """Compile text. Raises UsageError for an unknown field or unpaired braces."""
        pieces = list(_PIECE.finditer(text))
        if self._take(pieces, 0, text) != len(pieces):
            raise UsageError(
                f"template {text!r}: it has a closing brace without an opening one; write \\}} for a brace"
            )

    def _take(self, pieces: list[re.Match[str]], start: int, text: str) -> int:
        """Compile pieces up to the brace that closes this level, or to the end; return the index of that."""
        i = start
        while i < len(pieces):
            piece = pieces[i]
            if piece.group() == "}":
                return i
            if piece.group() == "{":
                raise UsageError(f"template {text!r}: {text[piece.start() :]!r} isn't a field; write \\{{ for a brace")
            if piece.group(1) is None:
                self._literal(_ESCAPES.get(piece.group(), piece.group()).encode("utf-8", "surrogateescape"))
            elif piece.group(2) == "}":
                self._hole(piece.group(1), text)
            else:
                i = self._group(pieces, i, text)
            i += 1
        return i

    def _group(self, pieces: list[re.Match[str]], start: int, text: str) -> int:
        field = self._field(pieces[start].group(1), text)
        at = len(self.ops)
        self.ops += [_skip(field, shown_if_there=pieces[start].group(2) == "?", text=text), field.source or 0, 0]
        end = self._take(pieces, start + 1, text)
        if end == len(pieces):
            raise UsageError(f"template {text!r}: {{{pieces[start].group(1)}… isn't closed")
        self.ops[at + 2] = (len(self.ops) - at) // 3 - 1
        return end

    def _literal(self, literal: bytes) -> None:
        last = len(self.ops) - 3
        if last >= 0 and self.ops[last] == Op.LITERAL and not self._is_jump_target(last // 3 + 1):
            self.ops[last + 2] += len(literal)  # it ends with the literals
            self.literals += literal
            return
        self.ops += [Op.LITERAL, len(self.literals), len(literal)]
        self.literals += literal

    def _is_jump_target(self, index: int) -> bool:
        return any(
            self.ops[at] in _SKIPS and at // 3 + 1 + self.ops[at + 2] == index for at in range(0, len(self.ops), 3)
        )

    def _hole(self, name: str, text: str) -> None:
        field = self._field(name, text)
        if field.words is not None and field.words not in self.words:
            self.words.append(field.words)
        table = 0 if field.words is None else self.words.index(field.words)
        self.ops += [field.op, field.source or 0, table]

    def _field(self, name: str, text: str) -> LineField:
        if name not in self._fields:
            raise UsageError(f"template {text!r}: there is no field {name}; specify some of {', '.join(self._fields)}")
        return self._fields[name]


def _skip(field: LineField, *, shown_if_there: bool, text: str) -> int:
    if field.op in _TEXT_OPS:
        return Op.SKIP_IF_NULL if shown_if_there else Op.SKIP_UNLESS_NULL
    if field.source in (Slot.KEY_SIZE, Slot.VALUE_SIZE) and shown_if_there:
        return Op.SKIP_IF_NEGATIVE
    if field.source is not None:
        return Op.SKIP_IF_ZERO if shown_if_there else Op.SKIP_UNLESS_ZERO
    raise UsageError(f"template {text!r}: this field always has a value; write it without ? and !")


TIME_END = b";"
"""The end of the time after the mark."""


def marked_program(program: Program, mark: bytes, heading: bytes = b"") -> Program:
    """Return the program without batch lines; each record begins with the mark, its time, TIME_END, and a heading."""
    marked = mapped_program(program, lambda template: _mark_template(template, mark, heading))
    return marked._replace(batch=(None, None, None))


def _mark_template(template: Template, mark: bytes, heading: bytes) -> Template:
    start, after = len(template.literals), TIME_END + heading
    begin = (Op.LITERAL, start, len(mark), Op.INTEGER, Slot.TIMESTAMP, 0, Op.LITERAL, start + len(mark), len(after))
    ops = (*begin, *template.ops)
    return template._replace(ops=ops, literals=template.literals + mark + after)

"""Frames of Kafka's protocol, with their records, as text and as JSON."""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple

from kseg import kernel
from kseg.decode.record_decoders import redacting_decoder
from kseg.dump.checked_batches import redacted_slices
from kseg.dump.decoders import control_json
from kseg.dump.log_steps import new_output
from kseg.dump.record_forms import damage_object
from kseg.errors import plural
from kseg.formats.codes import DamageKind
from kseg.formats.messages import UNKNOWN_TAGGED_FIELDS, Fields, default_of, is_tagged
from kseg.formats.schemas import Field, version_range
from kseg.kernel.contract import ROW, START, VALID, Program
from kseg.layouts.programs import LogOptions, documented_program
from kseg.layouts.record_columns import json_program
from kseg.layouts.template import zone_table, zoned_program
from kseg.output.rows import JsonText, json_line
from kseg.protocol.conversation import Frame, FrameDamage, Peers
from kseg.protocol.messages import ApiMessage, record_slices
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, problem_damage
from kseg.system.terminal_text import escaped_text
from kseg.times import iso_time

if TYPE_CHECKING:
    from kseg.kernel.contract import Decode
    from kseg.redaction import Redaction


MOST_TEXT = 256 << 20
"""Most bytes of text of a frame's records, which is printed at once: few bytes may expand to any number of records."""


def record_lines(
    records: bytes, options: LogOptions, redaction: "Redaction | None" = None, most: int | None = None
) -> tuple[bytes, list[Damage]]:
    """Return the lines of batches or of their records, and their damages, at positions within the bytes.

    most: bytes of lines after which no further batch is read, MOST_TEXT by default.
    """
    text = bytearray()
    slices = redacted_slices(record_slices(records, deep=options.deep), redaction)
    decoder = redacting_decoder(redaction, keeps_raw=False)
    damages = _render(slices, documented_program(options), decoder, text, MOST_TEXT if most is None else most)
    return bytes(text), damages


def record_objects(
    records: bytes,
    *,
    deep: bool,
    redaction: "Redaction | None" = None,
    zone: tzinfo = UTC,
    most: int | None = None,
) -> tuple[JsonText, list[Damage]]:
    """Return a list of objects like `kseg dump -o json` without a file name, and their damages.

    most: as for `record_lines`.
    """
    text = bytearray()
    slices = redacted_slices(record_slices(records, deep=deep), redaction)
    decoder = redacting_decoder(redaction, keeps_raw=True)
    program = zoned_program(json_program(None, records=deep), zone_table(zone))
    damages = _render(slices, program, decoder, text, MOST_TEXT if most is None else most)
    for damage in damages:
        text += json_line(damage_object(damage))
    return JsonText(b"[" + bytes(text).removesuffix(b"\n").replace(b"\n", b",") + b"]"), damages


def _render(
    slices: Iterator[Slice | Damage], program: Program, decoder: "Decode | None", text: bytearray, most: int
) -> list[Damage]:
    output = new_output(text.extend)
    renderer = kernel.load().Renderer(program, output, decode=decoder, decode_control=control_json)
    damages = []
    for item in slices:
        if isinstance(item, Damage):
            damages.append(item)
            continue
        run, row = item.run, item.first
        if len(text) >= most:
            position = run.position + run.rows[row * ROW + START]
            damages.append(Damage(DamageKind.BAD_BODY, position, 0, _TOO_MUCH))
            break
        damages += [damage for _, damage in item.damages]
        bad = {run.position + run.rows[each * ROW + START] for each, _ in item.damages}
        if not run.rows[item.first * ROW + VALID]:
            damages.append(
                Damage(DamageKind.BAD_CRC, run.position + run.rows[row * ROW + START], 0, "its CRC is wrong")
            )
        while row < item.last:
            row = renderer.render(run.buffer, run.rows, row, item.last, run.position, item.bodies, item.first)
            damages += [problem_damage(each) for each in renderer.problems if each.position not in bad]
            renderer.problems.clear()
        output.flush()
    return damages


_TOO_MUCH = "the text of the frame's records is too large for memory; use --shallow to print a line per batch"
_RECORDS = "records"
_TORN = "torn-tail"
_BYTES_SHOWN = 32


class ShownFrame(NamedTuple):
    """A frame as bytes to print, and whether it has a problem."""

    text: bytes
    is_wrong: bool


def frame_json(
    frame: Frame, options: LogOptions, redaction: "Redaction | None" = None, zone: tzinfo = UTC
) -> ShownFrame:
    """Return a frame as a line of JSON: bytes in base64, records as objects, redacted if requested."""
    message, wrong, left = frame.message, [], MOST_TEXT

    def records(content: bytes) -> object:
        nonlocal left
        objects, damages = record_objects(content, deep=options.deep, redaction=redaction, zone=zone, most=left)
        left = max(left - len(objects.text), 0)
        wrong.extend(_wrong_damages(message, damages))
        return objects

    members: dict[str, object] = {
        "type": message.kind,
        "frame": frame.number,
        "position": frame.position,
        "size": frame.size,
        **_peers_object(frame.peers),
        "timestamp": None if frame.time is None else frame.time // 1000,
        "time": _time(frame.time, zone),
        "apiKey": message.api_key,
        "api": message.api,
        "apiVersion": message.api_version,
        "headerVersion": message.header_version,
        "correlationId": message.correlation_id,
    }
    if message.kind == "request":
        members["clientId"] = message.client_id
    else:
        members["request"] = frame.request
        members["latencyMs"] = latency_ms(frame)
    members["taggedFields"] = _tags(message.tagged_fields)
    members["bodySize"] = message.body_size
    members["body"] = None
    if message.body is not None and message.schema is not None:
        members["body"] = _structure(message.schema.fields, message.body_version, message.body, records)
    problem = message.problem or message.unknown
    if problem is not None:
        members["problem"] = problem
    if message.trailing_size:
        members["trailingSize"] = message.trailing_size
    return ShownFrame(json_line(members), bool(wrong) or problem is not None)


def latency_ms(frame: Frame) -> float | None:
    """Return milliseconds from a request's last packet to its response's last packet."""
    if frame.time is None or frame.request_time is None:
        return None
    return (frame.time - frame.request_time) / 1000


def damage_json(damage: FrameDamage) -> bytes:
    """Return a damage as a line of JSON."""
    return json_line(
        {
            "type": "damage",
            "position": damage.position,
            "size": damage.size,
            **_peers_object(damage.peers),
            "stream": damage.stream,
            "detail": damage.detail,
        }
    )


def remark_json(peers: Peers, size: int, detail: str) -> bytes:
    """Return a remark on a connection as a line of JSON."""
    return json_line({"type": "connection", **_peers_object(peers), "size": size, "detail": detail})


def _peers_object(peers: Peers | None) -> dict[str, object]:
    return {} if peers is None else {"client": peers.client, "server": peers.server}


def _time(time: int | None, zone: tzinfo) -> str | None:
    return None if time is None else iso_time(time // 1000, zone)


def _tags(tags: dict[int, bytes]) -> dict[str, str]:
    return {str(tag): b64encode(content).decode() for tag, content in tags.items()}


def _wrong_damages(message: ApiMessage, damages: Iterable[Damage]) -> list[Damage]:
    """Return the damages that count.

    A Fetch response may end in a part of a batch, since the broker stops at the size that the client requested.
    """
    may_be_cut = message.kind == "response"
    return [damage for damage in damages if not (may_be_cut and damage.kind == _TORN)]


def _structure(fields: tuple[Field, ...], version: int, value: Fields, records: Any) -> dict[str, object]:
    """Return a structure as JSON: the fields of the version, without tagged fields at their defaults."""
    shown: dict[str, object] = {}
    for each in _present_fields(fields, version, value):
        shown[each.name] = _value(each, version, value[each.name], records)
    if UNKNOWN_TAGGED_FIELDS in value:
        shown[UNKNOWN_TAGGED_FIELDS] = _tags(value[UNKNOWN_TAGGED_FIELDS])
    return shown


def _present_fields(fields: tuple[Field, ...], version: int, value: Fields) -> Iterator[Field]:
    for each in fields:
        if version not in version_range(each.versions):
            continue
        if not is_tagged(each, version) or value[each.name] != default_of(each, version):
            yield each


def _value(each: Field, version: int, value: Any, records: Any) -> object:
    if isinstance(value, list):
        return [_value(each, version, element, records) for element in value]
    if isinstance(value, dict):
        return _structure(each.fields, version, value, records)
    if isinstance(value, bytes):
        return records(value) if each.type == _RECORDS else b64encode(value).decode()
    return value


# --- text ------------------------------------------------------------------------------------------------------------


def frame_text(
    frame: Frame, options: LogOptions, redaction: "Redaction | None" = None, zone: tzinfo = UTC
) -> ShownFrame:
    """Return a frame as lines: its header, then each field of its body by name, records like `kseg dump`."""
    message = frame.message
    writer = _TextWriter(message, options, redaction)
    writer.line(0, f"{_heading(frame)}; {_place(frame, zone)}")
    for tag, content in message.tagged_fields.items():
        writer.line(1, f"header's tagged field {tag}: {_bytes_text(content)}")
    problem = message.problem or message.unknown
    if problem is not None:
        writer.line(1, f"can't be read: {problem}")
    if message.trailing_size:
        writer.line(1, f"note: {plural(message.trailing_size, 'byte')} after the body, which Kafka ignores")
    if message.body is not None and message.schema is not None:
        writer.structure(message.schema.fields, message.body_version, message.body, 1)
    elif message.problem is None:
        writer.line(1, f"body: {plural(message.body_size, 'byte')}")
    return ShownFrame(bytes(writer.text), writer.is_wrong or problem is not None)


def _heading(frame: Frame) -> str:
    message = frame.message
    api = "of an unknown request"
    if message.api_key is not None:
        api = f"{message.api or f'api {message.api_key}'} v{message.api_version}"
    parts = [f"frame {frame.number}: {message.kind} {api}"]
    if message.header_version is not None:
        parts.append(f"header v{message.header_version}")
    parts.append(f"correlation id {message.correlation_id}")
    if message.kind == "request":
        parts.append("no client id" if message.client_id is None else f"client id {_text(message.client_id)}")
    elif frame.request is not None:
        latency = latency_ms(frame)
        parts.append(f"to frame {frame.request}{'' if latency is None else f' after {latency:.3f} ms'}")
    return ", ".join(parts)


def _place(frame: Frame, zone: tzinfo) -> str:
    place = f"{plural(frame.size, 'byte')} at position {frame.position}"
    if frame.peers is not None:
        ends = frame.peers if frame.message.kind == "request" else (frame.peers.server, frame.peers.client)
        place += f", {ends[0]} > {ends[1]}"
    time = _time(frame.time, zone)
    return place if time is None else f"{place}, {time}"


def damage_text(damage: FrameDamage) -> str:
    """Return a damage in words."""
    where = "" if damage.peers is None else f"{damage.peers.client} > {damage.peers.server}: "
    stream = "" if damage.stream is None else f" of the {damage.stream}"
    return f"{where}{plural(damage.size, 'byte')} at position {damage.position}{stream} aren't a frame: {damage.detail}"


def _text(text: str) -> str:
    return escaped_text(json.dumps(text, ensure_ascii=False))


def _bytes_text(content: bytes) -> str:
    more = " …" if len(content) > _BYTES_SHOWN else ""
    return f"{plural(len(content), 'byte')}{' ' if content else ''}{content[:_BYTES_SHOWN].hex()}{more}"


def _scalar(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case bytes():
            return _bytes_text(value)
        case _:
            return str(value)


class _TextWriter:
    """Lines of a body, indented by depth."""

    def __init__(self, message: ApiMessage, options: LogOptions, redaction: "Redaction | None") -> None:
        self._message = message
        self._options = options
        self._redaction = redaction
        self.text = bytearray()
        self.is_wrong = False

    def line(self, depth: int, text: str, mark: str = "") -> None:
        """Add a line; `mark` replaces its last blanks."""
        indent = "  " * depth
        self.text += f"{indent[: len(indent) - len(mark)]}{mark}{text}\n".encode("utf-8", "backslashreplace")

    def structure(self, fields: tuple[Field, ...], version: int, value: Fields, depth: int, mark: str = "") -> None:
        """Add the fields of a structure; the first line has the mark of an array's element."""
        for each in _present_fields(fields, version, value):
            self._field(each, version, value[each.name], depth, mark)
            mark = ""
        for tag, content in value.get(UNKNOWN_TAGGED_FIELDS, {}).items():
            self.line(depth, f"unknown tagged field {tag}: {_bytes_text(content)}", mark)
            mark = ""
        if mark:
            self.line(depth, "{}", mark)

    def _field(self, each: Field, version: int, value: Any, depth: int, mark: str) -> None:
        if isinstance(value, bytes) and each.type == _RECORDS:
            self.line(depth, f"{each.name}: {plural(len(value), 'byte')}", mark)
            self._records(value, depth + 1)
        elif isinstance(value, dict):
            self.line(depth, f"{each.name}:", mark)
            self.structure(each.fields, version, value, depth + 1)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            self.line(depth, f"{each.name}:", mark)
            for element in value:
                self.structure(each.fields, version, element, depth + 2, "- ")
        elif isinstance(value, list):
            self.line(depth, f"{each.name}: [{', '.join(map(_scalar, value))}]", mark)
        else:
            self.line(depth, f"{each.name}: {_scalar(value)}", mark)

    def _records(self, content: bytes, depth: int) -> None:
        left = max(MOST_TEXT - len(self.text), 0)
        lines, damages = record_lines(content, self._options, self._redaction, left)
        indent = b"  " * depth
        self.text += b"".join(indent + line + b"\n" for line in lines.split(b"\n")[:-1])
        for damage in damages:
            self.line(
                depth, f"{damage.kind} at position {damage.position}, {plural(damage.size, 'byte')}: {damage.detail}"
            )
        self.is_wrong |= bool(_wrong_damages(self._message, damages))

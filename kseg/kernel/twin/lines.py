"""Lines from templates by the twin, one operation after another."""

import re
from binascii import b2a_base64
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import NamedTuple

from kseg.kernel.contract import FORMULA_STARTS, ZONE_CYCLE, ZONE_CYCLE_START, Headers, Op, Template, Zone
from kseg.system.terminal_text import json_bytes_escaped


class Shown(NamedTuple):
    """Values for a line, in the order of the contract's Slot and Text."""

    slots: tuple[int, ...]
    texts: Sequence[bytes | None]
    headers: Headers


_Step = Callable[[Shown], bytes | int]
"""An operation: returns its text, or the number of operations to skip."""


class Line:
    """A prepared template."""

    def __init__(self, template: Template) -> None:
        codes = template.ops
        self._template = template
        self._steps = [self._step(codes[at], codes[at + 1], codes[at + 2]) for at in range(0, len(codes), 3)]

    def text(self, shown: Shown) -> bytes:
        """Return the line of the given values."""
        parts: list[bytes] = []
        place = 0
        while place < len(self._steps):
            result = self._steps[place](shown)
            if isinstance(result, bytes):
                parts.append(result)
            else:
                place += result
            place += 1
        return b"".join(parts)

    def _step(self, code: int, a: int, b: int) -> _Step:
        _, literals, words, is_raw, zone = self._template
        as_shown = _raw_text if is_raw else java_text
        match code:
            case Op.LITERAL:
                return lambda _: literals[a : a + b]
            case Op.INTEGER:
                return lambda shown: b"%d" % shown.slots[a]
            case Op.WORD:
                first, texts = words[b]
                return lambda shown: texts[
                    shown.slots[a] - first if first <= shown.slots[a] < first + len(texts) else -1
                ]
            case Op.TIME:
                return lambda shown: _time(zone, shown.slots[a])
            case Op.JSON_TIME:
                return lambda shown: _json_time(zone, shown.slots[a])
            case Op.TEXT:
                return lambda shown: as_shown(shown.texts[a] or b"")
            case Op.HEADER_KEYS:
                return lambda shown: b",".join(as_shown(key) for key, _ in shown.headers)
        return _text_step(code, a) or _skip(code, a, b)


def _text_step(code: int, a: int) -> _Step | None:
    match code:
        case Op.JSON_TEXT:
            return lambda shown: _json_text(shown.texts[a])
        case Op.JSON_VALUE:
            return lambda shown: _json_value(shown.texts[a])
        case Op.JSON_HEADERS:
            return lambda shown: _json_headers(shown.headers)
        case Op.CSV_TEXT:
            return lambda shown: _csv_text(shown.texts[a])
        case Op.CSV_SAFE_TEXT:
            return lambda shown: _csv_safe_text(shown.texts[a])
        case Op.CSV_HEADERS:
            return lambda shown: _csv_text(_json_headers(shown.headers))
    return None


def _skip(code: int, a: int, b: int) -> _Step:
    match code:
        case Op.SKIP_IF_NULL:
            return lambda shown: b if shown.texts[a] is None else 0
        case Op.SKIP_UNLESS_NULL:
            return lambda shown: 0 if shown.texts[a] is None else b
        case Op.SKIP_IF_ZERO:
            return lambda shown: b if shown.slots[a] == 0 else 0
        case Op.SKIP_UNLESS_ZERO:
            return lambda shown: 0 if shown.slots[a] == 0 else b
    return lambda shown: b if shown.slots[a] < 0 else 0


# --- texts -----------------------------------------------------------------------------------------------------------

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_JSON_ESCAPES = {
    b"\\": rb"\\",  # first: the backslashes of later escapes must stay
    **{bytes((code,)): b"\\u%04x" % code for code in (*range(0x20), 0x7F)},
    b'"': rb"\"",
    b"\n": rb"\n",
    b"\t": rb"\t",
    b"\r": rb"\r",
}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  of any zone
_END_OF_YEAR_9999 = 253402300799999


def _raw_text(text: bytes) -> bytes:
    return text


def java_text(text: bytes) -> bytes:
    """Return UTF-8 as Java decodes and prints it.

    Invalid bytes become U+FFFD, as in Python, but a complete surrogate becomes one character.
    """
    if text.isascii():
        return text
    try:
        text.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(b"\xff", text).decode(errors="replace").encode()
    return text


def _json_text(text: bytes | None) -> bytes:
    """Return the text after an open JSON name: its end, a colon and the value.

    Or Base64 in the name if it isn't UTF-8.
    """
    if text is None:
        return b'":null'
    try:
        text.decode()
    except UnicodeDecodeError:
        return b'Base64":"%b"' % b2a_base64(text, newline=False)
    return b'":"%b"' % json_bytes_escaped(_escape_json(text))


def _json_value(text: bytes | None) -> bytes:
    """Return a JSON string, or null. Non-UTF-8 text, or text that begins with the mark, is Base64 after a mark."""
    if text is None:
        return b"null"
    marked = _mark_base64(text)
    return b'"%b"' % json_bytes_escaped(_escape_json(text if marked is None else marked))


def _escape_json(text: bytes) -> bytes:
    for escaped, escape in _JSON_ESCAPES.items():
        text = text.replace(escaped, escape)
    return text


def _json_headers(headers: Headers) -> bytes:
    pairs = (b'{"key%b,"value%b}' % (_json_text(key), _json_text(value)) for key, value in headers)
    return b"[%b]" % b",".join(pairs)


def _json_time(zone: Zone, ms: int) -> bytes:
    time = _time(zone, ms)
    return b'"%b"' % time if time else b"null"


def _time(zone: Zone, ms: int) -> bytes:
    offset = _zone_offset(zone, ms) if zone else 0
    if ms < 0 or ms + 1000 * offset > _END_OF_YEAR_9999:
        return b""
    time = (_EPOCH + timedelta(milliseconds=ms + 1000 * offset)).isoformat(timespec="milliseconds").encode()
    return time + (_offset_text(offset) if zone else b"Z")


def _zone_offset(zone: Zone, ms: int) -> int:
    """Return seconds east of UTC at a time."""
    if ms >= ZONE_CYCLE_START + ZONE_CYCLE:
        ms = ZONE_CYCLE_START + (ms - ZONE_CYCLE_START) % ZONE_CYCLE
    return zone[max(bisect_right(zone, ms, key=itemgetter(0)) - 1, 0)][1]


def _offset_text(offset: int) -> bytes:
    hours, seconds = divmod(abs(offset), 3600)
    text = b"%c%02d:%02d" % (b"-" if offset < 0 else b"+", hours, seconds // 60)
    return text + b":%02d" % (seconds % 60) if seconds % 60 else text


_BASE64_MARK = b"base64:"


def _csv_text(text: bytes | None) -> bytes:
    """Return a field in quotes; nothing for null.

    Non-UTF-8 text, or text that begins with the mark, is Base64 after a mark.
    """
    if text is None:
        return b""
    marked = _mark_base64(text)
    return b'"%b"' % (text.replace(b'"', b'""') if marked is None else marked)


def _mark_base64(text: bytes) -> bytes | None:
    """Return marked Base64 of text that isn't UTF-8, or begins with that mark itself, or None for other texts."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return _BASE64_MARK + b2a_base64(text, newline=False)
    return _BASE64_MARK + b2a_base64(text, newline=False) if text.startswith(_BASE64_MARK) else None


def _csv_safe_text(text: bytes | None) -> bytes:
    """Return the same, after an apostrophe if a spreadsheet would take it for a formula."""
    field = _csv_text(text)
    return b"\"'" + field[1:] if field[1:].startswith(FORMULA_STARTS) else field

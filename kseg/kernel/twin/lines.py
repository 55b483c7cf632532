"""Lines from templates, the twin's way: a template becomes a `%` format and a picker of the values for its holes.

What a line's shape depends on (which texts are null, which words stand in it) is decided once per shape, not per line;
and what is the same in all lines of a batch becomes part of the format once per batch.
"""

import re
from binascii import b2a_base64
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache, partial
from itertools import islice, pairwise
from operator import itemgetter
from typing import NamedTuple, cast

from kseg.kernel.contract import (
    FORMULA_STARTS,
    ZONE_CYCLE,
    ZONE_CYCLE_START,
    Headers,
    Op,
    Slot,
    Template,
    Text,
    Words,
    Zone,
)
from kseg.kernel.twin.values import (
    DECODED,
    FORM,
    HAS_HEADERS,
    HEADERS,
    KEY,
    KEY_DECODED,
    KEY_ERROR,
    NULL_DECODED,
    NULL_KEY,
    NULL_KEY_DECODED,
    NULL_KEY_ERROR,
    NULL_VALUE,
    NULL_VALUE_DECODED,
    NULL_VALUE_ERROR,
    VALUE,
    VALUE_DECODED,
    VALUE_ERROR,
)
from kseg.system.terminal_text import json_bytes_escaped

Values = Sequence[object]
"""A line's values, or those from some place on, in the order that twin_values describes."""
Picker = Callable[[Values], object]
"""Takes some of them: what stands to the right of `%`, or what decides a shape."""
Convert = Callable[..., object]
"""What is made of a value before it is shown, or decides."""

_SHAPES_LIMIT = 1 << 12
"""Formats that a line keeps at most: numbers that a file chooses can make new shapes without end."""
_TEXT_PLACES = {
    Text.KEY: KEY,
    Text.VALUE: VALUE,
    Text.DECODED: DECODED,
    Text.KEY_DECODED: KEY_DECODED,
    Text.VALUE_DECODED: VALUE_DECODED,
    Text.KEY_ERROR: KEY_ERROR,
    Text.VALUE_ERROR: VALUE_ERROR,
}
_NULL_BITS = {
    Text.KEY: NULL_KEY,
    Text.VALUE: NULL_VALUE,
    Text.DECODED: NULL_DECODED,
    Text.KEY_DECODED: NULL_KEY_DECODED,
    Text.VALUE_DECODED: NULL_VALUE_DECODED,
    Text.KEY_ERROR: NULL_KEY_ERROR,
    Text.VALUE_ERROR: NULL_VALUE_ERROR,
}
_SHOWN_TEXT_OPS = (Op.TEXT, Op.JSON_TEXT, Op.JSON_VALUE, Op.CSV_TEXT, Op.CSV_SAFE_TEXT)
_TEXT_OPS = (*_SHOWN_TEXT_OPS, Op.SKIP_IF_NULL, Op.SKIP_UNLESS_NULL)
_FEW_VALUED = frozenset({Slot.IS_TRANSACTIONAL, Slot.IS_CONTROL, Slot.HAS_DELETE_HORIZON, Slot.IS_VALID, Slot.MAGIC})
"""Slots whose few numbers can decide a shape as they are; of others it matters whether they are 0."""

# --- texts -----------------------------------------------------------------------------------------------------------

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_JSON_ESCAPED = re.compile(rb'[\x00-\x1f"\\\x7f]')
_JSON_ESCAPES = {
    b"\\": rb"\\",  # first: what the others bring must stay
    **{bytes((code,)): b"\\u%04x" % code for code in (*range(0x20), 0x7F)},
    b'"': rb"\"",
    b"\n": rb"\n",
    b"\t": rb"\t",
    b"\r": rb"\r",
}
_LONG_TEXT = 1 << 12
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  of any zone
_END_OF_YEAR_9999 = 253402300799999


def java_text(text: bytes) -> bytes:
    """UTF-8 as Java decodes and prints it: U+FFFD for what isn't, as Python does it, but one for a whole surrogate."""
    if text.isascii():
        return text
    try:
        text.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(b"\xff", text).decode(errors="replace").encode()
    return text


def _json_text(text: bytes | None) -> bytes:
    """What follows an open JSON name: its end, a colon and the text; or Base64 in the name if it isn't UTF-8."""
    if text is None:
        return b'":null'
    try:
        text.decode()
    except UnicodeDecodeError:
        return b'Base64":"%b"' % b2a_base64(text, newline=False)
    return b'":"%b"' % json_bytes_escaped(_json_escaped(text))


def _json_value(text: bytes | None) -> bytes:
    """A JSON string, or null. What isn't UTF-8, or begins as if it weren't, is Base64 after a mark."""
    if text is None:
        return b"null"
    marked = _marked(text)
    return b'"%b"' % json_bytes_escaped(_json_escaped(text if marked is None else marked))


def _json_escaped(text: bytes) -> bytes:
    if len(text) < _LONG_TEXT:
        return _JSON_ESCAPED.sub(_json_escape, text)
    for escaped, escape in _JSON_ESCAPES.items():  # a call per byte would take seconds for MiB of zeros
        text = text.replace(escaped, escape)
    return text


def _json_escape(match: re.Match[bytes]) -> bytes:
    return _JSON_ESCAPES[match.group()]


def _json_headers(headers: Headers) -> bytes:
    pairs = (b'{"key%b,"value%b}' % (_json_text(key), _json_text(value)) for key, value in headers)
    return b"[%b]" % _listed(pairs)


def _listed(texts: Iterator[bytes]) -> bytes:
    """Texts with commas between them; joined by and by, since for each that it joins Python takes a hundred bytes."""
    pieces = []
    while some := list(islice(texts, _LISTED_AT_ONCE)):
        pieces.append(b",".join(some))
    return b",".join(pieces)


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
    """Seconds east of UTC at a time."""
    if ms >= ZONE_CYCLE_START + ZONE_CYCLE:
        ms = ZONE_CYCLE_START + (ms - ZONE_CYCLE_START) % ZONE_CYCLE
    return zone[max(bisect_right(zone, ms, key=_FIRST) - 1, 0)][1]


def _offset_text(offset: int) -> bytes:
    hours, seconds = divmod(abs(offset), 3600)
    text = b"%c%02d:%02d" % (b"-" if offset < 0 else b"+", hours, seconds // 60)
    return text + b":%02d" % (seconds % 60) if seconds % 60 else text


_FIRST = itemgetter(0)


_LISTED_AT_ONCE = 1000
_BASE64_MARK = b"base64:"


def _csv_text(text: bytes | None) -> bytes:
    """A field in quotes; nothing for null. What isn't UTF-8, or begins as if it weren't, is Base64 after a mark."""
    if text is None:
        return b""
    marked = _marked(text)
    return b'"%b"' % (text.replace(b'"', b'""') if marked is None else marked)


def _marked(text: bytes) -> bytes | None:
    """Base64, after a mark, of what isn't UTF-8, or begins with that mark itself; None for other texts."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return _BASE64_MARK + b2a_base64(text, newline=False)
    return _BASE64_MARK + b2a_base64(text, newline=False) if text.startswith(_BASE64_MARK) else None


def _csv_safe_text(text: bytes | None) -> bytes:
    """The same; an apostrophe comes before what a spreadsheet would take for a formula."""
    field = _csv_text(text)
    return b"\"'" + field[1:] if field[1:].startswith(FORMULA_STARTS) else field


def _csv_headers(headers: Headers) -> bytes:
    return _csv_text(_json_headers(headers))


def _header_keys(headers: Headers) -> bytes:
    return _listed(key for key, _ in headers)


def _java_header_keys(headers: Headers) -> bytes:
    return _listed(java_text(key) for key, _ in headers)


# --- formats ---------------------------------------------------------------------------------------------------------


class _Source(NamedTuple):
    """A value's place, and what is made of it."""

    place: int
    convert: Convert | None = None


class _Hole(NamedTuple):
    """Where a value goes: its conversion in the format, and where it comes from."""

    conversion: bytes
    source: _Source


class _Frame(NamedTuple):
    """A shape's format, before a batch's values are put in: those that `pick_known` gives, if there are any."""

    text: bytes
    pick_known: Picker | None
    pick: Picker


class Format(NamedTuple):
    """A line with holes for `%`, and what picks the values for them."""

    text: bytes
    pick: Picker


class Formats(dict[object, Format]):
    """A template's formats in one batch, by shape, made when a shape is met."""

    def __init__(self, template: "LineTemplate", batch: Values) -> None:
        super().__init__()
        self.template = template
        self.batch = batch
        self.pick_shape = template.pick_shape

    def __missing__(self, shape: object) -> Format:
        if len(self) >= _SHAPES_LIMIT:
            self.clear()
        self[shape] = found = self.template.format(self.batch, shape)
        return found

    def line(self, values: Values) -> bytes:
        """The line of some values."""
        text, pick = self[self.pick_shape(values)]
        line: bytes = text % pick(values)
        return line if self.template.is_raw or line.isascii() else java_text(line)

    def lines(self, records: Sequence[Values]) -> bytes:
        """The lines of some records' values."""
        if len(records) == 1:
            return self.line(records[0])
        pick_shape = self.pick_shape
        lines = b"".join([(found := self[pick_shape(record)])[0] % found[1](record) for record in records])
        return lines if self.template.is_raw or lines.isascii() else java_text(lines)


@lru_cache(maxsize=256)
def line_template(template: Template, known: int) -> "LineTemplate":
    """The template made ready: a millisecond of work that many files share."""
    return LineTemplate(template, known)


class LineTemplate:
    """A compiled template of the contract, for lines whose first `known` values are the same in all of a batch.

    Where texts stand apart, what Java makes of them can be done for many lines at once: what stands between them ends
    any sequence that they leave open. Literals are UTF-8, unless the template is raw. `reach`: the values from there on
    are not needed. `shows_decoded`: those of a decoder's texts that it may not give are.
    """

    def __init__(self, template: Template, known: int) -> None:
        codes, self._literals, self._words, self.is_raw, zone = template
        self._json_time, self._time = partial(_json_time, zone), partial(_time, zone)
        self._known = known
        self._operations = [(Op(codes[i]), codes[i + 1], codes[i + 2]) for i in range(0, len(codes), 3)]
        self._frames: dict[object, _Frame] = {}
        tests = dict.fromkeys(test for code, a, _ in self._operations if (test := _test(code, a)) is not None)
        self._known_tests = [test for test in tests if test.place < known]
        self._tests = [test for test in tests if test.place >= known]
        self._pick_known_shape = _picker(self._known_tests, 0)
        self.pick_shape = _picker(self._tests, known)
        numbers = (Op.INTEGER, Op.JSON_TIME, Op.TIME)
        shown = [_Source(a) for code, a, _ in self._operations if code in numbers and a < known]
        self._pick_known = _picker(self._known_tests + shown, 0)
        shown_places = [_shown_place(code, a) for code, a, _ in self._operations]
        self.reach = 1 + max([test.place for test in tests] + shown_places, default=-1)
        self.shows_decoded = any(code in _TEXT_OPS and a > Text.DECODED for code, a, _ in self._operations)
        self._last: tuple[object, Formats] = (None, Formats(self, ()))

    def for_batch(self, batch: Values) -> Formats:
        """The formats for a batch with these values; the last batch's if they show the same."""
        known = self._pick_known(batch)
        last_known, formats = self._last
        if known != last_known:
            formats = Formats(self, batch)
            self._last = known, formats
        return formats

    def format(self, batch: Values, shape: object) -> Format:
        """The format of a shape in a batch."""
        known_shape = self._pick_known_shape(batch)
        frame = self._frames.get((known_shape, shape))
        if frame is None:
            if len(self._frames) >= _SHAPES_LIMIT:
                self._frames.clear()
            decided = _decided(self._known_tests, known_shape) | _decided(self._tests, shape)
            self._frames[known_shape, shape] = frame = self._frame(decided)
        return Format(frame.text if frame.pick_known is None else frame.text % frame.pick_known(batch), frame.pick)

    def _frame(self, decided: "_Decided") -> _Frame:
        parts = self._parts(decided)
        # what stands before a line may be the text that ends the last one
        if not self.is_raw and any(_is_text(before) and _is_text(part) for before, part in pairwise([_TEXT, *parts])):
            parts = [_decoded_alone(part) for part in parts]
        sources = [part.source for part in parts if isinstance(part, _Hole)]
        known = [source for source in sources if source.place < self._known]
        rest = [source for source in sources if source.place >= self._known]
        text = b"".join([self._piece(part, has_known=bool(known)) for part in parts])
        return _Frame(text, _picker(known, 0) if known else None, _picker(rest, self._known))

    def _piece(self, part: bytes | _Hole, *, has_known: bool) -> bytes:
        """A part of a frame's text; `%` is doubled for each time that the text will be formatted."""
        if isinstance(part, _Hole) and part.source.place < self._known:
            return part.conversion
        piece = part.conversion if isinstance(part, _Hole) else part.replace(b"%", b"%%")
        return piece.replace(b"%", b"%%") if has_known else piece

    def _parts(self, decided: "_Decided") -> list[bytes | _Hole]:
        """Literals and holes of the line that is decided so."""
        parts: list[bytes | _Hole] = []
        index = 0
        while index < len(self._operations):
            code, a, b = self._operations[index]
            index += 1
            if _passes_over(code, a, decided):
                index += b
            elif (part := self._part(code, a, b, decided)) is not None:
                parts.append(part)
        return parts

    def _part(self, code: Op, a: int, b: int, decided: "_Decided") -> bytes | _Hole | None:
        match code:
            case Op.LITERAL:
                return self._literals[a : a + b] or None
            case Op.WORD:
                return _word(self._words[b], decided[_Source(a)]) or None
            case Op.INTEGER:
                return _Hole(b"%d", _Source(a))
            case Op.JSON_TIME:
                return _Hole(b"%b", _Source(a, self._json_time))
            case Op.TIME:
                return _Hole(b"%b", _Source(a, self._time))
            case Op.TEXT:
                return None if _is_null(a, decided) else _Hole(b"%b", _Source(_TEXT_PLACES[Text(a)]))
            case Op.CSV_TEXT | Op.CSV_SAFE_TEXT | Op.JSON_TEXT | Op.JSON_VALUE:
                return _Hole(b"%b", _Source(_TEXT_PLACES[Text(a)], _CONVERSIONS[code]))
            case Op.HEADER_KEYS if not decided[_FORM] & HAS_HEADERS:
                return None
            case Op.HEADER_KEYS | Op.CSV_HEADERS | Op.JSON_HEADERS:
                return _Hole(b"%b", _Source(HEADERS, _CONVERSIONS[code]))
        return None


_CONVERSIONS: dict[Op, Convert] = {
    Op.CSV_TEXT: _csv_text,
    Op.CSV_SAFE_TEXT: _csv_safe_text,
    Op.CSV_HEADERS: _csv_headers,
    Op.JSON_TEXT: _json_text,
    Op.JSON_VALUE: _json_value,
    Op.JSON_HEADERS: _json_headers,
    Op.HEADER_KEYS: _header_keys,
}
_Decided = dict[_Source, int]
"""What decides a line's shape: the tests of its values, and how they came out."""
_FORM = _Source(FORM)
_TEXT = _Hole(b"%b", _Source(VALUE))


def _test(code: Op, a: int) -> _Source | None:
    """What the operation's effect on a line's shape depends on."""
    match code:
        case Op.WORD:
            return _Source(a)
        case Op.SKIP_IF_ZERO | Op.SKIP_UNLESS_ZERO:
            return _Source(a, None if a in _FEW_VALUED else bool)
        case Op.SKIP_IF_NEGATIVE:
            return _Source(a, _is_negative)
        case Op.TEXT | Op.SKIP_IF_NULL | Op.SKIP_UNLESS_NULL | Op.HEADER_KEYS:
            return _FORM
    return None


def _shown_place(code: Op, a: int) -> int:
    """Where the value stands that the operation shows; -1 if it shows none."""
    match code:
        case Op.INTEGER | Op.WORD | Op.JSON_TIME | Op.TIME:
            return a
        case Op.TEXT | Op.JSON_TEXT | Op.JSON_VALUE | Op.CSV_TEXT | Op.CSV_SAFE_TEXT:
            return _TEXT_PLACES[Text(a)]
        case Op.HEADER_KEYS | Op.JSON_HEADERS | Op.CSV_HEADERS:
            return HEADERS
    return -1


def _passes_over(code: Op, a: int, decided: _Decided) -> bool:
    """Whether the operation is one that passes over others, and does so."""
    match code:
        case Op.SKIP_IF_NULL:
            return _is_null(a, decided)
        case Op.SKIP_UNLESS_NULL:
            return not _is_null(a, decided)
        case Op.SKIP_IF_ZERO | Op.SKIP_UNLESS_ZERO:
            test = _Source(a, None if a in _FEW_VALUED else bool)
            return bool(decided[test]) is (code == Op.SKIP_UNLESS_ZERO)
        case Op.SKIP_IF_NEGATIVE:
            return bool(decided[_Source(a, _is_negative)])
    return False


def _decided(tests: list[_Source], shape: object) -> _Decided:
    outcomes = (shape,) if len(tests) == 1 else cast(tuple[object, ...], shape)
    return cast(_Decided, dict(zip(tests, outcomes, strict=True)))


def _is_null(text: int, decided: _Decided) -> bool:
    return bool(decided[_FORM] & _NULL_BITS[Text(text)])


def _is_negative(number: int) -> bool:
    return number < 0


def _word(words: Words, number: int) -> bytes:
    index = number - words.first
    return words.texts[index if 0 <= index < len(words.texts) else -1]


_PLACES_OF_TEXTS = frozenset({*_TEXT_PLACES.values(), HEADERS})


def _is_text(part: bytes | _Hole) -> bool:
    """Whether the part can leave a UTF-8 sequence open."""
    return (
        isinstance(part, _Hole)
        and part.source.place in _PLACES_OF_TEXTS
        and part.source.convert in (None, _header_keys)
    )


def _decoded_alone(part: bytes | _Hole) -> bytes | _Hole:
    if not isinstance(part, _Hole) or not _is_text(part):
        return part
    convert = java_text if part.source.convert is None else _java_header_keys
    return part._replace(source=part.source._replace(convert=convert))


def _picker(sources: list[_Source], first: int) -> Picker:
    """Picks from values that begin at place `first`; one value comes alone, since `%` takes it so too."""
    places = [(source.place - first, source.convert) for source in sources]
    if not places:
        return lambda _: ()
    if all(convert is None for _, convert in places):
        return itemgetter(*[place for place, _ in places])
    pickers = [partial(_converted, place, convert) if convert else itemgetter(place) for place, convert in places]
    return pickers[0] if len(pickers) == 1 else lambda values: tuple([pick(values) for pick in pickers])


def _converted(place: int, convert: Convert, values: Values) -> object:
    return convert(values[place])

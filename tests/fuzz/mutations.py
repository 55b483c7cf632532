"""Mutations of pieces, logs, files next to logs, and JSON: edits of single fields, and of arbitrary bytes."""

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

from crc32c import crc32c

from tests.fuzz.pieces import (
    WIDTHS,
    Batch,
    Entry,
    Piece,
    Raw,
    Token,
    cut,
    of_tokens,
    records_of,
    right,
    taken_apart,
    tokens_of,
    with_length,
)

T = TypeVar("T")

EDGES = [0, 1, 2, 127, 128, 255, 256, *(2**bits - 1 for bits in (15, 16, 31, 32, 62, 63)), 2**31, 2**62]
"""Numbers at which code breaks; negative ones and neighbours are drawn as well."""
TEXTS = [b"", b"\0", b"\xff\xfe", "é€😀".encode(), b'"\\\n\r\t,;', b"base64:", b"\xed\xa0\x80", b"a" * 300, b"\x1b[31m"]


def number(random: Random, old: int, width: int = 8) -> int:
    """Return another number for a field of `width` bytes."""
    draw = random.random()
    if draw < 0.4:
        new = random.choice(EDGES) * random.choice((1, -1)) + random.choice((0, 0, 1, -1))
    elif draw < 0.7:
        new = old + random.choice((1, -1, 2, -2, 16, -16, 1000, -1000))
    elif draw < 0.85:
        new = old ^ 1 << random.randrange(8 * width)
    else:
        new = random.getrandbits(8 * width)
    return wrap_number(new, width)


def wrap_number(value: int, width: int) -> int:
    """Return a number as a signed field of `width` bytes holds it."""
    half = 1 << 8 * width - 1
    return (value + half) % (2 * half) - half


def havoc(random: Random, content: bytes) -> bytes:
    """Return bytes flipped, changed, cut out, doubled or inserted in a few places."""
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 4, 8))):
        at = random.randrange(len(changed) + 1)
        size = random.choice((1, 1, 1, 2, 4, 8, 33, 200))
        match random.randrange(6):
            case 0 if at < len(changed):
                changed[at] ^= 1 << random.randrange(8)
            case 1:
                del changed[at : at + size]
            case 2:
                changed[at:at] = changed[at : at + size]
            case 3:
                changed[at : at + size] = random.randbytes(min(size, max(len(changed) - at, 0)))
            case 4:
                changed[at:at] = random.choice((bytes(size), b"\xff" * size, random.choice(TEXTS)))
            case _:
                edge = struct.pack(">q", wrap_number(random.choice(EDGES) * random.choice((1, -1)), 8))
                width = random.choice((1, 2, 4, 8))
                changed[at : at + width] = edge[8 - width :]
    return bytes(changed)


# --- pieces ----------------------------------------------------------------------------------------------------------


def mutate(random: Random, piece: Piece, others: Sequence[bytes]) -> bytes:
    """Return a piece with one or some edits, mostly made consistent again.

    `others`: pieces to splice in.
    """
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        match piece:
            case Batch():
                piece = _pick(random, _OF_BATCHES)(random, piece, others)
            case Entry():
                piece = _pick(random, _OF_ENTRIES)(random, piece, others)
            case Raw():
                piece = Raw(right(havoc(random, piece.content)))
    content = piece.built()
    draw = random.random()
    if draw < 0.06:
        return havoc(random, content)
    return right(havoc(random, content)) if draw < 0.16 else content


def _pick(random: Random, choices: Sequence[tuple[int, T]]) -> T:
    return random.choices([choice for _, choice in choices], [weight for weight, _ in choices])[0]


_Edit = Callable[[Random, Batch, Sequence[bytes]], Piece]
_EntryEdit = Callable[[Random, Entry, Sequence[bytes]], Piece]


def _field(random: Random, batch: Batch, _: Sequence[bytes]) -> Piece:
    name = random.choice([name for name in WIDTHS if name not in ("length", "magic", "crc")])
    value = number(random, batch.fields[name], WIDTHS[name])
    return replace(batch, fields={**batch.fields, name: value})


def _flags(random: Random, batch: Batch, _: Sequence[bytes]) -> Piece:
    attributes = batch.fields["attributes"] ^ random.choice((0x08, 0x10, 0x20, 0x40, 0x30, 0x80))
    return replace(batch, fields={**batch.fields, "attributes": wrap_number(attributes, 2)})


def _codec(random: Random, batch: Batch, _: Sequence[bytes]) -> Piece:
    """Change the codec: mostly the body follows, so that its contents stay."""
    codec = random.randrange(8)
    attributes = batch.fields["attributes"] & ~7 | codec
    body_codec = codec if codec < 5 and random.random() < 0.8 else batch.codec
    return replace(batch, fields={**batch.fields, "attributes": attributes}, codec=body_codec)


def _body(random: Random, batch: Batch, others: Sequence[bytes]) -> Piece:
    draw = random.random()
    if draw < 0.6:
        return replace(batch, body=havoc(random, batch.body))
    if draw < 0.8:
        return replace(batch, body=batch.body[: random.randrange(len(batch.body) + 1)])
    other = taken_apart(random.choice(others))
    return replace(batch, body=batch.body + (other.body if isinstance(other, Batch) else other.built()))


def _change_codec_bytes(random: Random, batch: Batch, _: Sequence[bytes]) -> Piece:
    """Change the codec's own bytes under a right CRC."""
    content = batch.built()
    return Raw(right(content[:61] + havoc(random, content[61:])))


def _records(random: Random, batch: Batch, _: Sequence[bytes]) -> Piece:
    """Change, double, remove or reorder some records; mostly the header's count follows."""
    records = records_of(batch.body)
    if not records:
        return replace(batch, body=with_length(bytes(6)), fields={**batch.fields, "count": 1})
    at = random.randrange(len(records))
    match random.randrange(8):
        case 0:
            del records[at]
        case 1:
            records.insert(random.randrange(len(records) + 1), records[at])
        case 2:
            records[at], records[0] = records[0], records[at]
        case _:
            records[at] = _record(random, records[at])
    body = b"".join(map(with_length, records))
    fields = batch.fields if random.random() < 0.2 else {**batch.fields, "count": len(records)}
    return replace(batch, body=body, fields=fields)


def _record(random: Random, record: bytes) -> bytes:
    tokens = tokens_of(record)
    for _ in range(random.choice((1, 1, 2))):
        _edit_token(random, tokens)
    return of_tokens(tokens, extra=random.choice((0,) * 12 + (1, 3, 4)))


def _edit_token(random: Random, tokens: list[Token]) -> None:
    """Change a number or a text of a record; mostly a text's size follows, and inserted headers are counted."""
    at = random.randrange(len(tokens))
    token = tokens[at]
    if random.random() < 0.1 and len(tokens) > 7 and isinstance(count := tokens[7], int):
        text = random.choice(TEXTS)
        tokens[8:8] = [len(text), text, -1, b""] if random.random() < 0.5 else [len(text), text, len(text), text]
        tokens[7] = count + 1
    elif isinstance(token, int):
        tokens[at] = number(random, token, random.choice((1, 4, 8)))
    else:
        new = random.choice((random.choice(TEXTS), havoc(random, token), _change_version(random, token)))
        tokens[at] = new
        if at and isinstance(tokens[at - 1], int) and random.random() < 0.7:
            tokens[at - 1] = len(new)


def _change_version(random: Random, text: bytes) -> bytes:
    """Return a message of an internal topic with another version or type, which are in its first bytes."""
    width = random.choice((1, 2, 3))
    return random.choice((0, 1, 2, 3, 4, 5, 10, 21, 127, 255)).to_bytes(width, "big") + text[width:]


def _entry_field(random: Random, entry: Entry, _: Sequence[bytes]) -> Piece:
    match random.randrange(6):
        case 0:
            return replace(entry, offset=number(random, entry.offset))
        case 1:
            return replace(entry, timestamp=number(random, entry.timestamp))
        case 2:
            return replace(entry, attributes=entry.attributes ^ 1 << random.randrange(8))
        case 3:
            return replace(entry, magic=1 - entry.magic)
        case 4:
            return replace(entry, key=_text(random, entry.key))
        case _:
            return replace(entry, value=_text(random, entry.value), inner=())


def _text(random: Random, text: bytes | None) -> bytes | None:
    return random.choice((None, random.choice(TEXTS), havoc(random, text or b"")))


def _inner(random: Random, entry: Entry, others: Sequence[bytes]) -> Piece:
    """Change, double, remove or wrap again the entries in a wrapper."""
    inner = list(entry.inner)
    if not inner:
        return _wrap_piece(random, entry, others)
    at = random.randrange(len(inner))
    match random.randrange(7):
        case 0:
            del inner[at]
        case 1:
            inner.insert(random.randrange(len(inner) + 1), inner[at])
        case 2:
            inner[at], inner[0] = inner[0], inner[at]
        case 3:
            inner[at] = entry
        case 4:
            content = havoc(random, inner[at].built())
            inner[at] = Raw(right(content) if random.random() < 0.7 else content)
        case _:
            each = inner[at]
            changed = _entry_field(random, each, others) if isinstance(each, Entry) else each
            assert isinstance(changed, Entry | Raw)
            inner[at] = changed
    return replace(entry, inner=tuple(inner))


def _wrap_piece(random: Random, entry: Entry, _: Sequence[bytes]) -> Piece:
    inner = (replace(entry, offset=0), replace(entry, offset=1))
    attributes = entry.attributes & ~7 | random.choice((1, 2, 3))
    return replace(entry, attributes=attributes, key=None, value=None, inner=inner)


def _wrapper_value(random: Random, entry: Entry, _: Sequence[bytes]) -> Piece:
    value = stored_value(entry)
    return replace(entry, value=None if value is None else havoc(random, value), inner=())


def stored_value(entry: Entry) -> bytes | None:
    """Return the stored value: a wrapper's is compressed."""
    if not entry.inner:
        return entry.value
    return entry.built()[(34 if entry.magic == 1 else 26) + len(entry.key or b"") :]


_OF_BATCHES: list[tuple[int, _Edit]] = [
    (4, _field),
    (2, _flags),
    (2, _codec),
    (2, _body),
    (2, _change_codec_bytes),
    (8, _records),
]
_OF_ENTRIES: list[tuple[int, _EntryEdit]] = [(4, _entry_field), (6, _inner), (2, _wrap_piece), (2, _wrapper_value)]


# --- logs ------------------------------------------------------------------------------------------------------------


def mutated_log(random: Random, pieces: Sequence[bytes], others: Sequence[bytes]) -> bytes:
    """Return a log of complete pieces, some changed, doubled, removed, or replaced by others' or arbitrary bytes."""
    log = list(pieces)
    for _ in range(random.choice((1, 1, 2, 3, 5)) if log else 0):
        at = random.randrange(len(log))
        match random.randrange(14):
            case 0:
                del log[at]
            case 1:
                log.insert(random.randrange(len(log) + 1), log[at])
            case 2:
                log[at] = random.choice((bytes(random.randrange(2000)), random.randbytes(random.randrange(300))))
            case 3:
                log[at] = havoc(random, log[at])
            case 4:
                log[at] = random.choice(others)
            case _:
                log[at] = mutate(random, taken_apart(log[at]), others)
        if not log:
            break
    content = b"".join(log)
    draw = random.random()
    if draw < 0.05:
        return content[: random.randrange(len(content) + 1)]
    return content + bytes(random.randrange(100)) if draw < 0.08 else content


# --- files next to logs ----------------------------------------------------------------------------------------------


def mutated_file(random: Random, name: str, content: bytes, others: Sequence[bytes]) -> bytes:
    """Return a changed file of a partition or log directory, mutated by the format of its name."""
    if name.endswith((".log", ".checkpoint", ".log.deleted")):
        return mutated_log(random, cut(content), others)
    for suffix, widths in _ENTRIES.items():
        if name.endswith(suffix):
            return _entries(random, content, widths)
    if name.endswith(".snapshot"):
        changed = content[:10] + _entries(random, content[10:], (8, 2, 4, 8, 4, 8, 4, 8))
        changed = havoc(random, changed) if random.random() < 0.3 else changed
        return changed[:2] + struct.pack(">I", crc32c(changed[6:])) + changed[6:] if random.random() < 0.9 else changed
    if content[:1] == b"{" and random.random() < 0.7:
        return mutated_json_text(random, content)
    return _lines(random, content) if random.random() < 0.7 else havoc(random, content)


_ENTRIES = {".timeindex": (8, 4), ".index": (4, 4), ".txnindex": (2, 8, 8, 8, 8)}
"""Widths of an entry's fields."""


def _entries(random: Random, content: bytes, widths: tuple[int, ...]) -> bytes:
    size = sum(widths)
    entries = [content[at : at + size] for at in range(0, len(content), size)] or [bytes(size)]
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(entries)) if entries else 0
        match random.randrange(6):
            case 0:
                del entries[at : at + 1]
            case 1:
                entries[at:at] = entries[at : at + 1]
            case 2:
                entries.append(bytes(random.randrange(2 * size)))
            case _ if at < len(entries):
                field = random.randrange(len(widths))
                start, width = sum(widths[:field]), widths[field]
                old = int.from_bytes(entries[at][start : start + width], "big", signed=True)
                new = number(random, old, width).to_bytes(width, "big", signed=True)
                entries[at] = entries[at][:start] + new + entries[at][start + width :]
            case _:
                pass
    return b"".join(entries)


def _lines(random: Random, content: bytes) -> bytes:
    """Change a text of lines of words: checkpoints, properties, JSON."""
    lines = content.split(b"\n")
    at = random.randrange(len(lines))
    words = lines[at].split(b" ")
    place = random.randrange(len(words))
    match random.randrange(6):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[random.randrange(len(lines))])
        case 2:
            words[place] = str(number(random, 1)).encode()
        case 3:
            words[place] = random.choice([*TEXTS, b"-0", b"1e5", b"99999999999999999999", b"\xd9\xa1"])
        case 4:
            words.insert(place, words[place])
        case _:
            words[place] = havoc(random, words[place])
    if at < len(lines):
        lines[at] = b" ".join(words)
    return b"\n".join(lines)


# --- JSON ------------------------------------------------------------------------------------------------------------

DEPTH = 300
"""Levels around a value: more than kseg shows, fewer than Python's stack allows."""


def mutated_json_text(random: Random, content: bytes) -> bytes:
    """Return a JSON text with a changed value, or other bytes if it isn't JSON."""
    try:
        value = json.loads(content)
    except ValueError:
        return havoc(random, content)
    changed, is_ascii = mutated_json(random, value), random.random() < 0.5
    try:
        return json.dumps(changed, ensure_ascii=is_ascii).encode("utf-8", "replace")
    except RecursionError:  # it was deep before
        return havoc(random, content)


def mutated_json(random: Random, value: Any) -> Any:
    """Return a value of objects, lists, texts and numbers with one part changed, removed, doubled or moved."""
    places = list(_places(value, ()))
    place = random.choice(places)
    old = _at(value, place)
    return _with(value, place, _edit_value(random, old, lambda: _at(value, random.choice(places))))


def _places(value: Any, place: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the paths to all values within one, by names and numbers; its own is empty."""
    yield place
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(inner, (*place, name))


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for name in place:
        value = value[name]
    return value


def _with(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    changed = value.copy()
    changed[place[0]] = _with(value[place[0]], place[1:], new)
    return changed


def _edit_value(random: Random, old: Any, other: Callable[[], Any]) -> Any:
    """Return mostly a value of the same type; sometimes another one of any type, or a very deep one."""
    draw = random.random()
    if draw < 0.1:
        return other()
    if draw < 0.15:
        return random.choice((None, True, -1, 1e308, "", [], {}, "null"))
    if draw < 0.17:
        return _deep(random, old)
    match old:
        case bool():
            return not old
        case int():
            return number(random, old)
        case str():
            return random.choice((random.choice(TEXTS), havoc(random, old.encode()))).decode("utf-8", "replace")
        case bytes():
            return random.choice((random.choice(TEXTS), havoc(random, old)))
        case list() if old:
            at = random.randrange(len(old))
            return random.choice((old[:at] + old[at + 1 :], old + old[at:], [*old, other()], old[::-1]))
        case dict() if old:
            name = random.choice(list(old))
            rest = {each: inner for each, inner in old.items() if each != name}
            return random.choice((rest, {**rest, random.choice(list(old)): old[name]}, {**old, name: other()}))
        case _:
            return other()


def _deep(random: Random, value: Any) -> Any:
    is_list = random.random() < 0.5
    for _ in range(DEPTH):
        value = [value] if is_list else {"type": "array", "items": value}
    return value

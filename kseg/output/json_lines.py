"""JSON, one object per line, with keys in the given order."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kseg.archive.shown_paths import shown
from kseg.control_characters import json_escaped
from kseg.output.stdout import write_stdout


class JsonText(NamedTuple):
    """Text that is JSON already, such as the kernel's records; it is put into a line unchanged."""

    text: bytes


def json_line(members: Mapping[str, object]) -> bytes:
    """An object as a line. Text that isn't UTF-8, of a file's name, has its bytes as \\udcNN."""
    return _json(members) + b"\n"


def _json(value: object) -> bytes:
    if isinstance(value, JsonText):
        return value.text
    try:
        return _encoded(value)
    except TypeError:  # there is JSON in it, or what can't be JSON
        if isinstance(value, list):
            return b"[" + b",".join(map(_json, value)) + b"]"
        if isinstance(value, dict):
            return b"{" + b",".join(_encoded(name) + b":" + _json(member) for name, member in value.items()) + b"}"
        raise


def _encoded(value: object) -> bytes:
    import json

    text = shown(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return json_escaped(text).encode("utf-8", "backslashreplace")


def json_by_pieces(members: Mapping[str, object]) -> Iterator[bytes]:
    """An object as a line, some bytes at a time; a member that is an iterator gives its JSON so, as large ones do."""
    separator = b"{"
    for name, value in members.items():
        yield separator + _json(name) + b":"
        yield from value if isinstance(value, Iterator) else (_json(value),)
        separator = b","
    yield b"}\n"


def write_json_by_pieces(members: Mapping[str, object]) -> None:
    """Writes such an object to standard output."""
    for piece in json_by_pieces(members):
        write_stdout(piece)


def write_json(members: Mapping[str, object]) -> None:
    """Writes an object to standard output."""
    write_stdout(json_line(members))

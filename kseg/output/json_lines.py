"""JSON, one object a line, keys in the order given."""

from collections.abc import Mapping

from kseg.control_characters import json_escaped
from kseg.output.stdout import write_stdout
from kseg.shown_paths import shown


def json_line(members: Mapping[str, object]) -> bytes:
    """An object as a line. Text that isn't UTF-8, of a file's name, has its bytes as \\udcNN."""
    import json

    text = shown(json.dumps(members, ensure_ascii=False, separators=(",", ":")))
    return json_escaped(text).encode("utf-8", "backslashreplace") + b"\n"


def write_json(members: Mapping[str, object]) -> None:
    """Writes an object to standard output."""
    write_stdout(json_line(members))

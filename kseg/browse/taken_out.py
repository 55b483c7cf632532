"""What is taken from the screen elsewhere: a copied value, and a row's fields as JSON in a new file."""

from pathlib import Path

from kseg.archive.untouched import check_outside
from kseg.browse.field_lines import FieldLine
from kseg.explain.field import Content, ExplainedField
from kseg.explain.items import Item
from kseg.explain.words import shown_value
from kseg.output.explain import item_objects
from kseg.output.json_lines import json_by_pieces
from kseg.output.printable import printable
from kseg.system.new_file import write_new_file

MOST_COPIED = 1 << 20
"""Bytes of a value that are copied: more than terminals take."""


def copied_text(line: FieldLine) -> str:
    """The value of a field as text: bytes as text if there is nothing in it that pasting could set off, else in hex."""
    if line.is_note:
        return line.value
    return field_text(line.field)


def field_text(field: ExplainedField) -> str:
    """The same of a field, without notes."""
    if isinstance(field.value, bytes | memoryview):
        return _text_or_hex(field.value[:MOST_COPIED])
    if isinstance(field.value, int) and not isinstance(field.value, bool):
        return str(field.value)
    return printable(shown_value(field))


def _text_or_hex(content: Content) -> str:
    try:
        text = str(content, "utf-8")
    except UnicodeDecodeError:
        return content.hex()
    return text if text.isprintable() else content.hex()


def exported(item: Item, number: int, file: Path, path: Path) -> int:
    """Writes an item as `kseg explain -o json` prints it to a new file outside of what is read; gives its bytes.

    Raises UsageError if the file exists or lies within the input, WriteError if it can't be written.
    """
    check_outside(path, [file])
    objects = item_objects(item, number, str(file))
    content = b"".join(piece for members in objects for piece in json_by_pieces(members))
    write_new_file(path, content)
    return len(content)

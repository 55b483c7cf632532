"""What callers ask for by keywords: a selection, decoders, columns of tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict, cast

from kseg.errors import UsageError
from kseg.selection import EVERYTHING, Selection, SelectionOptions, selection_of


class DecodingOptions(TypedDict, total=False):
    """What decodes keys and values, by the names of the commands' options.

    key_decoder, value_decoder: names of decoders, or the caller's own `module:callable`. schema: an Avro schema, a map
    of ids to schemas, or a Protobuf descriptor set; message: the Protobuf message's full name; schema_registry: the
    directory of the `_schemas` partition.
    """

    key_decoder: str | None
    value_decoder: str | None
    schema: Path | str | None
    message: str | None
    schema_registry: Path | str | None


class DecodedOptions(SelectionOptions, DecodingOptions, total=False):
    """Which records, and what decodes them."""


class TableOptions(DecodedOptions, total=False):
    """The same, and how the table is to be.

    headers: whether there is a column with them, True by default; batch_columns: whether there are columns with facts
    of each record's batch. max_bytes: bytes of keys and values that a record batch holds at most, unless one record
    alone has more.
    """

    headers: bool
    batch_columns: bool
    max_bytes: int


def asked_selection(selection: Selection | None, options: Mapping[str, object], *, has_control: bool) -> Selection:
    """A selection with what the options ask in its place; other options are passed over if a TypedDict here has them.

    `has_control`: whether control records are taken if nobody says anything about them. Raises UsageError for what
    can't be.
    """
    known = {name: value for name, value in options.items() if name not in _NOT_OF_SELECTIONS}
    if "control" not in known and not has_control and (selection is None or selection.is_control is None):
        known["control"] = False
    asked = selection_of(cast(SelectionOptions, known), EVERYTHING if selection is None else selection)
    if asked.is_followed:
        raise UsageError("is_followed: `kseg dump --follow` follows a log that grows; call again for what is new")
    return asked


_NOT_OF_SELECTIONS = TableOptions.__annotations__.keys() - SelectionOptions.__annotations__.keys()


def path_of(path: Path | str | None) -> Path | None:
    """The path as such."""
    return None if path is None else Path(path)

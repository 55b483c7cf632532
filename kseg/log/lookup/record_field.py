"""One field of one record: the key, the value, or a header's value."""

from typing import NamedTuple

from kseg.errors import KsegError, UsageError
from kseg.kernel.record import Record
from kseg.log.lookup.lookup import Lookup

_HEADER = "header:"


class AbsentError(KsegError):
    """There is no such record or field, or the field is null."""

    status = 1


class RecordField(NamedTuple):
    """A field of records, as `--field` names it. header: a header's name; then `part` is `header`."""

    part: str
    header: str = ""

    def __str__(self) -> str:
        """The name that `parse_field` takes."""
        return f"{_HEADER}{self.header}" if self.part == "header" else self.part


def parse_field(text: str) -> RecordField:
    """The field that is called `key`, `value` or `header:NAME`. Raises UsageError for anything else."""
    if text in ("key", "value"):
        return RecordField(text)
    if text.startswith(_HEADER):
        return RecordField("header", text.removeprefix(_HEADER))
    raise UsageError(f"--field {text!r}: there are key, value and header:NAME")


def record_bytes(answer: Lookup, field: RecordField) -> bytes:
    """The bytes of a field of the record that was found; of headers with the same name the last one's, as Kafka's.

    Raises AbsentError if there is no such record or header, or the field is null.
    """
    if answer.record is None:
        raise AbsentError(f"offset {answer.target} isn't there: {answer.absence_text()}", answer.partition.path)
    try:
        return _field_bytes(answer.record, field)
    except AbsentError as error:
        error.path = str(answer.partition.path)
        raise


def _field_bytes(record: Record, field: RecordField) -> bytes:
    if field.part == "header":
        content = _header_value(record, field)
    else:
        content = record.key if field.part == "key" else record.value
    if content is None:
        raise AbsentError(f"offset {record.offset}: {field} is null")
    return content


def _header_value(record: Record, field: RecordField) -> bytes | None:
    for header in reversed(record.headers):
        if header.key == field.header:
            return header.value
    names = ", ".join(dict.fromkeys(header.key or "null" for header in record.headers))
    raise AbsentError(
        f"offset {record.offset}: there is no header {field.header}; there {f'are {names}' if names else 'is none'}"
    )

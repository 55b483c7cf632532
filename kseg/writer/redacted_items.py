"""Items to build, with keys, values or headers redacted; control records stay."""

from collections.abc import Iterable, Iterator

from kseg.redaction import Redaction, Redactor
from kseg.writer.source_items import SourceBatch, SourceItem, SourceRecord


def redacted_items(items: Iterable[SourceItem], redaction: Redaction) -> Iterator[SourceItem]:
    """The same items with the chosen parts replaced by contents of the same length; in headers, the values."""
    redactor = redaction.redactor()
    for item in items:
        if isinstance(item, SourceRecord):
            yield _redacted(item, redaction, redactor)
        elif isinstance(item, SourceBatch) and not item.header.is_control:
            records = tuple(_redacted(record, redaction, redactor) for record in item.records)
            yield item._replace(records=records)
        else:
            yield item


def _redacted(record: SourceRecord, redaction: Redaction, redactor: Redactor) -> SourceRecord:
    if "keys" in redaction.parts:
        record = record._replace(key=redactor.replace(record.key))
    if "values" in redaction.parts:
        record = record._replace(value=redactor.replace(record.value))
    if "headers" in redaction.parts:
        record = record._replace(headers=tuple((name, redactor.replace(value)) for name, value in record.headers))
    return record

"""Programs of the kernel for the lines of a release."""

from functools import cache

from kseg.kernel.contract import Program, Template
from kseg.layouts import release_lines as logs
from kseg.layouts.template import compile_endings, compile_template, raw_program
from kseg.named_tuple import NamedTuple
from kseg.releases import NEWEST, Release, value_in

DOCUMENTED = Release((2, 1, 1))
"""The release whose record and batch lines the documentation shows, kseg's default."""


class LogOptions(NamedTuple):
    """Kafka's options for the parts of a log to print."""

    deep: bool = False
    print_data: bool = False
    skip_record_metadata: bool = False


def _line(text: str) -> Template:
    return compile_template(text + "\n")


@cache
def release_program(release: Release, options: LogOptions) -> Program:
    """Return the lines of a release's tool."""
    payload = value_in(release, logs.KEY_AND_PAYLOAD) if options.print_data else ""
    messages = value_in(release, logs.MESSAGE_LINES)
    if messages is not None:
        return _message_program(messages, payload, deep=options.deep)
    deep = options.deep or (options.print_data and value_in(release, logs.DEEP_WHEN_PRINTING))
    batches = value_in(release, logs.BATCH_LINES)
    if not deep:
        return _printing(batches, None, "", ())
    records = value_in(release, logs.RECORD_LINES)
    control = logs.control_suffixes(release)
    if options.skip_record_metadata:
        records = logs.Lines("", "")
        payload = value_in(release, logs.KEY_AND_PAYLOAD_ALONE) if options.print_data else ""
        control = ("",) * len(control)
    return _printing(batches if value_in(release, logs.BATCH_LINES_WHEN_DEEP) else None, records, payload, control)


@cache
def documented_program(options: LogOptions) -> Program:
    """Return the documentation's lines, with control records as the latest release names them.

    Unlike in that release, a record's `isvalid` means its batch's CRC, and texts are unchanged.
    """
    return raw_program(_documented_lines(options))


def _documented_lines(options: LogOptions) -> Program:
    if not options.deep:
        return _printing(value_in(DOCUMENTED, logs.BATCH_LINES), None, "", ())
    records = value_in(DOCUMENTED, logs.RECORD_LINES)
    records = records._replace(v2=records.v2.replace("isvalid: true", "isvalid: {isValid}"))
    payload = value_in(NEWEST, logs.KEY_AND_PAYLOAD) if options.print_data else ""
    if options.skip_record_metadata:
        return _printing(None, logs.Lines("", ""), value_in(NEWEST, logs.KEY_AND_PAYLOAD_ALONE), ("",) * 9)
    return _printing(None, records, payload, logs.control_suffixes(NEWEST))


def _message_program(lines: logs.Lines, payload: str, *, deep: bool) -> Program:
    legacy, v2 = _line(lines.legacy + payload), _line(lines.v2 + payload)
    if deep:
        return Program((None, None, None), (legacy, legacy, v2), None)
    return Program((legacy, legacy, v2), (None, None, None), None)


def _printing(
    batches: logs.Lines | None, records: logs.Lines | None, payload: str, control: tuple[str, ...]
) -> Program:
    batch: tuple[Template | None, Template | None, Template | None] = (None, None, None)
    record = batch
    if batches is not None:
        batch = (_line(batches.legacy), _line(batches.legacy), _line(batches.v2))
    if records is None:
        return Program(batch, record, None)
    legacy = _line(records.legacy + payload)
    record = (legacy, legacy, _line(records.v2 + payload))
    return Program(batch, record, compile_endings(records.v2, [f"{suffix}\n" for suffix in control]))

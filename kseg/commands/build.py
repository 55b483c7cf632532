"""`kseg build`: records in, a partition's directory out."""

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from kseg.archive.untouched import check_outside
from kseg.codecs.body import check_level
from kseg.commands.options import redact_options, redaction_of
from kseg.commands.parameters import NewDirectory, Number, int_number, long_number
from kseg.errors import KsegError, OpenError, UsageError
from kseg.formats.codes import CODEC_NAMES, Codec, ControlType, TimestampType
from kseg.index.rebuild import INDEX_INTERVAL_BYTES
from kseg.log.build import BATCH_SIZE, BatchSettings, build_partition
from kseg.log.partition.partition_writer import PartitionSettings
from kseg.log.partition.roll import SEGMENT_BYTES, SEGMENT_INDEX_BYTES, SEGMENT_MS, RollSettings
from kseg.output.stdout import flush_stdout, write_line
from kseg.output.talk import talk
from kseg.output.written import segment_lines
from kseg.system.new_directory import new_directory
from kseg.writer.json_source import read_json_lines
from kseg.writer.source import SourceItem
from kseg.writer.text_source import read_csv, read_text_lines

if TYPE_CHECKING:
    from kseg.redaction import Redaction

_HOUR_MS = 3_600_000
_STDIN = "-"
_LONGEST_LINE = 128 << 20
"""Bytes: far more than a record that Kafka takes; a device may never end a line."""
_ROLL_OPTIONS = ("segment_bytes", "roll_ms", "roll_hours", "index_max_bytes")
_TYPES = {"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}
_COMPRESSION = f"{', '.join(CODEC_NAMES[:-1])} or {CODEC_NAMES[-1]}."
_ENDS = {"commit": ControlType.COMMIT, "abort": ControlType.ABORT}


@click.command()
@click.argument("source", default=_STDIN, type=click.Path())
@click.option("-o", "--output", "directory", required=True, type=NewDirectory(), help="The new directory.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "csv", "text"]),
    default="json",
    show_default=True,
    help="Of SOURCE: JSON lines, CSV with a line of names first, or a value per line.",
)
@click.option("--key-separator", help="With --format text: what stands between key and value.")
@click.option("--magic", type=click.Choice(["0", "1", "2"]), help="Format of the records that come without a batch: 2.")
@click.option("--compression", metavar="CODEC[:LEVEL]", help=_COMPRESSION)
@click.option("--timestamp-type", type=click.Choice(list(_TYPES)), help="Who sets the time: CreateTime.")
@click.option("--timestamp", type=long_number(-1), help="Milliseconds since 1970 for records without a time: now.")
@click.option("--batch-size", type=int_number(1), default=BATCH_SIZE, show_default=True, help="Bytes of a batch.")
@click.option("--batch-records", type=int_number(1), help="Records of a batch at most.")
@click.option("--base-offset", type=long_number(), help="Where the first segment begins: at the first record, or 0.")
@click.option("--leader-epoch", type=int_number(-1), default=0, show_default=True, help="Of the partition's leader.")
@click.option("--producer-id", type=long_number(), help="Batches are those of an idempotent producer.")
@click.option("--epoch", type=Number(0, 32767), default=0, show_default=True, help="The producer's epoch.")
@click.option("--sequence", type=int_number(), default=0, show_default=True, help="Its first sequence.")
@click.option(
    "--transaction",
    type=click.Choice([*_ENDS, "open"]),
    help="Batches are transactional; how the last transaction ends. JSON objects of type commit or abort end others.",
)
@click.option("--coordinator-epoch", type=int_number(-1), default=0, show_default=True, help="In the markers.")
@click.option("--segment-bytes", type=int_number(1), help=f"Roll at this size: {SEGMENT_BYTES}.")
@click.option("--roll-ms", type=long_number(1), help="Roll after this time; before --roll-hours.")
@click.option("--roll-hours", type=int_number(1), help=f"Roll after this time: {SEGMENT_MS // _HOUR_MS}.")
@click.option("--index-max-bytes", type=int_number(12), help=f"Roll at full indexes: {SEGMENT_INDEX_BYTES}.")
@click.option(
    "--index-interval-bytes",
    type=int_number(),
    default=INDEX_INTERVAL_BYTES,
    show_default=True,
    help="Bytes between index entries.",
)
@click.option("--topic-id", help="The topic's id, for partition.metadata: 22 characters.")
@redact_options
@click.option("-q", "--quiet", is_flag=True, help="Don't say what was written.")
def build(source: str, directory: Path, form: str, quiet: bool, **options: Any) -> None:
    """Make a partition's directory of records: no broker needed.

    \b
    Examples:
      seq 1000 | kseg build --format text -o numbers-0
      kseg dump -o json orders-0/ | kseg build --compression zstd:9 -o copy/orders-0
      kseg dump -o json orders-0/ --grep fail --limit 10 | kseg build -o few/orders-0
      kseg dump -o json orders-0/ | kseg build --redact keys --redact values -o shared/orders-0
      kseg build records.jsonl --producer-id 7 --transaction commit -o orders-0

    SOURCE is a file or, as by default, standard input: JSON lines as `kseg dump -o json` prints them, which become the
    same batches again, cut to the records that a selection let through; JSON lines with key, value, timestamp, headers,
    all of which may be missing; CSV; or text. A new segment begins where the source's did or, with an option for it, by
    Kafka's rules. What a line holds that isn't known is an error.
    """
    rolls = any(options[name] is not None for name in _ROLL_OPTIONS)
    batches, partition = _batch_settings(options), _partition_settings(options)
    redaction = redaction_of(options)
    if options["key_separator"] == "":
        raise UsageError("--key-separator is empty: leave it out for values without keys")
    if options["key_separator"] is not None and form != "text":
        raise UsageError("--key-separator is about --format text")
    check_outside(directory, () if source == _STDIN else (source,))
    with _opened(source) as lines, new_directory(directory) as unfinished:
        try:
            built = build_partition(
                _redacted(_reader(form, options["key_separator"])(_read(lines, source)), redaction),
                unfinished,
                base_offset=options["base_offset"],
                batches=batches,
                partition=partition,
                keep_segments=not rolls,
            )
        except KsegError as error:
            if error.path is not None:
                raise
            raise KsegError(error.message, _name(source)) from error
    for note in built.notes:
        talk(f"kseg: {_name(source)}: line {note.line}: {note.text}")
    if not quiet:
        for line in segment_lines(built.segments, directory):
            write_line(line)
    flush_stdout()


def _batch_settings(options: dict[str, Any]) -> BatchSettings:
    codec, level = _compression(options["compression"])
    transaction, producer_id = options["transaction"], options["producer_id"]
    if transaction is not None and producer_id is None:
        raise UsageError("--transaction needs --producer-id")
    is_idempotent = producer_id is not None
    return BatchSettings(
        timestamp=time.time_ns() // 1_000_000 if options["timestamp"] is None else options["timestamp"],
        magic=None if options["magic"] is None else int(options["magic"]),
        codec=codec,
        level=level,
        timestamp_type=_TYPES.get(options["timestamp_type"]),
        batch_size=options["batch_size"],
        batch_records=options["batch_records"] or 2**31 - 1,
        producer_id=producer_id if is_idempotent else -1,
        producer_epoch=options["epoch"] if is_idempotent else -1,
        base_sequence=options["sequence"] if is_idempotent else -1,
        is_transactional=transaction is not None,
        end=_ENDS.get(transaction or ""),
        coordinator_epoch=options["coordinator_epoch"],
        partition_leader_epoch=options["leader_epoch"],
    )


def _compression(text: str | None) -> tuple[Codec | None, int | None]:
    """Codec and level of CODEC[:LEVEL]. Raises UsageError for anything else."""
    if text is None:
        return None, None
    name, _, level = text.partition(":")
    if name.lower() not in CODEC_NAMES:
        raise UsageError(f"--compression: {name!r} is no codec: {', '.join(CODEC_NAMES)}")
    codec = Codec[name.upper()]
    try:
        number = int(level) if level else None
    except ValueError as error:
        raise UsageError(f"--compression: {level!r} is no level") from error
    check_level(codec, number)
    return codec, number


def _partition_settings(options: dict[str, Any]) -> PartitionSettings:
    hours = options["roll_hours"]
    segment_ms = options["roll_ms"] or (hours * _HOUR_MS if hours else SEGMENT_MS)
    topic_id = options["topic_id"]
    if topic_id is not None and not re.fullmatch(r"[A-Za-z0-9_-]{22}", topic_id):
        raise UsageError(f"--topic-id: {topic_id!r} isn't 22 characters of base64url")
    roll = RollSettings(
        options["segment_bytes"] or SEGMENT_BYTES, segment_ms, options["index_max_bytes"] or SEGMENT_INDEX_BYTES
    )
    return PartitionSettings(roll, options["index_interval_bytes"], topic_id)


def _opened(source: str) -> AbstractContextManager[BinaryIO]:
    if source == _STDIN:
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(source).open("rb")
    except OSError as error:
        raise OpenError(f"can't be opened: {error.strerror}", source) from error


def _read(lines: BinaryIO, source: str) -> Iterator[bytes]:
    try:
        for number in count(1):
            line = lines.readline(_LONGEST_LINE + 1)
            if len(line) > _LONGEST_LINE:
                raise OpenError(f"line {number} has more than {_LONGEST_LINE} bytes", _name(source))
            if not line:
                return
            yield line
    except OSError as error:
        raise OpenError(f"can't be read: {error.strerror}", _name(source)) from error


def _name(source: str) -> str:
    return "standard input" if source == _STDIN else source


def _redacted(items: Iterator[SourceItem], redaction: "Redaction | None") -> Iterator[SourceItem]:
    if redaction is None:
        return items
    from kseg.writer.redacted import redacted_items

    return redacted_items(items, redaction)


def _reader(form: str, key_separator: str | None) -> Callable[[Iterable[bytes]], Iterator[SourceItem]]:
    if form == "json":
        return read_json_lines
    return read_csv if form == "csv" else lambda lines: read_text_lines(lines, key_separator)

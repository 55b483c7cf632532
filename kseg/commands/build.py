"""`kseg build`: makes a partition directory from records."""

import re
from pathlib import Path
from typing import NamedTuple

from kseg.codecs.bodies import check_level
from kseg.commands.options.command import RedactOptions, command, is_given
from kseg.errors import UsageError
from kseg.formats.codes import CODEC_NAMES, Codec, ControlType, TimestampType
from kseg.log.segments import RollSettings
from kseg.log.writer import PartitionSettings
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout, write_lines
from kseg.rewrite.build import build_partition
from kseg.store.target import check_outside, new_directory
from kseg.text.salvage import segment_lines
from kseg.times import now_ms, parse_time, parse_zone
from kseg.writer.batches import BatchSettings
from kseg.writer.json_source import STANDARD_INPUT, RecordForm, name_of_input, opened_items

_ROLL_SETTINGS = ("segment_bytes", "segment_ms", "segment_index_bytes")
"""Options that roll segments. Without any of them, segments roll where the source's did."""
_TYPES = {"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}
_ENDS = {"commit": ControlType.COMMIT, "abort": ControlType.ABORT}


class BuildOptions(NamedTuple):
    """Settings of the batches and segments that records become."""

    magic: str | None
    compression: str | None
    timestamp_type: str | None
    timestamp: str | None
    zone: str
    batch_size: int
    batch_records: int | None
    base_offset: int | None
    leader_epoch: int
    producer_id: int | None
    producer_epoch: int
    base_sequence: int
    transaction: str | None
    coordinator_epoch: int
    segment_bytes: int
    segment_ms: int
    segment_index_bytes: int
    index_interval_bytes: int
    topic_id: str | None

    def batch_settings(self) -> BatchSettings:
        """Return the settings of batches. Raises UsageError for options that exclude each other."""
        codec, level = _compression(self.compression)
        producer_id = -1 if self.producer_id is None else self.producer_id
        is_idempotent = self.producer_id is not None
        if self.transaction is not None and not is_idempotent:
            raise UsageError("--transaction needs --producer-id")
        return BatchSettings(
            timestamp=_timestamp(self.timestamp, self.zone),
            magic=None if self.magic is None else int(self.magic),
            codec=codec,
            level=level,
            timestamp_type=None if self.timestamp_type is None else _TYPES[self.timestamp_type],
            batch_size=self.batch_size,
            batch_records=self.batch_records or 2**31 - 1,
            producer_id=producer_id,
            producer_epoch=self.producer_epoch if is_idempotent else -1,
            sequence=self.base_sequence if is_idempotent else -1,
            is_transactional=self.transaction is not None,
            end=_ENDS.get(self.transaction or ""),
            coordinator_epoch=self.coordinator_epoch,
            partition_leader_epoch=self.leader_epoch,
        )

    def partition_settings(self) -> PartitionSettings:
        """Return the settings of segments, and the topic id. Raises UsageError for an invalid id."""
        topic_id = self.topic_id
        if topic_id is not None and not re.fullmatch(r"[A-Za-z0-9_-]{22}", topic_id):
            raise UsageError(f"--topic-id: {topic_id!r} isn't 22 characters of base64url")
        roll = RollSettings(self.segment_bytes, self.segment_ms, self.segment_index_bytes)
        return PartitionSettings(roll, self.index_interval_bytes, topic_id)


def _timestamp(text: str | None, zone: str) -> int:
    if text is None:
        return now_ms()
    return -1 if text == "-1" else parse_time(text, parse_zone(zone))


def _compression(text: str | None) -> tuple[Codec | None, int | None]:
    """Return codec and level of CODEC[:LEVEL]. Raises UsageError for anything else."""
    if text is None:
        return None, None
    name, _, level = text.partition(":")
    if name.lower() not in CODEC_NAMES:
        raise UsageError(f"--compression: {name!r} isn't a codec; specify {', '.join(CODEC_NAMES)}")
    codec = Codec[name.upper()]
    try:
        number = int(level) if level else None
    except ValueError as error:
        raise UsageError(f"--compression: {level!r} isn't a level; specify a number") from error
    check_level(codec, number)
    return codec, number


class SourceOptions(NamedTuple):
    """The form of the source, and the place of the new partition."""

    source: str
    form: str
    key_separator: str | None
    directory: Path
    talk: Talk
    made: BuildOptions
    redacting: RedactOptions


@command(SourceOptions)
def build(options: SourceOptions) -> None:
    """Build a partition directory from records.

    Use `build` to make test data, or to write selected records as a partition that a broker can load. It works
    without a broker.

    \b
    Examples:
      seq 1000 | kseg build --input-format text --to numbers-0
      kseg dump -o json orders-0/ | kseg build --compression zstd:9 --to copy/orders-0
      kseg dump -o json orders-0/ --grep fail --limit 10 | kseg build --to few/orders-0
      kseg dump -o json orders-0/ | kseg build --redact keys --redact values --to shared/orders-0
      kseg build records.jsonl --producer-id 7 --transaction commit --to orders-0

    SOURCE is a file or, by default, standard input. JSON lines from `kseg dump -o json` become the same batches again,
    reduced to the selected records. Other JSON lines have key, value, timestamp and headers, each of them optional. For
    CSV and text, specify --input-format. The first line of a CSV names its columns.

    A key or value that is a JSON object, list, number, true or false is written as compact text. An unknown field in a
    line is an error.

    A segment starts where one did in the source. If you give an option about segments, they follow Kafka's rules
    instead.
    """
    keep_segments = not any(map(is_given, _ROLL_SETTINGS))
    source, made = options.source, options.made
    batches, partition = made.batch_settings(), made.partition_settings()
    directory = options.directory
    input_form = RecordForm(options.form, options.key_separator, options.redacting.redaction())
    if input_form.key_separator == "":
        raise UsageError("--key-separator is empty; omit it for values without keys")
    if input_form.key_separator is not None and options.form != "text":
        raise UsageError("--key-separator needs --input-format text")
    read = () if source == STANDARD_INPUT else (source,)
    check_outside(directory, read)
    with opened_items(source, input_form) as items, new_directory(directory, read) as unfinished:
        built = build_partition(
            items,
            unfinished,
            base_offset=made.base_offset,
            batches=batches,
            partition=partition,
            keep_segments=keep_segments,
        )
    for note in built.notes:
        options.talk.say(f"kseg: {name_of_input(source)}: line {note.line}: {note.text}")
    if not options.talk.is_quiet:
        write_lines(segment_lines(built.segments, directory))
    flush_stdout()

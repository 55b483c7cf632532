"""The options of `kseg build` that say how records become batches and segments, and the settings that they ask for."""

import re
from typing import Any

import click

from kseg.codecs.body import check_level
from kseg.commands.options import Command, zone_option
from kseg.commands.parameters import LARGEST_INT, Number, Size, int_number, is_given, long_number, size_text
from kseg.commands.setting_options import setting_options
from kseg.errors import UsageError
from kseg.formats.codes import CODEC_NAMES, Codec, ControlType, TimestampType
from kseg.log.partition.partition_writer import PartitionSettings
from kseg.log.partition.roll import RollSettings
from kseg.times import now_ms, parse_time, parse_zone
from kseg.writer.builder import BATCH_SIZE, BatchSettings

_ROLL_SETTINGS = ("segment.bytes", "segment.ms", "segment.index.bytes")
_TYPES = {"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}
_COMPRESSION = f"{', '.join(CODEC_NAMES[:-1])} or {CODEC_NAMES[-1]}."
_ENDS = {"commit": ControlType.COMMIT, "abort": ControlType.ABORT}

_OPTIONS = (
    click.option(
        "--magic", type=click.Choice(["0", "1", "2"]), help="Format of the records that come without a batch: 2."
    ),
    click.option("--compression", metavar="CODEC[:LEVEL]", help=_COMPRESSION),
    click.option("--timestamp-type", type=click.Choice(list(_TYPES)), help="Who sets the time: CreateTime."),
    click.option("--timestamp", metavar="TIME", help="Time of records that come without one: now; -1 for none."),
    zone_option,
    click.option(
        "--batch-size",
        type=Size(1, LARGEST_INT),
        default=size_text(BATCH_SIZE),
        show_default=True,
        help="Size of a batch at most, as batch.size.",
    ),
    click.option("--batch-records", type=int_number(1), help="Records of a batch at most."),
    click.option(
        "--base-offset", type=long_number(), help="Where the first segment begins: at the first record, or 0."
    ),
    click.option(
        "--leader-epoch", type=int_number(-1), default=0, show_default=True, help="Of the partition's leader."
    ),
    click.option("--producer-id", type=long_number(), metavar="ID", help="Batches are an idempotent producer's."),
    click.option("--epoch", type=Number(0, 32767), default=0, show_default=True, help="The producer's epoch."),
    click.option("--sequence", type=int_number(), default=0, show_default=True, help="Its first sequence."),
    click.option(
        "--transaction",
        type=click.Choice([*_ENDS, "open"]),
        help="Batches are transactional; how the last transaction ends."
        " JSON objects of type commit or abort end others.",
    ),
    click.option("--coordinator-epoch", type=int_number(-1), default=0, show_default=True, help="In the markers."),
    setting_options(*_ROLL_SETTINGS, "index.interval.bytes"),
    click.option("--topic-id", help="The topic's id, for partition.metadata: 22 characters."),
)


def build_options(command: Command) -> Command:
    """`--magic` … `--topic-id`, which `batch_settings` and `partition_settings` take."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def has_roll_options(command: click.Context) -> bool:
    """Whether an option says when segments roll; else they roll where those of the source did."""
    return any(is_given(command, name.replace(".", "_")) for name in _ROLL_SETTINGS)


def batch_settings(options: dict[str, Any]) -> BatchSettings:
    """How records become batches. Raises UsageError for options that don't go together."""
    codec, level = _compression(options["compression"])
    transaction, producer_id = options["transaction"], options["producer_id"]
    if transaction is not None and producer_id is None:
        raise UsageError("--transaction needs --producer-id")
    is_idempotent = producer_id is not None
    return BatchSettings(
        timestamp=_timestamp(options["timestamp"], options["zone"]),
        magic=None if options["magic"] is None else int(options["magic"]),
        codec=codec,
        level=level,
        timestamp_type=_TYPES.get(options["timestamp_type"]),
        batch_size=options["batch_size"],
        batch_records=options["batch_records"] or 2**31 - 1,
        producer_id=producer_id if is_idempotent else -1,
        producer_epoch=options["epoch"] if is_idempotent else -1,
        sequence=options["sequence"] if is_idempotent else -1,
        is_transactional=transaction is not None,
        end=_ENDS.get(transaction or ""),
        coordinator_epoch=options["coordinator_epoch"],
        partition_leader_epoch=options["leader_epoch"],
    )


def _timestamp(text: str | None, zone: str) -> int:
    if text is None:
        return now_ms()
    return -1 if text == "-1" else parse_time(text, parse_zone(zone))


def _compression(text: str | None) -> tuple[Codec | None, int | None]:
    """Codec and level of CODEC[:LEVEL]. Raises UsageError for anything else."""
    if text is None:
        return None, None
    name, _, level = text.partition(":")
    if name.lower() not in CODEC_NAMES:
        raise UsageError(f"--compression: {name!r} isn't a codec: {', '.join(CODEC_NAMES)}")
    codec = Codec[name.upper()]
    try:
        number = int(level) if level else None
    except ValueError as error:
        raise UsageError(f"--compression: {level!r} isn't a level") from error
    check_level(codec, number)
    return codec, number


def partition_settings(options: dict[str, Any]) -> PartitionSettings:
    """How segments roll, and the topic's id. Raises UsageError if that is none."""
    topic_id = options["topic_id"]
    if topic_id is not None and not re.fullmatch(r"[A-Za-z0-9_-]{22}", topic_id):
        raise UsageError(f"--topic-id: {topic_id!r} isn't 22 characters of base64url")
    roll = RollSettings(options["segment_bytes"], options["segment_ms"], options["segment_index_bytes"])
    return PartitionSettings(roll, options["index_interval_bytes"], topic_id)

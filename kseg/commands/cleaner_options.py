"""The options of `kseg compact` that a broker's cleaner has as settings, and the settings that they ask for."""

from typing import Any

import click

from kseg.commands.options import Command, now_option
from kseg.commands.parameters import int_number, long_number
from kseg.index.rebuild import INDEX_INTERVAL_BYTES
from kseg.log.compact.cleaning_plan import (
    DEDUPE_BUFFER_SIZE,
    DELETE_RETENTION_MS,
    PRODUCER_EXPIRATION_MS,
    CompactSettings,
)
from kseg.log.partition.roll import SEGMENT_BYTES, SEGMENT_INDEX_BYTES
from kseg.times import now_ms, parse_time

_OPTIONS = (
    click.option(
        "--delete-retention-ms",
        type=long_number(),
        default=DELETE_RETENTION_MS,
        show_default=True,
        help="As delete.retention.ms: for how long tombstones and markers stay.",
    ),
    click.option(
        "--min-compaction-lag-ms",
        type=long_number(),
        default=0,
        show_default=True,
        help="As min.compaction.lag.ms: how old records are at least.",
    ),
    click.option(
        "--first-dirty-offset", type=long_number(), help="Clean from here on; else as the cleaner's checkpoint says."
    ),
    now_option,
    click.option(
        "--segment-bytes",
        type=int_number(1),
        default=SEGMENT_BYTES,
        show_default=True,
        help="As segment.bytes: up to here small segments are joined.",
    ),
    click.option(
        "--index-max-bytes",
        type=int_number(12),
        default=SEGMENT_INDEX_BYTES,
        show_default=True,
        help="As segment.index.bytes: likewise for indexes.",
    ),
    click.option(
        "--index-interval-bytes",
        type=int_number(),
        default=INDEX_INTERVAL_BYTES,
        show_default=True,
        help="Bytes between index entries.",
    ),
    click.option(
        "--dedupe-buffer-size",
        type=long_number(48),
        default=DEDUPE_BUFFER_SIZE,
        show_default=True,
        help="As log.cleaner.dedupe.buffer.size: memory of the offset map, 24 bytes a key; more keys take more passes.",
    ),
    click.option(
        "--producer-id-expiration-ms",
        type=long_number(1),
        default=PRODUCER_EXPIRATION_MS,
        show_default=True,
        help="As producer.id.expiration.ms: for how long the last batch of an idle producer is kept.",
    ),
)


def cleaner_options(command: Command) -> Command:
    """`--delete-retention-ms` … `--producer-id-expiration-ms`, which `cleaner_settings` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def cleaner_settings(options: dict[str, Any]) -> CompactSettings:
    """The settings that the options ask for. Raises UsageError for a time that is none."""
    now = options["now"]
    return CompactSettings(
        now_ms=now_ms() if now is None else parse_time(now),
        delete_retention_ms=options["delete_retention_ms"],
        min_compaction_lag_ms=options["min_compaction_lag_ms"],
        first_dirty_offset=options["first_dirty_offset"],
        segment_bytes=options["segment_bytes"],
        segment_index_bytes=options["index_max_bytes"],
        index_interval_bytes=options["index_interval_bytes"],
        dedupe_buffer_size=options["dedupe_buffer_size"],
        producer_expiration_ms=options["producer_id_expiration_ms"],
    )

"""The options of `kseg compact` that a broker's cleaner has as settings, and the settings that they ask for."""

from typing import Any

import click

from kseg.commands.options import Command, now_option, zone_option
from kseg.commands.parameters import long_number
from kseg.commands.setting_options import setting_options
from kseg.log.compact.cleaning_plan import CompactSettings
from kseg.times import now_ms, parse_time, parse_zone

_SETTINGS = (
    "delete.retention.ms",
    "min.compaction.lag.ms",
    "segment.bytes",
    "segment.index.bytes",
    "index.interval.bytes",
    "log.cleaner.dedupe.buffer.size",
    "producer.id.expiration.ms",
)
_FIRST_DIRTY = click.option(
    "--first-dirty-offset", type=long_number(), help="Clean from here on; else as the cleaner's checkpoint says."
)


def cleaner_options(command: Command) -> Command:
    """`--first-dirty-offset` … `--producer-id-expiration-ms`, which `cleaner_settings` takes."""
    return _FIRST_DIRTY(now_option(zone_option(setting_options(*_SETTINGS)(command))))


def cleaner_settings(options: dict[str, Any]) -> CompactSettings:
    """The settings that the options ask for. Raises UsageError for a time that is none."""
    now = options["now"]
    return CompactSettings(
        now_ms=now_ms() if now is None else parse_time(now, parse_zone(options["zone"])),
        delete_retention_ms=options["delete_retention_ms"],
        min_compaction_lag_ms=options["min_compaction_lag_ms"],
        first_dirty_offset=options["first_dirty_offset"],
        segment_bytes=options["segment_bytes"],
        segment_index_bytes=options["segment_index_bytes"],
        index_interval_bytes=options["index_interval_bytes"],
        dedupe_buffer_size=options["log_cleaner_dedupe_buffer_size"],
        producer_expiration_ms=options["producer_id_expiration_ms"],
    )

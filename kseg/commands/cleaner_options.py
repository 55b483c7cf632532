"""The options of `kseg compact` that a broker's cleaner has as settings, and the settings that they ask for."""

from typing import NamedTuple

import click

from kseg.commands.options import Command, now_option, option_values, zone_option
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


class CleanerOptions(NamedTuple):
    """What a broker's cleaner has as settings, from where it cleans, and the time to judge by."""

    first_dirty_offset: int | None
    now: str | None
    zone: str
    delete_retention_ms: int
    min_compaction_lag_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    log_cleaner_dedupe_buffer_size: int
    producer_id_expiration_ms: int

    def settings(self) -> CompactSettings:
        """The settings that the options ask for. Raises UsageError for a time that is none."""
        return CompactSettings(
            now_ms=now_ms() if self.now is None else parse_time(self.now, parse_zone(self.zone)),
            delete_retention_ms=self.delete_retention_ms,
            min_compaction_lag_ms=self.min_compaction_lag_ms,
            first_dirty_offset=self.first_dirty_offset,
            segment_bytes=self.segment_bytes,
            segment_index_bytes=self.segment_index_bytes,
            index_interval_bytes=self.index_interval_bytes,
            dedupe_buffer_size=self.log_cleaner_dedupe_buffer_size,
            producer_expiration_ms=self.producer_id_expiration_ms,
        )


def cleaner_options(command: Command) -> Command:
    """`--first-dirty-offset` … `--producer-id-expiration-ms`; the command gets them as CleanerOptions, `cleaner`."""
    command = option_values(cleaner=CleanerOptions)(command)
    return _FIRST_DIRTY(now_option(zone_option(setting_options(*_SETTINGS)(command))))

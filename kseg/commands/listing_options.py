"""The options of `kseg ls` that a broker has as settings of topics, and how it lists by them."""

from datetime import tzinfo
from typing import NamedTuple

from kseg.commands.options import Command, now_option, option_values
from kseg.commands.setting_options import setting_options
from kseg.log.partition.cleaning import CleaningSettings
from kseg.log.partition.listing import ListingSettings
from kseg.log.partition.roll import RetentionSettings, RollSettings
from kseg.system.page_cache import tells_cache
from kseg.times import now_ms, time_or_none

_SETTINGS = (
    "retention.ms",
    "retention.bytes",
    "segment.bytes",
    "segment.ms",
    "segment.index.bytes",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "log.cleaner.dedupe.buffer.size",
)

OF_TOPICS = (
    "retention_ms",
    "retention_bytes",
    "min_cleanable_dirty_ratio",
    "min_compaction_lag_ms",
    "max_compaction_lag_ms",
)
"""Those options that hold for all topics if they are given, and otherwise unless a topic has its own setting."""


class BrokerSettings(NamedTuple):
    """What a broker has as settings of topics, and the time to judge by."""

    now: str | None
    retention_ms: int
    retention_bytes: int
    segment_bytes: int
    segment_ms: int
    segment_index_bytes: int
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    log_cleaner_dedupe_buffer_size: int

    def listing_settings(self, zone: tzinfo, *, deep: bool, cache: bool, keep_cache: bool) -> ListingSettings:
        """How to list by them; `zone`: of a time without one, the others: as the options of these names ask for."""
        wanted = time_or_none(self.now, zone)
        now = now_ms() if wanted is None else wanted
        return ListingSettings(
            RetentionSettings(now, self.retention_ms, self.retention_bytes),
            RollSettings(self.segment_bytes, self.segment_ms, self.segment_index_bytes),
            deep,
            cache and tells_cache(),
            keep_cache,
            CleaningSettings(
                now,
                self.min_cleanable_dirty_ratio,
                self.min_compaction_lag_ms,
                self.max_compaction_lag_ms,
                self.log_cleaner_dedupe_buffer_size,
            ),
        )


def broker_settings_options(command: Command) -> Command:
    """`--now` … `--log-cleaner-dedupe-buffer-size`; the command gets them as BrokerSettings, `broker`."""
    command = option_values(broker=BrokerSettings)(command)
    return now_option(setting_options(*_SETTINGS)(command))

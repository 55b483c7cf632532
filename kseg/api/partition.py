"""A partition's directory, opened."""

from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

from kseg.api.asked import asked_selection
from kseg.api.directories import Directories
from kseg.api.kseg_warning import warn
from kseg.api.segment import Segment
from kseg.api.short_table import SHOWN_ROWS, ShortTable
from kseg.errors import UsageError
from kseg.formats.names import DirectoryState
from kseg.log.lookup.lookup import Lookup, SpecialTime, look_up, parse_target_time
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.select.record_picker import SelectedLog, logs_of_partition
from kseg.selection import Selection, SelectionOptions, Time
from kseg.times import milliseconds_of, parse_zone


class Partition(Directories):
    """A partition's directory as it was listed when it was opened; its records are read from what is there then."""

    def __init__(self, log: PartitionLog, owner: Directories | None = None) -> None:
        """Takes the listed directory, and what keeps it, if that was opened; `kseg.open` gives one."""
        super().__init__((log.path,))
        self._log = log
        self._owner = owner

    @property
    def path(self) -> Path:
        """The directory."""
        return self._log.path

    @property
    def topic(self) -> str | None:
        """The topic; None if the directory isn't named after one."""
        return self._log.topic

    @property
    def partition(self) -> int | None:
        """The partition's number."""
        return self._log.partition

    @property
    def state(self) -> DirectoryState | None:
        """Whether the directory is being deleted, being moved, or a stray; None if it is in use."""
        return self._log.state

    @property
    def size(self) -> int:
        """Bytes of its logs."""
        return self._log.size

    @property
    def base_offsets(self) -> tuple[int, ...]:
        """The base offsets of its segments."""
        return tuple(self._log.base_offsets)

    def segments(self) -> Iterator[Segment]:
        """Its segments, each open until the next is asked for. Raises OpenError if one can't be opened."""
        for files in self._log.segments:
            with Segment(files.path) as segment:
                yield segment

    def log_start_offset(self) -> int:
        """The first readable offset."""
        return self._log.log_start_offset()

    def log_end_offset(self) -> int:
        """The next offset to be written, after the last readable batch. Raises OpenError if a log can't be opened."""
        return self._log.read_log_end_offset()

    def topic_id(self) -> str | None:
        """The topic's id, of `partition.metadata`; None if there is none. Raises KsegError if it can't be read."""
        return self._log.read_topic_id()

    def leader_epochs(self) -> tuple[tuple[int, int], ...]:
        """Leader epochs and their start offsets, of the checkpoint. Raises KsegError if it can't be read."""
        return self._log.read_leader_epochs() or ()

    def lookup(
        self,
        *,
        offset: int | None = None,
        time: Time | None = None,
        selection: Selection | None = None,
        **options: Unpack[SelectionOptions],
    ) -> Lookup:
        """The record at an offset, or the first one of a time or a later one, and how it was found.

        `time` may also be "earliest", "latest", "max-timestamp". Of a selection, the first selected record from there
        on. Where there is none, the answer's `record` is None, and `absence` says why.

        Raises:
            UsageError: neither or both are given, or there is no such time.
            OpenError: a log can't be opened.
        """
        from kseg.views.remote_tiers import tier_for_lookup

        if (offset is None) == (time is None):
            raise UsageError("lookup: give either offset or time")
        asked = asked_selection(selection, options, has_control=True)
        target = _target(time, options.get("tz", "UTC")) if time is not None else offset
        assert target is not None
        tier = tier_for_lookup(self._log, target) if asked.is_everything else None
        return look_up(self._log, target, asked, is_time=time is not None, tier=tier)

    def _selected(self, selection: Selection) -> Iterator[SelectedLog]:
        yield from logs_of_partition(self._log.as_it_is(), selection, warn)

    def _partition_logs(self) -> list[PartitionLog]:
        return [self._log]

    def _table(self) -> ShortTable:
        segments = self._log.segments
        last = segments[-SHOWN_ROWS:]
        return ShortTable(
            f"Partition {self.path}: {len(segments)} segments, {self.size:,} bytes",
            ("segment", "base offset", "bytes"),
            [(segment.path.name, segment.base_offset, segment.size) for segment in last],
            len(segments),
        )


def _target(time: Time, zone: str) -> int | SpecialTime:
    return (
        parse_target_time(time, parse_zone(zone)) if isinstance(time, str) else milliseconds_of(time, parse_zone(zone))
    )

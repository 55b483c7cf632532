"""Partitions listed one after another, by their topics' settings and with their remote tiers."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from kseg.log.partition.listing import ListingSettings, PartitionListing, list_partition, select_segments
from kseg.log.partition.partition_log import PartitionLog
from kseg.selection import Selection
from kseg.views.metadata_beside import CHEAP_METADATA
from kseg.views.remote_tiers import find_tier
from kseg.views.topic_retention import TopicRetention


class Lister:
    """Lists partitions; found_problems: whether something was wrong with one of those listed so far."""

    def __init__(
        self,
        settings: ListingSettings,
        given: Collection[str],
        selection: Selection,
        note: Callable[[str], None],
    ) -> None:
        """Reads nothing yet.

        Args:
            settings: how to list; their retention holds where the topics' own settings aren't known.
            given: fields of the retention that hold whatever a topic's settings are.
            selection: which records are wanted; unless it is everything, only segments that have such are listed.
            note: takes what the user should know, as it is found.
        """
        self.found_problems = False
        self._settings = settings
        self._selection = selection
        self._note = note
        self._left = selection.limit
        self._topics = TopicRetention(settings.retention, given, CHEAP_METADATA, self._note_unread)

    def listings(
        self, partitions: Iterable[PartitionLog], counting: Callable[[PartitionLog], Callable[[int], None]]
    ) -> Iterator[PartitionListing]:
        """The partitions' listings in their order; `counting` gives what takes the bytes that are read of one."""
        for partition in partitions:
            listing = self._list(partition, counting(partition))
            self.found_problems |= bool(listing.problems)
            for problem in listing.problems:
                self._note(problem)
            if self._selection.is_everything or listing.segments:
                yield listing

    def _list(self, partition: PartitionLog, on_read: Callable[[int], None]) -> PartitionListing:
        own = replace(self._settings, retention=self._topics.of(partition))
        listing = list_partition(partition, own, on_read)
        tier = find_tier(partition, self._topics.beside)
        if tier is not None:
            listing = replace(listing, log_start_offset=tier.log_start_offset, tier=tier)
        if not self._selection.is_everything:
            listing = select_segments(listing, self._selection, self._note, self._left)
            self._left = None if self._left is None else self._left - (listing.selected_records or 0)
        return listing

    def _note_unread(self, path: Path, reason: str) -> None:
        by_hand = "retention goes by options and Kafka's defaults; `kseg retain` reads metadata of any size"
        self._note(f"{path}: not read: {reason}: {by_hand}")

"""Listings of partitions, in order, by their topics' settings and with their remote tiers."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from kseg.cluster.cluster import Cluster
from kseg.cluster.metadata_copy import CHEAP_METADATA, TopicIds
from kseg.cluster.partition_settings import TopicCleaning, TopicRetention, as_the_topic_sets
from kseg.cluster.remote_tier import find_tier
from kseg.cluster.settings import NO_SETTINGS
from kseg.errors import OpenError
from kseg.log.cleaner import CleaningSettings
from kseg.log.listing import ListingSettings, PartitionListing, list_partition
from kseg.log.partition import PartitionLog
from kseg.log.selected_records import selected_sums
from kseg.log.selection import Selection
from kseg.system.shared_work import OnRead, shared_work

T = TypeVar("T")


class Turns:
    """Notes to print in the order of the listings, if the search for partitions runs ahead of them."""

    def __init__(self, note: Callable[[str], None]) -> None:
        """Initialize with the function that receives the notes."""
        self.note = note
        self._pending_notes: list[Callable[[], object]] = []

    def in_turn(self, say: Callable[[T], object]) -> Callable[[T], None]:
        """Return a function that passes notes on when it is their turn."""

        def remember(what: T) -> None:
            self._pending_notes.append(partial(say, what))

        return remember

    def take(self) -> list[Callable[[], object]]:
        """Return the notes since the last call."""
        notes, self._pending_notes = self._pending_notes, []
        return notes


class Lister:
    """Lists partitions. `found_problems` is True if any of them had a problem."""

    def __init__(
        self,
        settings: ListingSettings,
        given: Collection[str],
        selection: Selection,
        turns: Turns,
        cluster: Cluster,
        static: Mapping[str, str] = NO_SETTINGS,
    ) -> None:
        """Read nothing yet.

        Args:
            settings: the depth of listings; its retention, rolling and cleaning apply if the topics' settings aren't
                known.
            given: fields of these that override a topic's settings.
            selection: the wanted records; unless it is everything, only segments with such records are listed.
            turns: takes notes for the user.
            cluster: holds the partitions, and metadata that aren't next to one; not read before it is needed.
            static: settings in the brokers' server.properties.
        """
        self.found_problems = False
        self._cluster = cluster
        self._settings = settings
        self._given = given
        self._selection = selection
        self._left = selection.limit
        self._turns = turns
        self._queued_notes: deque[list[Callable[[], object]]] = deque()
        self._topic_ids = TopicIds(cluster)
        self._topics = TopicRetention(cluster, settings.retention, given, CHEAP_METADATA, self._note_unread, static)
        cleaning = settings.cleaning or CleaningSettings(settings.retention.now_ms)
        self._cleaning = TopicCleaning(cleaning, given, self._topics.beside, self._topics.use)

    def retention_sources(self) -> str | None:
        """Return the source of the listed topics' retention, or None if it wasn't used."""
        return self._topics.sources.as_note()

    def listings(
        self,
        partitions: Iterable[PartitionLog],
        processes: int | None = 1,
        on_read: OnRead | None = None,
        expect: Callable[[int], None] | None = None,
    ) -> Iterator[PartitionListing]:
        """Yield the partitions' listings in their order.

        Args:
            partitions: the partitions to list.
            processes: the number of worker processes, as in `shared_work`; a limit of records needs one after another.
            on_read: takes the bytes of logs that were read since the last call.
            expect: takes the remaining bytes to read.
        """
        count = processes if self._left is None else 1
        work = partial(_list_partition, self._selection)
        with shared_work(
            work,
            self._orders(partitions, expect),
            partial(_cost_of, self._selection),
            processes=count,
            on_read=on_read,
            is_far=self._cluster.is_far,
        ) as results:
            for order, (listing, notes) in results:
                for say in self._queued_notes.popleft():
                    say()
                for note in (*notes, *listing.problems):
                    self._turns.note(note)
                self.found_problems |= bool(listing.problems)
                if self._left is not None:
                    self._left -= listing.selected_records or 0
                if self._selection.is_everything or listing.segments:
                    yield self._complete_listing(order.partition, listing)
        for say in self._turns.take():
            say()

    def _orders(
        self, partitions: Iterable[PartitionLog], expect: Callable[[int], None] | None
    ) -> Iterator["_ListOrder"]:
        own = self._settings
        for partition in partitions:
            if expect is not None:
                expect(partition.size)
            retention, cleaning = self._topics.of(partition), self._cleaning.of(partition)
            found = self._topics.beside.topic_settings(partition)
            roll = as_the_topic_sets(found, self._settings.roll, self._given)
            is_in_use = self._topics.use.has(partition)
            same = retention is own.retention and cleaning is own.cleaning
            if not same or roll != own.roll or is_in_use != own.is_in_use:
                own = replace(own, retention=retention, cleaning=cleaning, roll=roll, is_in_use=is_in_use)
            self._queued_notes.append(self._turns.take())
            yield _ListOrder(partition, own, self._left)

    def _complete_listing(self, partition: PartitionLog, listing: PartitionListing) -> PartitionListing:
        """Return the listing with the cluster's facts about the partition."""
        tier = find_tier(partition, self._topics.beside)
        listing = replace(listing, tier=tier, cluster_id=self._cluster.cluster_of(partition.log_dir))
        is_lost = listing.topic_id is None and partition.state is None
        evidence = self._topic_ids.find_evidence(partition) if is_lost else None
        return listing if evidence is None else replace(listing, topic_id=evidence[0], topic_id_source=evidence[1])

    def _note_unread(self, path: Path, reason: str) -> None:
        by_hand = "retention uses options and Kafka's defaults; run `kseg retain`, which reads metadata of any size"
        self._turns.in_turn(self._turns.note)(f"{path}: not read: {reason}: {by_hand}")


def select_segments(
    listing: PartitionListing, selection: Selection, say: Callable[[str], None], left: int | None
) -> PartitionListing:
    """Return the listing with only the segments that have selected records, and the sums of these.

    Args:
        listing: of a partition.
        selection: the wanted records.
        say: called with untrusted indexes and omissions.
        left: the number of records still wanted; None for all.

    Returns:
        The listing; without segments if a log can't be opened, which its problems report.
    """
    try:
        sums = selected_sums(listing.partition.path, selection, say, left)
    except OpenError as error:
        return replace(listing, segments=(), problems=(*listing.problems, str(error)))
    rows = [row._replace(selected=sums[row.base_offset].row()) for row in listing.segments if row.base_offset in sums]
    return replace(listing, segments=tuple(rows))


class _ListOrder(NamedTuple):
    """A partition to list, by its topic settings; `left`: the number of selected records still wanted."""

    partition: PartitionLog
    settings: ListingSettings
    left: int | None


def _cost_of(selection: Selection, order: _ListOrder) -> int:
    """Return how many bytes of logs have to be read."""
    partition = order.partition
    if order.settings.deep or not selection.is_everything:
        return partition.size
    return sum(each.size for each in partition.segments if each.offset_index is None or not each.offset_index.size)


def _list_partition(
    selection: Selection, order: _ListOrder, on_read: OnRead
) -> Iterator[tuple[PartitionListing, list[str]]]:
    notes: list[str] = []
    listing = list_partition(order.partition, order.settings, on_read)
    if not selection.is_everything:
        listing = select_segments(listing, selection, notes.append, order.left)
    yield listing, notes

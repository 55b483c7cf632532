"""A check-up of directories: findings ordered by severity, suspect clocks, and full disks."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, tzinfo
from pathlib import Path

from kseg.cluster.directories import pass_over
from kseg.cluster.metadata_copy import CHEAP_METADATA
from kseg.cluster.now import Now
from kseg.cluster.schemas_topic import find_topic
from kseg.cluster.settings import SettingSource
from kseg.coordinators.groups import read_groups_in
from kseg.coordinators.members import OffsetCommit, beyond_end_sentence, commits_beyond_end
from kseg.coordinators.transactions import FindingsJudge
from kseg.doctor.examination import CheckUp, Disk, Examined, TopicUse, Trouble, badness
from kseg.doctor.kinds import (
    AHEAD_MS,
    CARE,
    COMMIT_BEYOND_END,
    MICROSECONDS,
    NANOSECONDS,
    SECONDS,
    Author,
    Place,
    SuspectTimes,
    command_line,
    unit_of,
)
from kseg.errors import OpenError, plural
from kseg.findings.findings import Finding
from kseg.formats.file_names import SUFFIXES, parse_file_name, parse_partition_directory
from kseg.log.listing import PartitionListing
from kseg.log.partition import COMPACTED_TOPICS, METADATA_TOPIC, OFFSETS_TOPIC
from kseg.log.segment_listing import SegmentListing
from kseg.log.segments import Retention
from kseg.sizes import human_size
from kseg.system.placed_path import PlacedPath
from kseg.times import duration_text, time_text
from kseg.verify.start_effects import StartForecast, effects_on_node
from kseg.verify.verify import VerificationPlan, Verified, verify_log_dirs

_IN_UNIT = {
    SECONDS: ("seconds", 1000, 1),
    MICROSECONDS: ("microseconds", 1, 1000),
    NANOSECONDS: ("nanoseconds", 1, 10**6),
}
_LAST_YEAR_MS = 253_402_300_799_999


def suspect_sentence(suspect: SuspectTimes, zone: tzinfo = UTC) -> str:
    """Return the author, the kind and the first offset of suspect timestamps."""
    who = _author(suspect.author)
    first, last = suspect.first_offset, suspect.last_offset
    offsets = f"offset {first}" if first == last else f"offsets {first} to {last}"
    batches = "" if suspect.batches is None else f", {plural(suspect.batches, 'batch', 'batches')}"
    return f"{who}: {offsets}{batches}: timestamps up to {suspect.largest}, {_reading(suspect, zone)}"


def _author(author: Author) -> str:
    if author.is_broker:
        return "the broker's own clock"
    if author.producer_id is None:
        return "unknown producers"
    return "a producer without id" if author.producer_id < 0 else f"producer {author.producer_id}"


def _reading(suspect: SuspectTimes, zone: tzinfo) -> str:
    """Return the largest timestamp as Kafka reads it, and as it seems to be meant."""
    taken = time_or_year(suspect.largest, zone)
    unit = _IN_UNIT.get(suspect.id)
    if unit is None:
        return taken
    name, factor, divisor = unit
    return f"read as {taken}; in {name} {time_or_year(suspect.largest * factor // divisor, zone)}"


def time_or_year(timestamp: int, zone: tzinfo = UTC) -> str:
    """Return a time; after the year 9999, only about the year."""
    if timestamp <= _LAST_YEAR_MS:
        return time_text(timestamp, zone, "none")
    return f"the year {1970 + timestamp // 31_556_952_000}"


def find_pinned(found: Examined) -> tuple[SegmentListing, ...]:
    """Return the segments that retention by time keeps because of a future timestamp: that segment and all after it.

    None where retention by time doesn't apply, or is unknown.
    """
    if found.listing is None or not _has_age(found):
        return ()
    latest = found.judged_ms + AHEAD_MS
    rows = found.listing.segments
    first = next((place for place, row in enumerate(rows) if row.largest_timestamp > latest), len(rows))
    return rows[first:]


def expired_by_seconds(found: Examined) -> tuple[SegmentListing, ...]:
    """Return the segments that retention by time would delete now because all their timestamps are seconds."""
    rows = () if found.listing is None else found.listing.segments
    return tuple(
        row
        for row in rows
        if row.retention is Retention.DELETE_TIME and unit_of(row.largest_timestamp, found.judged_ms) == SECONDS
    )


def _has_age(found: Examined) -> bool:
    listing = found.listing
    if listing is None or not found.is_in_use or listing.topic in (*COMPACTED_TOPICS, METADATA_TOPIC):
        return False
    return found.retention.retention_ms >= 0 and not found.retention.is_policy_unknown


def effect(found: Examined, suspect: SuspectTimes, zone: tzinfo = UTC) -> tuple[str, int | None]:
    """Return the effect of these timestamps in words, and the bytes concerned, or None if none are known."""
    listing = found.listing
    assert listing is not None
    if suspect.id == SECONDS:
        return _effect_of_seconds(found)
    if found.retention.is_policy_unknown:
        return "the topic is compacted, so retention by time may not apply", None
    if not _has_age(found):
        return "retention by time doesn't apply here; lookups by time go wrong", None
    rows = find_pinned(found)
    if not rows:
        return "", None
    size = sum(row.size for row in rows)
    until = max(row.largest_timestamp for row in rows) + found.retention.retention_ms
    return f"retention by time keeps {_segments(rows, listing)} until {time_or_year(until, zone)}, {_rule(found)}", size


def _effect_of_seconds(found: Examined) -> tuple[str, int | None]:
    rows = expired_by_seconds(found)
    if not rows or found.listing is None:
        return "lookups by time miss the records", None
    size = sum(row.size for row in rows)
    return f"retention by time deletes {_segments(rows, found.listing)} at once, {_rule(found)}", size


def _segments(rows: tuple[SegmentListing, ...], listing: PartitionListing) -> str:
    count, total = len(rows), len(listing.segments)
    of = f" of {total}" if total > count else ""
    return f"{count}{of} segment{'' if total == 1 else 's'} from {rows[0].base_offset:020} on"


def _rule(found: Examined) -> str:
    """Return the retention, and its source."""
    kept = duration_text(found.retention.retention_ms)
    return f"by {_RETENTION_OF[found.time_source]} of {kept}"


_RETENTION_OF = {
    SettingSource.TOPIC: "the topic's retention",
    SettingSource.BROKER: "the broker's default retention",
    SettingSource.ALL_BROKERS: "the cluster's default retention",
    SettingSource.STATIC: "the default retention in server.properties",
    SettingSource.DEFAULT: "Kafka's default retention",
}


_NEARLY_FULL, _FREE_ENOUGH = 20, 10
"""Less than a 20th of the bytes is free; a 10th is enough."""


def disks_of(log_dirs: Iterable[Path]) -> tuple[Disk, ...]:
    """Return the file systems of log directories, the fullest first; of those with a known size."""
    homes: dict[int, list[Path]] = {}
    sizes: dict[int, tuple[int, int]] = {}
    for log_dir in log_dirs:
        try:
            device, status = log_dir.stat().st_dev, os.statvfs(log_dir)
        except (OSError, AttributeError):
            continue  # deleted meanwhile, or the system doesn't report it
        homes.setdefault(device, []).append(log_dir)
        usable = status.f_blocks - status.f_bfree + status.f_bavail  # without root's reserve, as in `df`
        sizes[device] = usable * status.f_frsize, status.f_bavail * status.f_frsize
    disks = [Disk(tuple(homes[device]), size, available) for device, (size, available) in sizes.items() if size]
    return tuple(sorted(disks, key=lambda disk: disk.available / disk.size))


def disk_troubles(disks: Iterable[Disk]) -> Iterator[Trouble]:
    """Yield the full or nearly full file systems; `size`: bytes to free on them."""
    for disk in disks:
        if disk.available * _NEARLY_FULL >= disk.size:
            continue
        name = "disk-nearly-full" if disk.available else "disk-full"
        sentence = f"{human_size(disk.available)} of {human_size(disk.size)} is free"
        yield Trouble(name, disk.log_dirs[0], sentence, size=disk.size // _FREE_ENOUGH - disk.available)


_WAITING = frozenset({"hanging-transaction", "long-transaction", "open-transaction"})


class CheckUpInWork:
    """A check-up of partitions as they are examined; gives the results so far at any time."""

    def __init__(self, plan: VerificationPlan, *, now: Now, is_quick: bool, zone: tzinfo = UTC) -> None:
        """Take the plan's log directories and their disks.

        `now`, `is_quick`: of the examination; `zone`: of times in sentences.
        """
        if is_quick:
            plan = replace(plan, largest_metadata=CHEAP_METADATA)
        self._zone = zone
        self._is_quick = is_quick
        self._plan = plan
        self._now = now
        self._judge = FindingsJudge(plan, now.given_ms)
        self._log_dirs = tuple(log_dir.path for log_dir in plan.log_dirs)
        self._homes = self._log_dirs or tuple(dict.fromkeys(order.path.absolute().parent for order in plan.orders))
        self._troubles: list[Trouble] = []
        self._topics: dict[str, TopicUse] = {}
        self._counted_partitions: set[tuple[str | None, str, int | None]] = set()
        self._due: dict[tuple[Path, SettingSource], _DueSegments] = {}
        self._clock_behind: tuple[int, int, Path] | None = None
        self._partitions = self._size = self._read = 0
        self._forecast = StartForecast(plan.cluster, plan.choice)
        self.disks = disks_of(home for home in self._homes if not isinstance(home, PlacedPath))
        for trouble in disk_troubles(self.disks):
            self._add(trouble)
            self._forecast.take(effects_on_node([Finding(trouble.id, trouble.file, trouble.sentence)]))
        for verified in verify_log_dirs(plan):
            self._take_findings(verified, None)

    def take(self, found: Examined) -> None:
        """Add a partition."""
        self._partitions += 1
        self._read += found.verified.size
        verified = self._judge.judge(found.verified)
        self._take_findings(verified, found.listing)
        if found.listing is None:
            return
        self._take_use(found, found.listing)
        for suspect in found.suspects:
            self._take_suspect(found, found.listing, suspect)
        if found.newest_ms == found.judged_ms:
            self._take_newest(found)
        partition = found.listing.partition
        if not partition.has_content and partition.state is None and not verified.findings:
            self._add(Trouble("empty-directory", partition.path, "it contains no log files"), found.listing)

    def take_commits(self) -> None:
        """Compare the groups' commits with the ends of logs, unless it is quick: their topic is read again."""
        if self._is_quick:
            return
        for place, commit in _beyond_end(self._plan):
            sentence = beyond_end_sentence(commit)
            self._add(Trouble(COMMIT_BEYOND_END, place, sentence, topic=commit.topic, partition=commit.partition))

    def result(self) -> CheckUp:
        """Return all results so far."""
        ends = [*self._due_troubles(), *self._clock_troubles()]
        troubles = sorted([*self._troubles, *map(self._with_command, ends)], key=badness)
        topics = sorted(self._topics.values(), key=lambda use: (-use.size, use.topic))
        return CheckUp(
            troubles=tuple(troubles),
            disks=self.disks,
            topics=tuple(topics),
            partitions=self._partitions,
            size=self._size,
            read=self._read,
            is_quick=self._is_quick,
            now=self._now,
            forecast=self._forecast,
        )

    # --- findings ----------------------------------------------------------------------------------------------------

    def _take_findings(self, verified: Verified, listing: PartitionListing | None) -> None:
        self._forecast.take(verified.effects)
        for finding in verified.findings:
            self._add(_of_finding(finding, listing), listing)

    def _add(self, trouble: Trouble, listing: PartitionListing | None = None) -> None:
        self._troubles.append(self._with_command(trouble, listing))

    def _with_command(self, trouble: Trouble, listing: PartitionListing | None = None) -> Trouble:
        partition = None if listing is None else listing.partition
        words = CARE[trouble.id](
            Place(
                id=trouble.id,
                file=trouble.file,
                directory=None if partition is None else partition.path,
                log_dirs=self._log_dirs,
                topic=None if partition is None else partition.topic,
                producer_id=trouble.producer_id,
                first_offset=trouble.first_offset,
                last_offset=trouble.last_offset,
                size=trouble.size,
                has_log=partition is None or bool(partition.segments),
            )
        )
        if words is not None:
            trouble = replace(trouble, command=command_line(words), words=tuple(words))
        if partition is None:
            named = parse_partition_directory(trouble.file) or parse_partition_directory(trouble.file.parent)
            if named is None or trouble.topic is not None:
                return trouble
            return replace(trouble, topic=named.topic, partition=named.partition)
        return replace(trouble, topic=partition.topic, partition=partition.partition, directory=partition.path)

    # --- times and sizes ---------------------------------------------------------------------------------------------

    def _take_suspect(self, found: Examined, listing: PartitionListing, suspect: SuspectTimes) -> None:
        does, size = effect(found, suspect, self._zone)
        self._add(
            Trouble(
                id=suspect.id,
                file=suspect.file,
                sentence=suspect_sentence(suspect, self._zone) + (f"; {does}" if does else ""),
                position=suspect.position,
                first_offset=suspect.first_offset,
                last_offset=suspect.last_offset,
                producer_id=suspect.author.producer_id,
                size=size,
            ),
            listing,
        )

    def _take_use(self, found: Examined, listing: PartitionListing) -> None:
        self._size += listing.size
        use = self._topics.setdefault(listing.topic, TopicUse(listing.topic))
        use.partitions += 1
        use.segments += len(listing.segments)
        use.size += listing.size
        number = listing.partition.partition
        if not found.is_in_use:
            use.set_aside += 1
            use.not_in_use += listing.size
            return
        place = self._plan.cluster.cluster_of(listing.partition.log_dir), listing.topic, number
        use.copies += place in self._counted_partitions
        self._counted_partitions.add(place)
        for row in listing.segments:
            if row.retention is None or not row.retention.is_deletion:
                continue
            use.due += row.size
            source = found.time_source if row.retention is Retention.DELETE_TIME else SettingSource.TOPIC
            home = listing.partition.path if not self._log_dirs else listing.partition.path.parent
            self._due.setdefault((home, source), _DueSegments()).add(listing.topic, row.size)

    def _due_troubles(self) -> Iterator[Trouble]:
        for (home, source), due in self._due.items():
            yield Trouble("retention-due", home, due.sentence(source), size=due.size)

    def _take_newest(self, found: Examined) -> None:
        """Note a partition whose newest file has a later time than this machine's."""
        if found.newest_ms > found.began_ms + AHEAD_MS and (
            self._clock_behind is None or found.newest_ms > self._clock_behind[0]
        ):
            self._clock_behind = found.newest_ms, found.began_ms, found.verified.path

    def _clock_troubles(self) -> Iterator[Trouble]:
        if self._clock_behind is not None:
            newest, clock, path = self._clock_behind
            sentence = (
                f"written at {time_or_year(newest, self._zone)}, but this machine's clock says"
                f" {time_or_year(clock, self._zone)}"
            )
            yield Trouble("clock-behind", path, sentence)


def _beyond_end(plan: VerificationPlan) -> Iterator[tuple[Path, OffsetCommit]]:
    """Yield the chosen commits beyond the ends of logs, each with its directory, of each cluster found."""
    if not any(order.path.name.startswith(f"{OFFSETS_TOPIC}-") for order in plan.orders):
        return
    by_cluster: dict[str | None, list[Path]] = {}
    for path in plan.cluster.metadata_dirs():
        by_cluster.setdefault(plan.cluster.cluster_of(path), []).append(path)
    for paths in by_cluster.values():
        with suppress(OpenError):
            places = find_topic(paths, OFFSETS_TOPIC, pass_over)
            directories = {place.partition: place.path for place in places.partitions}
            for group in read_groups_in(places).groups:
                for commit in commits_beyond_end((group,)):
                    if plan.choice.takes(commit.topic, commit.partition):
                        yield directories[group.coordinator_partition], commit


class _DueSegments:
    """The segments that retention would delete in a log directory."""

    def __init__(self) -> None:
        self.size = 0
        self._segments: Counter[str] = Counter()

    def add(self, topic: str, size: int) -> None:
        self.size += size
        self._segments[topic] += 1

    def sentence(self, source: SettingSource) -> str:
        """Return the size, the number of topics, and the rule; source: of the retention."""
        segments, topics = plural(self._segments.total(), "segment"), plural(len(self._segments), "topic")
        is_one = self._segments.total() == 1
        what = f"{segments} of {topics} ({human_size(self.size)}) {'is' if is_one else 'are'}"
        match source:
            case SettingSource.TOPIC:
                whose = "its topic's" if is_one else "their topics'"
                return f"{what} past {whose} retention or below the log start offset"
            case SettingSource.DEFAULT:
                return f"{what} older than Kafka's default retention; the topics' own settings are unknown"
            case _:
                return f"{what} older than {_RETENTION_OF[source]}"


def _abandoned_records(finding: Finding) -> int | None:
    """Return the most records of a lineage that the cluster abandoned, or None for other findings, or if unknown."""
    first, last = finding.first_offset, finding.last_offset
    return last - first + 1 if finding.id == "copies-diverged" and first is not None and last is not None else None


def _of_finding(finding: Finding, listing: PartitionListing | None) -> Trouble:
    size, variant, held_back, sentence = None, None, None, finding.sentence
    if listing is not None and finding.id == "leftover-directory":
        size, variant = listing.size, f"-{listing.partition.state}"
    elif listing is not None and finding.id == "leftover-file":
        sizes = {file.path: file.size for file in listing.partition.leftovers}
        size, variant = sizes.get(finding.file), parse_file_name(finding.file).suffix
        assert variant in SUFFIXES
    elif listing is not None and finding.id in _WAITING and finding.first_offset is not None:
        held_back = max(listing.log_end_offset - max(finding.first_offset, listing.log_start_offset), 0)
        if finding.first_offset < listing.log_start_offset:
            sentence += f"; the log starts at offset {listing.log_start_offset}"
    return Trouble(
        id=finding.id,
        file=finding.file,
        sentence=sentence,
        position=finding.position,
        first_offset=finding.first_offset,
        last_offset=finding.last_offset,
        size=size,
        held_back=held_back,
        variant=variant,
        records=_abandoned_records(finding),
    )

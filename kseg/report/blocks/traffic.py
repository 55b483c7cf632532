"""Blocks of a report about rates, segments over time, timestamps and forecasts."""

from bisect import bisect_right
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta

from kseg.cluster.settings import SettingSource
from kseg.doctor.kinds import AHEAD_MS, SuspectTimes
from kseg.errors import plural
from kseg.kernel.statistics_contract import HOUR_MS, WEEK_HOURS, Measure
from kseg.log.segments import Retention, RollReason
from kseg.report.block import (
    Block,
    Cell,
    CellColumn,
    CellKind,
    Figure,
    Sentence,
    Table,
    Weight,
    line_of,
    partition_line,
    topic_line,
)
from kseg.report.blocks.batches import histogram_figure
from kseg.report.charts import Lane, Series, Span, steps, timeline, week_map
from kseg.report.gather import FIRST_TIME, PartitionFacts, ReportFacts, TopicFacts
from kseg.report.sums import (
    DAY_MS,
    TimeStretch,
    TimeSums,
    age_text,
    axis_size,
    count_text,
    moment_text,
    rate_text,
    share_text,
)
from kseg.rewrite.compact import Retained
from kseg.sizes import human_size

_MOST_POINTS = 300
_SILENT_MS = 7 * DAY_MS
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_RATE_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("batches", "Batches", CellKind.COUNT),
    CellColumn("bytes", "Bytes", CellKind.SIZE),
    CellColumn("firstTime", "First timestamp", CellKind.TIME),
    CellColumn("lastTime", "Last timestamp", CellKind.TIME),
    CellColumn("meanRate", "Bytes per second", CellKind.SIZE),
    CellColumn("peakRate", "Peak", CellKind.SIZE),
    CellColumn("peakTime", "From", CellKind.TIME),
    CellColumn("peakMs", "For", CellKind.DURATION),
)
_TIME_COLUMNS = (
    CellColumn("time", "From", CellKind.TIME),
    CellColumn("bytes", "Bytes", CellKind.SIZE),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("batches", "Batches", CellKind.COUNT),
)
_WEEK_COLUMNS = (
    CellColumn("day", "Day"),
    CellColumn("hour", "Hour", CellKind.COUNT),
    CellColumn("bytes", "Bytes", CellKind.SIZE),
    CellColumn("records", "Records", CellKind.COUNT),
)


def rate_block(known: ReportFacts) -> Block:
    """Return the block about writes, by the timestamps of the remaining batches."""
    times = known.all.times.at_most(_MOST_POINTS)
    stretches = list(times.stretches())
    rows = tuple(_rate_row(topic) for topic in known.by_size if topic.sums.times.sums)
    if not rows:
        return Block("rate", "Produce rate", notes=("No batch has a plausible timestamp.",))
    week = _week(known)
    notes = (
        "By the largest timestamp of each batch in the logs. Batches that retention or compaction removed aren't"
        f" counted. Bars of {age_text(times.step)}.",
        (
            f"Hours of the week are in {known.choices.zone} with its current offset, without changes for daylight"
            " saving time."
        ),
    )
    tables = (
        Table("rates", "By topic", _RATE_COLUMNS, rows),
        Table(
            "times",
            "Over time",
            _TIME_COLUMNS,
            tuple((one.start, one.size, one.records, one.batches) for one in stretches),
        ),
        Table(
            "week",
            "By the hour of the week",
            _WEEK_COLUMNS,
            tuple((*_hour(place), *one) for place, one in enumerate(week)),
        ),
    )
    return Block("rate", "Produce rate", tuple(_peaks(known)), tuple(_rates(known, times, week)), tables, notes)


def _rates(known: ReportFacts, times: TimeSums, week: list[tuple[int, int]]) -> list[Figure]:
    points = _points(list(times.stretches()), times.step)
    title, text = "Bytes per second over time", axis_size
    figures = [Figure(title, steps(title, [Series("bytes per second", points)], text, known.choices.zone, base=1024))]
    title = "Bytes by the hour of the week"
    return [*figures, Figure(title, week_map(title, [size for size, _ in week], text))]


def _points(stretches: list[TimeStretch], step: int) -> list[tuple[int, float]]:
    """Return rates, zero for stretches without writes."""
    points: list[tuple[int, float]] = []
    for one in stretches:
        if points and points[-1][0] < one.start:
            points.append((points[-1][0], 0.0))
        if points and points[-1][0] == one.start:
            points.pop()
        points += [(one.start, 1000 * one.size / step), (one.start + step, 0.0)]
    return points


def _week(known: ReportFacts) -> list[tuple[int, int]]:
    """Return bytes and records of each hour of the week, Monday's first, in the requested zone."""
    now = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=min(known.choices.now_ms, 32_503_680_000_000))
    offset = now.astimezone(known.choices.zone).utcoffset() or timedelta()
    ahead = round(offset.total_seconds() * 1000 / HOUR_MS)
    hours = [(known.all.week[2 * hour + 1], known.all.week[2 * hour]) for hour in range(WEEK_HOURS)]
    return [hours[(hour - ahead) % WEEK_HOURS] for hour in range(WEEK_HOURS)]


def _hour(place: int) -> tuple[str, int]:
    return _DAYS[place // 24], place % 24


def _rate_row(topic: TopicFacts) -> tuple[str | int | float | None, ...]:
    times = topic.sums.times
    stretches = list(times.stretches())
    peak = max(stretches, key=lambda one: (one.size, -one.start))
    span = stretches[-1].start + times.step - stretches[0].start
    size = sum(one.size for one in stretches)
    return (
        topic.name,
        topic.sums["records"],
        topic.sums["batches"],
        topic.sums["size"],
        stretches[0].start,
        topic.sums.largest_timestamp,
        round(1000 * size / span),
        round(1000 * peak.size / times.step),
        peak.start,
        times.step,
    )


def _peaks(known: ReportFacts) -> list[Sentence]:
    now, zone, times = known.choices.now_ms, known.choices.zone, known.all.times
    stretches = list(times.stretches())
    peak = max(stretches, key=lambda one: (one.size, -one.start))
    sentence = (
        f"Peak: {rate_text(peak.size, times.step)} from {moment_text(peak.start, zone)} on, for {age_text(times.step)}."
    )
    verdicts = [Sentence(sentence)]
    silent = [
        topic
        for topic in known.by_size
        if topic.sums["records"]
        and 0 <= topic.sums.largest_timestamp < now - _SILENT_MS
        and not topic.name.startswith("__")
    ]
    if silent:
        first = silent[0]
        names = ", ".join(topic.name for topic in silent[:3]) + (
            f" and {len(silent) - 3} more" if len(silent) > 3 else ""
        )
        since = moment_text(first.sums.largest_timestamp, zone)
        size = human_size(sum(topic.disk_size for topic in silent))
        sentence = f"No new records for a week in {names} ({size}); in {first.name} since {since}."
        verdicts.append(Sentence(sentence, topic_line(first, "ls")))
    return verdicts


KEPT, DUE, COMPACTED, ACTIVE, PINNED = range(5)
_NAMES = ("kept", "due", "compacted", "active", "pinned")
_MOST_LANES, _MOST_SPANS = 24, 120
_TIMELINE_COLUMNS = (
    CellColumn("directory", "Partition"),
    CellColumn("baseOffset", "Base offset", CellKind.COUNT),
    CellColumn("bytes", "Log", CellKind.SIZE),
    CellColumn("firstTime", "First timestamp", CellKind.TIME),
    CellColumn("largestTime", "Largest timestamp", CellKind.TIME),
    CellColumn("rolled", "Rolled by"),
    CellColumn("retention", "Retention"),
    CellColumn("expires", "Expires", CellKind.TIME),
)
_ROLL_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("segments", "Segments", CellKind.COUNT),
    CellColumn("bySize", "By size", CellKind.COUNT),
    CellColumn("byTime", "By time", CellKind.COUNT),
    CellColumn("byFullIndex", "By full index", CellKind.COUNT),
    CellColumn("byOffsets", "By offsets", CellKind.COUNT),
    CellColumn("byOther", "By other causes", CellKind.COUNT),
    CellColumn("median", "Median closed segment", CellKind.SIZE),
)
_REASONS = ("size", "time", "index-full", "offset-range", "unknown")


def timelines_block(known: ReportFacts) -> Block:
    """Return the block about the segments of the largest partitions, and the reasons for their rolls."""
    partitions = sorted(known.in_use, key=lambda each: (-each.size, each.name))
    rows = tuple(_timeline_row(each, retained) for each in partitions for retained in each.retained)
    lanes = [lane for each in partitions[:_MOST_LANES] if (lane := _lane(known, each)) is not None]
    figures: tuple[Figure, ...] = ()
    if lanes:
        title = "Segments of the largest partitions over time"
        now, zone = known.choices.now_ms, known.choices.zone
        figures = (Figure(title, timeline(title, lanes, now, _NAMES, zone)),)
    tables = (
        Table("rolls", "Why segments were rolled", _ROLL_COLUMNS, _roll_rows(known)),
        Table("segments", "Segments", _TIMELINE_COLUMNS, rows),
    )
    notes = (
        "A bar spans a segment's timestamps, from the first to the largest. The dashed line is now. Pinned: old"
        " enough to be deleted, but kept by an earlier segment with a later timestamp, or by its own timestamp in the"
        " future.",
        "kseg infers the cause of a roll from the segment's size, timestamps and indexes, and the topic's settings."
        " If these are unknown, it uses Kafka's defaults. Other causes: a new leader, a restart, an administrator, or"
        " compaction.",
    )
    return Block(
        "timelines", "Segments over time", tuple(_roll_verdicts(known)), figures, tables if rows else (), notes
    )


def kind_of(known: ReportFacts, partition: PartitionFacts, retained: Retained) -> int:
    """Return the number of a segment's kind on the timeline: its future."""
    segment, now = retained.segment, known.choices.now_ms
    if segment.base_offset == partition.retained[-1].segment.base_offset:
        return ACTIVE
    if not retained.is_kept:
        return DUE
    if segment.retention is Retention.COMPACTED or partition.cleaning is not None:
        return COMPACTED
    is_old = partition.retention.retention_ms >= 0 and segment.age_timestamp + partition.retention.retention_ms < now
    return PINNED if is_old or segment.largest_timestamp > now + AHEAD_MS else KEPT


def _lane(known: ReportFacts, partition: PartitionFacts) -> Lane | None:
    spans = []
    now = known.choices.now_ms
    for retained in partition.retained:
        segment = retained.segment
        first = segment.first_timestamp if segment.first_timestamp >= FIRST_TIME else segment.largest_timestamp
        if not segment.size or first < FIRST_TIME:
            continue
        last = min(max(segment.largest_timestamp, first), now)
        title = f"{partition.name} from offset {segment.base_offset}: {human_size(segment.size)}, {segment.rolled}"
        spans.append(Span(min(first, now), last, kind_of(known, partition, retained), title))
    return Lane(partition.name, tuple(spans[-_MOST_SPANS:])) if spans else None


def _timeline_row(partition: PartitionFacts, retained: Retained) -> tuple[str | int | float | None, ...]:
    segment = retained.segment
    return (
        partition.name,
        segment.base_offset,
        segment.size,
        _time(segment.first_timestamp),
        _time(segment.largest_timestamp),
        "another cause" if segment.rolled is RollReason.UNKNOWN else str(segment.rolled),
        None if segment.retention is None else str(segment.retention),
        retained.expires_ms,
    )


def _time(timestamp: int) -> int | None:
    return timestamp if timestamp >= 0 else None


def _roll_rows(known: ReportFacts) -> tuple[tuple[str | int | float | None, ...], ...]:
    rows = []
    for topic in known.by_size:
        segments = [segment for each in topic.partitions for segment in each.segments]
        reasons = Counter(str(segment.rolled) for segment in segments)
        closed = sorted(segment.size for segment in segments if str(segment.rolled) != "active")
        median = closed[len(closed) // 2] if closed else None
        rows.append((topic.name, len(segments), *(reasons[reason] for reason in _REASONS), median))
    return tuple(rows)


def _roll_verdicts(known: ReportFacts) -> list[Sentence]:
    verdicts = []
    for each in known.in_use:
        pinned = [one for one in each.retained if kind_of(known, each, one) == PINNED]
        if pinned:
            size = sum(one.segment.size for one in pinned)
            latest = max(one.segment.largest_timestamp for one in pinned)
            until = moment_text(max(one.expires_ms or latest for one in pinned), known.choices.zone)
            sentence = (
                f"{each.name}: {plural(len(pinned), 'segment')}, {human_size(size)}, can't be deleted before"
                f" {until}: a record with timestamp {moment_text(latest, known.choices.zone)} keeps them."
            )
            verdicts.append((size, Sentence(sentence, partition_line(each, "retain"), Weight.WATCH)))
    verdicts.sort(key=lambda pair: -pair[0])
    due = [one.segment.size for each in known.in_use for one in each.retained if not one.is_kept]
    shown = [verdict for _, verdict in verdicts[:3]]
    if due:
        verb = "is" if len(due) == 1 else "are"
        sentence = f"{plural(len(due), 'segment')}, {human_size(sum(due))}, {verb} due for deletion now."
        shown.append(Sentence(sentence, line_of(known, "retain")))
    return shown


_LATE_SHARE, _LATE_MS = 0.01, 60_000
_LATENESS_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("late", "Late records", CellKind.COUNT),
    CellColumn("lateShare", "Share", CellKind.SHARE),
    CellColumn("lateP50", "Late by, 50 %", CellKind.DURATION),
    CellColumn("lateP99", "99 %", CellKind.DURATION),
    CellColumn("lateMost", "Most", CellKind.DURATION),
    CellColumn("appendTimeBatches", "Batches with LogAppendTime", CellKind.COUNT),
    CellColumn("untimedBatches", "Without timestamp", CellKind.COUNT),
    CellColumn("strangeBatches", "With implausible timestamp", CellKind.COUNT),
)
_SUSPECT_COLUMNS = (
    CellColumn("directory", "Partition"),
    CellColumn("id", "What"),
    CellColumn("producerId", "Producer id"),
    CellColumn("batches", "Batches", CellKind.COUNT),
    CellColumn("firstOffset", "From offset", CellKind.COUNT),
    CellColumn("lastOffset", "To", CellKind.COUNT),
    CellColumn("largest", "Largest timestamp", CellKind.COUNT),
)


def times_block(known: ReportFacts) -> Block:
    """Return the block about timestamps of records and batches."""
    topics = [topic for topic in known.by_size if topic.sums["batches"]]
    suspects = [(each, suspect) for each in known.in_use for suspect in each.suspects]
    tables = [Table("lateness", "By topic", _LATENESS_COLUMNS, tuple(_time_row(known, topic) for topic in topics))]
    if suspects:
        rows = tuple(_suspect_row(partition, suspect) for partition, suspect in suspects)
        tables.append(Table("suspectTimes", "Implausible timestamps", _SUSPECT_COLUMNS, rows))
    late = known.all.histograms[Measure.LATENESS]
    figures = (histogram_figure("Lateness of records", late, "milliseconds"),) if late.count else ()
    notes = [
        (
            "Late: the record's timestamp is below the largest earlier one in its partition. Only CreateTime counts,"
            " not LogAppendTime."
        )
    ]
    if known.choices.is_quick:
        notes.append("Lateness is unknown: --quick reads no records.")
    return Block(
        "times", "Out-of-order timestamps", tuple(_late_verdicts(topics)), figures, tuple(tables), tuple(notes)
    )


def _time_row(known: ReportFacts, topic: TopicFacts) -> tuple[Cell, ...]:
    late, sums = topic.sums.histograms[Measure.LATENESS], topic.sums
    share = None if known.choices.is_quick else sums["late"] / max(sums["records"], 1)
    number = None if known.choices.is_quick else sums["late"]
    ends = (late.percentile(0.5), late.percentile(0.99), late.most if late.count else None)
    batches = (sums["append_time"], sums["without_time"], sums["beyond_time"])
    return (topic.name, sums["records"], number, share, *ends, *batches)


def _suspect_row(partition: PartitionFacts, suspect: SuspectTimes) -> tuple[Cell, ...]:
    author = suspect.author
    who = "a broker" if author.is_broker else "unknown" if author.producer_id is None else str(author.producer_id)
    return (
        partition.name,
        suspect.id,
        who,
        suspect.batches,
        suspect.first_offset,
        suspect.last_offset,
        suspect.largest,
    )


def _late_verdicts(topics: list[TopicFacts]) -> list[Sentence]:
    verdicts: list[Sentence] = []
    for topic in topics:
        late = topic.sums.histograms[Measure.LATENESS]
        share = late.count / max(topic.sums["records"], 1)
        if share >= _LATE_SHARE and (late.percentile(0.5) or 0) >= _LATE_MS and len(verdicts) < 2:
            half, most = age_text(late.percentile(0.5) or 0), age_text(late.most)
            how = f"by {most}" if half == most else f"half of them by {half} or more, one by {most}"
            records = "1 record" if late.count == 1 else f"{count_text(late.count)} records"
            sentence = f"{topic.name}: {records} ({share_text(share)}) arrived late, {how}."
            verdicts.append(Sentence(sentence, topic_line(topic, "ls", "--by", "segment")))
    return verdicts


_RATE_DAYS = 7
_FORECAST_COLUMNS = (
    CellColumn("day", "Until", CellKind.TIME),
    CellColumn("goes", "Deleted that day", CellKind.SIZE),
    CellColumn("left", "Remaining without new writes", CellKind.SIZE),
    CellColumn("withWrites", "Remaining with writes as before", CellKind.SIZE),
)
_TOPIC_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("retention", "Retention by time", CellKind.DURATION),
    CellColumn("retentionBytes", "Retention by size, per partition", CellKind.SIZE),
    CellColumn("source", "Source"),
    CellColumn("due", "Due now", CellKind.SIZE),
    CellColumn("within", "Due within the forecast", CellKind.SIZE),
    CellColumn("stays", "Kept longer", CellKind.SIZE),
    CellColumn("never", "Never deleted by time", CellKind.SIZE),
    CellColumn("rate", "Written per day", CellKind.SIZE),
)


def forecast_block(known: ReportFacts) -> Block:
    """Return the block that forecasts the size of the logs with the current settings."""
    days = [known.choices.now_ms + DAY_MS * day for day in range(known.choices.days + 1)]
    rates = {topic.name: topic_rate(known, topic.name) for topic in known.by_size}
    rate = sum(rates.values())
    goes = _goes_by_day(known, days)
    total = sum(each.size for each in known.in_use)
    kept_ms = {each.topic: -1 if _is_compacted(each) else each.retention.retention_ms for each in known.in_use}
    left, rows = total, []
    for place, day in enumerate(days):
        left -= goes[place]
        written = sum(_still_there(rates[name], place, kept_ms.get(name, -1)) for name in rates)
        rows.append((day, goes[place], left, left + round(written)))
    tables = (
        Table("forecast", "By day", _FORECAST_COLUMNS, tuple(rows)),
        Table("retention", "By topic", _TOPIC_COLUMNS, _topic_rows(known, days[-1], rates)),
    )
    notes = (
        f"Written per day: the mean of the last {_RATE_DAYS} days, or since the topic's first record. The topic's"
        " retention applies to new records, too. A broker deletes only complete segments, and checks every five"
        " minutes.",
    )
    verdicts = tuple(_forecast_verdicts(known, rows, rate))
    return Block("forecast", "Retention forecast", verdicts, _forecast_figures(known, rows), tables, notes)


def topic_rate(known: ReportFacts, name: str) -> float:
    """Return the recent bytes per day of a topic."""
    topic, now = known.topics[name], known.choices.now_ms
    since = now - _RATE_DAYS * DAY_MS
    times = topic.sums.times
    stretches = [each for each in times.stretches() if each.start + times.step > since and each.start <= now]
    if not stretches:
        return 0.0
    first = min((each.start for each in times.stretches()), default=now)
    days = max((now - max(since, first)) / DAY_MS, 1.0)
    return sum(each.size for each in stretches) / days


def _is_compacted(partition: PartitionFacts) -> bool:
    return partition.cleaning is not None or partition.retention.is_policy_unknown


def _still_there(rate: float, day: int, retention_ms: int) -> float:
    """Return the bytes written since, without expired ones."""
    return rate * (day if retention_ms < 0 else min(day, retention_ms / DAY_MS))


def _goes_by_day(known: ReportFacts, days: list[int]) -> list[int]:
    """Return bytes that expire up to each day, after the day before."""
    goes = [0] * (len(days) + 1)
    for partition in known.in_use:
        for retained in partition.retained:
            if not retained.is_kept:
                goes[0] += retained.segment.size
            elif retained.expires_ms is not None:
                goes[bisect_right(days, retained.expires_ms)] += retained.segment.size
    return goes[:-1]


def _topic_rows(
    known: ReportFacts, end: int, rates: dict[str, float]
) -> tuple[tuple[str | int | float | None, ...], ...]:
    rows = []
    for topic in known.by_size:
        sizes: dict[str, int] = defaultdict(int)
        for partition in topic.partitions:
            for place, size in _places(partition, end):
                sizes[place] += size
        one = topic.first
        own = "its settings" if one.time_source is SettingSource.TOPIC else one.time_source.text()
        is_compacted = _is_compacted(one)
        rows.append(
            (
                topic.name,
                None if is_compacted or one.retention.retention_ms < 0 else one.retention.retention_ms,
                None if one.retention.retention_bytes < 0 else one.retention.retention_bytes,
                "compacted" if is_compacted else own,
                *(sizes[place] for place in ("due", "within", "stays", "never")),
                round(rates[topic.name]),
            )
        )
    return tuple(rows)


def _places(partition: PartitionFacts, end: int) -> list[tuple[str, int]]:
    return [
        (
            "due"
            if not each.is_kept
            else "never"
            if each.expires_ms is None
            else "within"
            if each.expires_ms <= end
            else "stays",
            each.segment.size,
        )
        for each in partition.retained
    ]


def _forecast_figures(known: ReportFacts, rows: list[tuple[int, int, int, int]]) -> tuple[Figure, ...]:
    if len(rows) < 2 or not rows[0][2] + rows[0][1]:
        return ()
    title = f"Bytes of logs in the next {known.choices.days} days"
    without = Series("without new writes", [(row[0], row[2]) for row in rows])
    with_writes = Series("with writes as before", [(row[0], row[3]) for row in rows], is_line=True)
    svg = steps(title, [without, with_writes], axis_size, known.choices.zone, base=1024)
    return (Figure(title, svg),)


def _forecast_verdicts(known: ReportFacts, rows: list[tuple[int, int, int, int]], rate: float) -> list[Sentence]:
    verdicts = []
    if len(rows) > 1:
        sentence = (
            f"Retention deletes {human_size(rows[1][1])} within a day and"
            f" {human_size(sum(row[1] for row in rows[1:]))} within {plural(known.choices.days, 'day')}; producers"
            f" write {rate_text(rate, DAY_MS)}."
        )
        verdicts.append(Sentence(sentence, line_of(known, "retain")))
    never = sum(size for each in known.in_use for place, size in _places(each, rows[-1][0]) if place == "never")
    if never:
        sentence = (
            f"Retention by time never deletes {human_size(never)}: compacted, without a limit, or with an unknown"
            " policy."
        )
        verdicts.append(Sentence(sentence, line_of(known, "retain")))
    free = sum(disk.available for disk in known.check_up.disks)
    full = next((place for place, row in enumerate(rows) if row[3] - rows[0][2] > free), None)
    if full is None and known.check_up.disks:
        days = plural(known.choices.days, "day")
        verdicts.append(Sentence(f"At this rate, {human_size(free)} of free disk space lasts {days} or longer."))
    if full is not None and known.check_up.disks:
        day = moment_text(rows[full][0], known.choices.zone)
        sentence = f"At this rate, the disk ({human_size(free)} free) will be full in {plural(full, 'day')}, by {day}."
        missing = max(row[3] for row in rows) - rows[0][2] - free
        verdicts.append(Sentence(sentence, line_of(known, "retain", "--free", str(missing)), Weight.BAD))
    return verdicts

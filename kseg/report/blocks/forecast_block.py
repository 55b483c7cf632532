"""What retention will delete on which day, and how full the disk will be."""

from bisect import bisect_right
from collections import defaultdict

from kseg.counted import counted
from kseg.output.sizes import human_size
from kseg.report.block import Block, CellColumn, CellKind, Figure, Sentence, Table, Weight
from kseg.report.charts.plots import Series, steps
from kseg.report.commands import line_of
from kseg.report.gathered import Gathered, PartitionFacts
from kseg.report.numbers import DAY_MS, axis_size, rate_text

_RATE_DAYS = 7
_COLUMNS = (
    CellColumn("day", "Until", CellKind.TIME),
    CellColumn("goes", "Goes on that day", CellKind.SIZE),
    CellColumn("left", "Left without new writes", CellKind.SIZE),
    CellColumn("withWrites", "With writes as before", CellKind.SIZE),
)
_TOPIC_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("retention", "Retention by time", CellKind.DURATION),
    CellColumn("retentionBytes", "By size, each partition", CellKind.SIZE),
    CellColumn("source", "Known from"),
    CellColumn("due", "Due now", CellKind.SIZE),
    CellColumn("within", "Goes within the forecast", CellKind.SIZE),
    CellColumn("stays", "Stays longer", CellKind.SIZE),
    CellColumn("never", "Never goes by time", CellKind.SIZE),
    CellColumn("rate", "Written a day", CellKind.SIZE),
)


def forecast_block(known: Gathered) -> Block:
    """Bytes of logs on the coming days, by the settings that hold now."""
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
        Table("forecast", "Day by day", _COLUMNS, tuple(rows)),
        Table("retention", "By topic", _TOPIC_COLUMNS, _topic_rows(known, days[-1], rates)),
    )
    notes = (
        f"Written a day: the mean of the last {_RATE_DAYS} days, or since the topic's first record; what comes in at "
        "this rate goes by the topic's retention, too. Segments go whole, and a broker looks every five minutes.",
    )
    verdicts = tuple(_verdicts(known, rows, rate))
    return Block("forecast", "Retention forecast", verdicts, _figures(known, rows), tables, notes)


def topic_rate(known: Gathered, name: str) -> float:
    """Bytes that a topic was given a day, lately."""
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
    """Bytes that were written since, and have not gone by time."""
    return rate * (day if retention_ms < 0 else min(day, retention_ms / DAY_MS))


def _goes_by_day(known: Gathered, days: list[int]) -> list[int]:
    """Bytes that go up to each day, after the day before."""
    goes = [0] * (len(days) + 1)
    for partition in known.in_use:
        for retained in partition.retained:
            if not retained.is_kept:
                goes[0] += retained.segment.size
            elif retained.expires_ms is not None:
                goes[bisect_right(days, retained.expires_ms)] += retained.segment.size
    return goes[:-1]


def _topic_rows(known: Gathered, end: int, rates: dict[str, float]) -> tuple[tuple[str | int | float | None, ...], ...]:
    rows = []
    for topic in known.by_size:
        sizes: dict[str, int] = defaultdict(int)
        for partition in topic.partitions:
            for place, size in _places(partition, end):
                sizes[place] += size
        one = topic.partitions[0]
        own = "its settings" if one.has_own_time else "Kafka's default"
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


def _figures(known: Gathered, rows: list[tuple[int, int, int, int]]) -> tuple[Figure, ...]:
    if len(rows) < 2 or not rows[0][2] + rows[0][1]:
        return ()
    title = f"Bytes of logs on the next {known.choices.days} days"
    without = Series("without new writes", [(row[0], row[2]) for row in rows])
    with_writes = Series("with writes as before", [(row[0], row[3]) for row in rows], is_line=True)
    svg = steps(title, [without, with_writes], axis_size, known.choices.zone, base=1024)
    return (Figure(title, svg),)


def _verdicts(known: Gathered, rows: list[tuple[int, int, int, int]], rate: float) -> list[Sentence]:
    verdicts = []
    if len(rows) > 1:
        sentence = (
            f"{human_size(rows[1][1])} go within a day, {human_size(sum(row[1] for row in rows[1:]))} within "
            f"{counted(known.choices.days, 'day')}; {rate_text(rate, DAY_MS)} are written."
        )
        verdicts.append(Sentence(sentence, line_of(known, "retain")))
    never = sum(size for each in known.in_use for place, size in _places(each, rows[-1][0]) if place == "never")
    if never:
        sentence = f"{human_size(never)} never go by time: compacted, without a limit, or the policy isn't known."
        verdicts.append(Sentence(sentence, line_of(known, "retain")))
    free = sum(disk.available for disk in known.check_up.disks)
    full = next((place for place, row in enumerate(rows) if row[3] - rows[0][2] > free), None)
    if full is not None and known.check_up.disks:
        sentence = f"At this rate, {human_size(free)} of free disk are used up in {counted(full, 'day')}."
        missing = max(row[3] for row in rows) - rows[0][2] - free
        verdicts.append(Sentence(sentence, line_of(known, "retain", "--free", str(missing)), Weight.BAD))
    return verdicts

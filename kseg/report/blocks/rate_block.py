"""How much was written when: over time, by topic, and by the hour of the week."""

from datetime import UTC, datetime, timedelta

from kseg.kernel.statistics_contract import HOUR_MS, WEEK_HOURS
from kseg.output.sizes import human_size
from kseg.report.block import Block, CellColumn, CellKind, Figure, Sentence, Table
from kseg.report.charts.plots import Series, steps, week_map
from kseg.report.commands import topic_line
from kseg.report.gathered import Gathered, TopicFacts
from kseg.report.numbers import DAY_MS, age_text, axis_size, moment_text, rate_text
from kseg.report.time_sums import TimeStretch, TimeSums

_MOST_POINTS = 300
_SILENT_MS = 7 * DAY_MS
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("batches", "Batches", CellKind.COUNT),
    CellColumn("bytes", "Bytes", CellKind.SIZE),
    CellColumn("firstTime", "First time", CellKind.TIME),
    CellColumn("lastTime", "Last time", CellKind.TIME),
    CellColumn("meanRate", "Bytes a second", CellKind.SIZE),
    CellColumn("peakRate", "At most", CellKind.SIZE),
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


def rate_block(known: Gathered) -> Block:
    """What was written, by the times of the batches that are still there."""
    times = known.all.times.at_most(_MOST_POINTS)
    stretches = list(times.stretches())
    rows = tuple(_row(topic) for topic in known.by_size if topic.sums.times.sums)
    if not rows:
        return Block("rate", "Produce rate", notes=("No batch has a time that can be right.",))
    week = _week(known)
    notes = (
        "By the largest time of each batch that is still in the logs: what retention and compaction have taken is gone "
        f"from these numbers. Bars of {age_text(times.step)}.",
        f"Hours of the week are those of {known.choices.zone} now; daylight saving isn't reckoned back.",
    )
    tables = (
        Table("rates", "By topic", _COLUMNS, rows),
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
    return Block("rate", "Produce rate", tuple(_verdicts(known)), tuple(_figures(known, times, week)), tables, notes)


def _figures(known: Gathered, times: TimeSums, week: list[tuple[int, int]]) -> list[Figure]:
    points = _points(list(times.stretches()), times.step)
    title, text = "Bytes a second over time", axis_size
    figures = [Figure(title, steps(title, [Series("bytes a second", points)], text, known.choices.zone, base=1024))]
    title = "Bytes by the hour of the week"
    return [*figures, Figure(title, week_map(title, [size for size, _ in week], text))]


def _points(stretches: list[TimeStretch], step: int) -> list[tuple[int, float]]:
    """Rates, zero where nothing was written."""
    points: list[tuple[int, float]] = []
    for one in stretches:
        if points and points[-1][0] < one.start:
            points.append((points[-1][0], 0.0))
        if points and points[-1][0] == one.start:
            points.pop()
        points += [(one.start, 1000 * one.size / step), (one.start + step, 0.0)]
    return points


def _week(known: Gathered) -> list[tuple[int, int]]:
    """Bytes and records of each hour of the week, Monday's first, in the zone that was asked for."""
    now = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=min(known.choices.now_ms, 32_503_680_000_000))
    offset = now.astimezone(known.choices.zone).utcoffset() or timedelta()
    ahead = round(offset.total_seconds() * 1000 / HOUR_MS)
    hours = [(known.all.week[2 * hour + 1], known.all.week[2 * hour]) for hour in range(WEEK_HOURS)]
    return [hours[(hour - ahead) % WEEK_HOURS] for hour in range(WEEK_HOURS)]


def _hour(place: int) -> tuple[str, int]:
    return _DAYS[place // 24], place % 24


def _row(topic: TopicFacts) -> tuple[str | int | float | None, ...]:
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


def _verdicts(known: Gathered) -> list[Sentence]:
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
        sentence = f"Nothing new for a week in {names}, {size}; in {first.name} since {since}."
        verdicts.append(Sentence(sentence, topic_line(first, "ls")))
    return verdicts

"""Which topics' retention to lower to free so much, as text and as JSON, with the command lines that do it."""

import shlex
from collections.abc import Iterator
from datetime import tzinfo

from kseg.counted import counted
from kseg.kafka_defaults import UNLIMITED
from kseg.log.freeing import FreeingPlan, LoweredTopic, PinnedSegment
from kseg.output.json_lines import write_json
from kseg.output.sizes import human_size
from kseg.output.stdout import flush_stdout, write_lines
from kseg.output.table import TableColumn, aligned_lines
from kseg.times import duration_text, time_text

_COLUMNS: tuple[TableColumn[LoweredTopic], ...] = (
    TableColumn("topic", "topic", -1, lambda each: each.topic),
    TableColumn("setting", "setting", -1, lambda each: each.setting),
    TableColumn("before", "now", 1, lambda each: each.before, lambda each: _age(each.before)),
    TableColumn("after", "then", 1, lambda each: each.after, lambda each: _age(each.after)),
    TableColumn("segments", "segments", 1, lambda each: each.segments),
    TableColumn("bytes", "frees", 1, lambda each: each.size, lambda each: human_size(each.size)),
)


def _age(ms: int) -> str:
    return "unlimited" if ms == UNLIMITED else duration_text(ms)


def write_freeing(plan: FreeingPlan, form: str, zone: tzinfo, bootstrap_server: str) -> None:
    """Writes a plan to standard output, as text or JSON."""
    if form == "json":
        _write_json(plan, bootstrap_server)
    else:
        write_lines(_lines(plan, zone, bootstrap_server))
    flush_stdout()


def _write_json(plan: FreeingPlan, bootstrap_server: str) -> None:
    for lowered in plan.lowered:
        row = {column.name: column.value(lowered) for column in _COLUMNS}
        lines = {"command": _command(lowered, bootstrap_server), "undo": _undo(lowered, bootstrap_server)}
        write_json({"type": "lowered", **row, **lines})
    for pinned in plan.pinned:
        write_json(
            {
                "type": "pinned",
                "topic": pinned.topic,
                "directory": pinned.directory,
                "baseOffset": pinned.base_offset,
                "largestTimestamp": pinned.largest_timestamp,
                "bytes": pinned.size,
                "retentionBytes": pinned.retention_bytes,
            }
        )
    write_json(
        {
            "type": "plan",
            "wantedBytes": plan.wanted,
            "isEnough": plan.is_enough,
            "segmentsDeletableNow": plan.segments_now,
            "bytesDeletableNow": plan.size_now,
            "freedBytes": plan.size,
            "mostBytes": plan.most_size,
            "ageMs": plan.age_ms,
        }
    )


def _lines(plan: FreeingPlan, zone: tzinfo, bootstrap_server: str) -> Iterator[str]:
    yield f"Deletable now: {counted(plan.segments_now, 'segment')}, {human_size(plan.size_now)}"
    if plan.lowered:
        more = human_size(sum(each.size for each in plan.lowered))
        topics = counted(len(plan.lowered), "topic")
        yield f"Lower the retention of {topics} to free {more} more, {human_size(plan.size)} in all:"
        yield from (f"  {line}" for line in aligned_lines(_COLUMNS, plan.lowered))
        yield from (_command(each, bootstrap_server) for each in plan.lowered)
        yield "To undo it when the segments have gone:"
        for each in plan.lowered:
            yield _undo(each, bootstrap_server) or f"# what {each.topic} had isn't known here: look it up before"
    elif plan.is_enough:
        yield f"That is enough for {human_size(plan.wanted)}: no retention needs to be lowered"
    else:
        can = f"at most {human_size(plan.most_size)} can be freed in whole closed segments"
        how = f", which --free {plan.most_size} shows" if plan.most_size else ""
        yield f"Can't free {human_size(plan.wanted)}: {can}{how}"
        yield "Left alone: topics that are internal or compacted, or whose policy isn't known"
    for pinned in plan.pinned:
        yield _pinned_line(pinned, zone)


def _pinned_line(pinned: PinnedSegment, zone: tzinfo) -> str:
    what = f"{pinned.directory}: segment {pinned.base_offset} has a time in the future"
    time = time_text(pinned.largest_timestamp, zone)
    return (
        f"{what}, {time}: by time it keeps {human_size(pinned.size)};"
        f" retention.bytes={pinned.retention_bytes} would delete them, and as much elsewhere in the topic"
    )


def _command(lowered: LoweredTopic, bootstrap_server: str) -> str:
    return f"{_alter(lowered, bootstrap_server)} --add-config {lowered.setting}={lowered.after}"


def _undo(lowered: LoweredTopic, bootstrap_server: str) -> str | None:
    """The line that undoes it; None if nothing tells what the topic had."""
    if lowered.own_value is not None:
        value = shlex.quote(f"{lowered.setting}={lowered.own_value}")
        return f"{_alter(lowered, bootstrap_server)} --add-config {value}"
    return f"{_alter(lowered, bootstrap_server)} --delete-config {lowered.setting}" if lowered.is_known else None


def _alter(lowered: LoweredTopic, bootstrap_server: str) -> str:
    server, topic = shlex.quote(bootstrap_server), shlex.quote(lowered.topic)
    return f"kafka-configs.sh --bootstrap-server {server} --alter --entity-type topics --entity-name {topic}"

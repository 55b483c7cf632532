"""Text about retention and cleaning: deleted segments, dates, the time that decides, and the freed space."""

import shlex
from collections.abc import Iterator
from datetime import UTC, tzinfo

from kseg.cluster.now import Now
from kseg.errors import plural
from kseg.formats.codes import UNLIMITED
from kseg.log.cleaner import CleanerStop, CleanerVerdict, Cleaning
from kseg.log.freeing import FreeingPlan, LoweredTopic, PinnedSegment, ShareOf, SpaceTarget
from kseg.output.columns import Column
from kseg.output.forms import Form
from kseg.output.streams import flush_stdout, write_lines
from kseg.output.table import aligned_lines
from kseg.sizes import human_size
from kseg.text import fields
from kseg.times import duration_text, iso_time, time_text

_COLUMNS: tuple[Column[LoweredTopic], ...] = (
    Column(fields.TOPIC, "topic", lambda each: each.topic),
    Column(fields.SETTING, "setting", lambda each: each.setting),
    Column(fields.BEFORE_MS, "now", lambda each: each.before, lambda each: _age(each.before)),
    Column(fields.AFTER_MS, "then", lambda each: each.after, lambda each: _age(each.after)),
    Column(fields.SEGMENTS, "segments", lambda each: each.segments),
    Column(fields.BYTES, "frees", lambda each: each.size),
)


def _age(ms: int) -> str:
    return "unlimited" if ms == UNLIMITED else duration_text(ms)


def now_fields(now: Now, zone: tzinfo = UTC) -> dict[str, object]:
    """Return the time used as now and its source, as the summary for JSON has them."""
    return {fields.NOW.name: iso_time(now.ms, zone) or now.ms, fields.NOW_SOURCE.name: now.source.value}


def total_object(rows: int, now: Now, zone: tzinfo) -> dict[str, object]:
    """Return a summary object with the number of rows and the time used as "now"."""
    return {"type": "total", "rows": rows, **now_fields(now, zone)}


def write_freeing(
    plan: FreeingPlan, wanted: SpaceTarget, form: Form, now: Now, zone: tzinfo, bootstrap_server: str
) -> None:
    """Write a plan to standard output, as text or objects."""
    if form.has_objects:
        for each in _objects(plan, wanted, bootstrap_server):
            form.write_object(each | (now_fields(now, zone) if each["type"] == "plan" else {}))
    else:
        write_lines((*_share_lines(wanted), *_lines(plan, zone, bootstrap_server)))
    flush_stdout()


def _objects(plan: FreeingPlan, wanted: SpaceTarget, bootstrap_server: str) -> Iterator[dict[str, object]]:
    for lowered in plan.lowered:
        row = {column.name: column.value(lowered) for column in _COLUMNS}
        lines = {"command": _command(lowered, bootstrap_server), "undo": _undo(lowered, bootstrap_server)}
        yield {"type": "lowered", **row, **lines}
    for pinned in plan.pinned:
        yield (
            {
                "type": "pinned",
                "topic": pinned.topic,
                "directory": pinned.directory,
                "baseOffset": pinned.base_offset,
                "largestTimestamp": pinned.largest_timestamp,
                "isDatedByFile": pinned.is_dated_by_file,
                "bytes": pinned.size,
                "retentionBytes": pinned.retention_bytes,
            }
        )
    yield (
        {
            "type": "plan",
            "wantedBytes": plan.wanted,
            "wantedOf": wanted.of,
            "isEnough": plan.is_enough,
            "segmentsDeletableNow": plan.segments_now,
            "bytesDeletableNow": plan.size_now,
            "freedBytes": plan.size,
            "mostBytes": plan.most_size,
            "ageMs": plan.age_ms,
        }
    )


def _share_lines(wanted: SpaceTarget) -> Iterator[str]:
    """Yield lines about the total of a share."""
    if wanted.of is not None:
        share = f"{wanted.percent}% of the {wanted.of} ({human_size(wanted.whole)})"
        other = "" if wanted.of is ShareOf.DISK else f"; disk:{wanted.percent}% is a share of the disk, as in `df`"
        yield f"To free: {human_size(wanted.size)}, {share}{other}"


def _lines(plan: FreeingPlan, zone: tzinfo, bootstrap_server: str) -> Iterator[str]:
    yield f"Deletable now: {plural(plan.segments_now, 'segment')}, {human_size(plan.size_now)}"
    if plan.lowered:
        more = human_size(sum(each.size for each in plan.lowered))
        topics = plural(len(plan.lowered), "topic")
        yield f"Lower the retention of {topics} to free {more} more, {human_size(plan.size)} in all:"
        yield from (f"  {line}" for line in aligned_lines(_COLUMNS, plan.lowered))
        yield from (_command(each, bootstrap_server) for each in plan.lowered)
        yield "After the segments are deleted, restore the settings:"
        for each in plan.lowered:
            yield _undo(each, bootstrap_server) or (
                f"# the current value of {each.topic} is unknown here: look it up first"
            )
    elif plan.is_enough:
        yield f"That covers {human_size(plan.wanted)}: you don't need to lower any retention"
    else:
        can = f"at most {human_size(plan.most_size)} in closed segments"
        if plan.most_size > plan.size_now:
            can += f"; specify --free {plan.most_size} instead to print the steps"
        elif plan.most_size:
            can += ", which are deletable now"
        yield f"Can't free {human_size(plan.wanted)}: {can}"
        yield "Unchanged: topics that are internal or compacted, or whose policy is unknown"
    for pinned in plan.pinned:
        yield _pinned_line(pinned, zone)


def _pinned_line(pinned: PinnedSegment, zone: tzinfo) -> str:
    what = (
        "has no timestamps, and its file's modification time is in the future"
        if pinned.is_dated_by_file
        else "has a timestamp in the future"
    )
    time = time_text(pinned.largest_timestamp, zone)
    kept = f"retention by time keeps {human_size(pinned.size)}; retention.bytes={pinned.retention_bytes}"
    return (
        f"{pinned.directory}: segment {pinned.base_offset} {what}, {time}: {kept} would delete them, and the same"
        " amount in each other partition of the topic"
    )


def _command(lowered: LoweredTopic, bootstrap_server: str) -> str:
    return f"{_alter(lowered, bootstrap_server)} --add-config {lowered.setting}={lowered.after}"


def _undo(lowered: LoweredTopic, bootstrap_server: str) -> str | None:
    """Return the command that restores the settings, or None if the former settings are unknown."""
    if lowered.own_value is not None:
        value = shlex.quote(f"{lowered.setting}={lowered.own_value}")
        return f"{_alter(lowered, bootstrap_server)} --add-config {value}"
    return f"{_alter(lowered, bootstrap_server)} --delete-config {lowered.setting}" if lowered.is_known else None


def _alter(lowered: LoweredTopic, bootstrap_server: str) -> str:
    server, topic = shlex.quote(bootstrap_server), shlex.quote(lowered.topic)
    return f"kafka-configs.sh --bootstrap-server {server} --alter --entity-type topics --entity-name {topic}"


def cleaning_text(cleaning: Cleaning) -> str:
    """Return True if the cleaner would take the partition, and why not."""
    return _TEXTS[cleaning.verdict](cleaning)


def keys_text(cleaning: Cleaning) -> str | None:
    """Return a note if there may be more keys to clean than the cleaner takes at once."""
    if cleaning.most_records <= cleaning.most_keys:
        return None
    return f"up to {plural(cleaning.most_records, 'key')} to clean, but the cleaner takes {cleaning.most_keys} at once"


def _cleanable_text(cleaning: Cleaning) -> str:
    is_by_lag = cleaning.is_overdue and (cleaning.dirty_ratio or 0.0) <= cleaning.min_ratio
    text = "cleanable, because max.compaction.lag.ms has passed" if is_by_lag else "cleanable"
    if cleaning.stop is CleanerStop.ACTIVE_SEGMENT:
        return text
    return f"{text}, up to offset {cleaning.end_offset - 1}: {_stop_text(cleaning)}"


def _waits_text(cleaning: Cleaning) -> str:
    if not cleaning.cleanable_size:
        return "clean"
    return f"not cleanable: its dirty ratio isn't above {cleaning.min_ratio:g}"


def _stopped_text(cleaning: Cleaning) -> str:
    return f"not cleanable: {_stop_text(cleaning)}"


def _uncleanable_text(cleaning: Cleaning) -> str:
    damage = cleaning.damage
    place = "" if damage is None else f" at position {damage.position} of {damage.base_offset:020}.log"
    return f"uncleanable: the cleaner would fail at the damage{place}"


def _unknown_text(cleaning: Cleaning) -> str:
    if cleaning.is_policy_unknown:
        return "cleanable if cleanup.policy is still compact, which is unknown here"
    return f"cleanable unless a transaction is open at offset {cleaning.stop_offset}; run with --deep to check"


def _stop_text(cleaning: Cleaning) -> str:
    return _STOPS[cleaning.stop].format(cleaning.stop_offset)


_TEXTS = {
    CleanerVerdict.CLEANABLE: _cleanable_text,
    CleanerVerdict.WAITS: _waits_text,
    CleanerVerdict.STOPPED: _stopped_text,
    CleanerVerdict.UNCLEANABLE: _uncleanable_text,
    CleanerVerdict.UNKNOWN: _unknown_text,
}
_STOPS = {
    CleanerStop.ACTIVE_SEGMENT: "the active segment begins at offset {}",
    CleanerStop.OPEN_TRANSACTION: "an open transaction stops the cleaner at offset {}",
    CleanerStop.HIGH_WATERMARK: "the high watermark is {}",
    CleanerStop.MIN_COMPACTION_LAG: "min.compaction.lag.ms hasn't passed for the segment at offset {}",
}

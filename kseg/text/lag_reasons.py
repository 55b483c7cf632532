"""Sentences about the causes of a group's lag, from the coordinators' records and the ends of logs."""

from collections.abc import Iterator
from datetime import UTC, tzinfo

from kseg.cluster.now import Now, NowSource
from kseg.cluster.partitions import LogEnd, UnknownEnd
from kseg.coordinators.members import Group, OffsetCommit, Presence, SharePartition
from kseg.errors import plural
from kseg.times import duration_text, time_text


def lag_reason(row: OffsetCommit | SharePartition, zone: tzinfo = UTC) -> str | None:
    """Return why a commit or share-partition lags, most important reason first, or None if there is no reason.

    A lag that isn't known has the reason for that. No time in it is a producer's.
    """
    if isinstance(row, OffsetCommit) and row.producer_id is not None:
        return f"not yet committed: the transaction of producer {row.producer_id} is open"
    if isinstance(row.log_end, UnknownEnd):
        return row.log_end.value
    end = row.known_end
    if end is None or not row.lag:
        return None
    if row.lag < 0:
        return f"beyond the log end by {-row.lag}: records were lost, or the topic was re-created"
    reasons = list(_absence(row.presence, zone))
    if isinstance(row, OffsetCommit):
        reasons = [*_unreadable(row), *reasons]
        held_back, is_most = _held_back(row, end)
        reasons += [*(held_back if is_most else ()), *_explain_deletion(row, end)]
        reasons = [*(reasons or [_no_commit(row, zone)]), *(() if is_most else held_back)]
    return "; ".join(reasons) or None


def group_lag_reason(group: Group, zone: tzinfo = UTC) -> str | None:
    """Return why the commit with the largest lag lags, and who left a group without members last.

    A commit that its consumer can't read on from comes first, whatever its lag.
    """
    rows: tuple[OffsetCommit | SharePartition, ...]
    rows = (*group.commits, *group.share_partitions, *group.pending_commits)
    worst = max(rows, key=_largest, default=None)
    reason = None if worst is None else lag_reason(worst, zone)
    stuck = next((each for each in group.commits if each.unreadable is not None and each is not worst), None)
    if stuck is not None:
        reason = "; ".join(filter(None, (f"{stuck.topic}-{stuck.partition}: {next(_unreadable(stuck))}", reason)))
    left = group.presence.last_left
    if reason is None or worst is None or not (worst.lag or 0) > 0 or left is None or left.client_id is None:
        return reason
    return f"{reason}; last member {left.client_id}@{(left.client_host or '').removeprefix('/')}"


def _largest(row: OffsetCommit | SharePartition) -> tuple[int, int]:
    """Return the order of lags: unknown lags, commits beyond the log end, then known lags, largest last."""
    lag = row.lag
    if lag is None:
        return 0, 0
    return (1, -lag) if lag < 0 else (2, lag)


def _unreadable(commit: OffsetCommit) -> Iterator[str]:
    if commit.unreadable is not None:
        next_good = commit.unreadable.next_good
        following = "" if next_good is None else f", next good offset {next_good}"
        yield f"the batch with offset {commit.offset} can't be read{following}"


def _absence(presence: Presence, zone: tzinfo) -> Iterator[str]:
    if presence.members == 0:
        left_ms = None if presence.last_left is None else presence.last_left.left_ms
        yield "no members" if left_ms is None else f"no members since {_since(left_ms, presence.now, zone)}"


def _held_back(commit: OffsetCommit, end: LogEnd) -> tuple[list[str], bool]:
    """Return the part of the lag that follows the start of an open transaction, and whether it is half or more."""
    behind, before = end.log_end_offset - end.last_stable_offset, end.last_stable_offset - commit.offset
    if not behind or before < 0:
        return [], False
    share = f"an open transaction holds back {behind} of {plural(behind + before, 'offset')}"
    return [f"{share}: last stable offset {end.last_stable_offset} of {end.log_end_offset}"], behind >= before


def _explain_deletion(commit: OffsetCommit, end: LogEnd) -> Iterator[str]:
    if commit.offset < end.log_start_offset:
        gone = plural(end.log_start_offset - commit.offset, "record")
        verb = "is" if gone.startswith("1 ") else "are"
        yield f"commit below the log start {end.log_start_offset}: {gone} {verb} deleted"


def _no_commit(commit: OffsetCommit, zone: tzinfo) -> str:
    who = "members, but no commit" if commit.presence.members else "no commit"
    return f"{who} since {_since(commit.commit_timestamp, commit.presence.now, zone)}"


def _since(then_ms: int, now: Now | None, zone: tzinfo) -> str:
    """Return a time and its age. If ages are counted to the newest time in the data, the text says so."""
    if then_ms < 0:
        return "an unknown time"
    time = time_text(then_ms, zone)
    if now is None or now.ms < then_ms:
        return time
    before = " before the latest time here" if now.source in (NowSource.DISK, NowSource.FILES) else ""
    return f"{time} ({duration_text(now.ms - then_ms)}{before})"

"""What the log cleaner would do with a partition, in words."""

from kseg.log.partition.cleaning import CleanerStop, CleanerVerdict, Cleaning


def cleaning_text(cleaning: Cleaning) -> str:
    """Whether the cleaner would take the partition, and why not."""
    return _TEXTS[cleaning.verdict](cleaning)


def keys_text(cleaning: Cleaning) -> str | None:
    """Says if there may be more keys to clean than the cleaner takes at once."""
    if cleaning.most_records <= cleaning.most_keys:
        return None
    return f"up to {cleaning.most_records} keys to clean, the cleaner takes {cleaning.most_keys} at once"


def _cleanable(cleaning: Cleaning) -> str:
    is_by_lag = cleaning.is_overdue and (cleaning.dirty_ratio or 0.0) <= cleaning.min_ratio
    text = "cleanable, for max.compaction.lag.ms is over" if is_by_lag else "cleanable"
    if cleaning.stop is CleanerStop.ACTIVE_SEGMENT:
        return text
    return f"{text}, up to offset {cleaning.end_offset - 1}: {_stop_text(cleaning)}"


def _waits(cleaning: Cleaning) -> str:
    if not cleaning.cleanable_size:
        return "not cleanable: nothing is dirty before the active segment"
    return f"not cleanable: its dirty ratio isn't over {cleaning.min_ratio:g}"


def _stopped(cleaning: Cleaning) -> str:
    return f"not cleanable: {_stop_text(cleaning)}"


def _uncleanable(cleaning: Cleaning) -> str:
    damage = cleaning.damage
    place = "" if damage is None else f" at position {damage.position} of {damage.base_offset:020}.log"
    return f"uncleanable: damage{place}, where the cleaner would fail"


def _unknown(cleaning: Cleaning) -> str:
    if cleaning.is_policy_unknown:
        return "cleanable? Nothing tells whether cleanup.policy is still compact"
    return f"cleanable? Not if a transaction is open at offset {cleaning.stop_offset}, which --deep tells"


def _stop_text(cleaning: Cleaning) -> str:
    return _STOPS[cleaning.stop].format(cleaning.stop_offset)


_TEXTS = {
    CleanerVerdict.CLEANABLE: _cleanable,
    CleanerVerdict.WAITS: _waits,
    CleanerVerdict.STOPPED: _stopped,
    CleanerVerdict.UNCLEANABLE: _uncleanable,
    CleanerVerdict.UNKNOWN: _unknown,
}
_STOPS = {
    CleanerStop.ACTIVE_SEGMENT: "the active segment begins at offset {}",
    CleanerStop.OPEN_TRANSACTION: "an open transaction stops the cleaner at offset {}",
    CleanerStop.HIGH_WATERMARK: "the high watermark is {}",
    CleanerStop.MIN_COMPACTION_LAG: "min.compaction.lag.ms isn't over for the segment of offset {}",
}

"""Names of objects in remote tiers: whose partition's, which segment's and what file's each is."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from kseg.formats.names import MAXIMUM_OFFSET, MAXIMUM_PARTITION, FileKind

MANIFEST, INDEXES = "rsm-manifest", "indexes"
"""Suffixes of objects that only Aiven's plugin writes."""
PINTEREST_MARK = "offset.wm"
"""A file that Pinterest's uploader keeps in each partition's folder."""
SIDE_FILES = ("leader-epoch-checkpoint", "partition.metadata")
"""Files of a partition that have no offset in their names; where brokers' own files were copied they may be there."""
_BESIDE = "|".join(map(re.escape, (*SIDE_FILES, PINTEREST_MARK)))
_TOPIC = r"(?P<topic>[a-zA-Z0-9._-]{1,249})"
_ID = r"[A-Za-z0-9_-]{22}"
_KAFKAS_SUFFIXES = {
    "log": FileKind.LOG,
    "index": FileKind.OFFSET_INDEX,
    "timeindex": FileKind.TIME_INDEX,
    "txnindex": FileKind.TRANSACTION_INDEX,
    "snapshot": FileKind.PRODUCER_SNAPSHOT,
    "leader_epoch_checkpoint": FileKind.LEADER_EPOCH_CHECKPOINT,
}


class TierLayout(StrEnum):
    """How objects are named, and what is in them."""

    LOCAL = "LocalTieredStorage"
    AIVEN = "Aiven"
    CONFLUENT = "Confluent"
    PINTEREST = "Pinterest"
    PLAIN = "files of a broker"


class NamePattern(NamedTuple):
    """The names of a layout's objects: the end of their keys, and the suffix of each file."""

    layout: TierLayout
    pattern: re.Pattern[str]
    kinds: Mapping[str, FileKind]


PATTERNS = (
    NamePattern(
        TierLayout.AIVEN,
        re.compile(
            rf"{_TOPIC}-(?P<topic_id>{_ID})/(?P<partition>\d{{1,10}})/(?P<base>\d{{20}})-(?P<segment>{_ID})"
            rf"\.(?P<suffix>log|{INDEXES}|{MANIFEST})"
        ),
        {"log": FileKind.LOG},
    ),
    NamePattern(
        TierLayout.LOCAL,
        re.compile(
            rf"{_TOPIC}-(?P<partition>\d{{1,10}})-(?P<topic_id>{_ID})/(?:(?P<base>\d{{20}})-)?(?P<segment>{_ID})"
            r"\.(?P<suffix>[a-z_]+)"
        ),
        _KAFKAS_SUFFIXES,
    ),
    NamePattern(
        TierLayout.CONFLUENT,
        re.compile(
            rf"(?P<segment>{_ID})/(?P<topic>(?P<topic_id>{_ID}))/(?P<partition>\d{{1,10}})"
            r"/(?P<base>\d{20})_(?P<epoch>\d{1,10})_v\d+\.(?P<suffix>[a-z-]+)"
        ),
        {
            "segment": FileKind.LOG,
            "offset-index": FileKind.OFFSET_INDEX,
            "timestamp-index": FileKind.TIME_INDEX,
            "producer-state": FileKind.PRODUCER_SNAPSHOT,
            "transaction-index": FileKind.TRANSACTION_INDEX,
        },
    ),
    NamePattern(
        TierLayout.PLAIN,
        re.compile(
            rf"{_TOPIC}-(?P<partition>\d{{1,10}})/(?:(?P<base>\d{{20}})"
            rf"\.(?P<suffix>log|index|timeindex|txnindex|snapshot)|(?P<beside>{_BESIDE}))"
        ),
        _KAFKAS_SUFFIXES,
    ),
)
"""The more particular names come first. Sources: ObjectKeyFactory of Aiven's plugin; RemoteLogSegmentFileset of Kafka's
tests; listings of Confluent's buckets, whose code isn't public; SegmentUtils of Pinterest's uploader."""


class ObjectName(NamedTuple):
    """What an object's key says.

    folder: what the objects of its partition have in common. base_offset: None if the name doesn't say it; epoch: the
    leader epoch, if the name says it. suffix: of a segment's file, or the name of one beside the segments.
    """

    layout: TierLayout
    folder: str
    topic: str
    topic_id: str | None
    partition: int
    base_offset: int | None
    segment_id: str | None
    suffix: str
    kind: FileKind
    epoch: int | None = None


def parse_object_name(key: str) -> ObjectName | None:
    """What the end of a key says; None if it isn't an object of a tier."""
    parts = key.split("/")
    for layout, pattern, kinds in PATTERNS:
        depth = pattern.pattern.count("/") + 1
        match = pattern.fullmatch("/".join(parts[-depth:]))
        if match is not None and (name := _object_name(layout, "/".join(parts[:-1]), match, kinds)) is not None:
            return name
    return None


def _object_name(
    layout: TierLayout, folder: str, match: re.Match[str], kinds: Mapping[str, FileKind]
) -> ObjectName | None:
    found = match.groupdict()
    base = None if found["base"] is None else int(found["base"])
    if int(found["partition"]) > MAXIMUM_PARTITION or (base or 0) > MAXIMUM_OFFSET:
        return None
    suffix = found["suffix"] or found.get("beside") or ""
    if layout is TierLayout.CONFLUENT:  # each segment has a folder of its own, above the topic's
        above = folder.split("/")[:-3]
        folder = "/".join((*above, found["topic_id"], found["partition"]))
    return ObjectName(
        layout,
        folder,
        found["topic"],
        found.get("topic_id"),
        int(found["partition"]),
        base,
        found.get("segment"),
        suffix,
        kinds.get(suffix, FileKind.UNKNOWN),
        None if found.get("epoch") is None else int(found["epoch"]),
    )

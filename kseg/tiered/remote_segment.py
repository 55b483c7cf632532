"""Segments in a remote tier according to manifests and object names, and problems of their objects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kseg.formats.file_names import FileKind
from kseg.tiered.places import TierLayout
from kseg.tiered.segment_bytes import StoredPart


class ObjectProblem(NamedTuple):
    """A problem of an object: a finding's id, the object key, and a description."""

    finding: str
    key: str
    sentence: str


@dataclass(frozen=True, slots=True)
class RemoteSegment:
    """A segment in a remote tier.

    end_offset, max_timestamp (milliseconds), event_timestamp, broker_id: None if only the records have them. epochs:
    leader epochs and their start offsets; history: the same with earlier epochs, as far as known. files: the existing
    ones. key: of its objects, without a suffix. stored_size: bytes of all objects. modified_ms: when the last object
    was stored. is_unfinished: the manifest is missing, so the upload never finished.
    """

    base_offset: int
    segment_id: str | None
    key: str
    files: Mapping[FileKind, StoredPart]
    stored_size: int
    modified_ms: int
    end_offset: int | None = None
    epochs: tuple[tuple[int, int], ...] = ()
    max_timestamp: int | None = None
    event_timestamp: int | None = None
    broker_id: int | None = None
    problems: tuple[ObjectProblem, ...] = ()
    history: tuple[tuple[int, int], ...] = ()
    is_unfinished: bool = False

    @property
    def log(self) -> StoredPart | None:
        """The stored log, or None if it is missing."""
        return self.files.get(FileKind.LOG)

    @property
    def size(self) -> int:
        """Bytes of the log before it was stored."""
        return 0 if self.log is None else self.log.size

    @property
    def key_id(self) -> str | None:
        """The id of the key pair that encrypts it, or None if it isn't encrypted."""
        return None if self.log is None or self.log.seal is None else self.log.seal.key_id


@dataclass(frozen=True, slots=True)
class RemotePartition:
    """The segments of a partition in a remote tier, by base offset. folder: the prefix that all keys share."""

    layout: TierLayout
    folder: str
    topic: str
    topic_id: str | None
    partition: int
    segments: tuple[RemoteSegment, ...] = field(default=())

    @property
    def directory_name(self) -> str:
        """The name of the partition directory on a broker."""
        return f"{self.topic}-{self.partition}"

"""Segments in a remote tier, as manifests and the names of objects tell, and what is wrong with their objects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kseg.formats.file_names import FileKind
from kseg.tiered.places import TierLayout
from kseg.tiered.segment_bytes import StoredPart


class ObjectProblem(NamedTuple):
    """Something that is wrong with an object: a finding's id, the object's key, and what it is."""

    finding: str
    key: str
    sentence: str


@dataclass(frozen=True, slots=True)
class RemoteSegment:
    """A segment in a remote tier.

    end_offset, max_timestamp (milliseconds), event_timestamp, broker_id: None where only the records tell. epochs:
    leader epochs and the offsets that they start at; history: with those before the segment, as far as known. files:
    those that are there. key: of its objects, without a suffix. stored_size: bytes of all of them. modified_ms: when
    the last was stored. is_unfinished: its manifest is missing, so that its upload never ended.
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
        """Its log; None if it isn't there."""
        return self.files.get(FileKind.LOG)

    @property
    def size(self) -> int:
        """Bytes of the log before it was stored."""
        return 0 if self.log is None else self.log.size

    @property
    def key_id(self) -> str | None:
        """The id of the key pair that it is encrypted with; None if it isn't."""
        return None if self.log is None or self.log.seal is None else self.log.seal.key_id


@dataclass(frozen=True, slots=True)
class RemotePartition:
    """A partition's segments in a remote tier, by base offset. folder: the key of what they have in common."""

    layout: TierLayout
    folder: str
    topic: str
    topic_id: str | None
    partition: int
    segments: tuple[RemoteSegment, ...] = field(default=())

    @property
    def directory_name(self) -> str:
        """The name of its directory on a broker."""
        return f"{self.topic}-{self.partition}"

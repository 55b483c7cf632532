"""Files that stand for what remote segments have: named as on a broker, without bytes until they are read."""

import os
from dataclasses import replace
from pathlib import Path

from kseg.errors import OpenError
from kseg.formats.names import FileKind
from kseg.index.headers import walk_headers
from kseg.index.producer_state import ProducerStates
from kseg.index.rebuild import rebuild
from kseg.log.partition.segment_files import FoundFile, SegmentFiles
from kseg.log.partition.segment_tail import read_tail
from kseg.reading.damage import Damage
from kseg.reading.log_file import LogFile
from kseg.system.ranged_files import Identity, RangedBytes, forget, let_stand_for
from kseg.system.regular_file import open_regular
from kseg.tiered.lineage import Choice
from kseg.tiered.object_bytes import bytes_of
from kseg.tiered.object_store import ObjectStore
from kseg.tiered.private_keys import PrivateKeys
from kseg.tiered.remote_segment import RemoteSegment

_EXTENSIONS = {
    FileKind.LOG: ".log",
    FileKind.OFFSET_INDEX: ".index",
    FileKind.TIME_INDEX: ".timeindex",
    FileKind.TRANSACTION_INDEX: ".txnindex",
}


class StandingFiles:
    """Makes such files, and remembers them: they must be forgotten before they are removed."""

    def __init__(self, keys: PrivateKeys) -> None:
        """Takes the keys of encrypted segments."""
        self._keys = keys
        self._identities: list[Identity] = []
        self._paths: list[Path] = []

    def forget(self) -> None:
        """Forgets what they stand for."""
        forget(self._identities)

    def fetch_all(self) -> None:
        """Fetches all bytes of those that there are. Raises OpenError if they can't be had."""
        for path in self._paths:
            descriptor, _ = open_regular(path)
            os.close(descriptor)

    def measured(self, store: ObjectStore, segment: RemoteSegment, directory: Path) -> RemoteSegment:
        """A segment with its last offset and largest time, as its records tell them, through files in a directory."""
        directory.mkdir()
        try:
            tail = read_tail(self._files(store, segment, directory))
        except OpenError:
            return segment
        if tail.last is None:
            return segment
        return replace(segment, end_offset=tail.last.last_offset, max_timestamp=tail.max_timestamp)

    def _files(self, store: ObjectStore, segment: RemoteSegment, directory: Path) -> SegmentFiles:
        """Files that stand for a segment's log and offset index."""
        found = {}
        for kind in (FileKind.LOG, FileKind.OFFSET_INDEX):
            part = segment.files.get(kind)
            if part is not None:
                name = f"{segment.base_offset:020}{_EXTENSIONS[kind]}"
                self._let_stand(directory / name, bytes_of(store, part, self._keys))
                found[kind] = FoundFile(directory, name, part.size, segment.modified_ms)
        return SegmentFiles(segment.base_offset, found.get(FileKind.LOG), found.get(FileKind.OFFSET_INDEX))

    def place_segment(self, store: ObjectStore, choice: Choice, target: Path) -> None:
        """Makes the files of a segment. One that is used in part ends before the first batch that isn't wanted."""
        segment, stem = choice.segment, target / f"{choice.segment.base_offset:020}"
        is_cut = choice.end is not None and self._cut(store, segment, choice.end, stem)
        kinds = (FileKind.LOG,) if is_cut else tuple(_EXTENSIONS)
        for kind in kinds:
            part = segment.files.get(kind)
            path = stem.with_suffix(_EXTENSIONS[kind])
            if part is not None and not path.exists():
                self._let_stand(path, bytes_of(store, part, self._keys))
                _set_time(path, segment)

    def place_snapshot(self, store: ObjectStore, choice: Choice, target: Path, next_base: int | None) -> None:
        """Makes the producer snapshot of a segment's end: where the next one begins, else after its last offset."""
        part = choice.segment.files.get(FileKind.PRODUCER_SNAPSHOT)
        if part is None or not part.size or choice.end is not None:
            return
        end = choice.segment.end_offset
        offset = next_base if next_base is not None else None if end is None else end + 1
        path = target / f"{offset or 0:020}.snapshot"
        if offset is not None and not path.exists():
            self._let_stand(path, bytes_of(store, part, self._keys))

    def _cut(self, store: ObjectStore, segment: RemoteSegment, end: int, stem: Path) -> bool:
        """Makes the log of a segment below an offset, and its indexes; whether it has batches from there on."""
        assert segment.log is not None
        whole, path = stem.with_suffix(".whole"), stem.with_suffix(".log")
        identity = let_stand_for(str(whole), bytes_of(store, segment.log, self._keys))
        try:
            with LogFile(whole) as log_file:
                headers = (item for item in walk_headers(log_file) if not isinstance(item, Damage))
                position = next((item.position for item in headers if item.last_offset >= end), None)
        except OpenError:  # without the key
            position = None
        finally:
            forget((identity,))
            whole.unlink()
        if position is None:
            return False
        self._let_stand(path, bytes_of(store, segment.log, self._keys, position))
        with LogFile(path) as log_file:
            indexes = rebuild(log_file, segment.base_offset, states=ProducerStates())
        stem.with_suffix(".index").write_bytes(indexes.offset_index)
        stem.with_suffix(".timeindex").write_bytes(indexes.time_index)
        if indexes.transaction_index:
            stem.with_suffix(".txnindex").write_bytes(indexes.transaction_index)
        for suffix in (".log", ".index", ".timeindex"):
            _set_time(stem.with_suffix(suffix), segment)
        return True

    def _let_stand(self, path: Path, source: RangedBytes) -> None:
        self._identities.append(let_stand_for(str(path), source))
        self._paths.append(path)


def _set_time(path: Path, segment: RemoteSegment) -> None:
    os.utime(path, ns=(segment.modified_ms * 1_000_000,) * 2)

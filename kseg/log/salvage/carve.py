"""Finds the intact batches of a damaged log, wherever they are, for `salvage`.

Reading as in `LogFile.runs`; where that stops, every position up to where it would go on is tried, whatever offset a
header has: a wrong offset doesn't break a CRC.
"""

import re
from array import array
from collections.abc import Iterator

from kseg.formats.codes import BATCH_HEADER_SIZE, MAGIC_POSITION, DamageKind
from kseg.formats.header_fields import BATCH_RECORDS_COUNT, ENTRY_V0_KEY_LENGTH, ENTRY_V1_KEY_LENGTH
from kseg.formats.positions import PLAUSIBLE_ATTRIBUTES, claimed_size
from kseg.index.headers import end_of, intact_header
from kseg.kernel.contract import ROW
from kseg.reading.damage import Damage
from kseg.reading.log_file import BUFFER_SIZE, FIRST_SIZE, LogFile, Run
from kseg.reading.resync import HEADER_WINDOW

SEARCH_COST_LIMIT = 32
"""Bytes of CRC work that searches in a file may cost, for each byte that it takes on disk."""
_GIVEN_UP = "no intact batch was found here; the careful search was given up, since it took too long"
_SIZE = rb"(?!\0\0\0[\0-\x0d])[\0-\x7f].{7}"
_V0, _V1, _V2 = PLAUSIBLE_ATTRIBUTES.values()
_HEADER = re.compile(
    rb"(?s)(?=.{8}" + _SIZE + rb"(?:\x02.{4}\0%b[\0-\x7f]|\x01%b|\0%b))" % (_V2, _V1, _V0),
)
"""Where a header may stand: a size that isn't too small, a known magic, attributes that a release has used."""


def intact_runs(log_file: LogFile) -> Iterator[Run | Damage]:
    """Runs of batches whose CRC holds, and damages, in file order; their sizes add up to the file's."""
    position = 0
    search = _Search(log_file)
    while position < log_file.size and not log_file.has_given_up:
        for item in log_file.runs(position):
            damage = item if isinstance(item, Damage) else _wrong_crc(log_file, item)
            if damage is None:
                yield item
                position = end_of(item)
                continue
            found = search.first(damage.position + 1, damage.position + damage.size)
            position = damage.position + damage.size if found is None else found
            yield damage._replace(size=position - damage.position)
            if found is not None:
                break
        else:
            return
    yield from search.runs(position)


def _wrong_crc(log_file: LogFile, run: Run) -> Damage | None:
    """The damage that a run is, if it is that of a batch whose CRC is wrong."""
    start, size, is_valid = run.rows[:ROW]
    if is_valid:
        return None
    position = run.position + start
    return Damage(DamageKind.BAD_CRC, position, size, log_file.crc_damage(position, size).detail)


class _Search:
    """Looks for intact batches byte by byte, as long as its budget lasts."""

    def __init__(self, log_file: LogFile) -> None:
        self._log_file = log_file
        self._budget = SEARCH_COST_LIMIT * log_file.stored_size

    def runs(self, position: int) -> Iterator[Run | Damage]:
        """All that it finds from a position on, each batch as a run, and the damages between."""
        end = self._log_file.size
        while position < end:
            found = self.first(position, end)
            header = None if found is None else intact_header(self._log_file, found)
            following = end if header is None else header.position
            if following > position:
                yield Damage(DamageKind.BAD_LENGTH, position, following - position, _GIVEN_UP)
            position = end if header is None else header.end
            if header is not None:
                raw = memoryview(self._log_file.read(header.position, header.size))
                yield Run(raw, header.position, array("q", (0, len(raw), 1)), 1, 1 << header.codec)

    def first(self, start: int, end: int) -> int | None:
        """Where the first intact batch begins that does so from `start` to below `end`; None if none does."""
        most = FIRST_SIZE
        while start < end:
            stored, hole = self._log_file.next_stretch(start)
            start = max(start, stored - MAGIC_POSITION)
            size = min(most, end - start, max(hole - start, 1))
            most = BUFFER_SIZE
            window = self._log_file.read(start, size + BATCH_HEADER_SIZE)
            if len(window) < HEADER_WINDOW:
                return None
            if any(window):
                for match in _HEADER.finditer(window):
                    at = match.start()
                    if at >= size:
                        break
                    if self._is_batch(window, at, start + at):
                        return start + at
            start += size
        return None

    def _is_batch(self, window: bytes, at: int, position: int) -> bool:
        size = claimed_size(window, at)
        if size is None or size > self._log_file.size - position or not _fits(window, at, size):
            return False
        if not self._log_file.may_be_batch(position, size):
            return False
        self._budget -= size
        return self._budget > 0 and intact_header(self._log_file, position) is not None


def _fits(window: bytes, at: int, size: int) -> bool:
    """Whether the count of records, or the key's length, can be that of a batch of this size."""
    magic = window[at + MAGIC_POSITION]
    if magic == 2:
        return 0 <= BATCH_RECORDS_COUNT.read(window, at) <= size * 1000
    key_length = ENTRY_V1_KEY_LENGTH if magic == 1 else ENTRY_V0_KEY_LENGTH
    return -1 <= key_length.read(window, at) <= size

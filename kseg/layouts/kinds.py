"""Which kinds of files each release's tool knows, and what it does with others."""

from kseg.formats.names import FileKind
from kseg.releases import Since

_INDEXED = frozenset({FileKind.LOG, FileKind.OFFSET_INDEX})
_TIMED = _INDEXED | {FileKind.TIME_INDEX}
_TRANSACTIONAL = _TIMED | {FileKind.TRANSACTION_INDEX, FileKind.PRODUCER_SNAPSHOT}

DUMPED_KINDS: Since[frozenset[FileKind]] = (
    ((0, 8), _INDEXED),
    ((0, 10, 1), _TIMED),
    ((0, 11), _TRANSACTIONAL),
    ((3, 3), _TRANSACTIONAL | {FileKind.METADATA_SNAPSHOT}),
)

NAMES_UNKNOWN_FILES: Since[bool] = (((0, 8), False), ((0, 11), True))
"""Whether a file of another kind is spoken of, on stdout and stderr; before, it was passed over."""

DUMPING = "Dumping {path}"
UNREAD_RECORDS = "kseg: records of {count} batches weren't looked at; without --shallow, what is wrong in them is told"
IGNORING = "Ignoring unknown file {path}"

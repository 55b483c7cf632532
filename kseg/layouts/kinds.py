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
"""Whether the tool reports a file of another kind, on stdout and stderr; earlier releases skip it silently."""

DUMPING = "Dumping {path}"
UNREAD_RECORDS = "kseg: the records of {count} batches weren't checked; run without --shallow to check them"
IGNORING = "Ignoring unknown file {path}"

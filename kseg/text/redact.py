"""Text of `kseg redact`: replaced contents, contents turned into noise or zeros, and parts that stay readable."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kseg.errors import plural
from kseg.rewrite.redact import RedactedDirectory
from kseg.rewrite.redacted_names import NameKind
from kseg.sizes import human_size

SHOWN = 20
"""Most files of a kind that the text lists."""
READABLE = (
    "offsets, times, sizes and checksums of records",
    "producer ids, topic ids, cluster and node ids",
    "numbers and Kafka's own words in settings",
)
"""Parts that stay readable with any options."""


class RedactReport:
    """Results of a run for all directories together."""

    def __init__(self, kept: Sequence[NameKind], *, is_key_kept: bool) -> None:
        self._kept, self._is_key_kept = tuple(kept), is_key_kept
        self._names: dict[NameKind, set[str]] = {kind: set() for kind in NameKind}
        self._noise: Counter[str] = Counter()
        self._zeros: list[str] = []
        self._skipped: list[str] = []
        self.directories = self.files = self.size = self.batches = self.records = 0

    def add(self, redacted: RedactedDirectory) -> None:
        """Add the result for a directory."""
        self.directories += 1
        self.files += redacted.files
        self.size += redacted.size
        self.batches += redacted.batches
        self.records += redacted.records
        self._noise.update(redacted.noise)
        self._zeros += [str(redacted.place / name) for name in redacted.zeros]
        self._skipped += map(str, redacted.skipped)
        for kind, names in redacted.names.items():
            self._names[kind] |= names

    def as_object(self) -> dict[str, object]:
        """Return the report for JSON."""
        return {
            "type": "redaction",
            "directoryCount": self.directories,
            "fileCount": self.files,
            "bytes": self.size,
            "batches": self.batches,
            "records": self.records,
            "replacedNames": {str(kind): len(names) for kind, names in self._names.items() if names},
            "keptNames": [str(kind) for kind in self._kept],
            "noiseBytes": dict(self._noise),
            "zeroFiles": self._zeros,
            "skippedFiles": self._skipped,
        }

    def lines(self) -> Iterator[str]:
        """Return the report for people."""
        where = f"{plural(self.directories, 'directory', 'directories')}, {plural(self.files, 'file')}"
        yield f"redacted {where}, {human_size(self.size)}"
        yield f"  contents replaced: {plural(self.records, 'record')} in {plural(self.batches, 'batch', 'batches')}"
        replaced = ", ".join(f"{len(names):,} {kind}" for kind, names in self._names.items() if names)
        yield f"  names replaced: {replaced or 'none'}"
        if self._kept:
            yield f"  names kept: {', '.join(self._kept)}"
        for reason, size in sorted(self._noise.items()):
            yield f"  replaced by noise: {plural(size, 'byte')}, {reason}"
        yield from _limit_lines(
            [(f"  replaced by zeros, because the file isn't Kafka's: {name}") for name in self._zeros]
        )
        yield from _limit_lines(
            [f"  not copied, because it isn't a file or a directory: {path}" for path in self._skipped]
        )
        yield f"  still readable: {'; '.join(READABLE)}"
        if not self._is_key_kept:
            yield (
                "  this run's key is not stored, so another run gives other names; use --key-file to get the same"
                " names again"
            )


def _limit_lines(lines: Sequence[str]) -> Iterable[str]:
    more = len(lines) - SHOWN
    return lines if more <= 0 else (*lines[:SHOWN], f"  and {more} more")

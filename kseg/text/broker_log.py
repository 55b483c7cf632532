"""Statements of a broker's log about findings, and whether the doctor found them, as text and JSON."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from kseg.doctor.examination import CheckUp, Trouble
from kseg.doctor.kinds import KINDS, command_line
from kseg.errors import plural, shorten
from kseg.findings.broker_log import NamedCause, is_same_place
from kseg.findings.finding_kind import Severity
from kseg.formats.file_names import PartitionDirectory, parse_partition_directory
from kseg.output.pager import StyledLine

SHOWN = 3
"""Most lines of a log that are shown per kind."""
_WORDS = 160
_TIME = re.compile(r"^\[[^\]]*\] ")
_STYLES = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.NOTE: "1"}


class LogAnswer:
    """The causes that a broker's log names, and the doctor's findings about them."""

    def __init__(self, path: Path, causes: Sequence[NamedCause]) -> None:
        self.path = path
        self.causes = causes

    @property
    def is_well(self) -> bool:
        """True if the log has neither errors nor warnings."""
        return all(_severity(each.ids[0]) is Severity.NOTE for each in self.causes)

    def lines(self, found: CheckUp | None, *, verbose: bool) -> Iterator[StyledLine]:
        """Yield lines for people: each kind of cause, its lines in the log, the parts to look at, and the next command.

        found: the check-up of the given directories; None if none were examined.
        """
        if not self.causes:
            return
        yield StyledLine(0, f"{self.path}:", f"{plural(len(self.causes), 'cause')} in the broker's log")
        absent = "not found with --quick" if found and found.is_quick else "not found in the given directories"
        for alike in _by_kind((each, _trouble_of(each, found)) for each in self.causes):
            yield from _kind_lines(alike, len(alike) if verbose else SHOWN, None if found is None else absent)
        if found is not None:
            yield StyledLine(0)

    def objects(self, found: CheckUp | None) -> Iterator[dict[str, object]]:
        """Yield the same as objects for JSON."""
        for each in self.causes:
            trouble = _trouble_of(each, found)
            ids = _ids(each, trouble)
            yield {
                "type": "broker-log",
                "log": str(self.path),
                "line": each.line,
                "count": each.count,
                "text": each.text,
                "ids": list(ids),
                "severity": str(_severity(ids[0])),
                "place": each.place or None,
                "found": None if found is None else trouble is not None,
                "file": None if trouble is None else str(trouble.file),
                "command": _explain(ids[0]) if trouble is None else trouble.command,
            }


_Cause = tuple[NamedCause, Trouble | None]


def _severity(finding_id: str) -> Severity:
    return KINDS[finding_id].severity


def _ids(cause: NamedCause, trouble: Trouble | None) -> tuple[str, ...]:
    """Return the findings that a cause may be, or the one that the doctor found."""
    return cause.ids if trouble is None else (trouble.id,)


def _explain(finding_id: str) -> str:
    return command_line(["doctor", "--explain", finding_id])


def _by_kind(causes: Iterable[_Cause]) -> Iterator[list[_Cause]]:
    """Yield groups of causes with the same findings, in the order of the log."""
    kinds: dict[tuple[tuple[str, ...], bool], list[_Cause]] = {}
    for cause, trouble in causes:
        kinds.setdefault((_ids(cause, trouble), trouble is None), []).append((cause, trouble))
    yield from kinds.values()


def _kind_lines(alike: list[_Cause], shown: int, absent: str | None) -> Iterator[StyledLine]:
    """Yield the lines about a kind of cause.

    absent: the text for a cause that wasn't found; None if nothing was examined.
    """
    ids = _ids(*alike[0])
    severity = _severity(ids[0])
    others = f"or {ids[-1]}" if len(ids) > 1 else ""
    yield StyledLine(0, f"{severity} {', '.join(ids[:-1]) or ids[0]}", others, _STYLES[severity])
    for cause, trouble in alike[:shown]:
        times = f" ({plural(cause.count, 'time')})" if cause.count > 1 else ""
        yield StyledLine(2, text=f"line {cause.line}{times}: {shorten(_TIME.sub('', cause.text), _WORDS)}")
        if cause.place:
            yield StyledLine(4, text=f"check: {cause.place}")
        if absent is not None:
            yield StyledLine(4, text=absent if trouble is None else f"found: {trouble.file}")
    if len(alike) > shown:
        yield StyledLine(2, text=f"and {len(alike) - shown} more; -v lists them")
    if alike[0][1] is None:
        yield StyledLine(2, "next:", _explain(ids[0]))


def _trouble_of(cause: NamedCause, found: CheckUp | None) -> Trouble | None:
    """Return the doctor's finding about a cause at the place that the line names, or None if it doesn't exist."""
    fitting = [
        each for each in (found.troubles if found else ()) if each.id in cause.ids and _is_there(cause.place, each)
    ]
    return min(fitting, key=lambda each: cause.ids.index(each.id), default=None)


def _is_there(place: str, trouble: Trouble) -> bool:
    """Return True if a finding is at a place of the broker: in this partition, or in a file of this name.

    The given directories may be copies, so only the ends of paths are compared.
    """
    partition = _partition_in(PurePosixPath(place))
    if partition is not None:
        found = _partition_in(PurePosixPath(trouble.file))
        return found is not None and (found.topic, found.partition) == (partition.topic, partition.partition)
    return is_same_place(PurePosixPath(place).name, trouble.file.name)


def _partition_in(path: PurePosixPath) -> PartitionDirectory | None:
    """Return the partition whose directory, or a file in it, is at a path."""
    for name in (path.name, path.parent.name):
        if name and (directory := parse_partition_directory(name)) is not None:
            return directory
    return None

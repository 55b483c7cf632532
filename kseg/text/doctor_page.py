"""Findings of the doctor: a page for people, most severe first, and the same as JSON."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from kseg.doctor.examination import CheckUp, Disk, TopicUse, Trouble
from kseg.doctor.steps import Step, steps_of
from kseg.errors import plural
from kseg.findings.finding_kind import Severity
from kseg.formats.file_names import parse_partition_directory
from kseg.log.listing_rows import counted_directories
from kseg.output.chart import bar
from kseg.output.forms import Form
from kseg.output.pager import BOLD, FAINT, Fold, StyledLine, write_styled_lines
from kseg.sizes import human_size
from kseg.text.retention import now_fields
from kseg.text.start_forecast import assumptions, forecast_fields, forecast_sentence
from kseg.verify.start_effects import StartForecast

if TYPE_CHECKING:
    from kseg.text.broker_log import LogAnswer

NAMED, NAMED_LATER = 3, 1
"""Most places that are listed for the first kinds of trouble, and for the others."""
_FIRST_KINDS = 3
"""Number of kinds that the page explains. Further kinds only have their next steps."""
_TOPICS = 5
_GOOD = "1;32"
_STYLES = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.NOTE: BOLD}
"""Parameters of a terminal's SGR sequence: bold red, bold yellow, bold; bold green without findings."""


def page(found: CheckUp, *, is_complete: bool, verbose: bool) -> Iterator[StyledLine]:
    """Yield the lines of the page: the forecast of a start, the verdict, errors, warnings, disk usage, notes."""
    if found.forecast is not None and (found.partitions or not found.is_well):
        yield from _forecast_lines(found.forecast, is_all=is_complete and not found.is_quick)
    yield _verdict(found, is_complete=is_complete)
    yield StyledLine(0, "", _extent(found), FAINT)
    if not found.is_well:
        yield StyledLine(0)
    yield from serious_lines(found, verbose=verbose)
    yield from _use_lines(found, verbose=verbose)
    yield from _note_lines([each for each in found.troubles if each.severity is Severity.NOTE], verbose=verbose)


def _forecast_lines(forecast: StartForecast, *, is_all: bool) -> Iterator[StyledLine]:
    is_good = all(each.is_well for each in forecast.nodes)
    style = (_GOOD if is_all and forecast.is_of_all else BOLD) if is_good else _STYLES[Severity.ERROR]
    yield StyledLine(0, forecast_sentence(forecast, is_all=is_all), style=style)
    yield StyledLine(0, "", f"assumed: {assumptions(forecast)}", FAINT)


def serious_lines(found: CheckUp, *, verbose: bool) -> Iterator[StyledLine]:
    """Yield the errors and warnings by kind."""
    serious = [each for each in found.troubles if each.severity is not Severity.NOTE]
    for place, alike in enumerate(_by_kind(serious)):
        if place:
            yield StyledLine(0)
        if verbose:
            yield from _kind_lines(alike, len(alike))
        elif place < _FIRST_KINDS:
            yield from _kind_lines(alike, NAMED)
        else:
            yield from _short_lines(alike)


def _verdict(found: CheckUp, *, is_complete: bool) -> StyledLine:
    errors, warnings = found.count(Severity.ERROR), found.count(Severity.WARNING)
    seen = "no problems found" if found.is_quick else "no problems"
    what = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}" if errors or warnings else seen
    style = _STYLES[Severity.ERROR] if errors else _STYLES[Severity.WARNING] if warnings else _GOOD
    if not is_complete:
        style = style if errors else _STYLES[Severity.WARNING]
        what = f"{what} so far" if errors or warnings else "no problems found so far"
    return StyledLine(0, what, f"in {plural(found.partitions, 'partition')}, {human_size(found.size)}", style)


def _extent(found: CheckUp) -> str:
    if found.is_quick:
        return (
            "read: file names, small files, ends of logs; not read: contents, transactions, producers (run without"
            " --quick)"
        )
    return f"read: all bytes of the logs, {human_size(found.read)}"


def _by_kind(troubles: Iterable[Trouble]) -> Iterator[list[Trouble]]:
    """Yield groups of troubles of one kind, most severe kind first."""
    kinds: dict[str, list[Trouble]] = {}
    for each in troubles:
        kinds.setdefault(each.id, []).append(each)
    yield from kinds.values()


def _kind_lines(alike: list[Trouble], named: int) -> Iterator[StyledLine]:
    """Yield the meaning of a kind of trouble, its risk, some of its places, and the next steps.

    If all places are listed, each has its own next step.
    """
    first = alike[0]
    yield _title(alike)
    yield StyledLine(2, text=f"{first.kind.meaning} Risk: {first.kind.risk}", fold=Fold.ALWAYS)
    steps = steps_of(alike)
    own = {step.troubles[0]: step for step in steps[1:] if len(step.troubles) == 1}
    for each in alike[:named]:
        yield StyledLine(2, text=_place(each))
        if named >= len(alike) and each in own:
            yield _next(4, own[each])
    yield from _end_lines(alike, named, [step for step in steps if step.troubles[0] not in own])


def _short_lines(alike: list[Trouble]) -> Iterator[StyledLine]:
    """Yield a kind of trouble without its meaning, and its most severe place."""
    yield _title(alike)
    yield StyledLine(2, text=_place(alike[0]))
    yield from _end_lines(alike, NAMED_LATER, steps_of(alike)[:1])


def _end_lines(alike: list[Trouble], named: int, steps: list[Step]) -> Iterator[StyledLine]:
    if len(alike) > named:
        yield StyledLine(2, text=f"and {len(alike) - named} more; -v lists them")
    for step in steps:
        yield _next(2, step)


def _next(indent: int, step: Step) -> StyledLine:
    """Return the next command, with the number of partitions if it covers several."""
    homes = {each.directory for each in step.troubles}
    several = f", for {plural(len(homes), 'partition')}" if len(homes) > 1 else ""
    return StyledLine(indent, f"next{several}:", step.line, fold=Fold.NEVER)


def _title(alike: list[Trouble]) -> StyledLine:
    """Return the severity and name of a kind of trouble, and the number of its places."""
    first = alike[0]
    homes = {home for home in map(_home, alike) if home is not None}
    places = f" in {plural(len(homes), 'partition')}" if homes else ""
    spread = "" if len(alike) == 1 else f"{len(alike)}{places}"
    return StyledLine(0, f"{first.severity} {first.id}{':' if spread else ''}", spread, _STYLES[first.severity])


def _home(each: Trouble) -> object:
    """Return the partition of a trouble, or None if it concerns no partition."""
    if each.topic is not None:
        return each.topic, each.partition
    named = (parse_partition_directory(path) for path in (each.file, each.file.parent))
    return next(((name.topic, name.partition) for name in named if name is not None), None)


def _place(each: Trouble) -> str:
    """Return the place of a trouble, its text, and the bytes it holds back."""
    position = "" if each.position is None else f" at position {each.position}:"
    held_back = "" if not each.held_back else f"; holds back {plural(each.held_back, 'offset')}"
    return f"{each.file}:{position} {each.sentence}{held_back}"


def _use_lines(found: CheckUp, *, verbose: bool) -> Iterator[StyledLine]:
    """Yield the usage of the disks, and the largest topics."""
    if not found.topics:
        return
    yield StyledLine(0)
    yield StyledLine(0, "disk")
    for disk in found.disks:
        yield StyledLine(2, text=_disk_text(disk))
    topics = found.topics if verbose else found.topics[:_TOPICS]
    for use in topics:
        yield StyledLine(2, text=_topic_text(use, found.topics[0].size))
    if len(found.topics) > len(topics):
        rest = found.topics[len(topics) :]
        yield StyledLine(2, text=f"and {plural(len(rest), 'topic')} more, {human_size(sum(use.size for use in rest))}")


def _disk_text(disk: Disk) -> str:
    used = 100 * (disk.size - disk.available) // disk.size
    places = ", ".join(map(str, disk.log_dirs[:2])) + (" …" if len(disk.log_dirs) > 2 else "")
    return (
        f"{places}: this machine's disk, {used} % of {human_size(disk.size)} in use, {human_size(disk.available)} free"
    )


def _topic_text(use: TopicUse, largest: int) -> str:
    due = f"; {human_size(use.due)} past retention" if use.due else ""
    due = f"; {human_size(use.not_in_use)} not in use{due}" if use.not_in_use else due
    directories = counted_directories(use.partitions, use.copies, use.set_aside)
    return f"{human_size(use.size):>12} {bar(use.size, largest)} {use.topic}, {directories}{due}"


def _note_lines(notes: list[Trouble], *, verbose: bool) -> Iterator[StyledLine]:
    """Yield notes with a next step by kind, and the number of the others."""
    if not notes:
        return
    yield StyledLine(0)
    idle = [each for each in notes if each.command is None]
    for alike in _by_kind(each for each in notes if each.command is not None):
        if verbose:
            yield from _kind_lines(alike, len(alike))
            continue
        yield StyledLine(0, f"note {alike[0].id}:", _note(alike), FAINT)
        yield _next(2, steps_of(alike)[0])
    if verbose:
        for alike in _by_kind(idle):
            yield from _kind_lines(alike, len(alike))
    elif idle:
        counts = Counter(each.id for each in idle)
        named = ", ".join(f"{count} {name}" for name, count in counts.items())
        yield StyledLine(0, "no action needed:", f"{named}; -v lists them", FAINT)


def _note(alike: list[Trouble]) -> str:
    """Return one line about the notes of one kind: the only note, or their number and bytes."""
    if len(alike) == 1:
        return _place(alike[0])
    variants = Counter(each.variant for each in alike if each.variant is not None)
    named = ", ".join(f"{count} {variant}" for variant, count in variants.items())
    size = sum(each.size or 0 for each in alike)
    of = f", {human_size(size)}" if size else ""
    return f"{len(alike)}{f' ({named})' if named else ''}{of}; the first: {_place(alike[0])}"


def check_up_objects(found: CheckUp, *, is_complete: bool, quiet: bool = False) -> Iterator[dict[str, object]]:
    """Yield findings; unless `quiet`, also disks, topics and a summary."""
    yield from map(trouble_object, found.troubles)
    if quiet:
        return
    for disk in found.disks:
        directories = list(map(str, disk.log_dirs))
        yield {"type": "disk", "directories": directories, "bytes": disk.size, "availableBytes": disk.available}
    for use in found.topics:
        yield {
            "type": "topic",
            "topic": use.topic,
            "partitions": use.partitions,
            "copyCount": use.copies,
            "setAside": use.set_aside,
            "segments": use.segments,
            "bytes": use.size,
            "bytesNotInUse": use.not_in_use,
            "bytesToDelete": use.due,
        }
    result = ("ok" if is_complete else "incomplete") if found.is_well else "findings"
    counts = {f"{severity}s": found.count(severity) for severity in Severity}
    is_all = is_complete and not found.is_quick
    start = {} if found.forecast is None else forecast_fields(found.forecast, is_all=is_all)
    sizes = {"partitions": found.partitions, "bytes": found.size, "bytesRead": found.read, "quick": found.is_quick}
    yield {"type": "summary", "result": result, **sizes, **counts, **now_fields(found.now), **start}


def trouble_object(each: Trouble) -> dict[str, object]:
    """Return a trouble for JSON."""
    return {
        "type": "finding",
        "id": each.id,
        "severity": str(each.severity),
        "file": str(each.file),
        "topic": each.topic,
        "partition": each.partition,
        "position": each.position,
        "firstOffset": each.first_offset,
        "lastOffset": each.last_offset,
        "producerId": each.producer_id,
        "bytes": each.size,
        "heldBack": each.held_back,
        "records": each.records,
        "sentence": each.sentence,
        "command": each.command,
    }


class DoctorReport:
    """A context manager that writes a check-up on exit, so that an interrupted run shows its findings so far."""

    def __init__(
        self, form: Form, result: Callable[[], CheckUp], *, verbose: bool, quiet: bool, color: bool | None
    ) -> None:
        """Take the form, the function that returns the check-up, and the level of detail.

        verbose: every place, topic and note. quiet: only findings, in text only errors and warnings. color: None lets
        the terminal decide. is_complete: whether everything was examined. log_answer: the answer from a broker's log,
        which is printed first.
        """
        self._form = form
        self._result = result
        self._verbose = verbose
        self._quiet = quiet
        self._color = color
        self.is_complete = False
        self.log_answer: LogAnswer | None = None

    def __enter__(self) -> "DoctorReport":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        found = self._result()
        has_page = bool(found.partitions or found.troubles or self.is_complete)
        if not (has_page or self.log_answer or self._form.has_objects):
            return  # nothing could be opened; stderr has the reason
        if self._form.has_objects:
            for each in self.log_answer.objects(found if has_page else None) if self.log_answer else ():
                self._form.write_object(each)
            for each in check_up_objects(found, is_complete=self.is_complete, quiet=self._quiet):
                self._form.write_object(each)
            return
        write_styled_lines(self._lines(found, has_page=has_page), color=self._color)

    def _lines(self, found: CheckUp, *, has_page: bool) -> Iterator[StyledLine]:
        if self.log_answer is not None:
            yield from self.log_answer.lines(found if has_page else None, verbose=self._verbose)
        if self._quiet:
            yield from serious_lines(found, verbose=self._verbose)
        elif has_page:
            yield from page(found, is_complete=self.is_complete, verbose=self._verbose)

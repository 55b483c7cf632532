"""The summary of a report: problems, disk usage and its forecast, unread files, and the time used as now."""

from collections.abc import Iterator, Sequence
from itertools import chain
from types import MappingProxyType

from kseg.cluster.now import NowSource
from kseg.errors import plural
from kseg.report.block import About, Block, Sentence, SummaryPart, Weight, sorted_verdicts
from kseg.report.blocks.sizes import disk_verdicts
from kseg.report.gather import ReportFacts
from kseg.report.sums import share_text
from kseg.sizes import human_size
from kseg.times import time_text

_SOURCES = MappingProxyType(
    {
        NowSource.GIVEN: "given by --now",
        NowSource.CLOCK: "the clock of the machine that made the report",
        NowSource.DISK: "the latest time that a broker wrote, because no broker uses the disk",
        NowSource.FILES: (
            "the latest modification time of a log file, because no broker's time is known; copying may have changed it"
        ),
    }
)
_MOST_PROBLEMS, _MOST_TOPICS = 5, 5
"""Most problems and topics, so that the summary fits on a printed page."""


def summary_of(known: ReportFacts, about: About, blocks: Sequence[Block], unread: int) -> tuple[SummaryPart, ...]:
    """Return the parts of the summary, which repeats results of the blocks.

    unread: number of unreadable files.
    """
    by_id = {block.id: block for block in blocks}
    return (
        SummaryPart("problems", "Problems", tuple(_problems(blocks))),
        SummaryPart("space", "Usage", tuple(_space(known, by_id["bytes"]))),
        SummaryPart("forecast", "Forecast", tuple(_forecast(by_id["forecast"]))),
        SummaryPart("unread", "Scope", tuple(map(Sentence, _describe_unread(known, about, unread)))),
        SummaryPart("now", "As of", tuple(map(Sentence, _now(known, about)))),
    )


def _problems(blocks: Sequence[Block]) -> Iterator[Sentence]:
    """Yield problems, most severe first, with next steps; for a disk without problems, one sentence."""
    found = [verdict for _, verdict in sorted_verdicts(blocks) if verdict.weight is not Weight.PLAIN]
    yield from found[:_MOST_PROBLEMS]
    if len(found) > _MOST_PROBLEMS:
        yield Sentence(f"The sections below have {len(found) - _MOST_PROBLEMS} more.", None, Weight.WATCH)
    if not found:
        yield from chain.from_iterable(block.verdicts for block in blocks if block.id == "findings")


def _space(known: ReportFacts, sizes: Block) -> Iterator[Sentence]:
    total = sum(each.disk_size for each in known.partitions)
    logs = human_size(sum(each.size for each in known.partitions))
    yield Sentence(f"{plural(len(known.partitions), 'partition')}: {human_size(total)} on disk, {logs} in logs.")
    yield from disk_verdicts(known)
    rows = next(table.rows for table in sizes.tables if table.id == "topics")[:_MOST_TOPICS]
    texts = (f"{row[0]} {human_size(int(row[2] or 0))} ({share_text(float(row[1] or 0))})" for row in rows)
    if rows:
        yield Sentence(f"Largest topics: {', '.join(texts)}.")


def _forecast(forecast: Block) -> Iterator[Sentence]:
    days = next(table.rows for table in forecast.tables if table.id == "forecast")
    if due := days[0][1]:
        yield Sentence(f"{human_size(int(due))} due for deletion now.")
    yield from forecast.verdicts


def _describe_unread(known: ReportFacts, about: About, unread: int) -> Iterator[str]:
    yield f"Read: {about.read}."
    if unread:
        yield f"{plural(unread, 'file')} can't be read; standard error lists them."
    if known.choices.now.source is NowSource.GIVEN:
        yield "Disk usage: omitted, because --now is set."
    if known.groups is None:
        yield "Group lags: --quick reads none." if known.choices.is_quick else "Group lags: no groups found."
    if known.cluster is None:
        yield "Cluster metadata: not found, so topic settings are unknown."


def _now(known: ReportFacts, about: About) -> Iterator[str]:
    source = _SOURCES[known.choices.now.source]
    yield f"{about.time_text}, {source}."
    last = max((each.last_time for each in known.partitions), default=-1)
    yield (
        f"The latest timestamp of a record is {time_text(last, known.choices.zone)}."
        if last >= 0
        else ("No record has a timestamp.")
    )

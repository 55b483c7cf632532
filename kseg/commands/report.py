"""`kseg report`: makes a page about a disk."""

import os
from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path
from typing import NamedTuple

import click

from kseg.cluster.now import Now, settle_now
from kseg.commands.options.command import REDACT_KEY, WorkOptions, command
from kseg.doctor.examination import plan_examination
from kseg.doctor.kinds import command_line
from kseg.errors import plural
from kseg.log.selection import PartitionChoice
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout
from kseg.redaction import Redaction
from kseg.report.gather import Choices
from kseg.report.page import check_place, write_report
from kseg.report.reporting import Reading, make_report
from kseg.sizes import human_size
from kseg.store.target import NewFile
from kseg.times import parse_zone, time_or_none


class ReportOptions(NamedTuple):
    """The contents of a report, and the time used as now."""

    quick: bool
    days: int
    show_keys: bool
    redact_key: str | None
    speeds: bool
    price: float | None
    replicas: int
    now: str | None

    def choices(self, now: Now, zone: tzinfo) -> Choices:
        """Return the choices of the options, with the time used as now."""
        text = os.environ.get(REDACT_KEY) if self.redact_key is None else self.redact_key
        redaction = None if text is None else Redaction.of(("keys",), text)
        return Choices(
            now,
            zone,
            is_quick=self.quick,
            days=self.days,
            shows_keys=self.show_keys,
            redact_key=None if redaction is None else redaction.key,
            times_codecs=self.speeds,
            price=self.price,
            replicas=self.replicas,
        )


class PageOptions(NamedTuple):
    """The file of the page, its form, and the zone of its times."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    shown: ReportOptions
    file: Path | None
    zone: str
    output: str
    server_properties: Mapping[str, str]
    work: WorkOptions
    talk: Talk


@command(PageOptions)
def report(options: PageOptions) -> None:
    """Write a report about a disk.

    Use `report` to show the state of a disk to others. One HTML page has its problems, the topics that fill it, coming
    deletions, and possible savings. The page needs neither a network nor JavaScript.

    \b
    Examples:
      kseg report kafka-logs/ --to report.html
      kseg report disk1/ disk2/ --quick --to quick.html
      kseg report kafka-logs/ -o text
      kseg report kafka-logs/ -o json | jq -c 'select(.table == "topics")'

    PATHS are log directories (all disks of a broker together), partition directories, or parents of these; by default
    the current directory. The page begins with a summary for one sheet of paper, which -o text prints too, and with
    verdicts, each with the command that shows more. Charts and tables follow: findings of `kseg doctor`, sizes,
    segments over time, deletions by day, written bytes by time, fill of batches, codecs and their alternatives, sizes
    of messages, hot keys, compaction, out-of-order timestamps, producers, transactions, groups, replicas, and
    contradictory settings. The numbers are in it as JSON too.

    `report` reads every byte of the logs once. --quick reads names, indexes and headers of batches: it doesn't know
    keys, tombstones, message sizes and compression ratios, and can't find damage within logs.

    With --now, the page doesn't say how full the disks are; the same input then gives the same bytes. The exit status
    is 1 if there are errors or warnings.
    """
    paths, work, talk, zone = options.paths, options.work, options.talk, parse_zone(options.zone)
    file = options.file
    check_place(options.output, file)
    new = None if file is None else NewFile(file, paths)
    given_ms = time_or_none(options.shown.now, zone)
    plan = plan_examination(paths, talk.refuse, options.choice)
    if not plan.orders:
        return
    now = settle_now(given_ms, plan.cluster)
    choices = options.shown.choices(now, zone)
    unread = lambda path, reason: talk.note(f"{path}: not read: {reason}: retention is Kafka's default here")  # noqa: E731
    processes = work.begin()
    with talk.bar() as bar:
        on_read = bar.counting("report", plan.size)
        reading = Reading(
            processes,
            keep_cache=work.keep_cache,
            refuse=talk.refuse,
            on_read=on_read,
            on_unread=unread,
            static=options.server_properties,
        )
        made = make_report(
            plan, choices, reading, command_line(click.get_current_context().find_root().obj or ("report",))
        )
    size = write_report(made, options.output, new, zone)
    flush_stdout()
    if file is not None:
        talk.note(f"{file}: {human_size(size)}, {plural(len(made.verdicts), 'verdict')}")
    talk.note(*now.sentences())
    talk.end_with(not made.is_well)

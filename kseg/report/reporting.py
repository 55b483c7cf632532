"""The report: its table of blocks, made from gathered facts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kseg.cluster.directories import LogDir
from kseg.cluster.metadata_copy import CHEAP_METADATA, AdjacentMetadata, OnUnread
from kseg.coordinators.groups import read_groups
from kseg.coordinators.members import Group
from kseg.doctor.check_up import CheckUpInWork
from kseg.doctor.examination import ExaminationSettings
from kseg.errors import FileError, KsegError, UsageError, plural
from kseg.log.listing_rows import counted_directories
from kseg.report.block import GLOSSARY, About, Block, DiskReport, ReadDirectory
from kseg.report.blocks.batches import batches_block, codecs_block, producers_block, transactions_block
from kseg.report.blocks.keys import compaction_block, keys_block, skew_block
from kseg.report.blocks.sizes import bytes_block, codec_trial_block, cost_block, sizes_block, take_samples
from kseg.report.blocks.state import findings_block, groups_block, replicas_block, settings_block
from kseg.report.blocks.traffic import forecast_block, rate_block, timelines_block, times_block
from kseg.report.gather import Choices, ReportFacts, survey
from kseg.report.summary import summary_of
from kseg.report.sums import share_text
from kseg.sizes import human_size
from kseg.system.shared_work import OnRead
from kseg.times import time_text
from kseg.verify.verify import VerificationPlan
from kseg.version import VERSION

BLOCKS: tuple[Callable[[ReportFacts], Block], ...] = (
    findings_block,
    bytes_block,
    skew_block,
    timelines_block,
    forecast_block,
    rate_block,
    batches_block,
    codecs_block,
    codec_trial_block,
    sizes_block,
    keys_block,
    compaction_block,
    times_block,
    producers_block,
    transactions_block,
    groups_block,
    replicas_block,
    settings_block,
    cost_block,
)


def report_of(known: ReportFacts, about: About, unread: int) -> DiskReport:
    """Return the report of the gathered facts; empty blocks are omitted.

    unread: as for the summary.
    """
    blocks = [make(known) for make in BLOCKS]
    told = tuple(block for block in blocks if block.verdicts or block.tables or block.notes)
    return DiskReport(about, summary_of(known, about, blocks, unread), told, GLOSSARY, is_well=known.check_up.is_well)


Refuse = Callable[[KsegError], object]


@dataclass(frozen=True, slots=True)
class Reading:
    """Settings of reading.

    processes: number of processes, as in `shared_work`. keep_cache: leave read data in the page cache. refuse: takes
    errors of unreadable files; the others are read. on_read: takes the bytes of logs read since the last call.
    on_unread: takes unread metadata, and the reason. static: the settings in the broker's server.properties.
    """

    processes: int | None = None
    keep_cache: bool = False
    refuse: Refuse | None = None
    on_read: OnRead | None = None
    on_unread: OnUnread | None = None
    static: Mapping[str, str] = field(default_factory=dict)


def make_report(plan: VerificationPlan, choices: Choices, reading: Reading, command: str) -> DiskReport:
    """Return the report about a plan of `plan_examination`; `command`: the command line that creates it again.

    The current usage of disks is omitted if the time was given. Raises UsageError if the directories belong to several
    clusters, whose topics differ.
    """
    settings = ExaminationSettings(
        choices.now,
        is_quick=choices.is_quick,
        keep_cache=reading.keep_cache,
        tells_cleaning=True,
        static=reading.static,
    )
    known = ReportFacts(choices, plan.cluster.partitions())
    check_up = CheckUpInWork(plan, now=choices.now, is_quick=choices.is_quick, zone=choices.zone)
    work = survey(plan, settings, processes=reading.processes, on_read=reading.on_read, on_unread=reading.on_unread)
    unread = 0
    for surveyed in work:
        unread += len(surveyed.examined.verified.problems)
        known.take(surveyed)
        check_up.take(surveyed.examined)
        if reading.refuse is not None:
            for problem in surveyed.examined.verified.problems:
                reading.refuse(problem)
    check_up.take_commits()
    found = check_up.result()
    known.check_up = found if choices.now.given_ms is None else replace(found, disks=())
    log_dirs = dict.fromkeys(plan.cluster.metadata_dirs())
    known.cluster = AdjacentMetadata(CHEAP_METADATA if choices.is_quick else None).of_any(log_dirs)
    if not choices.is_quick:
        take_samples(known)
        known.groups = _groups(plan.cluster.paths)
    return report_of(known, _about(plan, known, command), unread)


def _groups(paths: Sequence[Path]) -> tuple[Group, ...] | None:
    """Return the groups of `__consumer_offsets`, or None if it is missing or unreadable."""
    try:
        return read_groups(paths).groups
    except (FileError, UsageError):  # the copies belong to several clusters
        return None


def _about(plan: VerificationPlan, known: ReportFacts, command: str) -> About:
    sources = [_read_directory(log_dir) for log_dir in plan.log_dirs]
    sources = sources or [ReadDirectory(str(path), None, None) for path in known.log_dirs]
    places = plural(len(plan.log_dirs) or len(known.log_dirs), "log directory", "log directories")
    size = known.check_up.size
    topics = plural(len({each.topic for each in known.partitions}), "topic")
    in_use = known.in_use
    cluster_of = plan.cluster.cluster_of
    distinct = {(cluster_of(each.partition.log_dir), each.topic, each.partition.partition) for each in in_use}
    copies = len(in_use) - len(distinct)
    partitions = counted_directories(len(known.partitions), copies, len(known.not_in_use))
    counts = f"{partitions}, {topics}, {human_size(size)}"
    return About(
        title=f"{places}: {counts}",
        version=f"kseg {VERSION}",
        command=command,
        time_text=time_text(known.choices.now_ms, known.choices.zone),
        now=known.choices.now,
        read=_read_text(known),
        sources=tuple(sources),
        partitions=len(known.partitions),
        size=size,
    )


def _read_directory(log_dir: LogDir) -> ReadDirectory:
    """Return a log directory with the ids of its cluster and its node, if it has them."""
    return ReadDirectory(str(log_dir.path), log_dir.identity.cluster_id, log_dir.identity.broker)


def _read_text(known: ReportFacts) -> str:
    if known.choices.is_quick:
        return "file names, indexes and the header of every batch, but no records (--quick)"
    read, size = known.check_up.read, known.check_up.size
    share = share_text(read / size) if size else "100 %"
    return f"every record: {human_size(read)}, {share} of the logs"

"""A run of a restore: it creates topics, sends records, reads them back, commits groups, and applies settings."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from kseg.client.brokers import Brokers, Place
from kseg.errors import ClusterError, KsegError, UsageError
from kseg.restore.check import DifferentError, check_partition
from kseg.restore.filler import delete_filler
from kseg.restore.groups import GroupOutcome, GroupState, commit_group, group_states
from kseg.restore.job import Job, JobRecord
from kseg.restore.plan import Plan, RestoreRequest, options_digest
from kseg.restore.send import OnSent, Prepared, Sender
from kseg.restore.topics import (
    SettingOutcome,
    SettingState,
    changed_settings,
    check_existing,
    create_topic,
    finish_topic,
    make_safe,
    pending_settings,
)


class Step(Enum):
    """Steps of a run that take time."""

    SEND = "send"
    CHECK = "check"


REWRITE_SECONDS = 3600
"""The time after which a run writes the restore's record again: a broker removes an empty group's offsets."""
OnStep = Callable[[Step], OnSent]
"""Takes a step that begins, and returns what counts its records and bytes."""


@dataclass(frozen=True)
class RestoreReport:
    """The result of a run.

    was_done: an earlier run had restored everything, and this one only checked it; settings are those that it left to
    the user, and that still are as it left them. shortened: names of partitions from
    which the target has removed records since another run ended, so that only those before them were compared.
    """

    plan: Plan
    was_done: bool
    sent_records: int
    groups: tuple[GroupOutcome, ...]
    settings: tuple[SettingOutcome, ...]
    shortened: tuple[str, ...] = ()

    @property
    def is_incomplete(self) -> bool:
        """True if something wasn't restored."""
        return (
            self.plan.is_incomplete
            or any(each.state is not GroupState.COMMITTED for each in self.groups)
            or any(each.state is SettingState.REFUSED for each in self.settings)
        )


def job_name(plan: Plan, request: RestoreRequest) -> str:
    """Return the name of the restore's record: the given one, the id of the source's cluster, or a digest of it."""
    return request.job or plan.cluster_id or plan.source_digest


def run_restore(brokers: Brokers, plan: Plan, request: RestoreRequest, on_step: OnStep) -> RestoreReport:
    """Restore everything in a plan; continues where an earlier run ended.

    Raises:
        UsageError: the target has such topics already, or another restore's record.
        ClusterError: brokers don't answer or refuse something, or a record that was read back differs.
        OpenError: a source's log can't be read.
    """
    record = JobRecord(brokers, job_name(plan, request))
    job = _begin(brokers, plan, request, record)
    counted = _Counted()
    prepared = _prepare(plan, job)
    if not job.is_done:
        record.write(job)
        for each in plan.topics:
            make_safe(brokers, each)
        on_sent = counted.with_bar(_kept(record, job, on_step(Step.SEND)))
        Sender(brokers, job.producer, on_sent, request.rate).send({each.place: each for each in prepared})
    # A broker that is killed within a minute forgets the deletion, so later runs repeat it.
    filled = [each for each in plan.partitions if each.is_filled]
    delete_filler(brokers, filled, may_be_compacted=job.is_done)
    on_checked = on_step(Step.CHECK) if job.is_done else _kept(record, job, on_step(Step.CHECK))
    shortened = tuple(_check(brokers, prepared, job, record, on_checked))
    topics = tuple(each._replace(settings=job.settings.get(each.target, each.settings)) for each in plan.topics)
    if job.is_done:
        pending = tuple(pending_settings(brokers, topics, request.final_settings))
        return RestoreReport(plan, True, 0, (), pending, shortened)
    states = group_states(brokers)
    groups = tuple(commit_group(brokers, each, states.get(each.name, "")) for each in plan.groups if each.offsets)
    settings = tuple(own for each in topics for own in finish_topic(brokers, each, request.final_settings))
    record.finish(job)
    return RestoreReport(plan, False, counted.records, groups, settings, shortened)


def _kept(record: JobRecord, job: Job, show: OnSent) -> OnSent:
    """Return what passes numbers on, and from time to time writes the record again unless another run has ended."""
    written = time.monotonic()

    def count(records: int, size: int) -> None:
        nonlocal written
        show(records, size)
        if time.monotonic() - written >= REWRITE_SECONDS:
            other = record.read()
            if other is None or not other.is_done:
                record.write(job)
            written = time.monotonic()

    return count


def _check(
    brokers: Brokers, prepared: list[Prepared], job: Job, record: JobRecord, on_checked: OnSent
) -> Iterator[str]:
    """Compare all partitions; yield the names of those from which the target has removed records."""
    for each in prepared:
        try:
            is_whole = check_partition(brokers, each, on_checked, may_be_shortened=job.is_done)
        except DifferentError:
            other = record.read()  # another run may have ended meanwhile, and turned the cleaner on
            if job.is_done or other is None or not other.is_done:
                raise
            is_whole = check_partition(brokers, each, on_checked, may_be_shortened=True)
        if not is_whole:
            yield each.name


def _begin(brokers: Brokers, plan: Plan, request: RestoreRequest, record: JobRecord) -> Job:
    """Create the topics, and return the restore's record, which exists before the first batch is sent.

    Raises as `run_restore`.
    """
    topics = brokers.topics({each.target for each in plan.topics})
    check_existing(topics, plan.topics)
    job = record.read()
    ends = {} if job is not None else _ends_of(brokers, plan, topics)
    if any(ends[each.place] != each.begin for each in plan.partitions if each.place in ends):
        job = record.read()  # another run may have written it, and records, since
        if job is None:
            raise _not_empty(plan, request, record, ends)
    if job is not None:
        _check_same(job, plan, request, record)
    for each in plan.topics:
        if each.target not in topics:
            create_topic(brokers, each)
    brokers.leaders([each.place for each in plan.partitions])
    if job is None:
        with_records = {each.place[0] for each in plan.partitions if each.begin}
        settings = changed_settings(brokers, with_records)
        job = record.claim(
            lambda producer: Job(
                producer, plan.source_digest, options_digest(request), bases=plan.bases, settings=settings
            )
        )
        _check_same(job, plan, request, record)
    is_done = job.is_done and not _lacks_records(brokers, plan)
    return replace(job, is_done=is_done, bases=plan.bases)  # a broker removes those of deleted topics


def is_restored(brokers: Brokers, plan: Plan, request: RestoreRequest) -> bool:
    """Return True if an earlier run has restored everything, so that another one only compares. Raises ClusterError."""
    job = JobRecord(brokers, job_name(plan, request)).read()
    names = {each.target for each in plan.topics}
    return (
        job is not None and job.is_done and names <= brokers.topics(names).keys() and not _lacks_records(brokers, plan)
    )


def _not_empty(plan: Plan, request: RestoreRequest, record: JobRecord, ends: Mapping[Place, int]) -> KsegError:
    """Return the error for a topic of the target that has records, or more than in the plan."""
    found = next(each for each in plan.partitions if ends.get(each.place, each.begin) != each.begin)
    if request.appends:
        return ClusterError(
            f"{found.name}: another program writes to it: its log ended at offset {found.begin}, and ends at"
            f" {ends[found.place]} now; stop that program, then run the command again"
        )
    return UsageError(
        f"topic {found.place[0]} of the target isn't empty, and no restore {record.group} has begun there; delete the"
        " topic, specify another name by --topic-map, or add the records by --append"
    )


def _lacks_records(brokers: Brokers, plan: Plan) -> bool:
    """Return whether a log of the target ends too early: its topic was deleted since, or its brokers lost records."""
    ends = brokers.end_offsets([each.place for each in plan.partitions])
    return any(ends[each.place] < each.end for each in plan.partitions)


def forget(brokers: Brokers, name: str) -> bool:
    """Remove a restore's record from the target; return whether there was one. Raises ClusterError."""
    return JobRecord(brokers, name).forget()


class _Counted:
    """The number of records that were sent."""

    def __init__(self) -> None:
        self.records = 0

    def with_bar(self, show: OnSent) -> OnSent:
        """Return what counts records, and passes the numbers on."""

        def count(records: int, size: int) -> None:
            self.records += records
            show(records, size)

        return count


def _prepare(plan: Plan, job: Job) -> list[Prepared]:
    largest = {each.target: each.most_bytes for each in plan.topics}
    return [
        Prepared(
            each.place,
            each.source,
            each.survey,
            largest[each.place[0]],
            base=each.base,
            begin=each.begin,
            is_appended=each.place[0] in job.settings,
        )
        for each in plan.partitions
    ]


def _ends_of(brokers: Brokers, plan: Plan, topics: Collection[str]) -> dict[Place, int]:
    """Return the ends of the target's logs in some topics."""
    places = [each.place for each in plan.partitions if each.place[0] in topics]
    return brokers.end_offsets(places) if places else {}


def fit_replicas(brokers: Brokers, plan: Plan, request: RestoreRequest) -> Plan:
    """Return a plan without more replicas than brokers, unless the request has a number of replicas."""
    return plan if request.replication_factor else plan.limit_replicas(len(brokers.ids))


def append_plan(brokers: Brokers, plan: Plan, request: RestoreRequest) -> Plan:
    """Return the plan of a restore that appends: partitions begin where the target's logs end, or an earlier run began.

    Raises:
        UsageError: a topic of the target has another number of partitions.
        ClusterError: brokers don't answer.
    """
    job = JobRecord(brokers, job_name(plan, request)).read()
    topics = brokers.topics({each.target for each in plan.topics})
    check_existing(topics, plan.topics)
    if job is None:
        return plan.append_to(_ends_of(brokers, plan, topics))
    return plan.append_to(job.bases)


def _check_same(job: Job, plan: Plan, request: RestoreRequest, record: JobRecord) -> None:
    """Raise UsageError if a restore's record is of other disks or options."""
    what = "sources" if job.source != plan.source_digest else "options"
    if job.source != plan.source_digest or job.options != options_digest(request):
        raise UsageError(
            f"the restore {record.group} in the target was begun with other {what}; use the same PATHS and"
            " options, or specify another --job"
        )
    if any(job.bases.get(place, 0) != base for place, base in plan.bases.items()):
        raise ClusterError(f"another run of restore {record.group} has begun since the plan; run the command again")

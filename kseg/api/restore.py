"""Restores of a cluster from Python, with the options of `kseg restore`."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from kseg.api.tables import warn
from kseg.errors import ClusterError, DamagedError, OpenError, UsageError, plural
from kseg.log.selection import PartitionChoice, Time
from kseg.system.addresses import parse_addresses
from kseg.times import milliseconds_of, parse_zone

if TYPE_CHECKING:
    from kseg.cluster.cluster import Cluster
    from kseg.restore.plan import Plan, RestoreRequest
    from kseg.restore.run import RestoreReport, Step
    from kseg.restore.send import OnSent


class RestoreOptions(TypedDict, total=False):
    """A restore under the names of the command's options; None has the same effect as no value.

    topic, partition: one or several, names may be patterns. topic_map: names in the target by names in the source.
    group: a pattern of groups; no_groups: restore no offsets. tz: the zone of to_time. offsets: `auto`, `keep` or
    `translate`. append: topics may have records already. final_settings: `safe` or `source`; keep_settings: topics keep
    the settings of the restore. rate: bytes per second. command_config: a properties file of a Java client.
    """

    topic: str | Iterable[str]
    partition: int | Iterable[int]
    topic_map: Mapping[str, str]
    group: str
    no_groups: bool
    to_time: Time | None
    tz: str
    offsets: str
    append: bool
    replication_factor: int | None
    final_settings: str
    keep_settings: bool
    skip_damage: bool
    rate: int | None
    job: str | None
    command_config: str | os.PathLike[str] | None


def restore_cluster(
    cluster: "Cluster", paths: Sequence[Path], bootstrap: str, options: RestoreOptions
) -> "RestoreReport":
    """Restore a cluster; see `kseg.Cluster.restore`."""
    from kseg.client.brokers import Brokers
    from kseg.client.settings import NO_SETTINGS, read_client_settings
    from kseg.restore.job import JobRecord
    from kseg.restore.rights import lacking_rights
    from kseg.restore.run import append_plan, fit_replicas, job_name, run_restore

    addresses, request = parse_addresses(bootstrap), _request_of(options)
    config = options.get("command_config")
    client = NO_SETTINGS if config is None else read_client_settings(Path(config))
    plan = _plan_of(cluster, paths, request)
    for note in (*client.notes, *plan.notes):
        warn(note)
    if plan.has_damage and not options.get("skip_damage"):
        found = sum(len(each.survey.damages) for each in plan.partitions)
        hint = "open other copies too, or use skip_damage=True"
        raise DamagedError(f"the logs have {plural(found, 'damage')}, so nothing is restored", hint=hint)
    with Brokers(addresses, security=client.security, tell=warn) as brokers:
        lacking = lacking_rights(brokers, plan, JobRecord(brokers, job_name(plan, request)).group)
        if lacking:
            texts = (f"{', '.join(each.operations)} on {' '.join(each.resource).strip()}" for each in lacking)
            raise ClusterError(f"the target refuses {'; '.join(texts)}")
        plan = fit_replicas(brokers, plan, request)
        if request.appends:
            plan = append_plan(brokers, plan, request)
        return run_restore(brokers, plan, request, _without_bar)


def _plan_of(cluster: "Cluster", paths: Sequence[Path], request: "RestoreRequest") -> "Plan":
    from kseg.restore.plan import Planning

    def refuse(problem: OpenError) -> None:
        raise problem

    planning = Planning(cluster, request, paths, refuse)
    if planning.is_empty:
        raise UsageError("there is no topic to restore: internal topics are never restored as topics")
    for _ in planning.read():
        pass
    return planning.plan()


def _request_of(options: RestoreOptions) -> "RestoreRequest":
    """Return the request of some options. Raises UsageError for a wrong value."""
    from kseg.restore.plan import FinalSettings, RestoreRequest

    to_time, final = options.get("to_time"), options.get("final_settings", "safe")
    if final not in ("safe", "source"):
        raise UsageError(f"final_settings={final!r} isn't 'safe' or 'source'")
    if options.get("offsets", "auto") not in ("auto", "keep", "translate"):
        raise UsageError(f"offsets={options['offsets']!r} isn't 'auto', 'keep' or 'translate'")
    return RestoreRequest(
        PartitionChoice.of(options.get("topic", ()), options.get("partition", ())),
        dict(options.get("topic_map", {})),
        None if options.get("no_groups") else options.get("group", "*"),
        None if to_time is None else milliseconds_of(to_time, parse_zone(options.get("tz", "UTC"))),
        keeps_offsets=options.get("offsets") == "keep",
        appends=options.get("append", False),
        replication_factor=options.get("replication_factor"),
        final_settings=FinalSettings.NONE if options.get("keep_settings") else FinalSettings(final),
        job=options.get("job"),
        rate=options.get("rate"),
    )


def _without_bar(_: "Step") -> "OnSent":
    def on_sent(records: int, size: int) -> None:
        """Show nothing."""

    return on_sent

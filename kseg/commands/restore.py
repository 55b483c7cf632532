"""`kseg restore`: restores records and group offsets from disks to a running cluster."""

import sys
from pathlib import Path
from typing import NamedTuple

import click

from kseg.client.brokers import FIRST_PATIENCE, Brokers
from kseg.client.connection import ConnectionLostError
from kseg.client.settings import NO_SETTINGS, ClientSettings, read_client_settings
from kseg.cluster.cluster import Cluster
from kseg.cluster.recreate_script import Target
from kseg.commands.options.command import command
from kseg.errors import ClusterError, UsageError
from kseg.log.selection import PartitionChoice
from kseg.output.forms import form_named
from kseg.output.progress import ProgressBar, Talk
from kseg.output.streams import flush_stdout, write_lines
from kseg.restore.job import JobRecord
from kseg.restore.mapping import offset_ranges
from kseg.restore.plan import FinalSettings, Plan, Planning, RestoreRequest
from kseg.restore.rights import Lack, lacking_rights
from kseg.restore.run import Step, append_plan, fit_replicas, forget, is_restored, job_name, run_restore
from kseg.restore.send import OnSent
from kseg.system.addresses import Address, address_text
from kseg.system.new_directory import WriteError
from kseg.text.restore import lack_lines, mapping_lines, plan_lines, plan_objects, report_lines, report_objects
from kseg.times import parse_zone, time_or_none


class RestoredGroups(NamedTuple):
    """The groups whose offsets are restored."""

    pattern: str
    no_groups: bool


class RestoreOptions(NamedTuple):
    """The restored topics and groups, the target, and the way there."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    bootstrap: tuple[Address, ...]
    command_config: Path | None
    topic_map: tuple[tuple[str, str], ...]
    groups: RestoredGroups
    to_time: str | None
    zone: str
    offsets: str
    append: bool
    replication_factor: int | None
    final_settings: str
    keep_settings: bool
    skip_damage: bool
    rate: int | None
    job: str | None
    mapping: Path | None
    dry_run: bool
    forget: bool
    yes: bool
    output: str
    talk: Talk

    @property
    def target(self) -> Target:
        """The target as printed commands address it."""
        addresses = ",".join(map(address_text, self.bootstrap))
        return Target(addresses, None if self.command_config is None else str(self.command_config))

    @property
    def request(self) -> RestoreRequest:
        """The wanted restore."""
        return RestoreRequest(
            self.choice,
            dict(self.topic_map),
            None if self.groups.no_groups else self.groups.pattern,
            time_or_none(self.to_time, parse_zone(self.zone)),
            keeps_offsets=self.offsets == "keep",
            appends=self.append,
            replication_factor=self.replication_factor,
            final_settings=FinalSettings.NONE if self.keep_settings else FinalSettings(self.final_settings),
            job=self.job,
            rate=self.rate,
        )


@command(RestoreOptions)
def restore(options: RestoreOptions) -> None:
    """Restore records and group offsets to a running cluster.

    Use `restore` after a cluster was lost: it creates the topics of PATHS in another cluster, sends their records,
    reads them back, and commits the groups' offsets. Each record arrives once. PATHS never change.

    \b
    Examples:
      kseg restore disk1/ disk2/ --bootstrap broker:9092 --dry-run
      kseg restore disk1/ disk2/ --bootstrap broker:9092 --yes
      kseg restore disk1/ disk2/ --bootstrap broker:9093 --command-config client.properties
      kseg restore backup.tar.gz --bootstrap broker:9092 --topic orders --topic-map orders=orders-restored

    PATHS are log directories, partition directories, or parents of these; specify the disks of all brokers. kseg first
    reads everything, and prints the plan: topics, records, groups, and what it leaves out. Markers, aborted and open
    transactions are left out. Offsets become dense, and the groups' offsets are translated to them. For logs without
    gaps, --offsets keep keeps all offsets.

    If a run is interrupted, start it again with the same options: it continues after the last record. A group in the
    target, kseg-restore-NAME, has the state. Once everything is restored, another run only compares.

    If the target needs TLS or a log-in, --command-config takes the properties file of a Java client. Keys and
    certificates must be PEM files. kseg checks your rights in the target before it writes anything.

    Topics of the target must not exist, or be empty, unless --append adds the records to theirs. While kseg sends,
    retention and cleaner are off there. At the end, topics get their settings of the source, without a retention that
    would delete the restored records: the report has the commands for it.

    The exit status is 1 if something isn't restored: damage, a missing partition, or a group with members. See
    docs/how-to/restore.md.
    """
    talk, request = options.talk, options.request
    if options.mapping is not None and options.mapping.is_dir():
        raise UsageError(f"--mapping {options.mapping}: it is a directory; specify a file")
    client = NO_SETTINGS if options.command_config is None else read_client_settings(options.command_config)
    talk.note(*client.notes)
    if not (options.yes or options.dry_run or options.forget or sys.stdin.isatty()):
        raise UsageError("nobody can answer the question here; specify --yes, or --dry-run for the plan alone")
    plan = _plan(options, request)
    if plan is None:
        return
    is_unlisted = bool(talk.status)
    first_patience = 0 if options.dry_run else FIRST_PATIENCE
    with Brokers(options.bootstrap, security=client.security, first_patience=first_patience, tell=talk.note) as brokers:
        if options.forget:
            _forget(options, brokers, job_name(plan, request))
            return
        lacking = _lacking_rights(options, brokers, plan)
        if brokers.ids and not lacking:
            plan = _fit_plan(brokers, plan, request)
        _print_plan(options, plan)
        if options.mapping is not None:
            _write_mapping(options.mapping, plan)
        _print_lacking(options, lacking, client)
        if is_unlisted:
            talk.warn("a path can't be read, so nothing is restored; specify paths that can be read")
        elif plan.has_damage and not options.skip_damage:
            talk.warn("the logs are damaged, so nothing is restored; specify other copies too, or --skip-damage")
        elif (
            not lacking
            and not options.dry_run
            and (options.yes or is_restored(brokers, plan, request) or click.confirm("Restore this?", err=True))
        ):
            _run(options, brokers, plan, request)


def _fit_plan(brokers: Brokers, plan: Plan, request: RestoreRequest) -> Plan:
    """Return the plan for this target."""
    plan = fit_replicas(brokers, plan, request)
    return append_plan(brokers, plan, request) if request.appends else plan


def _lacking_rights(options: RestoreOptions, brokers: Brokers, plan: Plan) -> list[Lack]:
    """Return the rights that the target doesn't grant.

    A plan alone needs no target, unless records are appended. Raises ClusterError if the target doesn't answer.
    """
    try:
        return lacking_rights(brokers, plan, JobRecord(brokers, job_name(plan, options.request)).group)
    except ConnectionLostError as error:
        if options.append or not options.dry_run:
            raise
        options.talk.note(f"the target's rights aren't checked: {error}")
        return []


def _print_lacking(options: RestoreOptions, lacking: list[Lack], client: ClientSettings) -> None:
    login, admin = client.security.login, options.target._replace(command_config=None)
    for line in lack_lines(lacking, admin, login.user if login is not None else ""):
        options.talk.warn(line)
        options.talk.end_with(ClusterError.status)


def _print_plan(options: RestoreOptions, plan: Plan) -> None:
    form = form_named(options.output)
    if form.has_objects:
        for members in plan_objects(plan):
            form.write_object(members)
    else:
        write_lines(plan_lines(plan))
    flush_stdout()
    options.talk.note(*plan.notes)
    options.talk.end_with(plan.is_incomplete)


def _write_mapping(path: Path, plan: Plan) -> None:
    try:
        with path.open("w", encoding="utf-8") as lines:
            lines.writelines(f"{line}\n" for line in mapping_lines(offset_ranges(plan)))
    except OSError as error:
        raise WriteError(f"can't be written: {error.strerror}", path) from error


def _run(options: RestoreOptions, brokers: Brokers, plan: Plan, request: RestoreRequest) -> None:
    """Restore everything, and print the report."""
    talk, form, target = options.talk, form_named(options.output), options.target
    with talk.bar() as bar:
        report = run_restore(brokers, plan, request, lambda step: _counting(bar, step, plan))
    if form.has_objects:
        for members in report_objects(report, target):
            form.write_object(members)
    elif not talk.is_quiet:
        write_lines(report_lines(report, target, list(map(str, options.paths))))
    flush_stdout()
    talk.end_with(report.is_incomplete)


def _plan(options: RestoreOptions, request: RestoreRequest) -> Plan | None:
    """Return the plan; None if paths can't be read, and others have nothing to restore."""
    talk = options.talk
    planning = Planning(Cluster(options.paths, talk.refuse), request, options.paths, talk.refuse)
    if planning.is_empty:
        if talk.status:
            return None
        raise UsageError("PATHS have no topic to restore: internal topics are never restored as topics")
    with talk.bar() as bar:
        count = bar.counting("read", planning.size)
        for size in planning.read():
            count(size)
    return planning.plan()


def _forget(options: RestoreOptions, brokers: Brokers, name: str) -> None:
    if forget(brokers, name):
        options.talk.note(f"the record of restore {name} is removed; topics and groups stay")
    else:
        options.talk.warn(f"the target has no record of a restore {name}")
        options.talk.end_with(1)


def _counting(bar: ProgressBar, step: Step, plan: Plan) -> OnSent:
    count = bar.counting(step.value, plan.size)

    def on_sent(records: int, size: int) -> None:
        count(size)

    return on_sent

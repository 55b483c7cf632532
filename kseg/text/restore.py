"""Text of `kseg restore`: the plan, and what became of topics, groups and settings; for people and as objects."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kseg.cluster.recreate_script import Settings, Target
from kseg.coordinators.offset_map import COLUMNS, OffsetRange
from kseg.errors import plural
from kseg.restore.groups import GroupOutcome, GroupState
from kseg.restore.plan import TARGETS_DEFAULT, Plan, PlannedGroup, PlannedPartition, PlannedTopic
from kseg.restore.rights import Lack
from kseg.restore.run import RestoreReport
from kseg.restore.source import LeftOut
from kseg.restore.topics import SettingOutcome, SettingState
from kseg.sizes import human_size

SHOWN = 20
"""The most damages, groups or partitions in a list for people."""
REASONS = {
    LeftOut.ABORTED: "of aborted transactions",
    LeftOut.OPEN: "of open transactions",
    LeftOut.DELETED: "before the log start offset",
}
"""Reasons for omissions that matter to people: control records are never records of users."""
GROUP_TEXTS = {
    GroupState.ACTIVE: "not restored: it has members in the target; stop them, then run the command again",
    GroupState.HAS_OFFSETS: "not restored: it has other offsets in the target already",
    GroupState.REFUSED: "not restored",
}


SETTING_TEXTS = {
    SettingState.HELD_BACK: "retention is off, since it would delete restored records at once",
    SettingState.KEPT: "topics keep the settings of the restore, which delete nothing",
}
"""Outcomes after which commands apply settings, and why they aren't applied."""
SOURCE_SETTINGS = "these commands apply the source's settings"
UNKNOWN_SETTINGS = "the source's settings are unknown, and these commands apply the target's defaults"


class _Lines(NamedTuple):
    """Lines of a list, with a limit."""

    lines: list[str]

    def shown(self) -> Iterator[str]:
        yield from self.lines[:SHOWN]
        if len(self.lines) > SHOWN:
            yield f"  and {len(self.lines) - SHOWN} more"


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield the plan for people."""
    yield (
        f"{plural(len(plan.topics), 'topic')}, {plural(len(plan.partitions), 'partition')},"
        f" {plural(plan.records, 'record')}, {human_size(plan.size)}"
    )
    for topic in plan.topics:
        own = [each for each in plan.partitions if each.place[0] == topic.target]
        records, size = sum(each.survey.records for each in own), sum(each.survey.size for each in own)
        renamed = "" if topic.target == topic.source else f" as {topic.target}"
        kept = "offsets stay" if all(each.keeps_offsets for each in own) else "offsets become dense"
        if any(each.begin for each in own):
            kept = "appended to the target's records"
        replicas = "" if topic.replicas == TARGETS_DEFAULT else f"{plural(topic.replicas, 'replica')}, "
        counts = f"{plural(topic.partitions, 'partition')}, {replicas}{plural(records, 'record')}, {human_size(size)}"
        yield f"  {topic.source}{renamed}: {counts}, {kept}"
    groups = [f"  group {_group_text(each)}" for each in plan.groups]
    yield from _Lines(groups).shown()
    yield from _Lines([*_left_out_lines(plan)]).shown()


def _group_text(group: PlannedGroup) -> str:
    more = f", {plural(group.left_out, 'other')} left out" if group.left_out else ""
    return f"{group.name}: {group.type}, {plural(len(group.offsets), 'offset')}{more}"


def _left_out_lines(plan: Plan) -> Iterator[str]:
    totals: Counter[LeftOut] = Counter()
    for partition in plan.partitions:
        totals.update(partition.survey.left_out)
    for reason, text in REASONS.items():
        if totals[reason]:
            yield f"  left out: {plural(totals[reason], 'record')} {text}"
    yield from _gap_lines(plan)
    for topic in plan.topics:
        if topic.missing:
            numbers = ", ".join(map(str, topic.missing))
            yield f"  missing: {topic.source} has no copy of partition {numbers} in PATHS, so it stays empty"
    yield from damage_lines(plan)


def _gap_lines(plan: Plan) -> Iterator[str]:
    """Yield a line for each log that lacks offsets, unless its topic is known to be compacted."""
    compacted = {topic.target for topic in plan.topics if "compact" in topic.settings.get("cleanup.policy", "")}
    for partition in plan.partitions:
        if partition.survey.missing and partition.place[0] not in compacted:
            lacks = f"{partition.source.name} lacks {plural(partition.survey.missing, 'offset')}"
            yield f"  gaps: {lacks} between its batches: these records are lost, unless the topic was compacted"


def damage_lines(plan: Plan) -> Iterator[str]:
    """Yield a line for each damage."""
    for partition in plan.partitions:
        for path, damage in partition.survey.damages:
            yield f"  damaged: {path}: at position {damage.position}: {damage.kind}: {damage.detail}"


def lack_lines(lacking: Sequence[Lack], target: Target, user: str) -> Iterator[str]:
    """Yield a line for each resource on which the target refuses something, with the command that allows it.

    user: the name of the log-in, empty if unknown.
    """
    allow = ("--add", "--allow-principal", f"User:{user or 'NAME'}")
    lines = []
    for (kind, name), operations in lacking:
        words = [word for each in operations for word in ("--operation", each)]
        line = target.line("acls", *allow, *words, f"--{kind}", *([name] if name else ()))
        lines.append(f"{kind}{f' {name}' if name else ''}: the target refuses {', '.join(operations)}; run `{line}`")
    yield from _Lines(lines).shown()


def report_lines(report: RestoreReport, target: Target, paths: Sequence[str]) -> Iterator[str]:
    """Yield the result for people. paths: of the source, for commands."""
    plan = report.plan
    compared = "" if report.shortened else ", all read back and equal to the source's"
    if report.was_done:
        yield f"already restored: {plural(plan.records, 'record')}{compared}"
        yield from _shortened_lines(report)
        yield from _setting_lines(report, target)
        return
    yield (
        f"restored {plural(plan.records, 'record')} in {plural(len(plan.partitions), 'partition')}"
        f" ({report.sent_records} sent by this run){compared}"
    )
    yield from _shortened_lines(report)
    committed = [each for each in report.groups if each.state is GroupState.COMMITTED]
    yield f"  {plural(len(committed), 'group')} committed"
    for outcome in report.groups:
        if outcome.state is not GroupState.COMMITTED:
            yield f"  group {outcome.group.name}: {_outcome_text(outcome)}"
    yield from _setting_lines(report, target)
    if plan.has_others:
        command = _others_command(paths, target)
        yield (
            "  ACLs, quotas, users, and settings of brokers and groups aren't restored; this prints their commands:"
            f" {command}"
        )


def _others_command(paths: Sequence[str], target: Target) -> str:
    """Return the command that prints the commands for what a restore of topics and groups doesn't bring."""
    config = () if target.command_config is None else ("--command-config", target.command_config)
    words = ("metadata", *paths, "-o", "commands", "--bootstrap-server", target.bootstrap_server, *config)
    return " ".join(("kseg", *map(shlex.quote, words)))


def _shortened_lines(report: RestoreReport) -> Iterator[str]:
    for name in report.shortened:
        yield f"  {name}: compared up to the first record that the target's retention or cleaner has removed"


def _outcome_text(outcome: GroupOutcome) -> str:
    return GROUP_TEXTS[outcome.state] + ("" if outcome.detail is None else f": {outcome.detail}")


def _setting_lines(report: RestoreReport, target: Target) -> Iterator[str]:
    for each in report.settings:
        if each.state is SettingState.REFUSED:
            yield f"  topic {each.topic}: {each.name}={each.value} not applied: {each.detail}"
    for state, text in SETTING_TEXTS.items():
        held = [each for each in report.settings if each.state is state]
        if held:
            yield f"  {text}; {SOURCE_SETTINGS if report.plan.knows_settings else UNKNOWN_SETTINGS}:"
        for topic in dict.fromkeys(each.topic for each in held):
            yield from (
                f"    {line}" for line in _commands(topic, [each for each in held if each.topic == topic], target)
            )


def _commands(topic: str, held: list[SettingOutcome], target: Target) -> Iterator[str]:
    entity = ("--entity-type", "topics", "--entity-name", topic)
    own = [(each.name, each.value) for each in held if each.value is not None]
    yield from Settings.of(own).lines(target, *entity)
    defaults = [each.name for each in held if each.value is None]
    if defaults:
        yield target.line("configs", "--alter", *entity, "--delete-config", ",".join(defaults))


def mapping_lines(ranges: Iterable[OffsetRange]) -> Iterator[str]:
    """Yield the lines of a map of offsets as CSV. Names of topics have no character that needs quotes."""
    yield ",".join(COLUMNS)
    for each in ranges:
        yield ",".join(map(str, each))


def plan_objects(plan: Plan) -> Iterator[dict[str, object]]:
    """Yield the plan for JSON."""
    by_topic = {topic.target: topic for topic in plan.topics}
    for partition in plan.partitions:
        yield _partition_object(by_topic[partition.place[0]], partition)
    for group in plan.groups:
        for each in group.offsets:
            yield {
                "type": "group-offset",
                "group": group.name,
                "groupType": group.type,
                "topic": each.topic,
                "partition": each.partition,
                "sourceOffset": each.source_offset,
                "targetOffset": each.target_offset,
            }


def _partition_object(topic: PlannedTopic, partition: PlannedPartition) -> dict[str, object]:
    survey = partition.survey
    return {
        "type": "partition",
        "topic": topic.target,
        "partition": partition.place[1],
        "sourceTopic": topic.source,
        "records": survey.records,
        "bytes": survey.size,
        "firstOffset": survey.first_offset,
        "endOffset": survey.end_offset,
        "replicaCount": None if topic.replicas == TARGETS_DEFAULT else topic.replicas,
        "keepsOffsets": partition.keeps_offsets,
        "firstTargetOffset": partition.base,
        "missingOffsetCount": survey.missing,
        "leftOutRecords": {reason.value: count for reason, count in survey.left_out.items() if count},
        "damages": [
            {"file": str(path), "position": damage.position, "kind": str(damage.kind), "detail": damage.detail}
            for path, damage in survey.damages
        ],
    }


def report_objects(report: RestoreReport, target: Target) -> Iterator[dict[str, object]]:
    """Yield the result for JSON, after the plan."""
    for outcome in report.groups:
        yield {
            "type": "group",
            "group": outcome.group.name,
            "groupType": outcome.group.type,
            "state": outcome.state.value,
            "detail": outcome.detail,
        }
    for each in report.settings:
        yield {
            "type": "setting",
            "topic": each.topic,
            "name": each.name,
            "value": each.value,
            "state": each.state.value,
            "detail": each.detail,
            "commands": [*_commands(each.topic, [each], target)] if each.state in SETTING_TEXTS else [],
        }
    yield {
        "type": "restore",
        "topics": len(report.plan.topics),
        "partitions": len(report.plan.partitions),
        "records": report.plan.records,
        "sentRecords": report.sent_records,
        "wasDone": report.was_done,
        "shortened": list(report.shortened),
        "isComplete": not report.is_incomplete,
    }

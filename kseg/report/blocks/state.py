"""Blocks of a report about findings, groups, replicas and settings."""

from collections import Counter
from collections.abc import Iterator

from kseg.cluster.partition_settings import as_the_topic_sets
from kseg.cluster.replicas import Copy, CopyStatus, PartitionReplicas
from kseg.cluster.settings import DynamicSettings, SettingSource
from kseg.coordinators.members import Group, LagSum
from kseg.doctor.examination import Trouble
from kseg.doctor.kinds import command_line, path_word
from kseg.errors import plural
from kseg.findings.finding_kind import Severity
from kseg.log.partition import PartitionLog
from kseg.log.segments import RollReason, RollSettings
from kseg.report.block import Block, Cell, CellColumn, CellKind, Sentence, Table, Weight, line_of, topic_line
from kseg.report.gather import ReportFacts, TopicFacts
from kseg.report.sums import DAY_MS, age_text, count_text, share_text
from kseg.sizes import human_size
from kseg.system.placed_path import as_path

Replicas = PartitionReplicas[PartitionLog]

_WEIGHTS = {Severity.ERROR: Weight.BAD, Severity.WARNING: Weight.WATCH}
_MOST_KINDS = 6
_MOST_SENTENCES = 5
_FINDING_COLUMNS = (
    CellColumn("severity", "Severity"),
    CellColumn("id", "Finding"),
    CellColumn("file", "Where"),
    CellColumn("position", "Position", CellKind.COUNT),
    CellColumn("sentence", "What"),
    CellColumn("command", "Next", CellKind.COMMAND),
)


def findings_block(known: ReportFacts) -> Block:
    """Return the block about findings of all checks."""
    troubles = known.check_up.troubles
    rows = tuple(
        (str(each.severity), each.id, str(each.file), each.position, each.sentence, each.command) for each in troubles
    )
    meanings = {each.id: each.kind for each in troubles}
    explained = tuple(
        (name, str(kind.severity), kind.meaning, kind.risk, kind.next_step) for name, kind in meanings.items()
    )
    tables = (
        Table("findings", "All findings", _FINDING_COLUMNS, rows),
        Table(
            "findingKinds",
            "Explanations",
            (
                CellColumn("id", "Finding"),
                CellColumn("severity", "Severity"),
                CellColumn("meaning", "Meaning"),
                CellColumn("risk", "Risk"),
                CellColumn("nextStep", "Next step"),
            ),
            explained,
        ),
    )
    return Block("findings", "Findings", tuple(_finding_verdicts(known)), tables=tables if rows else ())


def _finding_verdicts(known: ReportFacts) -> list[Sentence]:
    serious = [each for each in known.check_up.troubles if each.severity is not Severity.NOTE]
    if not serious:
        seen = "Found no errors or warnings" if known.choices.is_quick else "No errors or warnings"
        return [Sentence(f"{seen} in {plural(known.check_up.partitions, 'partition')}.")]
    kinds = Counter(each.id for each in serious)
    first: dict[str, Trouble] = {}
    for each in serious:
        first.setdefault(each.id, each)
    verdicts = [_verdict(each, kinds[name]) for name, each in list(first.items())[:_MOST_KINDS]]
    if len(first) > _MOST_KINDS:
        verdicts.append(
            Sentence(f"The table has {len(first) - _MOST_KINDS} more kinds of findings.", None, Weight.WATCH)
        )
    return verdicts


def _verdict(each: Trouble, count: int) -> Sentence:
    where = each.file.name if each.topic is None else f"{each.topic}-{each.partition}"
    more = "" if count == 1 else f" And {count - 1} more like this."
    meaning = each.kind.meaning.removesuffix(".")
    return Sentence(f"{where}: {meaning} ({each.sentence}).{more}", each.command, _WEIGHTS[each.severity])


_STALE_MS, _WORTH_LAG = 7 * DAY_MS, 1000
_GROUP_COLUMNS = (
    CellColumn("group", "Group"),
    CellColumn("state", "State"),
    CellColumn("topic", "Topic"),
    CellColumn("partitions", "Partitions", CellKind.COUNT),
    CellColumn("lag", "Lag", CellKind.COUNT),
    CellColumn("lastCommit", "Last commit", CellKind.TIME),
    CellColumn("beyondLogEnd", "Beyond log end", CellKind.COUNT),
    CellColumn("unknownLags", "Unknown lags", CellKind.COUNT),
)


def groups_block(known: ReportFacts) -> Block:
    """Return the block about groups of `__consumer_offsets`, if it was read."""
    if known.groups is None:
        return Block("groups", "Groups")
    rows = tuple(row for group in known.groups for row in _rows(group))
    verdicts = []
    behind = sorted(
        (row for row in rows if isinstance(row[4], int) and row[4] >= _WORTH_LAG), key=lambda row: -_number(row[4])
    )
    for row in behind[:3]:
        sentence = f"{row[0]} is {count_text(_number(row[4]))} records behind in {row[2]}."
        verdicts.append(Sentence(sentence, line_of(known, "groups", "--group", str(row[0])), Weight.WATCH))
    now = known.choices.now_ms
    stale = [row for row in rows if 0 < _number(row[5]) < now - _STALE_MS]
    if stale:
        oldest = min(stale, key=lambda row: _number(row[5]))
        groups = len({row[0] for row in stale})
        age = age_text(now - _number(oldest[5]))
        sentence = f"{plural(groups, 'group')} committed nothing for a week; {oldest[0]} nothing for {age}."
        verdicts.append(Sentence(sentence, line_of(known, "groups")))
    tables = (Table("groups", "By group and topic", _GROUP_COLUMNS, rows),)
    return Block("groups", "Groups", tuple(verdicts), tables=tables if rows else ())


def _number(value: Cell) -> int:
    return value if isinstance(value, int) else 0


def _rows(group: Group) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for topic in sorted({commit.topic for commit in group.commits}):
        commits = [commit for commit in group.commits if commit.topic == topic]
        lag, beyond_end, unknown = LagSum.of(commit.lag for commit in commits)
        last = max(commit.commit_timestamp for commit in commits)
        shown = last if last >= 0 else None
        rows.append((group.group, group.state, topic, len(commits), lag, shown, beyond_end, unknown))
    return rows


_REPLICA_COLUMNS = (
    CellColumn("partition", "Partition"),
    CellColumn("logDir", "Log directory"),
    CellColumn("status", "Status"),
    CellColumn("logStartOffset", "Log start offset", CellKind.COUNT),
    CellColumn("localStartOffset", "First local offset", CellKind.COUNT),
    CellColumn("logEndOffset", "Log end offset", CellKind.COUNT),
    CellColumn("behind", "Behind", CellKind.COUNT),
    CellColumn("leaderEpoch", "Leader epoch", CellKind.COUNT),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("bytes", "Log", CellKind.SIZE),
)


def replicas_block(known: ReportFacts) -> Block:
    """Return the block about copies of partitions, those that lack most first.

    It lists abandoned, stale and lagging copies.
    """
    several = [each for each in known.replicas if len(each.copies) > 1 or each.set_aside]
    several.sort(key=lambda each: (-max(map(_behind, _with_best(each)), default=0), each.name))
    rows = tuple(row for each in several for row in _replica_rows(known, each))
    if not rows:
        return Block("replicas", "Replicas")
    verdicts = [sentence for each in several for sentence in _replica_sentences(each)][:_MOST_SENTENCES]
    if not verdicts:
        compared = [each for each in several if len(each.copies) > 1]
        sentence = f"All copies of {plural(len(compared), 'partition')} have the same end."
        verdicts.append(Sentence(sentence, line_of(known, "diff")))
    notes = ("This section compares only offsets and leader epochs. `kseg diff` compares records.",)
    return Block(
        "replicas",
        "Replicas",
        tuple(verdicts),
        tables=(Table("replicas", "Copies", _REPLICA_COLUMNS, rows),),
        notes=notes,
    )


def _with_best(replicas: Replicas) -> Iterator[tuple[Copy[PartitionLog], Copy[PartitionLog]]]:
    return ((copy, replicas.copies[0]) for copy in replicas.copies)


def _behind(pair: tuple[Copy[PartitionLog], Copy[PartitionLog]]) -> int:
    """Return the number of offsets that a copy lacks at the end of the best one, counted from where they agree."""
    copy, best = pair
    end = copy.log_end if copy.agreed_end is None else copy.agreed_end
    return max((best.log_end or 0) - (end or 0), 0)


def _replica_rows(known: ReportFacts, replicas: Replicas) -> Iterator[tuple[Cell, ...]]:
    for copy in (*replicas.copies, *replicas.set_aside):
        one = known.facts_of(copy.place.path)
        if one is not None:
            behind = _behind((copy, replicas.copies[0])) if copy in replicas.copies else None
            status = str(copy.status) if copy.agreed_end is None else f"abandoned from offset {copy.agreed_end} on"
            yield (
                one.name,
                str(one.log_dir),
                status,
                one.log_start_offset,
                one.local_start_offset,
                one.log_end_offset,
                behind,
                one.leader_epoch,
                one.records,
                one.size,
            )


def _replica_sentences(replicas: Replicas) -> Iterator[Sentence]:
    """Yield problems of a partition's copies; directories that were set aside are in the block about unused ones."""
    line = command_line(["diff", *(path_word(copy.place.path) for copy in replicas.copies)])
    for left_out in replicas.left_out:
        if left_out.offsets is not None:
            yield Sentence(f"{left_out.text()}.", line, Weight.WATCH)
        elif left_out.status is CopyStatus.STALE:
            see = command_line(["ls", path_word(as_path(left_out.path))])
            yield Sentence(f"{left_out.text()}.", see, Weight.WATCH)
    for copy, best in _with_best(replicas):
        behind = _behind((copy, best))
        if behind and copy.agreed_end is None:
            sentence = f"{replicas.name}: {as_path(copy.path).parent} lacks {count_text(behind)} offsets at the end."
            yield Sentence(sentence, line, Weight.WATCH)


_EMPTY_SHARE, _LONG = 0.1, 2.0
_SETTING_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("what", "Problem"),
    CellColumn("command", "See", CellKind.COMMAND),
)
_OWN_COLUMNS = (CellColumn("topic", "Topic"), CellColumn("setting", "Setting"), CellColumn("value", "Value"))
_EMPTY_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("partitions", "Partitions", CellKind.COUNT),
    CellColumn("empty", "Empty", CellKind.COUNT),
    CellColumn("files", "Files", CellKind.SIZE),
)


def settings_block(known: ReportFacts) -> Block:
    """Return the block about contradictory settings."""
    rows = tuple(row for topic in known.by_size for row in _disagreements(known, topic))
    answering = [(topic, known.answering(topic)) for topic in known.by_size]
    empty_rows = tuple(
        (topic.name, len(partitions), empty, topic.disk_size)
        for topic, partitions in answering
        if (empty := sum(not each.size for each in partitions))
    )
    settings = DynamicSettings(known.cluster)
    own = tuple(
        (topic.name, name, value)
        for topic in known.by_size
        for name, value in sorted(settings.of("topic", topic.name).items())
    )
    possible = (
        Table("disagreements", "Problem", _SETTING_COLUMNS, rows),
        Table("emptyTopics", "Topics with empty partitions", _EMPTY_COLUMNS, empty_rows),
        Table("topicSettings", "Topic settings", _OWN_COLUMNS, own),
    )
    tables = [table for table in possible if table.rows]
    notes = () if own else ("Topic settings are unknown: these directories have no __cluster_metadata.",)
    return Block("settings", "Settings", tuple(_setting_verdicts(known, rows)), tables=tuple(tables), notes=notes)


def _setting_verdicts(known: ReportFacts, rows: tuple[tuple[Cell, ...], ...]) -> list[Sentence]:
    verdicts = [
        Sentence(f"{row[0]}: {row[1]}.", None if row[2] is None else str(row[2]), Weight.WATCH) for row in rows[:3]
    ]
    if len(rows) > len(verdicts):
        verdicts.append(Sentence(f"The table has {plural(len(rows) - 3, 'more problem')}.", None, Weight.WATCH))
    empty = sum(not each.size for each in known.in_use)
    if empty:
        share = empty / len(known.in_use)
        unused = sum(not topic.size for topic in known.topics.values())
        topics = f"{plural(unused, 'topic')} {'has' if unused == 1 else 'have'} no records here"
        verb = "is" if empty == 1 else "are"
        sentence = f"{empty} of {plural(len(known.in_use), 'partition')} {verb} empty; {topics}."
        weight = Weight.WATCH if share >= _EMPTY_SHARE and empty > 1 else Weight.PLAIN
        verdicts.append(Sentence(sentence, line_of(known, "ls", "--by", "topic"), weight))
    return verdicts


def _disagreements(known: ReportFacts, topic: TopicFacts) -> Iterator[tuple[Cell, ...]]:
    for what in (*_of_counts(known, topic), *_of_retention(topic), *_of_replicas(known, topic)):
        yield topic.name, what, topic_line(topic, "ls")


def _of_counts(known: ReportFacts, topic: TopicFacts) -> Iterator[str]:
    """Yield sentences about partitions that aren't in the cluster metadata."""
    found = None if known.cluster is None else known.cluster.topic(topic.name)
    if known.cluster is None or topic.name.startswith("__cluster_metadata"):
        return
    if found is None:
        yield "the cluster's metadata don't know the topic"
        return
    numbers = {each.partition for each in found.partitions}
    strange = sorted(str(each.name) for each in topic.partitions if each.partition.partition not in numbers)
    if strange:
        yield f"the cluster's metadata have {plural(len(numbers), 'partition')}, not {', '.join(strange[:3])}"


def _of_retention(topic: TopicFacts) -> Iterator[str]:
    """Yield sentences about segments that stay open for longer than retention.

    Retention deletes whole segments, so such a segment keeps its records for longer.
    """
    one = topic.first
    retention, roll = one.retention.retention_ms, as_the_topic_sets(one.own, RollSettings())
    if one.cleaning is not None or retention <= 0:
        return
    is_known = "segment.ms" in one.own or one.time_source is not SettingSource.DEFAULT
    if is_known and roll.segment_ms > _LONG * retention:
        yield (
            f"segments are open for up to {age_text(roll.segment_ms)} (segment.ms), but kept for"
            f" {age_text(retention)} (retention.ms): records stay for the sum of both"
        )
    closed = [
        segment for each in topic.partitions for segment in each.segments if segment.rolled is not RollReason.ACTIVE
    ]
    small = [segment for segment in closed if segment.size < roll.segment_bytes // 100]
    if len(closed) >= 100 and len(small) > len(closed) // 2:
        mean = human_size(sum(segment.size for segment in closed) // len(closed))
        yield f"{len(closed)} closed segments, {mean} on average: more files than segment.bytes requires"


def _of_replicas(known: ReportFacts, topic: TopicFacts) -> Iterator[str]:
    found = None if known.cluster is None else known.cluster.topic(topic.name)
    if found is None or not found.partitions:
        return
    least = min(len(each.replicas) for each in found.partitions)
    wanted = topic.first.own.get("min.insync.replicas", "")
    if wanted.isdigit() and int(wanted) > least:
        yield f"min.insync.replicas is {wanted}, but the topic has {plural(least, 'replica')}: acks=all fails"
    if wanted.isdigit() and int(wanted) == least > 1:
        yield f"min.insync.replicas is {wanted} of {plural(least, 'replica')}: acks=all fails when one broker is down"
    behind = [each for each in found.partitions if each.leader >= 0 and len(each.isr) < len(each.replicas)]
    if behind:
        share = share_text(len(behind) / len(found.partitions))
        yield f"{plural(len(behind), 'partition')} ({share}) lack in-sync replicas in the cluster's metadata"

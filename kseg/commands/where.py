"""`kseg where`: finds the partition of a key, a group's offsets or a transactional id's state."""

from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.joined_log import whole_log
from kseg.cluster.metadata_copy import partition_count
from kseg.cluster.replicas import PartitionReplicas
from kseg.commands.options.command import command
from kseg.coordinators.home_partition import Partitioner, home_of_key, home_of_state
from kseg.coordinators.stored_ids import stored_ids
from kseg.errors import UsageError
from kseg.log.partition import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, PartitionLog
from kseg.log.selection import parse_bytes
from kseg.output.forms import form_named
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout, write_line


class WhereOptions(NamedTuple):
    """The wanted key, group or id, and the partitioner."""

    paths: tuple[Path, ...]
    group: str | None
    transactional_id: str | None
    key: str | None
    topic: str | None
    partitions: int | None
    partitioner: str
    output: str
    talk: Talk


@command(WhereOptions)
def where(options: WhereOptions) -> None:
    """Find the partition of a key, group or transactional id.

    Use `where` to find the partition of a record's key, of a group's offsets, or of a transactional id's state.

    \b
    Examples:
      kseg where --group billing
      kseg where --key user-17 --partitions 12
      kseg where --key user-17 --topic orders disk1 disk2

    With PATHS (log directories), `where` also shows the partition's directory; the exit status is 1 if it isn't there.
    The number of partitions comes from __cluster_metadata in PATHS, otherwise from the topic's directories; give
    --partitions if some are missing. For groups and transactional ids, it follows from the ids stored there, or is 50,
    Kafka's default.
    """
    group, transactional_id, key = options.group, options.transactional_id, options.key
    if sum(choice is not None for choice in (group, transactional_id, key)) != 1:
        raise UsageError("specify one of --group, --transactional-id and --key")
    talk, paths = options.talk, options.paths
    topic = options.topic if key is not None else TRANSACTIONS_TOPIC if group is None else OFFSETS_TOPIC
    replicas, count = _at_hand(Cluster(paths, talk.refuse), topic)
    places = None if replicas is None else [place for each in replicas for place in each.places]
    count = options.partitions or count
    if key is not None:
        home = home_of_key(parse_bytes(key), topic, places, count, Partitioner(options.partitioner))
    else:
        ids = stored_ids(str(topic), map(whole_log, replicas or ()))
        home = home_of_state(str(topic), str(group or transactional_id or ""), places, count, ids)
    if home.note is not None and not talk.is_quiet and not talk.status:
        talk.warn(home.note)
    if paths and not home.directories and not talk.status:
        talk.warn(f"{home.name or 'the partition'} isn't in the given directories")
    form = form_named(options.output)
    if form.has_objects:
        form.write_object(home.as_object())
    else:
        for line in home.lines():
            write_line(line)
    flush_stdout()
    talk.end_with(bool(paths) and not home.directories)


def _at_hand(cluster: Cluster, topic: str | None) -> tuple[list[PartitionReplicas[PartitionLog]] | None, int | None]:
    """Return the partitions of a topic, None without paths; and their number, if the metadata has it."""
    if topic is None or not cluster.paths:
        return None, None
    replicas = cluster.topic(topic)
    return replicas, partition_count(cluster.own_metadata, topic, [each.partition for each in replicas])

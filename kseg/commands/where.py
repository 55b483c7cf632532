"""`kseg where`: which partition holds a key, a group's offsets or a transactional id's state."""

from pathlib import Path

import click

from kseg.commands.options import output_option, reads_archives
from kseg.commands.parameters import int_number
from kseg.errors import UsageError
from kseg.log.partition.log_dir import find_partitions
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.partitioner import COORDINATOR_PARTITIONS, Partitioner, coordinator_partition, key_partition
from kseg.output.json_lines import write_json
from kseg.output.refusals import Refusals
from kseg.output.stdout import flush_stdout, write_line
from kseg.output.talk import talk
from kseg.selection import parse_bytes
from kseg.views.metadata_beside import MetadataBeside

_OFFSETS, _TRANSACTIONS = "__consumer_offsets", "__transaction_state"


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--group", help="A consumer group, whose offsets are looked for.")
@click.option("--transactional-id", help="A producer's transactional id, whose state is looked for.")
@click.option("--key", help="A record's key: text, hex:… or base64:….")
@click.option("--topic", help="With --key: the topic, to find its directory and its number of partitions.")
@click.option("--partitions", type=int_number(1), help="Number of the topic's partitions.")
@click.option(
    "--partitioner",
    type=click.Choice([str(each) for each in Partitioner]),
    default=str(Partitioner.MURMUR2),
    show_default=True,
    help="Of the producer: murmur2 as Java's, crc32 as librdkafka's.",
)
@output_option("text", "json")
@reads_archives("paths")
@click.pass_context
def where(
    command: click.Context,
    paths: tuple[Path, ...],
    group: str | None,
    transactional_id: str | None,
    key: str | None,
    topic: str | None,
    partitions: int | None,
    partitioner: str,
    output: str,
) -> None:
    """Find which partition a key belongs to, or which holds what a group or a transactional id committed.

    \b
    Examples:
      kseg where --group billing
      kseg where --key user-17 --partitions 12
      kseg where --key user-17 --topic orders disk1 disk2

    With PATHS, log directories, the partition's directory is shown too; ends with 1 if it isn't there. The number of
    partitions is what __cluster_metadata there tells; else all that the directories show, which is said: give
    --partitions where these aren't all. Without any it is 50 for groups and transactions, Kafka's default.
    """
    if sum(choice is not None for choice in (group, transactional_id, key)) != 1:
        raise UsageError("give one of --group, --transactional-id, --key")
    name = _OFFSETS if group is not None else _TRANSACTIONS if transactional_id is not None else topic
    refuse = Refusals()
    places = [place for place in find_partitions(paths, refuse) if place.state is None]
    found = [place for place in places if place.topic == name]
    number = partitions or _known_count(places, name) or _shown_count(found, is_internal=key is None)
    if key is None:
        number = number or COORDINATOR_PARTITIONS
        partition = coordinator_partition(group if group is not None else transactional_id or "", number)
    else:
        if not number:
            raise UsageError("of how many partitions? give --partitions, or --topic and its log directories")
        partition = key_partition(parse_bytes(key), number, Partitioner(partitioner))
    directories = [str(place.path) for place in found if place.partition == partition]
    if paths and not directories and not refuse.status:
        talk(f"kseg: {'the partition' if name is None else f'{name}-{partition}'} isn't in the directories given")
    if output == "json":
        write_json(
            {"type": "where", "topic": name, "partition": partition, "partitions": number, "directories": directories}
        )
    else:
        shown = f"partition {partition} of {number}" if name is None else f"{name}-{partition} of {number} partitions"
        for line in (shown, *directories):
            write_line(line)
    flush_stdout()
    command.exit(refuse.status or int(bool(paths) and not directories))


def _known_count(places: list[PartitionLog], topic: str | None) -> int | None:
    """How many partitions a topic has, as the first metadata beside a partition tell that know it."""
    if topic is None:
        return None
    beside = MetadataBeside()
    return next((count for place in places if (count := beside.partition_count(place, topic))), None)


def _shown_count(found: list[PartitionLog], *, is_internal: bool) -> int | None:
    """How many partitions the directories of a topic show; None without any.

    An internal topic that lacks some of them here lies on other brokers too: it has at least as many as by default.
    """
    numbers = {place.partition for place in found if place.partition is not None}
    if not numbers:
        return None
    count = max(numbers) + 1
    if is_internal and len(numbers) < count:
        count = max(count, COORDINATOR_PARTITIONS)
        talk(f"kseg: {found[0].topic}: not all partitions are here; {count} are assumed: --partitions says otherwise")
    else:
        talk(f"kseg: {found[0].topic}: {count} partitions, as the directories show: --partitions says otherwise")
    return count

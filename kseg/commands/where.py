"""`kseg where`: which partition holds a key, a group's offsets or a transactional id's state."""

from pathlib import Path

import click

from kseg.commands.options import output_option, reads_archives
from kseg.commands.parameters import int_number
from kseg.errors import OpenError, UsageError
from kseg.log.log_dir import find_partitions
from kseg.output.json_lines import write_json
from kseg.output.stdout import flush_stdout, write_line
from kseg.output.talk import talk
from kseg.partitioner import COORDINATOR_PARTITIONS, Partitioner, coordinator_partition, key_partition

_OFFSETS, _TRANSACTIONS = "__consumer_offsets", "__transaction_state"


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--group", help="A consumer group, whose offsets are looked for.")
@click.option("--transactional-id", help="A producer's transactional id, whose state is looked for.")
@click.option("--key", help="A record's key.")
@click.option("--topic", help="With --key: the topic, to find its directory and its number of partitions.")
@click.option("--partitions", type=int_number(1), help="Number of partitions; 50 for groups and transactions.")
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

    With PATHS, log directories, the partition's directory is shown too; ends with 1 if it isn't there. A topic's number
    of partitions is the highest that is found plus one: give --partitions where the log directories aren't all.
    """
    if sum(choice is not None for choice in (group, transactional_id, key)) != 1:
        raise UsageError("give one of --group, --transactional-id, --key")
    name = _OFFSETS if group is not None else _TRANSACTIONS if transactional_id is not None else topic
    refused: list[OpenError] = []
    found = [place for place in find_partitions(paths, refused.append) if place.state is None and place.topic == name]
    for error in refused:
        talk(f"kseg: {error}")
    if key is None:
        number = partitions or COORDINATOR_PARTITIONS
        partition = coordinator_partition(group if group is not None else transactional_id or "", number)
    else:
        number = partitions or max((1 + (place.partition or 0) for place in found), default=0)
        if not number:
            raise UsageError("of how many partitions? give --partitions, or --topic and its log directories")
        partition = key_partition(key.encode("utf-8", "surrogateescape"), number, Partitioner(partitioner))
    directories = [str(place.path) for place in found if place.partition == partition]
    if output == "json":
        write_json(
            {"type": "where", "topic": name, "partition": partition, "partitions": number, "directories": directories}
        )
    else:
        shown = f"partition {partition} of {number}" if name is None else f"{name}-{partition} of {number} partitions"
        for line in (shown, *directories):
            write_line(line)
    flush_stdout()
    command.exit(2 if refused else int(bool(paths) and not directories))

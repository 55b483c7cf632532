"""`kseg get`: prints one field of one record, nothing added."""

from pathlib import Path

import click

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import only_below
from kseg.cluster.lookup import look_up_in_copies
from kseg.cluster.metadata_copy import MetadataBeside
from kseg.commands.inputs import reads_archives
from kseg.commands.option_groups import partition_options
from kseg.commands.options import long_number, paths_argument, quiet_option, raw_option
from kseg.log.lookup import parse_field, record_bytes
from kseg.log.selection import PartitionChoice
from kseg.output.progress import Refusals, note_unless
from kseg.output.streams import flush_stdout, write_stdout
from kseg.store.target import NewFile


@click.command()
@paths_argument
@click.option("--offset", type=long_number(), required=True, help="The record's offset.")
@click.option("--field", default="value", show_default=True, metavar="NAME", help="value, key, or header:NAME.")
@click.option("--to", "target", type=click.Path(path_type=Path), metavar="FILE", help="A new file for the bytes.")
@partition_options
@raw_option
@quiet_option
@reads_archives("paths")
def get(
    paths: tuple[Path, ...], offset: int, field: str, target: Path | None, choice: PartitionChoice, quiet: bool
) -> None:
    """Print the bytes of one record's value, key or header, nothing added.

    \b
    Examples:
      kseg get orders-0/ --offset 203500 > value.bin
      kseg get orders-0/ --offset 203500 | jq .
      kseg get kafka-logs/ --topic orders --partition 0 --offset 203500 --field key
      kseg get support.tar.gz/orders-0 --offset 203500 --field header:trace --to trace.bin

    PATHS are a partition's directory or a file in it, or log directories with --topic and --partition; by default the
    current directory. Of several headers with the same name this is the last one, as of Kafka's lastHeader. If there is
    no such record or header, or it is null, or its batch is damaged, the exit status is 1 and nothing is written. An
    empty field is no bytes, and status 0.
    """
    wanted = parse_field(field)
    cluster = Cluster(paths, only_below(Refusals()))
    replicas = cluster.only_partition(choice)
    new = None if target is None else NewFile(target, (*(place.path for place in replicas.places), *paths))
    answer = look_up_in_copies(replicas, offset, beside=MetadataBeside(cluster=cluster))
    for problem in dict.fromkeys(answer.problems) if answer.record is None else ():
        note_unless(quiet=quiet)(problem)
    content = record_bytes(answer, wanted)
    if new is None:
        write_stdout(content)
        flush_stdout()
    else:
        new.write(content)

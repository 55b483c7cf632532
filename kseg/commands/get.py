"""`kseg get`: prints one field of one record, nothing added."""

from pathlib import Path

import click

from kseg.archive.untouched import check_outside
from kseg.commands.archive_inputs import reads_archives
from kseg.commands.options import paths_argument, quiet_option, raw_option
from kseg.commands.parameters import long_number
from kseg.commands.partition_options import partition_options
from kseg.log.lookup.lookup import lookup_offset
from kseg.log.lookup.record_field import parse_field, record_bytes
from kseg.log.partition.log_dir import partition_named
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.output.refusals import Refusals
from kseg.output.stdout import flush_stdout, write_stdout
from kseg.output.talk import note_unless
from kseg.system.new_file import write_new_file
from kseg.views.remote_tiers import tier_for_lookup


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
    place = partition_named(paths, Refusals(), choice)
    if target is not None:
        check_outside(target, (place.path, *paths))
    answer = lookup_offset(place, offset, tier_for_lookup(place, offset))
    for problem in dict.fromkeys(answer.problems) if answer.record is None else ():
        note_unless(quiet=quiet)(problem)
    content = record_bytes(answer, wanted)
    if target is None:
        write_stdout(content)
        flush_stdout()
    else:
        write_new_file(target, content)

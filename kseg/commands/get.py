"""`kseg get`: prints one field of one record without additions."""

from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import limit_to_contents
from kseg.cluster.lookup import look_up_in_copies
from kseg.cluster.metadata_copy import AdjacentMetadata
from kseg.commands.options.command import command
from kseg.log.lookup import Absence, parse_field, record_bytes
from kseg.log.selection import PartitionChoice, Selection
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout, write_stdout
from kseg.store.target import NewFile


class GetOptions(NamedTuple):
    """The record, its field, and the destination."""

    paths: tuple[Path, ...]
    offset: int
    field: str
    file: Path | None
    choice: PartitionChoice
    talk: Talk


@command(GetOptions)
def get(options: GetOptions) -> None:
    """Print one record's value, key or header.

    Use `get` to save or pipe one field of a record. The output has exactly its bytes.

    \b
    Examples:
      kseg get orders-0/ --offset 203500 > value.bin
      kseg get orders-0/ --offset 203500 | jq .
      kseg get kafka-logs/ --topic orders --partition 0 --offset 203500 --field key
      kseg get support.tar.gz/orders-0 --offset 203500 --field header:trace --to trace.bin

    PATHS are a partition directory or a file in it, or log directories with --topic and --partition; by default the
    current directory. If several headers have the same name, `get` prints the last one, as Kafka's lastHeader does.

    If the record or header is missing or null, or its batch is damaged, `get` prints nothing and the exit status is 1.
    For an empty field it prints nothing either, and the status is 0.
    """
    paths, file, wanted = options.paths, options.file, parse_field(options.field)
    cluster = Cluster(paths, limit_to_contents(Talk().refuse))
    replicas = cluster.only_partition(options.choice)
    new = None if file is None else NewFile(file, (*(place.path for place in replicas.places), *paths))
    answer = look_up_in_copies(replicas, options.offset, beside=AdjacentMetadata(cluster=cluster))
    if answer.absence is Absence.BELOW_LOG_START:  # the log may still have it, and `kseg dump` prints it
        only = Selection(from_offset=options.offset, to_offset=options.offset + 1)
        below = look_up_in_copies(replicas, options.offset, only)
        answer = answer if below.record is None else below
    is_hidden = answer.record is not None and answer.record.offset < answer.log_start_offset
    for problem in dict.fromkeys(answer.problems) if answer.record is None or is_hidden else ():
        options.talk.note(problem)
    content = record_bytes(answer, wanted)
    if new is None:
        write_stdout(content)
        flush_stdout()
    else:
        new.write(content)

"""`kseg browse`: walks through directories, files, batches, records, fields and bytes on the screen."""

from pathlib import Path
from typing import NamedTuple

from kseg.commands.options.command import command
from kseg.errors import UsageError, missing_library
from kseg.system.placed_path import StrPath, as_path
from kseg.times import parse_zone


class BrowseOptions(NamedTuple):
    """Contents of the screen, the starting point, and the decoders of keys and values."""

    path: StrPath
    offset: int | None
    position: int | None
    key_decoder: str | None
    value_decoder: str | None
    schema: Path | None
    message: str | None
    schema_registry: Path | None
    zone: str


@command(BrowseOptions)
def browse(options: BrowseOptions) -> None:
    """Browse files and records on the screen.

    Use `browse` to look around in a disk, a partition or a file: batches, records, fields, bytes. It reads only the
    parts that you look at, so that a file of any size opens at once, and it changes nothing.

    \b
    Examples:
      kseg browse kafka-logs/
      kseg browse orders-0/ --offset 203500
      kseg browse 00000000000000203000.log --position 8738
      kseg browse orders-0/ --value-decoder avro --schema-registry _schemas-0/
      kseg browse support.tar.gz/orders-0

    PATH is a directory or a file; by default the current directory. `browse` needs a terminal of at least 80 columns
    and the library textual: install the extra `browse`. A mouse works too, also over ssh.

    The left side lists topics, partitions, files, batches or records; Enter goes in, Backspace goes back. The middle
    shows the fields of the selected row, the right side its bytes, with the selected field highlighted. Press ? for the
    keys: go to an offset, a time, a position or the next damage; search, decode, copy and export. C copies the kseg
    command that prints the row.

    Decoders are the same as for `kseg dump`.
    """
    from kseg.cluster.schemas_topic import SchemasTopic
    from kseg.decode.values import DecoderOptions

    try:
        from kseg.browse.place import Clock
        from kseg.browse.screen.browser import browse_path
    except ImportError as error:
        raise UsageError(missing_library("textual", "browse")) from error
    begin = {"offset": options.offset, "position": options.position}
    decoders = {"key": options.key_decoder, "value": options.value_decoder}
    registry = None if options.schema_registry is None else SchemasTopic(options.schema_registry)
    clock = Clock(parse_zone(options.zone), options.zone)
    browse_path(
        as_path(options.path), begin, decoders, DecoderOptions(options.schema, options.message, registry), clock
    )

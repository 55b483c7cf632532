"""`kseg protocol`: requests and responses from captures, frames or hex text."""

from pathlib import Path
from typing import NamedTuple

import click

from kseg.commands.options import (
    RedactOptions,
    Size,
    int_number,
    option_values,
    output_option,
    quiet_option,
    raw_option,
    redact_options,
    size_text,
    zone_option,
)
from kseg.dump.protocol import ProtocolOptions, report_protocol
from kseg.protocol.capture import InputForm
from kseg.protocol.messages import MAX_FRAME
from kseg.times import parse_zone

_LARGEST_FRAME = (1 << 31) - 1


class ReadingOptions(NamedTuple):
    """What the input is, and what of it is printed."""

    form: str | None
    ports: tuple[int, ...]
    apis: tuple[str, ...]
    response_to: str | None
    is_count: bool
    print_data_log: bool
    shallow: bool
    max_frame: int
    zone: str
    output: str
    quiet: bool


@click.command()
@click.argument("path", metavar="[FILE|-]", default="-", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--from",
    "form",
    type=click.Choice([str(form) for form in InputForm]),
    help="Form of the input; by default its bytes decide.",
)
@click.option("--port", "ports", type=int_number(1), multiple=True, help="Only connections to this port, of a capture.")
@click.option("--api", "apis", multiple=True, metavar="NAME", help="Only frames of this api: Fetch, Metadata, …")
@click.option(
    "--response-to", metavar="API:VERSION", help="Read all messages as responses to this: Fetch:17. Not for captures."
)
@click.option("--count", "is_count", is_flag=True, help="Only how many frames there are of each api and version.")
@click.option("--print-data-log", is_flag=True, help="Print keys and payloads of records.")
@click.option("--shallow", is_flag=True, help="Of records print a line per batch.")
@click.option(
    "--max-frame",
    type=Size(64, _LARGEST_FRAME),
    default=size_text(MAX_FRAME),
    show_default=True,
    help="Largest frame; a larger size is damage. Like Kafka's socket.request.max.bytes.",
)
@output_option("text", "json")
@quiet_option
@zone_option
@raw_option
@redact_options
@click.pass_context
@option_values(options=ReadingOptions)
def protocol(
    command: click.Context,
    path: Path,
    redacting: RedactOptions,
    options: ReadingOptions,
) -> None:
    """Read requests and responses of Kafka's protocol from a capture, from frames or from hexadecimal text.

    \b
    Examples:
      kseg protocol clients.pcap --count
      kseg protocol clients.pcap --api Produce --api Fetch --print-data-log
      tcpdump -i any -s 0 -w - port 9092 | kseg protocol - -o json
      echo 00000012 00120000 00000001 00086d79 2d617070 2d31 | kseg protocol -

    FILE is a .pcap or .pcapng (this needs kseg's extra `pcap`), or frames one after another, each after its size as on
    a connection, or their bytes in hexadecimal, also as from `xxd` and `hexdump -C`. In hexadecimal, a paragraph is a
    message, and its size may be missing. Responses are read according to the requests that they answer. The exit status
    is 1 if something isn't a frame, can't be read, or has an unknown api or version (counted on stderr); kseg reads on
    after it. Bytes after a body are only noted, since Kafka ignores them.

    --redact changes only records: names of topics, groups and clients, and everything else in the messages, stay.
    """
    protocol_options = ProtocolOptions(
        form=None if options.form is None else InputForm(options.form),
        ports=frozenset(options.ports),
        apis=options.apis,
        response_to=options.response_to,
        is_count=options.is_count,
        print_data_log=options.print_data_log,
        is_shallow=options.shallow,
        max_frame=options.max_frame,
        is_json=options.output == "json",
        is_quiet=options.quiet,
        redaction=redacting.redaction(),
        zone=parse_zone(options.zone),
    )
    command.exit(report_protocol(path, protocol_options))

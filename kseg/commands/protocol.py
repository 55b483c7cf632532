"""`kseg protocol`: requests and responses from captures, frames or hex text."""

from pathlib import Path
from typing import NamedTuple

from kseg.commands.options.command import RedactOptions, command
from kseg.dump.protocol import ProtocolOptions, report_protocol
from kseg.output.progress import Talk
from kseg.protocol.capture import InputForm
from kseg.times import parse_zone


class ReadingOptions(NamedTuple):
    """The form of the input, and the printed parts."""

    path: Path
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
    talk: Talk
    redacting: RedactOptions


@command(ReadingOptions)
def protocol(options: ReadingOptions) -> None:
    """Read requests and responses from captures or hex text.

    Use `protocol` to see the messages between clients and brokers: in a capture of the network, in frames, or in
    hexadecimal text.

    \b
    Examples:
      kseg protocol clients.pcap --count
      kseg protocol clients.pcap --api Produce --api Fetch --print-data-log
      tcpdump -i any -s 0 -w - port 9092 | kseg protocol - -o json
      echo 00000012 00120000 00000001 00086d79 2d617070 2d31 | kseg protocol -

    FILE is a .pcap or .pcapng (install the extra `pcap`), or frames, each after its size as on a connection, or the
    bytes of frames in hexadecimal, also from `xxd` and `hexdump -C`. In hexadecimal, a paragraph is a message, and its
    size may be missing. kseg reads a response according to its request. --response-to is for frames without requests,
    not for captures.

    The exit status is 1 if bytes aren't a frame, can't be read, or have an unknown API or version. stderr counts these,
    and kseg continues after them. Bytes after a body are only noted, since Kafka ignores them.

    --redact changes only records. Names of topics, groups and clients, and everything else in the messages, stay.
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
        is_quiet=options.talk.is_quiet,
        redaction=options.redacting.redaction(),
        zone=parse_zone(options.zone),
    )
    options.talk.end_with(report_protocol(options.path, protocol_options))

"""`kseg serve`: serves log directories over Kafka's protocol, read-only."""

from collections.abc import Mapping
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, cast

import click

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import require_choice
from kseg.commands.inputs import reads_archives
from kseg.commands.option_groups import partition_options
from kseg.commands.options import (
    Command,
    HostAndPort,
    is_given,
    option_values,
    paths_argument,
    quiet_option,
    server_properties_option,
    verbose_option,
)
from kseg.errors import UsageError, counted
from kseg.log.selection import PartitionChoice
from kseg.output.progress import LiveLine, Refusals, note_unless
from kseg.output.streams import flush_stdout, write_line
from kseg.serve.cluster import serve_partitions
from kseg.serve.connections import Security, server_tls
from kseg.serve.login import MECHANISMS, PLAIN, Logins, read_passwords
from kseg.serve.partition import HighWatermark, ServeSettings
from kseg.serve.server import Serving

_FILE = click.Path(path_type=Path)


def security_options(command: Command) -> Command:
    """`--tls-cert`, `--sasl-users` and their kin; the command gets them as one Security, `security`."""

    @click.option("--tls-cert", metavar="FILE", type=_FILE, help="Encrypt by TLS with this certificate, in PEM.")
    @click.option("--tls-key", metavar="FILE", type=_FILE, help="Its private key, if that isn't in the same file.")
    @click.option(
        "--tls-ca", metavar="FILE", type=_FILE, help="Let only clients in that have a certificate from these."
    )
    @click.option("--sasl-users", metavar="FILE", type=_FILE, help="Let clients in that log in: lines USER:PASSWORD.")
    @click.option(
        "--sasl-mechanism",
        "mechanisms",
        type=click.Choice(MECHANISMS),
        multiple=True,
        help="How; may be repeated. By default all, PLAIN only with --tls-cert.",
    )
    @wraps(command)
    def secured(*arguments: Any, **options: Any) -> Any:
        return command(*arguments, security=_security_of(options), **options)

    return cast(Command, secured)


def _security_of(options: dict[str, Any]) -> Security:
    """The security that the options describe; removes them from `options`."""
    names = ("tls_cert", "tls_key", "tls_ca", "sasl_users", "mechanisms")
    certificate, key, clients, users, mechanisms = (options.pop(name) for name in names)
    if certificate is None and (key or clients):
        raise UsageError(f"--tls-{'key' if key else 'ca'} needs --tls-cert, the server's certificate")
    if mechanisms and users is None:
        raise UsageError("--sasl-mechanism needs --sasl-users, who may log in")
    if PLAIN in mechanisms and certificate is None:
        raise UsageError("--sasl-mechanism PLAIN needs --tls-cert: passwords would go over the network as they are")
    tls = None if certificate is None else server_tls(certificate, key, clients)
    offered = mechanisms or [each for each in MECHANISMS if tls or each != PLAIN]
    passwords = None if users is None else read_passwords(users, note_unless(quiet=False))
    return Security(tls, None if passwords is None else Logins(passwords, offered))


_COMMAND = "kseg.serve.command"
_FREE_PORT = ("127.0.0.1", 0)


class _CommandBeside(click.Command):
    """Takes all after the first `--` as a command to run, before options are looked for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_COMMAND] = args[at + 1 :]
        if at == len(args) - 1:
            raise click.UsageError("no command after --", ctx)
        return super().parse_args(ctx, args[:at])

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        pieces = " ".join(self.collect_usage_pieces(ctx))
        formatter.write_usage(ctx.command_path, f"{pieces} [-- COMMAND [ARGUMENTS]...]")


class ServeOptions(NamedTuple):
    """Where to listen, how partitions are served, and what is said."""

    listen: tuple[str, int]
    advertise: tuple[str, int] | None
    high_watermark: HighWatermark
    strict: bool
    fix_lz4: bool
    server_properties: Mapping[str, str]
    no_internal: bool
    quiet: bool
    verbose: bool


@click.command(cls=_CommandBeside)
@paths_argument
@click.option(
    "--listen",
    metavar="HOST:PORT",
    type=HostAndPort(),
    default="127.0.0.1:9092",
    show_default=True,
    help="Where to listen; port 0 is a free one, which is also the default with a COMMAND.",
)
@click.option(
    "--advertise",
    metavar="HOST:PORT",
    type=HostAndPort(),
    help="What clients are told to connect to; by default the address that they came to.",
)
@partition_options
@click.option(
    "--high-watermark",
    type=click.Choice(["log-end", "checkpoint"]),
    default="log-end",
    show_default=True,
    help="Serve up to the log's end, or up to what the broker's checkpoint says was replicated.",
)
@click.option("--strict", is_flag=True, help="Answer an error where the log is damaged, instead of passing it over.")
@click.option(
    "--fix-lz4",
    is_flag=True,
    help="Send lz4 of brokers up to 0.9 with right checksums, for clients that can't read it as it is.",
)
@click.option("--no-internal", is_flag=True, help="Leave Kafka's own topics out, such as __consumer_offsets.")
@server_properties_option
@security_options
@quiet_option
@verbose_option("A line for each partition at the start, and one for each request")
@reads_archives("paths")
@click.pass_context
@option_values(options=ServeOptions)
def serve(
    command: click.Context,
    paths: tuple[Path, ...],
    choice: PartitionChoice,
    security: Security,
    options: ServeOptions,
) -> None:
    """Serve log directories to Kafka's clients, read-only, as a broker would.

    \b
    Examples:
      kseg serve disk1/ disk2/
      kseg serve kafka-logs/ -- kcat -b {bootstrap} -C -t orders -o beginning -e
      kseg serve support.tar.gz --listen 127.0.0.1:0

    PATHS are partition directories, log directories, or parents of these; by default the current directory. Batches go
    out as they lie on the disk. Those that are damaged are passed over, and named once on stderr. Of several replicas
    of a partition the one is served that the cluster went on with. Nothing is written; a broker may be writing there
    meanwhile.

    The address is printed on stdout. Ctrl-C ends the server. With a COMMAND, it is run against the server, {bootstrap}
    in its arguments becomes the address, as do KSEG_BOOTSTRAP and kcat's configuration in its environment, and its exit
    status is that of `kseg serve`. Otherwise this is 1 if something was passed over.

    Groups go on from the offsets in __consumer_offsets; what they commit is kept in memory. See docs/how-to/serve.md.
    """
    note, refuse = note_unless(quiet=options.quiet), Refusals()
    say = note_unless(quiet=False)
    settings = ServeSettings(
        options.high_watermark,
        options.strict,
        has_internal=not options.no_internal,
        mends_lz4=options.fix_lz4,
        is_verbose=options.verbose,
        is_quiet=options.quiet,
    )
    cluster = Cluster(paths, refuse)
    served = serve_partitions(cluster, settings, say, choice, server_properties=options.server_properties)
    if not served.topics:
        if refuse.status:
            command.exit(refuse.status)
        require_choice(paths, choice)
        raise UsageError("there is no partition to serve")
    words: list[Any] = command.meta[_COMMAND]
    is_free = bool(words) and not is_given(command, "listen")

    def announce(address: str) -> None:
        write_line(address)
        flush_stdout()
        many = f"{counted(len(served.partitions), 'partition')} of {counted(len(served.topics), 'topic')}"
        note(f"serving {many} at {address}; Ctrl-C ends")

    tell_request = note if options.verbose else lambda _: None
    where = _FREE_PORT if is_free else options.listen
    with LiveLine(wanted=not options.quiet) as live:
        serving = Serving(where, options.advertise, words, announce, tell_request, say, live.show, security)
        status = serving.run(served)
    command.exit(status if words else max(refuse.status, int(served.has_missed)))

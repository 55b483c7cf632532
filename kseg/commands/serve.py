"""`kseg serve`: serves log directories over Kafka's protocol, read-only."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from kseg.cluster.cluster import Cluster
from kseg.commands.options.command import TableCommand, command, is_given
from kseg.errors import UsageError, plural
from kseg.log.selection import PartitionChoice
from kseg.output.progress import LiveLine, Talk
from kseg.output.streams import flush_stdout, write_line
from kseg.serve.cluster import serve_partitions
from kseg.serve.connections import Security, server_tls
from kseg.serve.login import MECHANISMS, PLAIN, Logins, read_passwords
from kseg.serve.server import Serving
from kseg.serve.values import HighWatermark, ServeSettings


class SecurityOptions(NamedTuple):
    """The clients that may connect, and their connections."""

    tls_cert: Path | None
    tls_key: Path | None
    tls_ca: Path | None
    sasl_users: Path | None
    mechanisms: tuple[str, ...]

    def security(self, talk: Talk) -> Security:
        """Return the security of the options. Raises UsageError for options that exclude each other."""
        if self.tls_cert is None and (self.tls_key or self.tls_ca):
            raise UsageError(f"--tls-{'key' if self.tls_key else 'ca'} needs --tls-cert, the server's certificate")
        if self.mechanisms and self.sasl_users is None:
            raise UsageError("--sasl-mechanism needs --sasl-users")
        if PLAIN in self.mechanisms and self.tls_cert is None:
            raise UsageError("--sasl-mechanism PLAIN needs --tls-cert, which encrypts the passwords")
        tls = None if self.tls_cert is None else server_tls(self.tls_cert, self.tls_key, self.tls_ca)
        offered = self.mechanisms or [each for each in MECHANISMS if tls or each != PLAIN]
        passwords = None if self.sasl_users is None else read_passwords(self.sasl_users, talk.warn)
        return Security(tls, None if passwords is None else Logins(passwords, offered))


_COMMAND = "kseg.serve.command"
_FREE_PORT = ("127.0.0.1", 0)


class _ChildCommand(TableCommand):
    """A command that takes everything after the first `--` as a child command, before options are parsed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_COMMAND] = args[at + 1 :]
        if at == len(args) - 1:
            raise click.UsageError("the command after -- is missing", ctx)
        return super().parse_args(ctx, args[:at])

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        pieces = " ".join(self.collect_usage_pieces(ctx))
        formatter.write_usage(ctx.command_path, f"{pieces} [-- COMMAND [ARGUMENTS]...]")


class ServeOptions(NamedTuple):
    """The address, the serving of partitions, and the printed messages."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    security: SecurityOptions
    listen: tuple[str, int]
    advertise: tuple[str, int] | None
    high_watermark: HighWatermark
    fail_on_damage: bool
    fix_lz4: bool
    server_properties: Mapping[str, str]
    no_internal: bool
    talk: Talk
    verbose: bool


@command(ServeOptions, kind=_ChildCommand)
def serve(options: ServeOptions) -> None:
    """Serve log directories to Kafka's clients, read-only.

    Use `serve` to read a disk with any Kafka client. kseg answers as a broker would, and writes nothing. A broker may
    use the disk at the same time.

    \b
    Examples:
      kseg serve disk1/ disk2/
      kseg serve kafka-logs/ -- kcat -b {bootstrap} -C -t orders -o beginning -e
      kseg serve support.tar.gz --listen 127.0.0.1:0

    PATHS are partition directories, log directories, or parents of these; by default the current directory. Batches are
    sent as stored. Damaged ones are skipped, and reported once on stderr. If PATHS have several replicas of a
    partition, kseg serves the one that the cluster continued with.

    The address is printed on stdout. Ctrl-C ends the server; the exit status is 1 if it skipped something.

    A COMMAND runs against the server, on a free port unless you give --listen. {bootstrap} in its arguments becomes the
    address, as do KSEG_BOOTSTRAP and kcat's configuration in its environment. kseg ends with the exit status of the
    command.

    Groups continue from the offsets in __consumer_offsets. Their commits are kept in memory. See docs/how-to/serve.md.
    """
    paths, choice, talk = options.paths, options.choice, options.talk
    security = options.security.security(talk)
    settings = ServeSettings(
        options.high_watermark,
        options.fail_on_damage,
        has_internal=not options.no_internal,
        mends_lz4=options.fix_lz4,
        is_verbose=options.verbose,
        is_quiet=talk.is_quiet,
    )
    cluster = Cluster(paths, talk.refuse)
    served = serve_partitions(cluster, settings, talk.warn, choice, server_properties=options.server_properties)
    if not served.topics:
        if talk.status:
            return
        raise UsageError("PATHS have no partition to serve")
    words: list[Any] = click.get_current_context().meta[_COMMAND]
    is_free = bool(words) and not is_given("listen")

    def announce(address: str) -> None:
        write_line(address)
        flush_stdout()
        many = f"{plural(len(served.partitions), 'partition')} of {plural(len(served.topics), 'topic')}"
        talk.note(f"serving {many} at {address}; Ctrl-C ends")

    tell_request = talk.note if options.verbose else lambda _: None
    where = _FREE_PORT if is_free else options.listen
    with LiveLine(wanted=not talk.is_quiet) as live:
        serving = Serving(where, options.advertise, words, announce, tell_request, talk.warn, live.show, security)
        status = serving.run(served)
    talk.status = status if words else max(talk.status, int(served.has_missed))

"""Arguments and options that several commands share, as decorators."""

import os
from collections.abc import Callable
from datetime import UTC, tzinfo
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click

from kseg.archive.paths import matching_paths
from kseg.commands.parameters import int_number
from kseg.kafka_defaults import BOOTSTRAP_SERVER

if TYPE_CHECKING:
    from kseg.output.output_form import OutputForm
    from kseg.redaction import Part, Redaction

REDACT_KEY = "KSEG_REDACT_KEY"
"""The variable with the key of --redact for all commands; it isn't visible in the list of processes."""

Command = TypeVar("Command", bound=Callable[..., Any])


def option_values(**kinds: type[Any]) -> Callable[[Command], Command]:
    """Gives a command its options in values: each parameter that is named here is a value of a class.

    The options whose names are fields of the class become its fields. It is the last decorator before `def`, so that
    the others see the options one by one; of two, the lower one may put the values of the upper one into its own.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def gathering(*arguments: Any, **options: Any) -> Any:
            for name, kind in kinds.items():
                own = [field for field in kind.__annotations__ if field in options]
                options[name] = kind(**{field: options.pop(field) for field in own})
            return command(*arguments, **options)

        return cast(Command, gathering)

    return decorate


def paths_argument(command: Command) -> Command:
    """`[PATHS]…` as a tuple of Path, quoted globs expanded; by default the current directory."""
    return click.argument("paths", nargs=-1, type=click.Path(), callback=lambda *given: paths_of(*given) or (Path(),))(
        command
    )


def all_matching(_: object, __: object, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The callback of an argument with paths that may be globs: the paths that they match."""
    return tuple(path for text in texts for path in matching_paths(text))


def paths_of(command: object, argument: object, texts: tuple[str, ...]) -> tuple[Path, ...]:
    """The same as Paths."""
    return tuple(map(Path, all_matching(command, argument, texts)))


def output_option(*forms: str) -> Callable[[Command], Command]:
    """`-o/--output`, one of some forms; the first is the default."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        help="Form of the output.",
    )


def csv_safe_option(command: Command) -> Command:
    """`--csv-safe`; `check_csv_safe` of kseg.output.csv checks it against the form."""
    return click.option(
        "--csv-safe",
        is_flag=True,
        help="With -o csv: put an apostrophe before texts that a spreadsheet would evaluate as formulas.",
    )(command)


def raw_option(command: Command) -> Command:
    """`--raw`: escape nothing on a terminal."""

    def let_through(_: click.Context, __: click.Parameter, wanted: bool) -> None:
        from kseg.output.stdout import let_contents_through

        if wanted:
            let_contents_through()

    return click.option(
        "--raw",
        is_flag=True,
        expose_value=False,
        callback=let_through,
        help="Print control characters unchanged on a terminal, as pipes and files always get them.",
    )(command)


QUIET = "Say nothing but what is wrong: no notes, no sums, no bar, nor what was written."
VERBOSE = "Say at the end what the run took"
COLOR = "Use colours; by default only on a terminal, and not if NO_COLOR is set."


def quiet_option(command: Command) -> Command:
    """`-q/--quiet`."""
    return click.option("-q", "--quiet", is_flag=True, help=QUIET)(command)


def verbose_option(meaning: str) -> Callable[[Command], Command]:
    """`-v/--verbose` of a command that has more to say than what the run took."""
    return click.option("-v", "--verbose", is_flag=True, help=f"{meaning}; and say at the end what the run took.")


def progress_option(command: Command) -> Command:
    """`--progress/--no-progress`: None lets the terminals decide."""
    return click.option(
        "--progress/--no-progress", default=None, help="Show a bar on stderr; by default only on a terminal."
    )(command)


def color_option(command: Command) -> Command:
    """`--color/--no-color`: None lets the terminal and NO_COLOR decide."""
    return click.option(
        "--color/--no-color",
        default=None,
        help=COLOR,
    )(command)


def gentle_options(command: Command) -> Command:
    """`--gentle` and `--keep-cache`: how to read next to a live broker."""
    command = click.option(
        "--keep-cache", is_flag=True, help="Leave what is read in the page cache; by default the cache stays as it was."
    )(command)
    return click.option(
        "--gentle", is_flag=True, help="Give way to others: lowest priority, disk only when idle, one process."
    )(command)


def processes_option(command: Command) -> Command:
    """`-j`: how many processes share the work; None where nobody says."""
    return click.option(
        "-j",
        "processes",
        metavar="N",
        type=int_number(1),
        help="How many processes share the work; as many as processors by default, if there is enough to do.",
    )(command)


class WorkOptions(NamedTuple):
    """How a run that may take long shares its work and shows how far it is: `-j`, `gentle_options`, `-q`, a bar."""

    processes: int | None
    gentle: bool
    keep_cache: bool
    quiet: bool
    progress: bool | None

    def begin(self) -> int | None:
        """How many processes may share the work, None for as many as help; lets others go first if it is gentle."""
        if not self.gentle:
            return self.processes
        from kseg.system.gentle import give_way

        give_way()
        return 1 if self.processes is None else self.processes

    @property
    def has_bar(self) -> bool | None:
        """Whether there is a bar; None lets the terminals decide."""
        return False if self.quiet else self.progress


class RowOptions(NamedTuple):
    """How rows are printed: `output_option`, `color_option`, `csv_safe_option`."""

    output: str
    color: bool | None
    csv_safe: bool = False

    def form(self, zone: tzinfo = UTC) -> "OutputForm":
        """The form of the output, with times in a zone. Raises UsageError for --csv-safe in another than CSV."""
        from kseg.output.output_form import OutputForm

        return OutputForm(self.output, self.color, csv_safe=self.csv_safe, zone=zone)


class RedactOptions(NamedTuple):
    """What is redacted, and the key."""

    redact: "tuple[Part, ...]"
    redact_key: str | None

    def redaction(self) -> "Redaction | None":
        """The redaction that the options describe."""
        if not self.redact:
            return None
        from kseg.redaction import Redaction

        return Redaction.of(self.redact, os.environ.get(REDACT_KEY) if self.redact_key is None else self.redact_key)


def redact_options(command: Command) -> Command:
    """`--redact` and `--redact-key`; the command gets them as one RedactOptions, `redacting`."""
    command = option_values(redacting=RedactOptions)(command)
    command = click.option(
        "--redact-key",
        metavar="TEXT",
        help="Key of --redact, better in KSEG_REDACT_KEY. The same key gives the same again; by default it is secret.",
    )(command)
    return click.option(
        "--redact",
        type=click.Choice(["keys", "values", "headers"]),
        multiple=True,
        help="Replace contents (in headers, the values) by a keyed substitute of the same length; may be repeated.",
    )(command)


def cluster_metadata_option(command: Command) -> Command:
    """`--cluster-metadata`: where `topic_ids` looks up ids of topics."""
    return click.option(
        "--cluster-metadata",
        type=click.Path(path_type=Path),
        help="__cluster_metadata-0 or a log directory that has it, for the topic's id if the partition has lost it.  "
        "By default the one next to the partition.",
    )(command)


def bootstrap_server_option(meaning: str) -> Callable[[Command], Command]:
    """`--bootstrap-server`: what stands for the cluster in command lines of Kafka's tools, which kseg only prints."""
    return click.option("--bootstrap-server", metavar="HOST:PORT", default=BOOTSTRAP_SERVER, help=meaning)


def zone_option(command: Command) -> Command:
    """`--tz`: the zone of times without one, and of printed times."""
    return click.option(
        "--tz",
        "zone",
        metavar="ZONE",
        default="UTC",
        show_default=True,
        help="Time zone of given and printed times: Europe/Berlin, +02:00, local.",
    )(command)


def new_directory_option(
    help_text: str = "The new directory: it must not exist yet, or be empty.", *, required: bool = False
) -> Callable[[Command], Command]:
    """`--to`: the directory that a command makes."""
    return click.option(
        "--to", "directory", metavar="DIR", required=required, type=click.Path(path_type=Path), help=help_text
    )


def now_option(command: Command) -> Command:
    """`--now`: the time that ages are judged by."""
    return click.option(
        "--now", metavar="TIME", help="Time to judge by: ISO 8601, milliseconds, -1h; the clock's by itself."
    )(command)

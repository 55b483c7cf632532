"""Arguments and options that several commands share, and their types."""

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click
from click.core import ParameterSource

from kseg.formats.codes import BOOTSTRAP_SERVER
from kseg.store.location import checked_path, matching_paths

if TYPE_CHECKING:
    from kseg.output.table import OutputForm
    from kseg.redaction import Part, Redaction


LARGEST_INT = 2**31 - 1
LARGEST_LONG = 2**63 - 1
_UNITS: dict[str, int] = {
    "": 1,
    **{unit: 1000**power for power, unit in enumerate("KMGT", 1)},
    **{f"{unit}I": 1024**power for power, unit in enumerate("KMGT", 1)},
}
_FOLDERS = ("topic", "partition", "date")


class Number(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """A whole number in decimal digits, from `least` to `most`."""

    name = "integer"

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; fails if it isn't one, or is out of bounds."""
        text = str(value)
        if not re.fullmatch("[+-]?[0-9]{1,25}", text) or not self.least <= int(text) <= self.most:
            self.fail(f"{text!r} isn't a whole number from {self.least} to {self.most}", param, ctx)
        return int(text)


def int_number(least: int = 0) -> Number:
    """An int in Kafka: sizes, counts, epochs."""
    return Number(least, LARGEST_INT)


def long_number(least: int = 0) -> Number:
    """A long in Kafka: offsets, times, ids."""
    return Number(least, LARGEST_LONG)


ANY_LONG = long_number(-LARGEST_LONG - 1)
"""For damaged logs, whose batches may have any offset."""


class Size(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """Bytes from `least` to `most`: a number, with B, KB, MB, GB, TB, KiB, MiB, GiB or TiB if wanted."""

    name = "SIZE"

    def __init__(self, least: int = 1, most: int = LARGEST_LONG) -> None:
        self.least, self.most = least, most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The bytes; fails if they aren't such a number, or are out of bounds."""
        match = re.fullmatch(r"([+-]?[0-9]{1,25}) ?([KMGT]I?|)B?", str(value).upper())
        size = None if match is None else int(match[1]) * _UNITS[match[2]]
        if size is None or not self.least <= size <= self.most:
            bounds = f"from {size_text(self.least)} to {size_text(self.most)}"
            self.fail(f"{str(value)!r} isn't a size {bounds}: give bytes, or 64MB, 1GiB", param, ctx)
        return size


class Ratio(click.FloatRange):
    """A number from 0 to 1; NaN, which is within any bounds to click, is none."""

    def __init__(self) -> None:
        super().__init__(0, 1)

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; fails if it isn't one, or is out of bounds."""
        ratio = float(super().convert(value, param, ctx))
        if ratio != ratio:
            self.fail(f"{value!r} is not in the range 0<=x<=1.", param, ctx)
        return ratio


def size_text(size: int) -> str:
    """A size as `Size` takes it, exactly: `1GiB`, or bytes."""
    for unit in ("TI", "GI", "MI", "KI"):
        count, rest = divmod(size, _UNITS[unit])
        if size > 0 and not rest:
            return f"{count}{unit[0]}iB"
    return str(size)


class Folders(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """Names of folders, separated by commas; `none` for none."""

    name = "NAMES"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The names; fails if one isn't known."""
        names = () if value == "none" else tuple(str(value).split(","))
        if not set(names) <= set(_FOLDERS) or len(set(names)) < len(names):
            self.fail(f"{value!r} isn't made of topic, partition, date, nor none.", param, ctx)
        return names


class HostAndPort(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """HOST:PORT, an IPv6 address in brackets."""

    name = "HOST:PORT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Host and port; fails if one is missing, or can't be."""
        if isinstance(value, tuple):
            return value
        host, _, port = str(value).rpartition(":")
        is_bracketed = host.startswith("[") and host.endswith("]")
        host = host[1:-1] if is_bracketed else host
        is_port = port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS and int(port) <= _LARGEST_PORT
        if not is_port or not _HOST.fullmatch(host) or is_bracketed != (":" in host):
            self.fail(f"{value!r} isn't HOST:PORT, such as 127.0.0.1:9092 or [::1]:9092.", param, ctx)
        return host, int(port)


_HOST = re.compile(r"[0-9A-Za-z._:%-]{1,255}")
_LARGEST_PORT, _PORT_DIGITS = 65535, 5


class Setting(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """NAME=VALUE."""

    name = "NAME=VALUE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Name and value."""
        name, equals, text = str(value).partition("=")
        if not equals:
            self.fail(f"{value!r} has no =.", param, ctx)
        return name, text


class KeyFile(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """ID=FILE: a key's id, and the file that holds it."""

    name = "ID=FILE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Path]:
        """The id and the file's path."""
        if isinstance(value, tuple):
            return value
        key_id, equals, path = str(value).partition("=")
        if not equals or not key_id or not path:
            self.fail(f"{value!r} isn't ID=FILE, such as key1=private.pem", param, ctx)
        return key_id, Path(path)


def is_given(command: click.Context, name: str) -> bool:
    """Whether an option was given, on the command line or by the environment; otherwise it has its default."""
    return command.get_parameter_source(name) is not ParameterSource.DEFAULT


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
    """The callback of an argument with paths that may be globs: the paths that they match. URLs must be some."""
    return tuple(path for text in texts for path in matching_paths(checked_path(text)))


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
    """`--csv-safe`; `check_csv_safe` of kseg.output.rows checks it against the form."""
    return click.option(
        "--csv-safe",
        is_flag=True,
        help="With -o csv: put an apostrophe before texts that a spreadsheet would evaluate as formulas.",
    )(command)


def raw_option(command: Command) -> Command:
    """`--raw`: escape nothing on a terminal."""

    def let_through(_: click.Context, __: click.Parameter, wanted: bool) -> None:
        from kseg.output.streams import let_contents_through

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
    return click.option("-v", "--verbose", is_flag=True, help=f"{meaning}; and {VERBOSE[0].lower()}{VERBOSE[1:]}.")


def verbose_copies_option(command: Command) -> Command:
    """`-v/--verbose` of a command that reads several copies of a partition as one."""
    meaning = f"Say of each partition which copy answers; and {VERBOSE[0].lower()}{VERBOSE[1:]}."
    return click.option("-v", "--verbose", "is_verbose", is_flag=True, help=meaning)(command)


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
        from kseg.system.page_cache import give_way

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
        from kseg.output.table import OutputForm

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
    """`--cluster-metadata`: where ids and settings of topics are looked up."""
    return click.option(
        "--cluster-metadata",
        type=click.Path(path_type=Path),
        help="__cluster_metadata-0 or a log directory that has it, for what the partition doesn't tell of its topic. "
        "By default the one in PATHS, or next to them.",
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


def server_properties_option(command: Command) -> Command:
    """`--server-properties`: the file of a broker's static settings; the command gets what it sets, by name."""
    return click.option(
        "--server-properties",
        metavar="FILE",
        type=click.Path(path_type=Path),
        callback=lambda _context, _option, path: _properties_in(path),
        help="A broker's server.properties: what neither a topic nor the cluster sets, for its own disks.",
    )(command)


def _properties_in(path: Path | None) -> Mapping[str, str]:
    from kseg.cluster.settings import NO_SETTINGS, read_server_properties

    return NO_SETTINGS if path is None else read_server_properties(path)


def add_talk_options(command: click.Command) -> None:
    """Adds what a command doesn't declare itself, before its other options' end; `-v` tells of the run on all."""
    own = {name for parameter in command.params for name in parameter.opts}
    command.params += [option for option in _options() if not own.intersection(option.opts)]
    for parameter in command.params:
        if "--verbose" in parameter.opts:
            parameter.callback = _tell_at_the_end


def _options() -> list[click.Option]:
    return [
        click.Option(["-q", "--quiet"], is_flag=True, expose_value=False, help=QUIET),
        click.Option(["-v", "--verbose"], is_flag=True, expose_value=False, help=f"{VERBOSE}."),
        click.Option(["--color/--no-color"], default=None, expose_value=False, help=COLOR),
    ]


def _tell_at_the_end(context: click.Context, _: click.Parameter, wanted: bool) -> bool:
    if wanted and not context.resilient_parsing:
        from kseg.output.progress import talk
        from kseg.system.run_usage import Usage

        usage = Usage()
        context.call_on_close(lambda: talk(f"kseg: {usage.line()}"))
    return wanted

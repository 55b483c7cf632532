"""One vocabulary on all commands: an option has the same name, meaning and type everywhere."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import click

from kseg.cli import COMMANDS, cli
from kseg.commands.options.table import SETTINGS
from kseg.commands.options.types import Number, NumberOrPercent, Size, SizeOrShare
from tests.loops import for_each
from tools.generators.streams import objects

OBJECTS = objects()
TIMES = ("time", "timestamp")
"""Ends of the names of times in JSON."""
Is = Callable[[click.Option], bool]


def has_metavar(*metavars: str) -> Is:
    return lambda option: option.metavar in metavars


def is_one_of(*words: str) -> Is:
    return lambda option: isinstance(option.type, click.Choice) and set(option.type.choices) <= set(words)


def is_switch(option: click.Option) -> bool:
    return option.is_flag and not option.secondary_opts


def is_yes_or_no(option: click.Option) -> bool:
    return option.is_flag and option.secondary_opts == [f"--no-{option.opts[0].removeprefix('--')}"]


def is_size(option: click.Option) -> bool:
    return isinstance(option.type, Size)


def is_number(option: click.Option) -> bool:
    return isinstance(option.type, Number)


class Word(NamedTuple):
    """The type of an option everywhere, and its short name."""

    is_right: Is
    short: str | None = None


OUTPUT_FORMS = (
    "text",
    "json",
    "csv",
    "table",
    "html",
    "svg",
    "timeline",
    "kcat",
    "reset-csv",
    "reassignment",
    "chart",
    "commands",
)
INPUT_FORMS = ("text", "json", "csv", "capture", "frames", "hex")
VOCABULARY = {
    "--output": Word(is_one_of(*OUTPUT_FORMS), "-o"),
    "--to": Word(has_metavar("DIR", "FILE", "DEST")),
    "--input-format": Word(is_one_of(*INPUT_FORMS)),
    "--input-kind": Word(has_metavar("KIND")),
    "--grammar": Word(lambda option: isinstance(option.type, click.Choice)),
    "--format": Word(lambda option: isinstance(option.type, click.Choice) and "parquet" in option.type.choices),
    "--catalog": Word(has_metavar("NAME")),
    "--table": Word(has_metavar("NAME")),
    "--jobs": Word(lambda option: is_number(option) and option.metavar == "N", "-j"),
    "--topic": Word(has_metavar("TOPIC")),
    "--partition": Word(has_metavar("N,…")),
    "--from-offset": Word(lambda option: is_number(option) and option.metavar == "OFFSET"),
    "--to-offset": Word(lambda option: is_number(option) and option.metavar == "OFFSET"),
    "--from-time": Word(has_metavar("TIME")),
    "--to-time": Word(has_metavar("TIME")),
    "--timestamp": Word(has_metavar("TIME")),
    "--now": Word(has_metavar("TIME")),
    "--at": Word(has_metavar("TIME", "OFFSET|TIME")),
    "--tz": Word(has_metavar("ZONE")),
    "--key": Word(has_metavar("KEY")),
    "--key-regex": Word(has_metavar("REGEX")),
    "--grep": Word(has_metavar("REGEX")),
    "--header": Word(has_metavar("NAME[=VALUE]")),
    "--producer-id": Word(lambda option: is_number(option) and option.metavar == "ID"),
    "--control": Word(is_yes_or_no),
    "--isolation": Word(is_one_of("read_uncommitted", "read_committed")),
    "--limit": Word(lambda option: is_number(option) and option.metavar == "N"),
    "--tail": Word(lambda option: is_number(option) and option.metavar == "N"),
    "--sample": Word(has_metavar("SHARE")),
    "--follow": Word(is_switch),
    "--key-decoder": Word(has_metavar("NAME")),
    "--value-decoder": Word(has_metavar("NAME")),
    "--redact": Word(is_one_of("keys", "values", "headers")),
    "--listen": Word(has_metavar("HOST:PORT")),
    "--advertise": Word(has_metavar("HOST:PORT")),
    "--max-unpacked": Word(is_size),
    "--free": Word(lambda option: isinstance(option.type, SizeOrShare)),
    "--bytes": Word(is_switch),
    "--dry-run": Word(is_switch),
    "--gentle": Word(is_switch),
    "--keep-cache": Word(is_switch),
    "--raw": Word(is_switch),
    "--quiet": Word(is_switch, "-q"),
    "--verbose": Word(is_switch, "-v"),
    "--color": Word(is_yes_or_no),
    "--progress": Word(is_yes_or_no),
}
SHORT = {word.short for word in VOCABULARY.values()} - {None}
EXPORTS = {"export", "spark-export"}
ONLY_ON = {"--format": EXPORTS, "--grammar": {"explain"}, "--timestamp": {"lookup", "build"}}
GONE = {
    "--as", "--warm", "--temporary",
    "--processes", "--roll-ms", "--roll-hours", "--index-max-bytes", "--retention-hours", "--dedupe-buffer-size",
    "--max-transaction-timeout", "--epoch", "--sequence", "--memory", "--temp-limit", "--columns", "--mode",
    "--chart", "--as-commands", "--decode", "--starting-offset", "--ending-offset", "--starting-time", "--ending-time",
}  # fmt: skip
"""Former names, which no command may use again."""
NO_SETTINGS = {"--max-message-size", "--max-bytes", "--bytes"}
"""Names that look like a setting's and aren't: the real tool's sizes, and sizes to the byte."""

NO_DATA = {"completion", "help", "build"}
"""Commands that don't read partitions."""
READING = [
    name
    for name in COMMANDS
    if name
    not in {
        *NO_DATA,
        "explain",
        "browse",
        "protocol",
        "where",
        "groups",
        "rebuild-metadata",
        "redact",
        "restore",
        "carve",
    }
]
"""Commands that read several partitions of a log directory and can select some."""
TIME_OF_THE_RUN = {"salvage"}
"""Commands whose only time is that of the run."""

PENDING: set[tuple[str, str]] = set()
"""Known exceptions. The set may only shrink."""


def options() -> Iterator[tuple[str, click.Option]]:
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                yield name, option


def long_name(option: click.Option) -> str:
    return next((each for each in option.opts if each.startswith("--")), option.opts[0])


def test_an_option_means_the_same_on_all_commands() -> None:
    wrong = set()
    for command, option in options():
        name = long_name(option)
        word = VOCABULARY.get(name)
        if word is not None and not word.is_right(option):
            wrong.add((command, name))
        shorts = {each for each in option.opts if not each.startswith("--")}
        assert shorts == ({word.short} - {None} if word is not None else set()), f"{command} {option.opts}"
    assert wrong <= PENDING


def test_an_option_is_only_where_it_belongs() -> None:
    for command, option in options():
        assert command in ONLY_ON.get(long_name(option), COMMANDS), f"{command} {long_name(option)}"


@for_each("command", COMMANDS)
def test_every_command_can_be_told_how_much_to_say(command: str) -> None:
    own = {long_name(option) for name, option in options() if name == command}
    assert own >= {"--quiet", "--verbose", "--color"}


def test_names_that_are_gone_stay_away() -> None:
    found = {(command, name) for command, option in options() for name in option.opts if name in GONE}
    assert found <= PENDING


def test_sizes_have_units_on_all_commands() -> None:
    for command, option in options():
        name = long_name(option)
        if name.endswith(("-bytes", "-size")) or (name.startswith("--max-") and not name.endswith("-ms")):
            is_share = isinstance(option.type, NumberOrPercent)  # of records: its metavar says so
            assert is_size(option) or is_share or option.is_flag, f"{command} {name}"


def test_settings_have_kafkas_names() -> None:
    settings = {row.flags: row for row in SETTINGS}
    for command, option in options():
        name = long_name(option)
        if name in settings:
            assert option.type is settings[name].type, f"{command} {name}"
        else:
            is_setting = name.endswith(("-ms", "-bytes", "-hours", "-minutes"))
            assert not is_setting or name in NO_SETTINGS, f"{command} {name}: no setting of Kafka's"


@for_each("command", COMMANDS)
def test_times_are_given_and_printed_in_a_zone(command: str) -> None:
    own = {long_name(option): option for name, option in options() if name == command}
    takes_times = any("TIME" in (option.metavar or "") for option in own.values())
    printed = (field.name for kind in OBJECTS.get(command, {}).values() for field in kind.fields)
    prints_times = command not in TIME_OF_THE_RUN and any(name.lower().endswith(TIMES) for name in printed)
    assert "--tz" in own or not (takes_times or prints_times)


def test_partitions_are_chosen_alike_on_every_command_that_reads() -> None:
    own = {(command, long_name(option)) for command, option in options()}
    wanted = {(name, "--topic") for name in READING} | {(name, "--partition") for name in READING if name != "metadata"}
    assert wanted - own <= PENDING


def test_what_has_become_right_is_not_pending() -> None:
    own = {(command, long_name(option)): option for command, option in options()}

    def is_right(place: tuple[str, str]) -> bool:
        name = place[1]
        if name in GONE:
            return place not in own
        if place not in own:
            return False
        return VOCABULARY[name].is_right(own[place])

    assert [place for place in PENDING if is_right(place)] == []

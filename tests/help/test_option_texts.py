"""Help texts: of options one short sentence each, of commands a purpose, a paragraph, examples and details."""

import re
from collections import Counter

import click

from kseg.cli import COMMANDS, cli
from kseg.commands.options.row import Option
from kseg.commands.options.table import OPTIONS
from tests.loops import for_each

ROWS = [row for _, rows in OPTIONS for row in rows]
LONGEST = 80
DEFAULT = " [default: "
RELATIVE = re.compile(r"(What|Whether|Where|How|Which|Who|Why|Those|Of|As|That|So|Whose|If|When)\b")
FOREIGN = re.compile(
    r"by itself|what (is|was|lies|goes|comes|has)|as (it|they) (lies?|are)|\banew\b|\bbeside\b"
    r"|of (Kafka|kseg|Spark)'s|goes (on|by)|(is|are) (named|told)|may be repeated|needed\.|; needs "
)
"""Words of a translation, and remarks that the help makes itself: [repeatable], [required]."""
BARE_METAVARS = {"TEXT", "INTEGER", "INTEGER RANGE", "FLOAT", "PATH", "FLOAT RANGE"}
"""Metavars that click makes of a type: they don't tell what to give."""
TEXTS = {"--key-separator", "--template"}
"""Options whose value is any text."""


@for_each("row", ROWS)
def test_help_is_one_short_sentence(row: Option) -> None:
    text, default, rest = row.help.partition(DEFAULT)
    assert len(text) <= LONGEST
    assert text[0].isupper()
    assert text.endswith(".")
    assert not re.search(r"\. [A-Z]", text)
    assert not RELATIVE.match(text)
    assert not FOREIGN.search(row.help)
    assert not default or rest.endswith("]")


def test_commands_with_the_same_option_share_a_row() -> None:
    said = Counter((*row._replace(commands="", type=""), id(row.type)) for row in ROWS)
    assert [text for text, count in said.items() if count > 1] == []


@for_each("name", COMMANDS)
def test_defaults_and_values_are_shown_alike(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    context = click.Context(command, info_name=name)
    for option in command.params:
        record = option.get_help_record(context) if isinstance(option, click.Option) else None
        if record is not None:
            flags, text = record
            assert not re.search(r"  \[|<=|>=|default: \(", text), flags
            assert set(flags.split()[-1:]).isdisjoint(BARE_METAVARS) or TEXTS.intersection(option.opts), flags


@for_each("name", COMMANDS)
def test_a_command_has_its_purpose_one_paragraph_and_examples(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    purpose, paragraph, examples, *details = (command.help or "").split("\n\n")
    assert re.fullmatch(r"[A-Z][^:;.]+\.", purpose)
    assert "Examples:\n" in examples
    for text in (paragraph, *details):
        assert not FOREIGN.search(" ".join(text.split())), text

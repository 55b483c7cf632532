"""The options that say what decodes keys and values, and what the decoders need."""

from pathlib import Path

import click

from kseg.commands.options import Command

_FILE = click.Path(path_type=Path)
_OPTIONS = (
    click.option("--key-decoder", metavar="NAME", help="What decodes keys, as below, or a Kafka class."),
    click.option("--value-decoder", metavar="NAME", help="What decodes values."),
    click.option("--schema", type=_FILE, help="Avro schema, map of ids to schemas, or Protobuf descriptor set."),
    click.option("--message", metavar="NAME", help="Full name of the Protobuf message."),
    click.option(
        "--schema-registry", type=_FILE, help="Directory of the _schemas partition, to rebuild a registry from."
    ),
)


def decoder_options(command: Command) -> Command:
    """`--key-decoder` … `--schema-registry`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command

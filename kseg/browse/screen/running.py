"""Runs `kseg browse` on the terminal, from the first place to the end."""

import sys
from collections.abc import Mapping
from pathlib import Path

from kseg.browse.directory_places import places_at
from kseg.browse.field_lines import Decoders
from kseg.browse.screen.browser import Browser
from kseg.decode.values import DecoderOptions
from kseg.errors import UsageError


def browse_path(
    path: Path, beginnings: Mapping[str, int | None], decoder_names: Mapping[str, str | None], options: DecoderOptions
) -> None:
    """Lets somebody walk through a path until they quit.

    Args:
        path: a directory or a file.
        beginnings: the offset or the position to begin at, if one isn't None.
        decoder_names: the decoders of keys and values, None for none.
        options: what these need.

    Raises:
        UsageError: there is no terminal; there are two beginnings; a decoder's name or option is wrong.
        OpenError: the path, a schema or a registry can't be opened.
        KsegError: the path is no file of Kafka's.
    """
    first = [(name, str(number)) for name, number in beginnings.items() if number is not None]
    if len(first) > 1:
        raise UsageError("give either --offset or --position")
    decoders = Decoders(options=options)
    for part, name in decoder_names.items():
        decoders.choose(part, name)
    places = places_at(path)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("browse needs a terminal; `kseg explain` prints fields and bytes")
    Browser(places, decoders, first[0] if first else None).run()

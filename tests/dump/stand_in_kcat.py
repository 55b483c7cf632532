"""Takes options and input apart as kcat 1.7.1 does with -P, and prints the messages as JSON instead of sending them."""

import getopt
import json
import re
import sys
from pathlib import Path

FLAGS = "Pb:t:p:D:K:k:H:X:Z"


def delimiter(text: str) -> bytes:
    """Source: parse_delim."""
    replaced = re.sub(rb"\\x([0-9a-fA-F]+)", lambda found: bytes([int(found[1], 16) & 255]), text.encode())
    assert b"\\" not in replaced
    assert b"\0" not in replaced
    return replaced


def header(text: str) -> tuple[str, str | None]:
    """Source: add_header."""
    name, is_there, value = text.partition("=")
    assert name
    return name, value if is_there else None


def messages(options: dict[str, str], content: bytes) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values. Source: producer_run."""
    found: list[tuple[bytes | None, bytes | None]] = []
    is_null = "-Z" in options
    *pieces, rest = content.split(delimiter(options["-D"]))
    for piece in [*pieces, rest]:
        if not piece:
            continue
        key: bytes | None
        value: bytes | None
        key, value = None, piece
        start = piece.find(delimiter(options["-K"]))
        if start >= 0:
            key, value = piece[:start], piece[start + len(delimiter(options["-K"])) :]
            if is_null:
                key, value = key or None, value or None
        if key is None and "-k" in options:
            key = options["-k"].encode()
        found.append((key, value))
    return found


def main() -> None:
    """Appends a line for each message to the file that the test names as the server."""
    given, rest = getopt.getopt(sys.argv[1:], FLAGS)
    assert not rest
    options = dict(given)
    headers = [header(value) for name, value in given if name == "-H"]
    lines = []
    for key, value in messages(options, sys.stdin.buffer.read()):
        parts = [None if part is None else part.hex() for part in (key, value)]
        written = [
            [*(None if part is None else part.encode("utf-8", "surrogateescape").hex() for part in each)]
            for each in headers
        ]
        lines.append(json.dumps([options["-t"], int(options["-p"]), *parts, written]))
    with Path(options["-b"]).open("a", encoding="utf-8") as output:
        output.write("".join(f"{line}\n" for line in lines))


main()

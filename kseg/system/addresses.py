"""Addresses of servers: a host and a port."""

import re

from kseg.errors import UsageError

Address = tuple[str, int]
"""Host and port."""

_HOST = re.compile(r"[0-9A-Za-z._:%-]{1,255}")
_LARGEST_PORT, _PORT_DIGITS = 65535, 5


def parse_address(text: str) -> Address | None:
    """Return host and port of HOST:PORT, with an IPv6 address in brackets; None if one is missing or invalid."""
    host, _, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if is_bracketed else host
    is_port = port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS and int(port) <= _LARGEST_PORT
    if not is_port or not _HOST.fullmatch(host) or is_bracketed != (":" in host):
        return None
    return host, int(port)


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Parse addresses separated by commas, as clients take bootstrap servers. Raises UsageError."""
    found = []
    for each in text.split(","):
        address = parse_address(each.strip())
        if address is None:
            raise UsageError(f"{each!r} isn't HOST:PORT, such as broker:9092")
        found.append(address)
    return tuple(found)


def address_text(address: Address) -> str:
    """Return HOST:PORT, with an IPv6 address in brackets."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

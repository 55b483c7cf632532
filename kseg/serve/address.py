"""Addresses: a host and a port."""

from ipaddress import ip_address

Address = tuple[str, int]
"""Host and port."""


def address_text(address: Address) -> str:
    """HOST:PORT, an IPv6 address in brackets."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

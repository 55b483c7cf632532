"""TLS: the server's certificate, and whose certificates clients must show."""

import ssl
from pathlib import Path
from typing import NamedTuple

from kseg.errors import UsageError
from kseg.system.regular_file import read_small

LARGEST_PEM = 1 << 20
"""Bytes of a file with certificates or a key."""


class ServerTls(NamedTuple):
    """What connections are encrypted with.

    root: a file with the root that the server's certificate goes back to, as far as it is here; None for one that
    clients are taken to know. asks_certificate: clients must show one of their own.
    """

    context: ssl.SSLContext
    root: Path | None
    asks_certificate: bool


def server_tls(certificate: Path, key: Path | None = None, clients: Path | None = None) -> ServerTls:
    """TLS from 1.2 on.

    Args:
        certificate: a PEM file with the server's certificate, and those between it and its root.
        key: a PEM file with its private key; None: it is in the same file.
        clients: a PEM file with the roots of clients' certificates; None: clients need none.

    Raises:
        OpenError: a file can't be opened.
        UsageError: a file isn't what it should be.
    """
    for path in (certificate, key, clients):
        if path is not None:
            read_small(path, LARGEST_PEM)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password=lambda: _refuse_passphrase(key or certificate))
    except ssl.SSLError as error:
        raise UsageError(f"{certificate}: no certificate with its private key in PEM: {tls_reason(error)}") from error
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(clients)
        except ssl.SSLError as error:
            raise UsageError(f"{clients}: no certificates in PEM: {tls_reason(error)}") from error
    root = next((path for path in (certificate, clients) if path is not None and _has_root(path)), None)
    return ServerTls(context, root, clients is not None)


def _refuse_passphrase(path: Path) -> str:
    raise UsageError(f"{path}: its key has a passphrase; `openssl pkey -in {path}` writes it without one")


def _has_root(path: Path) -> bool:
    """Whether one of a file's certificates is its own issuer."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.load_verify_locations(path)
    return any(each.get("subject") == each.get("issuer") for each in trusting.get_ca_certs())


def tls_reason(error: ssl.SSLError) -> str:
    """What OpenSSL found wrong, in a few words."""
    return (error.reason or str(error)).replace("_", " ").lower()

"""Certificates and keys in PEM files for TLS, with errors that name the file."""

import ssl
from pathlib import Path

from kseg.errors import UsageError
from kseg.system.files import read_small

LARGEST_PEM = 1 << 20


def load_certificate(context: ssl.SSLContext, certificate: Path, key: Path, passphrase: str | None = None) -> None:
    """Load a certificate with those between it and its root, and its private key, which may be in the same file.

    Raises:
        OpenError: a file can't be opened.
        UsageError: a file has the wrong contents, or the key needs another passphrase.
    """
    for path in (certificate, key):
        read_small(path, LARGEST_PEM)

    def passphrase_of_key() -> str:
        if passphrase is None:
            raise UsageError(f"{key}: its key has a passphrase; run `openssl pkey -in {key}` to write it without one")
        return passphrase

    try:
        context.load_cert_chain(certificate, key, passphrase_of_key)
    except ssl.SSLError as error:
        raise UsageError(f"{certificate}: no certificate with its private key in PEM: {tls_reason(error)}") from error


def load_roots(context: ssl.SSLContext, path: Path) -> None:
    """Accept certificates of the roots in a file. Raises OpenError, or UsageError if it has none."""
    read_small(path, LARGEST_PEM)
    try:
        context.load_verify_locations(path)
    except ssl.SSLError as error:
        raise UsageError(f"{path}: no certificates in PEM: {tls_reason(error)}") from error


def tls_reason(error: ssl.SSLError) -> str:
    """Return OpenSSL's reason for an error in a few words."""
    return (error.reason or str(error)).replace("_", " ").lower()

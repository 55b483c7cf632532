"""Users and their passwords, out of a file: a line USER:PASSWORD for each. Only what checks a password is kept."""

import hashlib
import hmac
import secrets
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from kseg.errors import UsageError
from kseg.system.regular_file import read_small

LARGEST_FILE = 1 << 20
MOST_USERS = 1000
"""Each costs a few milliseconds at the start."""
ITERATIONS = 4096
"""Kafka's least, and its default. Source: ScramMechanism."""
SALT_BYTES = 16
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_FOR_OTHERS = stat.S_IRGRP | stat.S_IROTH


class ScramCredential(NamedTuple):
    """What a server knows of a password, by RFC 5802."""

    salt: bytes
    stored_key: bytes
    server_key: bytes


class Users:
    """Who may log in. An unknown user is checked as a known one is, so that nobody learns who is known."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        """Takes passwords by name."""
        self._secret = secrets.token_bytes(SALT_BYTES)
        self._digests = {name: self._digest(password) for name, password in passwords.items()}
        self._nobody = self._digest(secrets.token_hex(SALT_BYTES))
        self._credentials = {
            (name, mechanism): scram_credential(mechanism, password, secrets.token_bytes(SALT_BYTES))
            for mechanism in HASHES
            for name, password in passwords.items()
        }
        self._unknown = {mechanism: scram_credential(mechanism, secrets.token_hex(), b"") for mechanism in HASHES}

    def has(self, name: str, password: str) -> bool:
        """Whether a user has this password."""
        known = self._digests.get(name)
        is_right = hmac.compare_digest(self._digest(password), self._nobody if known is None else known)
        return is_right and known is not None

    def credential(self, name: str, mechanism: str) -> ScramCredential:
        """What checks a user's password; for an unknown one what no password fits to, always with the same salt."""
        known = self._credentials.get((name, mechanism))
        salt = hmac.digest(self._secret, f"{mechanism} {name}".encode(), "sha256")[:SALT_BYTES]
        return self._unknown[mechanism]._replace(salt=salt) if known is None else known

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._secret, password.encode(), "sha256")


def scram_credential(mechanism: str, password: str, salt: bytes) -> ScramCredential:
    """The credential of a password. Source: RFC 5802 section 3; names and passwords aren't prepared, as in Kafka."""
    name = HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", name)
    return ScramCredential(salt, hashlib.new(name, client_key).digest(), hmac.digest(salted, b"Server Key", name))


def read_passwords(path: Path, say: Callable[[str], None]) -> dict[str, str]:
    """Passwords by user: lines USER:PASSWORD; empty ones, and those that begin with #, are left out.

    `say` is called if others can read the file.

    Raises:
        OpenError: the file can't be opened.
        UsageError: a line is something else, or there is no user.
    """
    lines = read_small(path, LARGEST_FILE).splitlines()
    if path.stat().st_mode & _FOR_OTHERS:
        say(f"{path}: others on this machine can read the passwords; `chmod 600 {path}` prevents it")
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith(b"#"):
            continue
        try:
            name, colon, password = line.decode().partition(":")
        except UnicodeDecodeError as error:
            raise UsageError(f"{path}: line {number} isn't UTF-8") from error
        if not (name and colon and password) or "\0" in line.decode():
            raise UsageError(f"{path}: line {number} isn't USER:PASSWORD")
        if name in found:
            raise UsageError(f"{path}: line {number}: this user has a password already")
        found[name] = password
    if not 0 < len(found) <= MOST_USERS:
        raise UsageError(f"{path}: {len(found)} users; from 1 to {MOST_USERS} can log in, each in a line USER:PASSWORD")
    return found

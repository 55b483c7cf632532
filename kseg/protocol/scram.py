"""Keys of SCRAM log-ins, for servers and clients. Source: RFC 5802, without its preparation of names, as in Kafka."""

import hashlib
import hmac
from typing import NamedTuple

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Hash functions of the mechanisms."""
ITERATIONS = 4096
"""The number of iterations: Kafka's minimum and default. Source: ScramMechanism."""


class ScramKeys(NamedTuple):
    """The keys of a password: the client's, its hash, and the server's."""

    client_key: bytes
    stored_key: bytes
    server_key: bytes


def scram_keys(mechanism: str, password: str, salt: bytes, iterations: int = ITERATIONS) -> ScramKeys:
    """Compute the keys of a password."""
    name = HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", name)
    return ScramKeys(client_key, hashlib.new(name, client_key).digest(), hmac.digest(salted, b"Server Key", name))


def exclusive_or(some: bytes, others: bytes) -> bytes:
    """Combine a key and a signature to a proof, or a proof and a signature to a key."""
    return bytes(one ^ other for one, other in zip(some, others, strict=True))

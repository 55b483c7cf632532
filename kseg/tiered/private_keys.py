"""What Aiven's plugin encrypts: a segment's own key by RSA, each chunk by AES-GCM with that key."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kseg.errors import OpenError, UsageError, missing_library
from kseg.system.regular_file import read_small
from kseg.tiered.object_store import broken

IV_SIZE = 12
TAG_SIZE = 16
SEAL_SIZE = IV_SIZE + TAG_SIZE
"""Bytes that a chunk has more when it is encrypted: the IV before it, GCM's tag after it."""
_LARGEST_PEM = 1 << 16
_KEY_SIZE = 32


@dataclass(frozen=True, slots=True)
class Seal:
    """How a segment is encrypted: the key pair's id, the segment's own key, encrypted by that, and what GCM adds."""

    key_id: str
    encrypted_key: bytes
    aad: bytes


class PrivateKeys:
    """Private keys by their ids, in PEM files that are read when they are needed."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = dict(files)

    def has(self, key_id: str) -> bool:
        """Whether the private key of a pair was given."""
        return key_id in self._files

    def segment_key(self, seal: Seal) -> bytes:
        """A segment's own key.

        Raises OpenError if its key pair's private key wasn't given or doesn't fit, UsageError if the file holds none.
        """
        path = self._files.get(seal.key_id)
        if path is None:
            raise OpenError(f"is encrypted with the key {seal.key_id}: --private-key {seal.key_id}=FILE decrypts it")
        key = _decrypted(read_private_key(path), seal.encrypted_key)
        if key is None or len(key) != _KEY_SIZE:
            raise OpenError(f"its key can't be decrypted with {path}: that isn't the private key {seal.key_id}")
        return key


@lru_cache
def read_private_key(path: Path) -> Any:
    """The private key in a file, as PyCryptodome has it. Raises UsageError if there is none, or no PyCryptodome."""
    try:
        from Crypto.PublicKey import RSA
    except ImportError as error:
        raise UsageError(missing_library("pycryptodome", "tiered")) from error
    try:
        key = RSA.import_key(read_small(path, _LARGEST_PEM))
    except (ValueError, IndexError, TypeError) as error:
        raise UsageError("isn't an RSA key in PEM without a password", path) from error
    if not key.has_private():
        raise UsageError("is a public key: the private one of the pair decrypts", path)
    return key


def _decrypted(key: Any, content: bytes) -> bytes | None:
    """Content encrypted by RSA-OAEP with SHA3-512, also in MGF1; None if it was encrypted by another key."""
    from Crypto.Cipher import PKCS1_OAEP
    from Crypto.Hash import SHA3_512

    try:
        return PKCS1_OAEP.new(key, hashAlgo=SHA3_512).decrypt(content)
    except (ValueError, TypeError):
        return None


def opened(sealed: bytes, key: bytes, aad: bytes) -> bytes:
    """An encrypted chunk's content. Raises OSError if its tag doesn't match."""
    from Crypto.Cipher import AES

    if len(sealed) < SEAL_SIZE:
        raise broken(f"{len(sealed)} bytes are too few for AES-GCM")
    cipher = AES.new(key, AES.MODE_GCM, nonce=sealed[:IV_SIZE], mac_len=TAG_SIZE)
    cipher.update(aad)
    try:
        return cipher.decrypt_and_verify(sealed[IV_SIZE:-TAG_SIZE], sealed[-TAG_SIZE:])
    except ValueError as error:
        raise broken("the GCM tag doesn't match: other bytes, or another segment's") from error

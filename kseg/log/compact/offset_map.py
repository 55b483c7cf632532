"""The log cleaner's offset map: the last offset of each key, in a table of fixed size. Source: SkimpyOffsetMap.

It tells keys apart by their MD5, as Kafka does: so a key needs 24 bytes, however long it is, and two keys with the same
MD5 are one here as there. The kernel calls the C function for it in the libcrypto that Python's hashlib uses, which
takes a tenth of a microsecond for a short key; where that can't be reached, hashlib, which takes several times as long.
"""

import mmap
from functools import cache
from hashlib import md5

from kseg import kernel
from kseg.kafka_defaults import LOAD_FACTOR
from kseg.kernel.cleaning_contract import ENTRY_SIZE, OffsetTable
from kseg.system.exported_functions import exported_addresses

_MD5, _SINCE_3_0 = "MD5", "OPENSSL_version_major"
"""Of libcrypto. In FIPS mode, MD5 ends the process before 3.0."""


class OffsetMap:
    """Maps keys to offsets from 0 on; uses a fixed amount of memory.

    table: the kernel's, which reads keys from batches.
    """

    def __init__(self, size: int) -> None:
        """Makes a map of `size` bytes."""
        self._slots = size // ENTRY_SIZE
        self.table = self._free_table()

    def clear(self) -> None:
        """Forgets all."""
        del self.table  # frees the old one first
        self.table = self._free_table()

    def _free_table(self) -> OffsetTable:
        """A table of free slots; the system allocates memory only for slots that are written."""
        try:
            memory = mmap.mmap(-1, max(self._slots * ENTRY_SIZE, 1))
        except OSError as error:  # as for any memory that isn't there
            raise MemoryError(str(error)) from error
        return kernel.load().OffsetTable(memory, int(self._slots * LOAD_FACTOR), _digest, _function())


def _digest(key: bytes) -> bytes:
    return md5(key, usedforsecurity=False).digest()


@cache
def _function() -> int:
    """The address of libcrypto's MD5; 0 if it can't be had."""
    try:
        import _hashlib
    except ImportError:  # a Python without OpenSSL
        return 0
    function, since = exported_addresses(getattr(_hashlib, "__file__", None), (_MD5, _SINCE_3_0))
    return function if since else 0

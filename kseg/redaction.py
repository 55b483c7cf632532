"""Replacement of content by a keyed hash of the same length: sizes and joins stay true, contents can't be read."""

import re
import secrets
from binascii import a2b_base64, b2a_base64
from dataclasses import dataclass, field
from functools import cache, lru_cache
from hashlib import blake2b, scrypt, shake_256
from math import isqrt, prod
from typing import Literal, NamedTuple

Part = Literal["keys", "values", "headers"]
PARTS: tuple[Part, ...] = ("keys", "values", "headers")
SHORT = 16
"""Longest contents in bytes, without tabs and line ends, that are permuted. A hash might make two of them equal."""
_ROUNDS = 8
_CACHED_SIZE, _CACHED_COUNT, _CACHED_SHAPES = 64, 1 << 16, 1 << 10
_WORD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_PRINTABLE = bytes(range(0x20, 0x7F))
_ANY = bytes(range(256))
_TO_WORD = _WORD * 4
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_WORD_TO_BASE64, _BASE64_TO_WORD = bytes.maketrans(_WORD, _BASE64), bytes.maketrans(_BASE64, _WORD)
_LINE_SIGNS = "\t\n\r"
_LETTERS = {2: (0x100, 0x150), 3: (0x4E00, 0x51A6), 4: (0x20000, 0xA6D7)}
"""By bytes of a character in UTF-8: the first of the letters that replace it in long texts, and their count."""
_SIZE_OF_LEAD = bytes(1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4 for lead in range(256))
_CONTINUATIONS = bytes(range(0x80, 0xC0))


class _Characters(NamedTuple):
    """Characters of the same size, including all printable ones: the first, a gap, and their number."""

    first: int
    gap: int
    gap_size: int
    total: int


_CHARACTERS = {
    1: _Characters(0x20, 0x7F, 0, 0x7F - 0x20),
    2: _Characters(0x80, 0x800, 0, 0x800 - 0x80),
    3: _Characters(0x800, 0xD800, 0x800, 0x10000 - 0x800 - 0x800),
    4: _Characters(0x10000, 0x34000, 0xE0100 - 0x34000, 0x24000 + 0xF0),
}
"""By bytes of a character: the planes with letters, and variation selectors. So far Unicode has no other printables."""
_OTHERS = re.compile("[\U00034000-\U000e00ff\U000e01f0-\U0010ffff]")


@dataclass(frozen=True, slots=True, eq=False)
class Redaction:
    """The key, and the parts of records to redact.

    known_fingerprint: of an unknown key; otherwise it is computed from the key on access.
    """

    parts: tuple[Part, ...]
    known_fingerprint: str | None
    key: bytes = field(repr=False)

    @classmethod
    def of(cls, parts: tuple[Part, ...], key: str | None = None) -> "Redaction | None":
        """Return the redaction of some parts, or None if there aren't any. Without a key it gets a random one."""
        if not parts:
            return None
        secret = secrets.token_bytes(32) if key is None else key.encode("utf-8", "surrogateescape")
        derived = blake2b(secret, digest_size=32, person=b"kseg redaction").digest()
        return cls(tuple(part for part in PARTS if part in parts), None, derived)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the key. It may be shown, the key may not: each guess costs a second."""
        return _fingerprint(self.key) if self.known_fingerprint is None else self.known_fingerprint

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Redaction):
            return NotImplemented
        return self.parts == other.parts and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.parts)

    def redactor(self) -> "Redactor":
        """Return the redactor, which replaces contents."""
        return Redactor(self.key)


@cache
def _fingerprint(key: bytes) -> str:
    """Return a slow hash with 64 MiB of memory: keys that people choose could be guessed from a quick one."""
    return scrypt(key, salt=b"kseg fingerprint", n=1 << 16, r=8, p=2, maxmem=1 << 27, dklen=16).hex()


class SecretTables(NamedTuple):
    """A key, and the substitutes for single characters of words, single printable ones, and single bytes."""

    key: bytes
    words: bytes
    printables: bytes
    any: bytes


@cache
def printable_characters() -> bytes:
    """Return True if Python can print each character of `_CHARACTERS`, without the gaps."""
    first, gap, gap_size, total = _CHARACTERS[4]
    return bytes(chr(code if code < gap else code + gap_size).isprintable() for code in range(first + total))


class Redactor:
    """Replaces contents: equal contents get equal substitutes; null stays null, empty stays empty.

    Different contents get different substitutes: always up to SHORT bytes, tabs and line ends aside; longer ones are
    equal with a chance below 2⁻⁶⁴. Text stays printable text of as many bytes, with tabs and line ends in place. Words
    of letters, digits, `_` and `-` stay such words, and other ASCII stays ASCII. In other text each character keeps its
    number of bytes. Other bytes become bytes that aren't text. Python's Unicode version decides about printable
    characters: with another version a few short texts beyond ASCII get other substitutes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._keyed = blake2b(key=key, digest_size=SHORT)
        self._cache: dict[bytes, bytes] = {}
        self._starts = dict[bytes, tuple[blake2b, ...]]()
        self._single: dict[bytes, bytes] = {}

    def secret_tables(self) -> SecretTables:
        """Return the tables with which the compiled kernel replaces contents alike."""
        return SecretTables(self._key, *(self._singles(alphabet) for alphabet in (_WORD, _PRINTABLE, _ANY)))

    def replace(self, content: bytes | None) -> bytes | None:
        """Return the substitute for a content."""
        return content if not content else self.replace_bytes(content)

    def replace_bytes(self, content: bytes) -> bytes:
        """Return the substitute for a content that isn't null."""
        known = self._cache.get(content)
        if known is None:
            known = self._replace_hashed(content)
            if len(content) <= _CACHED_SIZE and len(self._cache) < _CACHED_COUNT:
                self._cache[content] = known
        return known

    def replace_text(self, text: str) -> str:
        """Return the substitute for a text, of as many bytes; control characters become characters of words."""
        replaced = self.replace_bytes(text.encode("utf-8", "surrogateescape"))
        return (replaced.translate(_TO_WORD) if _kind(replaced) is _ANY else replaced).decode()

    def _replace_hashed(self, content: bytes) -> bytes:
        kind = _kind(content)
        if kind is None:
            return self._replace_text(content)
        if len(content) > SHORT:
            stream = shake_256(self._key + content).digest(len(content))
            return stream if kind is _ANY and _kind(stream) is _ANY else stream.translate(_TO_WORD)
        while True:  # until the result is of the same kind
            content = self._permute(content, kind)
            if _kind(content) is kind:
                return content

    def _replace_text(self, content: bytes) -> bytes:
        """Return the substitute for text beyond ASCII or of several lines; tabs and line ends stay."""
        body = content.translate(None, _LINE_SIGNS.encode())
        if len(body) > SHORT:
            return self._text(content.decode())
        if len(body) == len(content):
            return self._permute_text(content)
        characters = iter(self.replace_bytes(body).decode())
        return "".join(sign if sign in _LINE_SIGNS else next(characters) for sign in content.decode()).encode()

    def _text(self, text: str) -> bytes:
        """Replace characters with others that have the same length in bytes."""
        stream = shake_256(self._key + text.encode()).digest(4 * len(text))
        replaced = []
        for place, character in enumerate(text):
            number = int.from_bytes(stream[4 * place : 4 * place + 4], "big")
            size = len(character.encode())
            if character in _LINE_SIGNS:
                replaced.append(character)
            elif size == 1:
                replaced.append(chr(_WORD[number % len(_WORD)]))
            else:
                first, count = _LETTERS[size]
                replaced.append(chr(first + number % count))
        return "".join(replaced).encode()

    def _permute(self, content: bytes, alphabet: bytes) -> bytes:
        """Permute all contents of this length over an alphabet by a Feistel network over their numbers."""
        if len(content) == 1:
            return self._permute_single(content, alphabet)
        radix, half = len(alphabet), len(content) // 2
        moduli = (radix**half, radix ** (len(content) - half))
        left, right = _number(content[:half], alphabet), _number(content[half:], alphabet)
        left, right = self._mix(left, right, moduli, bytes((len(content), radix & 0xFF)))
        return _of_number(left, alphabet, half) + _of_number(right, alphabet, len(content) - half)

    def _permute_text(self, content: bytes) -> bytes:
        """Permute all printable texts with characters of as many bytes each."""
        sizes = content.translate(_SIZE_OF_LEAD, _CONTINUATIONS)
        count, root = _texts_of(sizes)
        number = _text_number(content.decode(), sizes)
        while True:  # until the result is such a text
            left, right = divmod(number, root)
            left, right = self._mix(left, right, (root, root), b"text" + sizes)
            number = left * root + right
            if number < count and (text := _text_of_number(number, sizes)).isprintable():
                return text.encode()

    def _mix(self, left: int, right: int, moduli: tuple[int, int], shape: bytes) -> tuple[int, int]:
        """Run a Feistel network over two numbers, each below its modulus; each shape has a network of its own."""
        for turn, start in enumerate(self._starts.get(shape) or self._new_starts(shape)):
            keyed = start.copy()
            keyed.update(right.to_bytes(SHORT, "big"))
            left, right = right, (left + int.from_bytes(keyed.digest(), "big")) % moduli[turn % 2]
        return left, right

    def _new_starts(self, shape: bytes) -> tuple[blake2b, ...]:
        """Return the keyed hash of each round, as far as it is the same for all contents of a shape."""
        starts = tuple(self._keyed.copy() for _ in range(_ROUNDS))
        for turn, start in enumerate(starts):
            start.update(bytes((turn,)) + shape)
        if len(self._starts) < _CACHED_SHAPES:
            self._starts[shape] = starts
        return starts

    def _permute_single(self, content: bytes, alphabet: bytes) -> bytes:
        return bytes((self._singles(alphabet)[alphabet.index(content)],))

    def _singles(self, alphabet: bytes) -> bytes:
        table = self._single.get(alphabet)
        if table is None:
            shuffled = sorted(alphabet, key=lambda byte: blake2b(bytes((byte,)), key=self._key).digest())
            table = self._single[alphabet] = bytes(shuffled)
        return table


def _kind(content: bytes) -> bytes | None:
    """Return the alphabet within which a content is replaced, or None for text beyond ASCII, or of several lines."""
    if not content.translate(None, _WORD):
        return _WORD
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return _ANY
    if text.isascii() and text.isprintable():
        return _PRINTABLE
    return None if text.translate(_WITHOUT_LINE_SIGNS).isprintable() and _OTHERS.search(text) is None else _ANY


_WITHOUT_LINE_SIGNS = str.maketrans("", "", _LINE_SIGNS)


def _number(content: bytes, alphabet: bytes) -> int:
    """Return a content's number among all of its length, with the alphabet's characters as digits."""
    if alphabet is _ANY:
        return int.from_bytes(content, "big")
    if alphabet is _WORD:
        fours = content.translate(_WORD_TO_BASE64).rjust(4 * _fours(len(content)), b"A")  # a zero
        return int.from_bytes(a2b_base64(fours), "big")
    number = 0
    for byte in content:
        number = number * len(alphabet) + alphabet.index(byte)
    return number


def _of_number(number: int, alphabet: bytes, size: int) -> bytes:
    """Return the content of this length that has the number."""
    if alphabet is _ANY:
        return number.to_bytes(size, "big")
    if alphabet is _WORD:
        fours = b2a_base64(number.to_bytes(3 * _fours(size), "big"), newline=False)
        return fours[len(fours) - size :].translate(_BASE64_TO_WORD)
    content = bytearray(size)
    for place in reversed(range(size)):
        number, digit = divmod(number, len(alphabet))
        content[place] = alphabet[digit]
    return bytes(content)


def _fours(size: int) -> int:
    """Return the number of groups of four Base64 characters, three bytes each, that hold this many characters."""
    return (size + 3) // 4


@lru_cache(maxsize=1 << 10)
def _texts_of(sizes: bytes) -> tuple[int, int]:
    """Return the number of texts with characters of these sizes, and a number whose square isn't less."""
    count = prod(_CHARACTERS[size].total for size in sizes)
    return count, isqrt(count - 1) + 1


def _text_number(text: str, sizes: bytes) -> int:
    """Return a text's number among those with characters of its sizes."""
    number = 0
    for character, size in zip(text, sizes, strict=True):
        first, gap, gap_size, total = _CHARACTERS[size]
        code = ord(character)
        number = number * total + code - first - (gap_size if code >= gap else 0)
    return number


def _text_of_number(number: int, sizes: bytes) -> str:
    characters = []
    for size in reversed(sizes):
        first, gap, gap_size, total = _CHARACTERS[size]
        number, place = divmod(number, total)
        code = first + place
        characters.append(chr(code + gap_size if code >= gap else code))
    return "".join(reversed(characters))

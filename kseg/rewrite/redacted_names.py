"""Names of topics, groups, members, hosts and users as others of the same length; what is a name stays one."""

import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from hashlib import blake2b
from types import MappingProxyType

from kseg.coordinators.home_partition import COORDINATOR_PARTITIONS, coordinator_partition
from kseg.errors import UsageError
from kseg.formats.file_names import BOOTSTRAP_CHECKPOINT, KIND_OF_EXTENSION, FileKind, parse_file_name
from kseg.log.partition import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kseg.redaction import Redactor


class NameKind(StrEnum):
    """Names that can be kept, as `--keep` calls them; OTHER: all that has no kind of its own."""

    TOPIC = "topics"
    GROUP = "groups"
    TRANSACTIONAL_ID = "transactional-ids"
    MEMBER = "members"
    CLIENT = "clients"
    HOST = "hosts"
    PRINCIPAL = "principals"
    HEADER_KEY = "header-keys"
    PATH = "paths"
    OTHER = "other-names"


def name_kinds(text: str) -> tuple[NameKind, ...]:
    """Return the kinds in a list with commas. Raises UsageError for an unknown one."""
    wanted = [word for word in text.split(",") if word]
    for word in wanted:
        if word not in set(NameKind):
            raise UsageError(f"--keep {word}: no such kind of names; the kinds are {', '.join(NameKind)}")
    return tuple(kind for kind in NameKind if kind in wanted)


KAFKAS_TOPICS = frozenset(
    (METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state", "__remote_log_metadata")
)
"""Names that every cluster has."""
_HOMES = MappingProxyType({NameKind.GROUP: OFFSETS_TOPIC, NameKind.TRANSACTIONAL_ID: TRANSACTIONS_TOPIC})
"""Names whose hash chooses a partition, and of which topic."""
_SIGNS = re.compile(r"([./:*@,= ]+)")
"""Separators in addresses, topics and principals, which stay in place."""
_MOST_STEPS = 1 << 14
"""Limit of tried names for a replacement. On average, one in some thousands of names fits."""
EXTENSIONS = frozenset(
    (
        *("bak", "conf", "csv", "gz", "hprof", "json", "log", "lock", "out", "properties", "sh", "sql", "tar", "tmp"),
        *("txt", "xml", "yaml", "yml", "zip", "zst"),
    )
)
"""Extensions that tell a file's kind and nothing of its owner: they stay."""
_WORDS = re.compile(r"[A-Za-z0-9_-]+")


class Names:
    """Replaces names consistently: the same name always gets the same substitute.

    A group or transactional id stays in its partition: its hash leads to the same one. Signs such as dots and slashes
    stay, so that topics, addresses and principals are legal still.
    """

    def __init__(
        self, redactor: Redactor, kept: Collection[NameKind] = (), partition_counts: Mapping[str, int] | None = None
    ) -> None:
        """Takes the kinds that stay, and how many partitions the topics of coordinators have, by topic."""
        self._redactor = redactor
        self._kept = frozenset(kept)
        self._counts = partition_counts or {}
        self._known: dict[tuple[NameKind, str], str] = {}

    def is_kept(self, kind: NameKind) -> bool:
        """Return True if names of a kind stay."""
        return kind in self._kept

    @property
    def substitutes(self) -> Mapping[NameKind, frozenset[str]]:
        """Substitutes of names, by kind."""
        found: dict[NameKind, set[str]] = {}
        for (kind, name), other in self._known.items():
            if name != other:
                found.setdefault(kind, set()).add(other)
        return {kind: frozenset(names) for kind, names in found.items()}

    def name(self, kind: NameKind, name: str) -> str:
        """Return what stands for a name, with as many bytes in UTF-8."""
        if not name or kind in self._kept:
            return name
        known = self._known.get((kind, name))
        if known is None:
            known = self._known[kind, name] = self._substitute(kind, name)
        return known

    def topic(self, name: str) -> str:
        """Return what stands for a topic; Kafka's own keep their names."""
        return name if name in KAFKAS_TOPICS else self.name(NameKind.TOPIC, name)

    def principal(self, name: str) -> str:
        """Return what stands for a principal such as `User:alice`; its type stays."""
        kind, colon, own = name.partition(":")
        return f"{kind}:{self.name(NameKind.PRINCIPAL, own)}" if colon else self.name(NameKind.PRINCIPAL, name)

    def directory(self, name: str, topic: str | None) -> str:
        """Return the substitute of a directory name; a partition keeps the part after its topic."""
        return self.path(name) if topic is None else f"{self.topic(topic)}{name[len(topic) :]}"

    def file(self, name: str) -> str:
        """Return the substitute of a file name; Kafka's own stay, and of others the extension that tells the kind."""
        parsed = parse_file_name(name)
        suffix = parsed.suffix or ""
        own = name.removesuffix(suffix)
        stem, dot, extension = own.rpartition(".")
        if parsed.kind is FileKind.UNKNOWN:
            return self.path(name)
        has_own_stem = f"{dot}{extension}" in KIND_OF_EXTENSION and parsed.base_offset is None
        return f"{self.path(stem)}{dot}{extension}{suffix}" if has_own_stem and own != BOOTSTRAP_CHECKPOINT else name

    def path(self, name: str) -> str:
        """Return what stands for a directory's or file name that isn't Kafka's; its extension stays."""
        stem, dot, extension = name.rpartition(".")
        if not stem:
            stem, dot, extension = name, "", ""
        if self.is_kept(NameKind.PATH) or _SIGNS.sub("", stem) == "":
            return name
        extension = extension if extension.lower() in EXTENSIONS else self.name(NameKind.PATH, extension)
        if _has_form(stem) and "/" not in stem:
            return f"{self.name(NameKind.PATH, stem)}{dot}{extension}"
        digest = self._redactor.replace_bytes(blake2b(stem.encode(errors="surrogateescape"), digest_size=20).digest())
        return f"{digest.hex()}{dot}{extension if _WORDS.fullmatch(extension) else ''}"

    def _substitute(self, kind: NameKind, name: str) -> str:
        other = self._next(name)
        for _ in range(_MOST_STEPS):
            if self._may_be(kind, name, other):
                break
            other = self._next(other)
        return other

    def _next(self, name: str) -> str:
        """The next name on the cycle: where only some names will do, the first of these stands for this one alone."""
        if _has_form(name):
            parts = _SIGNS.split(name)
            parts[::2] = [self._redactor.replace_text(part) if part else "" for part in parts[::2]]
            return "".join(parts)
        other = self._redactor.replace_text(name)
        while _has_form(other) and not _WORDS.fullmatch(other):  # a word stands for what is long or can't be printed
            other = self._redactor.replace_text(other)
        return other

    def _may_be(self, kind: NameKind, name: str, other: str) -> bool:
        if other.startswith("-") and not name.startswith("-"):
            return False  # command lines would take it for an option
        if kind is NameKind.TOPIC:
            return other not in KAFKAS_TOPICS and other.startswith("__") == name.startswith("__")
        home = _HOMES.get(kind)
        if home is None:
            return True
        count = self._counts.get(home, COORDINATOR_PARTITIONS)
        return coordinator_partition(other, count) == coordinator_partition(name, count)


def _has_form(name: str) -> bool:
    """Return True if a name has words between signs, as an address or a topic has."""
    return all(_WORDS.fullmatch(part) for part in _SIGNS.split(name)[::2] if part)

"""Settings that the disks tell: of topics and brokers in the metadata log, of the broker in server.properties."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import NamedTuple

from kseg.errors import KsegError
from kseg.formats.checkpoint import parse_meta_properties
from kseg.log.partition.partition_log import METADATA_TOPIC, read_small_file
from kseg.serve.limits import REST
from kseg.views.cluster import SECRET_NAME
from kseg.views.metadata_beside import CHEAP_METADATA, MetadataBeside

SERVER_PROPERTIES = "server.properties"
TOPIC, BROKER, GROUP, CLIENT_METRICS = "topic", "broker", "group", "client-metrics"
"""Kinds of resources, as the metadata's view names them."""
LARGEST_METADATA = 16 * CHEAP_METADATA
"""Bytes of metadata that are read for a client."""
_PROBABLY_SECRET = re.compile("password|passphrase|secret|token|credential|private", re.IGNORECASE)
_KAFKAS_OWN = re.compile(
    "advertised|auto|background|broker|compression|connections|controlled|controller|default|delete|fetch|group|initial|"
    "inter|leader|listener|listeners|log|max|message|metadata|min|node|num|offset|offsets|process|producer|queued|quota|"
    "quotas|replica|request|reserved|share|socket|transaction|transactional|unclean"
)
"""First words of the names of Kafka's own settings, but those of security and of plugins."""
_IDS = ("node.id", "broker.id")

Settings = Mapping[str, str]


class _KnownMetadata(NamedTuple):
    """What metadata of some size tell, and when they may be read again."""

    size: int
    by_resource: Mapping[tuple[str, str], Settings]
    topics: frozenset[str]
    stays_until: float


class KnownSettings:
    """The settings in some log directories, read when asked for; may be used by several threads."""

    def __init__(self, log_dirs: Sequence[Path], node_id: int, say: Callable[[str], None]) -> None:
        """Takes the directories, the broker's id, and what is called with what can't be read."""
        self._log_dirs, self._node_id, self._say = tuple(log_dirs), node_id, say
        self._lock, self._reading = Lock(), Lock()
        self._known: _KnownMetadata | None = None
        self._static: Settings | None = None
        self._told: set[str] = set()

    def of(self, kind: str, name: str) -> Settings:
        """A resource's own settings, as the metadata have them; a broker's name is its id, "" stands for all."""
        return self._metadata().by_resource.get((kind, name), {})

    def knows_topic(self, name: str) -> bool:
        """Whether the metadata have a topic: what they don't set for it, it doesn't set."""
        return name in self._metadata().topics

    def static(self) -> Settings:
        """The broker's own: server.properties beside its log directories, its id, and these directories."""
        with self._lock:
            if self._static is None:
                found = {"log.dirs": ",".join(map(str, self._log_dirs))} if self._log_dirs else {}
                self._static = {**found, **dict.fromkeys(_IDS, str(self._node_id)), **self._server_properties()}
            return self._static

    def _server_properties(self) -> Settings:
        places = dict.fromkeys(place for log_dir in self._log_dirs for place in (log_dir, log_dir.parent))
        for place in places:
            try:
                content = read_small_file(place / SERVER_PROPERTIES)
                found = {} if content is None else dict(parse_meta_properties(content).properties)
            except KsegError as error:
                self._tell(f"{place / SERVER_PROPERTIES}: not used: {error.message}")
                continue
            if found and {found.get(name, str(self._node_id)) for name in _IDS} == {str(self._node_id)}:
                return found
        return {}

    def _metadata(self) -> _KnownMetadata:
        known = self._known
        if known is not None and not self._reading.acquire(blocking=False):
            return known  # somebody is reading the newer ones
        if known is None:
            self._reading.acquire()
        try:
            size = sum(_size_of(log_dir / f"{METADATA_TOPIC}-0") for log_dir in self._log_dirs)
            known = self._known
            if known is None or (known.size != size and monotonic() >= known.stays_until):
                known = self._known = self._read(size)
            return known
        finally:
            self._reading.release()

    def _read(self, size: int) -> _KnownMetadata:
        started = monotonic()
        beside = MetadataBeside(LARGEST_METADATA, lambda path, reason: self._tell(f"{path}: not used: {reason}"))
        metadata = beside.of_any(self._log_dirs)
        found: dict[tuple[str, str], dict[str, str]] = {}
        if metadata is None:
            self._tell(f"{METADATA_TOPIC} isn't here: clients are told Kafka's defaults as topics' settings")
        for each in () if metadata is None else metadata.configs:
            found.setdefault((each.resource_type, each.resource), {})[each.name] = each.value
        topics = frozenset(() if metadata is None else (topic.name for topic in metadata.topics))
        now = monotonic()
        return _KnownMetadata(size, found, topics, now + REST * (now - started))

    def _tell(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._say(line)


def is_secret(name: str) -> bool:
    """Whether a setting's value isn't told: Kafka itself hides it, or it looks like something to be hidden."""
    return bool(SECRET_NAME.search(name) or _PROBABLY_SECRET.search(name))


def is_secret_of_broker(name: str) -> bool:
    """The same of a broker's setting: what isn't Kafka's own may be anything, and Kafka hides it too."""
    return is_secret(name) or _KAFKAS_OWN.fullmatch(name.partition(".")[0]) is None


def _size_of(directory: Path) -> int:
    """Bytes of a directory's files; 0 if it isn't there."""
    try:
        with os.scandir(directory) as entries:
            return sum(entry.stat().st_size for entry in entries)
    except OSError:
        return 0

"""Topics of the target: created with settings under which nothing is lost, and given the source's at the end."""

from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from kseg.client.brokers import PASSING, BrokerError, Brokers, TargetTopic
from kseg.client.connection import CREATE_TOPICS, DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from kseg.errors import ClusterError, UsageError
from kseg.protocol.error_codes import ErrorCode
from kseg.restore.plan import FinalSettings, PlannedTopic

TIMEOUT_MS = 30_000
TOPIC = 2
"""The type of a resource."""
SET, DELETE = 0, 1
"""Operations on settings."""
ANY_TIME = str(2**63 - 1)
RETENTION = ("retention.ms", "retention.bytes")
"""Settings by which a broker deletes restored records at once: their timestamps are old."""
UNLIMITED = "-1"
CLEANUP = "cleanup.policy"
SAFE_SETTINGS: tuple[tuple[str, str], ...] = (
    ("retention.ms", UNLIMITED),
    ("retention.bytes", UNLIMITED),
    (CLEANUP, "delete"),
    ("message.timestamp.type", "CreateTime"),
    ("compression.type", "producer"),
)
"""Settings while records are sent: a broker deletes, cleans and changes nothing."""
TIME_BOUNDS = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")
EARLIER_TIME_BOUND = "message.timestamp.difference.max.ms"
"""The same before 3.6."""
LARGEST = "max.message.bytes"
CHANGED = frozenset({*dict(SAFE_SETTINGS), *TIME_BOUNDS, EARLIER_TIME_BOUND, LARGEST})
"""Settings that topics get while records are sent."""
OF_TOPIC = 1
"""The source of a setting that the topic itself has."""
FOREIGN_PREFIXES = ("remote.", "local.", "leader.replication.", "follower.replication.", "confluent.")
"""Beginnings of settings that depend on the source's brokers, so that the target doesn't get them."""


class SettingState(Enum):
    """The outcome of a setting.

    HELD_BACK: it would delete records at once. KEPT: the user wants the restore's settings. LEFT_OUT: it depends on the
    source's brokers.
    """

    APPLIED = "applied"
    HELD_BACK = "held back"
    KEPT = "kept"
    REFUSED = "refused"
    LEFT_OUT = "left out"


class SettingOutcome(NamedTuple):
    """A setting of a topic at the end. value: the source's, None for the cluster's default."""

    topic: str
    name: str
    value: str | None
    state: SettingState
    detail: str | None = None


class Change(NamedTuple):
    """A change of a setting; value None removes it."""

    name: str
    value: str | None


def check_existing(topics: Mapping[str, TargetTopic], planned: tuple[PlannedTopic, ...]) -> None:
    """Raise UsageError for a topic of the target with another number of partitions."""
    for each in planned:
        found = topics.get(each.target)
        if found is not None and len(found.leaders) != each.partitions:
            raise UsageError(
                f"topic {each.target} of the target has {len(found.leaders)} partitions, the source's has"
                f" {each.partitions}, and keys would move; delete it, or use --topic-map"
            )


def create_topic(brokers: Brokers, planned: PlannedTopic) -> None:
    """Create a topic with safe settings; another run may have created it. Raises ClusterError."""
    code, detail = 0, None
    bounds: tuple[str, ...] = TIME_BOUNDS
    for attempt in brokers.attempts():
        body = {
            "topics": [
                {
                    "name": planned.target,
                    "numPartitions": planned.partitions,
                    "replicationFactor": planned.replicas,
                    "assignments": [],
                    "configs": [each._asdict() for each in safe_changes(planned, bounds)],
                }
            ],
            "timeoutMs": TIMEOUT_MS,
            "validateOnly": False,
        }
        answer = brokers.ask_controller(CREATE_TOPICS, body)["topics"][0]
        code, detail = answer["errorCode"], answer.get("errorMessage")
        if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            return
        if code == ErrorCode.INVALID_CONFIG and bounds == TIME_BOUNDS:
            bounds = (EARLIER_TIME_BOUND,)
        elif code not in PASSING:
            break
        attempt.problem = BrokerError(f"topic {planned.target}", code, detail).problem
    raise BrokerError(f"topic {planned.target}", code, detail)


def safe_changes(planned: PlannedTopic, bounds: tuple[str, ...] = TIME_BOUNDS) -> list[Change]:
    """Return the safe settings of a topic."""
    fixed = [Change(name, value) for name, value in SAFE_SETTINGS]
    return [*fixed, *(Change(name, ANY_TIME) for name in bounds), Change(LARGEST, str(planned.most_bytes))]


def make_safe(brokers: Brokers, planned: PlannedTopic) -> None:
    """Give an existing topic the safe settings. Raises ClusterError."""
    problem = None
    for bounds in (TIME_BOUNDS, (EARLIER_TIME_BOUND,)):
        problem = _alter(brokers, planned.target, safe_changes(planned, bounds))
        if problem is None:
            return
    raise ClusterError(f"topic {planned.target}: its settings can't be changed: {problem}")


def changed_settings(brokers: Brokers, topics: Collection[str]) -> dict[str, dict[str, str]]:
    """Return topics' own values of the settings that a restore changes. Raises ClusterError."""
    return _own_settings(brokers, topics, sorted(CHANGED))


def _own_settings(brokers: Brokers, topics: Collection[str], names: list[str] | None) -> dict[str, dict[str, str]]:
    """Return topics' own values of some settings, None for all. Raises ClusterError."""
    resources = [{"resourceType": TOPIC, "resourceName": each, "configurationKeys": names} for each in topics]
    found = {}
    for result in brokers.ask(DESCRIBE_CONFIGS, {"resources": resources})["results"] if resources else ():
        if result["errorCode"]:
            raise BrokerError(f"topic {result['resourceName']}", result["errorCode"], result["errorMessage"])
        own = (each for each in result["configs"] if each["configSource"] == OF_TOPIC)
        found[result["resourceName"]] = {each["name"]: each["value"] for each in own}
    return found


def finish_topic(brokers: Brokers, planned: PlannedTopic, wanted: FinalSettings) -> list[SettingOutcome]:
    """Give a topic its final settings, and return what became of each. Raises ClusterError."""
    outcomes, applied = _divide_changes(planned, wanted)
    if _alter(brokers, planned.target, applied) is None:
        return [*outcomes, *(SettingOutcome(planned.target, *each, SettingState.APPLIED) for each in applied)]
    for change in applied:
        problem = _alter(brokers, planned.target, [change])
        state = SettingState.APPLIED if problem is None else SettingState.REFUSED
        outcomes.append(SettingOutcome(planned.target, *change, state, problem))
    return outcomes


def pending_settings(
    brokers: Brokers, topics: Collection[PlannedTopic], wanted: FinalSettings
) -> Iterator[SettingOutcome]:
    """Yield the settings that an earlier run left to the user, and that still are as it left them.

    Raises ClusterError.
    """
    present = _own_settings(brokers, [each.target for each in topics], None)
    for each in topics:
        own, safe = present.get(each.target, {}), {change.name: change.value for change in safe_changes(each)}
        for outcome in _divide_changes(each, wanted)[0]:
            value = own.get(outcome.name)
            if (
                outcome.state is not SettingState.LEFT_OUT
                and value != outcome.value
                and value == safe.get(outcome.name)
            ):
                yield outcome


def _divide_changes(planned: PlannedTopic, wanted: FinalSettings) -> tuple[list[SettingOutcome], list[Change]]:
    """Return the changes that are left out or left to the user, and those that are applied."""
    outcomes, applied = [], []
    for change in _final_changes(planned):
        if change.name.startswith(FOREIGN_PREFIXES):
            outcomes.append(SettingOutcome(planned.target, *change, SettingState.LEFT_OUT))
        elif wanted is FinalSettings.NONE:
            outcomes.append(SettingOutcome(planned.target, *change, SettingState.KEPT))
        elif _would_delete(planned, change) and wanted is FinalSettings.SAFE:
            outcomes.append(SettingOutcome(planned.target, *change, SettingState.HELD_BACK))
        else:
            applied.append(change)
    return outcomes, applied


def _final_changes(planned: PlannedTopic) -> Iterator[Change]:
    """Yield the changes that give a topic the source's settings; those that were only safe are removed."""
    own = planned.settings
    for name in (*dict(SAFE_SETTINGS), *TIME_BOUNDS, LARGEST):
        if name not in own:
            yield Change(name, None)
    for name, value in sorted(own.items()):
        yield Change(name, value)


def _would_delete(planned: PlannedTopic, change: Change) -> bool:
    """Return whether a broker may delete restored records at once by a setting, or by the cluster's default."""
    deletes = "delete" in planned.settings.get(CLEANUP, "delete")
    return deletes and change.name in RETENTION and change.value != UNLIMITED


def _alter(brokers: Brokers, topic: str, changes: list[Change]) -> str | None:
    """Change settings of a topic; return why the target refuses them, None if it doesn't. Raises ClusterError."""
    configs = [
        {"name": name, "configOperation": DELETE if value is None else SET, "value": value} for name, value in changes
    ]
    if not configs:
        return None
    body = {
        "resources": [{"resourceType": TOPIC, "resourceName": topic, "configs": configs}],
        "validateOnly": False,
    }
    code, detail = 0, None
    for attempt in brokers.attempts():
        answer = brokers.ask(INCREMENTAL_ALTER_CONFIGS, body)["responses"][0]
        code, detail = answer["errorCode"], answer["errorMessage"]
        if code not in PASSING:
            break
        attempt.problem = BrokerError(f"topic {topic}", code, detail).problem
    return None if not code else detail or str(code)

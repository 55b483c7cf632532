"""DescribeConfigs: settings of topics and of the broker, each with where it comes from."""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from kseg.cluster.settings import TOPIC_SETTINGS, SettingType, TopicSetting
from kseg.formats.messages import Fields, LazyList
from kseg.log.partition import COMPACTED_TOPICS
from kseg.serve.apis.request import ApiAnswer, ApiRequest
from kseg.serve.cluster import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    KnownSettings,
    ServedCluster,
    ServedTopic,
    is_secret,
    is_secret_of_broker,
)
from kseg.serve.values import ErrorCode

_POLICY = "cleanup.policy"


class Source(IntEnum):
    """Where a setting comes from. Source: DescribeConfigsResponse.ConfigSource."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    STATIC = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    """A setting that takes effect where those before it aren't set."""

    name: str
    value: str
    source: Source


class DescribedSetting(NamedTuple):
    """A setting as clients see it; synonyms: the first one is in effect, unless a default is in another unit."""

    name: str
    value: str
    type: SettingType
    synonyms: tuple[Synonym, ...]
    is_hidden: bool = False

    @property
    def source(self) -> Source:
        """Where its value comes from."""
        return self.synonyms[0].source if self.synonyms else Source.DEFAULT


class _NotDescribed(NamedTuple):
    """Why a resource has no answer."""

    error: ErrorCode
    message: str


def answer_describe_configs(request: ApiRequest) -> ApiAnswer:
    """The settings of each resource that is asked for. No release's own texts are given as documentation."""
    # One that is named again and again is answered once: a small request shall not have a huge answer.
    resources = {(each["resourceType"], each["resourceName"]): each for each in request.body["resources"]}
    results = LazyList(len(resources), (_result(request, each) for each in resources.values()))
    return ApiAnswer({"results": results}, f"{len(resources)} resources")


def _result(request: ApiRequest, asked: Fields) -> Fields:
    describe = _KINDS.get(asked["resourceType"])
    found: list[DescribedSetting] | _NotDescribed = _NotDescribed(ErrorCode.INVALID_REQUEST, "no such type of resource")
    if describe is not None:
        found = describe(request.served, asked["resourceName"])
    named = {"resourceType": asked["resourceType"], "resourceName": asked["resourceName"]}
    if isinstance(found, _NotDescribed):
        return {**named, "errorCode": found.error, "errorMessage": found.message, "configs": []}
    keys, has_synonyms = asked["configurationKeys"], request.body["includeSynonyms"]
    configs = [_config(each, has_synonyms=has_synonyms) for each in found if not keys or each.name in keys]
    return {**named, "errorMessage": "", "configs": configs}


def _config(setting: DescribedSetting, *, has_synonyms: bool) -> Fields:
    synonyms = [
        {"name": each.name, "value": None if setting.is_hidden else each.value, "source": each.source}
        for each in (setting.synonyms if has_synonyms else ())
    ]
    return {
        "name": setting.name,
        "value": None if setting.is_hidden else setting.value,
        "readOnly": True,
        "configSource": setting.source,
        "isSensitive": setting.is_hidden,
        "synonyms": synonyms,
        "configType": setting.type,
        "documentation": None,
    }


def _of_topic(served: ServedCluster, name: str) -> "list[DescribedSetting] | _NotDescribed":
    topic = served.topics.get(name)
    if topic is None:
        return _NotDescribed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name} here")
    own = dict(served.settings.of(TOPIC, name))
    if not served.settings.knows_topic(name) and _was_compacted(topic):
        own.setdefault(_POLICY, "compact")
    brokers = _BrokerSettings(served.settings, served.node_id)
    settings = [_topic_setting(each, own.pop(each.name, None), brokers) for each in TOPIC_SETTINGS]
    return settings + [_alone(name, value, Source.TOPIC) for name, value in sorted(own.items())]


def _was_compacted(topic: ServedTopic) -> bool:
    """Whether the disks show that a topic is compacted, though no metadata say so."""
    listed = (partition.listed for partition in topic.partitions.values() if partition.listed is not None)
    return topic.name in COMPACTED_TOPICS or any(each.checkpoints().clean_offset is not None for each in listed)


def _topic_setting(setting: TopicSetting, own: str | None, brokers: "_BrokerSettings") -> DescribedSetting:
    synonyms = [] if own is None else [Synonym(setting.name, own, Source.TOPIC)]
    of_broker = list(brokers.synonyms(setting.broker_name)) if setting.broker_name else []
    value = own if own is not None else of_broker[0].value if of_broker else setting.default
    if not setting.fallbacks and setting.broker_name:
        of_broker.append(Synonym(setting.broker_name, setting.default, Source.DEFAULT))
    elif of_broker:
        of_broker += _fallback_synonyms(setting, brokers)
    elif own is None:
        value = _in_milliseconds(setting, brokers)
    return DescribedSetting(setting.name, value, setting.type, (*synonyms, *of_broker))


def _fallback_synonyms(setting: TopicSetting, brokers: "_BrokerSettings") -> Iterator[Synonym]:
    for fallback in setting.fallbacks:
        yield from brokers.synonyms(fallback.name)
        if fallback.default:
            yield Synonym(fallback.name, fallback.default, Source.DEFAULT)


def _in_milliseconds(setting: TopicSetting, brokers: "_BrokerSettings") -> str:
    """The value of the first fallback that is set; the default otherwise."""
    for fallback in setting.fallbacks:
        found = next(brokers.synonyms(fallback.name), None)
        if found is not None and re.fullmatch("-?[0-9]{1,19}", found.value):
            return str(max(int(found.value) * fallback.milliseconds, -1))
    return setting.default


class _BrokerSettings(NamedTuple):
    """The settings of the broker, by where they come from."""

    known: KnownSettings
    node_id: int

    def sources(self) -> Iterator[tuple[Source, Mapping[str, str]]]:
        """The first one that has a setting decides."""
        yield Source.BROKER, self.known.of(BROKER, str(self.node_id))
        yield Source.ALL_BROKERS, self.known.of(BROKER, "")
        yield Source.STATIC, self.known.static()

    def synonyms(self, name: str) -> Iterator[Synonym]:
        """What is set for a name, the setting in effect first."""
        return (Synonym(name, found[name], source) for source, found in self.sources() if name in found)


def _of_broker(served: ServedCluster, name: str) -> "list[DescribedSetting] | _NotDescribed":
    """What is known of the broker; without a name, what is set for all brokers."""
    brokers = _BrokerSettings(served.settings, served.node_id)
    if not name:
        for_all = served.settings.of(BROKER, "")
        own = {key: (Synonym(key, value, Source.ALL_BROKERS),) for key, value in for_all.items()}
        return [_broker_setting(key, own[key])._replace(synonyms=own[key]) for key in sorted(own)]
    if name != str(served.node_id):
        return _NotDescribed(ErrorCode.INVALID_REQUEST, f"this is broker {served.node_id}, not {name}")
    names = sorted({key for _, found in brokers.sources() for key in found})
    return [_broker_setting(key, tuple(brokers.synonyms(key))) for key in names]


def _broker_setting(name: str, synonyms: tuple[Synonym, ...]) -> DescribedSetting:
    known = _BY_BROKER_NAME.get(name)
    if known is None:
        return DescribedSetting(name, synonyms[0].value, SettingType.UNKNOWN, synonyms, is_secret_of_broker(name))
    default = () if known.fallbacks else (Synonym(name, known.default, Source.DEFAULT),)
    return DescribedSetting(name, synonyms[0].value, known.type, (*synonyms, *default))


def _of_logger(served: ServedCluster, name: str) -> "list[DescribedSetting] | _NotDescribed":
    """None: the disks don't know how loud a broker was."""
    if name != str(served.node_id):
        return _NotDescribed(ErrorCode.INVALID_REQUEST, f"this is broker {served.node_id}, not {name}")
    return []


def _of_group(served: ServedCluster, name: str) -> "list[DescribedSetting] | _NotDescribed":
    return [_alone(key, value, Source.GROUP) for key, value in sorted(served.settings.of(GROUP, name).items())]


def _of_client_metrics(served: ServedCluster, name: str) -> "list[DescribedSetting] | _NotDescribed":
    found = served.settings.of(CLIENT_METRICS, name)
    return [_alone(key, value, Source.CLIENT_METRICS) for key, value in sorted(found.items())]


def _alone(name: str, value: str, source: Source) -> DescribedSetting:
    return DescribedSetting(name, value, SettingType.UNKNOWN, (Synonym(name, value, source),), is_secret(name))


_BY_BROKER_NAME = {setting.broker_name: setting for setting in TOPIC_SETTINGS if setting.broker_name}
_KINDS: dict[int, Callable[[ServedCluster, str], "list[DescribedSetting] | _NotDescribed"]] = {
    2: _of_topic,
    4: _of_broker,
    8: _of_logger,
    16: _of_client_metrics,
    32: _of_group,
}
"""Types of resources. Source: ConfigResource.Type."""

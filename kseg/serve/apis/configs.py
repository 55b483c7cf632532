"""DescribeConfigs: settings of topics and of the broker, each with its source."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from kseg.cluster.settings import (
    TOPIC_SETTINGS,
    ResolvedSetting,
    SettingSource,
    SettingType,
    Synonym,
    resolve_all,
    shown_settings,
)
from kseg.errors import plural
from kseg.formats.messages import Fields, LazyList
from kseg.protocol.error_codes import ErrorCode
from kseg.serve.apis.request import ApiAnswer, ApiRequest
from kseg.serve.cluster import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    ServedCluster,
    is_secret,
    is_secret_of_broker,
)


class _NotDescribed(NamedTuple):
    """The reason why a resource has no answer."""

    error: ErrorCode
    message: str


def answer_describe_configs(request: ApiRequest) -> ApiAnswer:
    """Return the settings of each requested resource. The releases' own documentation texts are omitted."""
    # Each resource is answered once, even if it is named repeatedly, so that a small request can't get a huge answer.
    resources = {(each["resourceType"], each["resourceName"]): each for each in request.body["resources"]}
    results = LazyList(len(resources), (_result(request, each) for each in resources.values()))
    return ApiAnswer({"results": results}, f"{plural(len(resources), 'resource')}")


def _result(request: ApiRequest, asked: Fields) -> Fields:
    describe = _KINDS.get(asked["resourceType"])
    found: list[ResolvedSetting] | _NotDescribed = _NotDescribed(ErrorCode.INVALID_REQUEST, "no such type of resource")
    if describe is not None:
        found = describe(request.served, asked["resourceName"])
    named = {"resourceType": asked["resourceType"], "resourceName": asked["resourceName"]}
    if isinstance(found, _NotDescribed):
        return {**named, "errorCode": found.error, "errorMessage": found.message, "configs": []}
    keys, has_synonyms = asked["configurationKeys"], request.body["includeSynonyms"]
    configs = [_config(each, has_synonyms=has_synonyms) for each in found if not keys or each.name in keys]
    return {**named, "errorMessage": "", "configs": configs}


def _config(setting: ResolvedSetting, *, has_synonyms: bool) -> Fields:
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


def _of_topic(served: ServedCluster, name: str) -> "list[ResolvedSetting] | _NotDescribed":
    if name not in served.topics:
        return _NotDescribed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name} here")
    own, brokers = served.settings.of(TOPIC, name), served.settings.of_broker()
    if not served.settings.knows_topic(name):
        own = {**shown_settings(name, brokers, partial(served.settings.was_cleaned, name)), **own}
    settings = resolve_all(own, brokers)
    return [each._replace(is_hidden=is_secret(each.name)) for each in settings]


def _of_broker(served: ServedCluster, name: str) -> "list[ResolvedSetting] | _NotDescribed":
    """Return the broker settings; without a name, the settings of all brokers."""
    brokers = served.settings.of_broker()
    if not name:
        for_all = served.settings.of(BROKER, "")
        own = {key: (Synonym(key, value, SettingSource.ALL_BROKERS),) for key, value in for_all.items()}
        return [_broker_setting(key, own[key])._replace(synonyms=own[key]) for key in sorted(own)]
    if name != str(served.node_id):
        return _NotDescribed(ErrorCode.INVALID_REQUEST, f"this is broker {served.node_id}, not {name}")
    names = sorted({key for _, found in brokers.sources for key in found})
    return [_broker_setting(key, tuple(brokers.synonyms(key))) for key in names]


def _broker_setting(name: str, synonyms: tuple[Synonym, ...]) -> ResolvedSetting:
    known = _BY_BROKER_NAME.get(name)
    if known is None:
        return ResolvedSetting(name, synonyms[0].value, SettingType.UNKNOWN, synonyms, is_secret_of_broker(name))
    default = () if known.fallbacks else (Synonym(name, known.default, SettingSource.DEFAULT),)
    return ResolvedSetting(name, synonyms[0].value, known.type, (*synonyms, *default))


def _of_logger(served: ServedCluster, name: str) -> "list[ResolvedSetting] | _NotDescribed":
    """Return no settings: the disks don't have a broker's log levels."""
    if name != str(served.node_id):
        return _NotDescribed(ErrorCode.INVALID_REQUEST, f"this is broker {served.node_id}, not {name}")
    return []


def _of_group(served: ServedCluster, name: str) -> "list[ResolvedSetting] | _NotDescribed":
    return [
        _setting_without_default(key, value, SettingSource.GROUP)
        for key, value in sorted(served.settings.of(GROUP, name).items())
    ]


def _of_client_metrics(served: ServedCluster, name: str) -> "list[ResolvedSetting] | _NotDescribed":
    found = served.settings.of(CLIENT_METRICS, name)
    return [_setting_without_default(key, value, SettingSource.CLIENT_METRICS) for key, value in sorted(found.items())]


def _setting_without_default(name: str, value: str, source: SettingSource) -> ResolvedSetting:
    return ResolvedSetting(name, value, SettingType.UNKNOWN, (Synonym(name, value, source),), is_secret(name))


_BY_BROKER_NAME = {setting.broker_name: setting for setting in TOPIC_SETTINGS if setting.broker_name}
_KINDS: dict[int, Callable[[ServedCluster, str], "list[ResolvedSetting] | _NotDescribed"]] = {
    2: _of_topic,
    4: _of_broker,
    8: _of_logger,
    16: _of_client_metrics,
    32: _of_group,
}
"""Types of resources. Source: ConfigResource.Type."""

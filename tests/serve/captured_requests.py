"""Requests that real clients sent to a broker, adapted to the topics of a server."""

from collections import defaultdict
from typing import Any

from kseg.formats.messages import UNKNOWN_TAGGED_FIELDS, ZERO_UUID, Fields
from kseg.protocol.capture import Capture
from kseg.protocol.conversation import Frame
from kseg.serve.apis.table import APIS
from kseg.serve.cluster import ServedCluster, ServedTopic
from tests import golden

CAPTURE = golden.ROOT / "protocol" / "4.3.1" / "clients.pcap"
MOST_OF_A_KIND = 16
_NAMES = {"topic", "name", "topicName"}


def captured_requests(served: ServedCluster) -> list[tuple[int, int, Fields]]:
    """Return key, version and body of requests to answered APIs, adapted to the served topics.

    There are a few of each version.
    """
    found: dict[tuple[int, int], list[Fields]] = defaultdict(list)
    topics = list(served.topics.values())
    with CAPTURE.open("rb") as stream:
        for item in Capture(stream).items():
            message = item.message if isinstance(item, Frame) else None
            if message is None or message.kind != "request" or message.body is None or message.api_version is None:
                continue
            key, version = message.api_key, message.api_version
            if key in APIS and len(bodies := found[key, version]) < MOST_OF_A_KIND:
                bodies.append(_turn(message.body, topics[len(bodies) % len(topics)]))
    return [(key, version, body) for (key, version), bodies in found.items() for body in bodies]


def _turn(value: Any, topic: ServedTopic) -> Any:
    if isinstance(value, list):
        return [_turn(each, topic) for each in value]
    if not isinstance(value, dict):
        return value
    turned = {name: _turn(inside, topic) for name, inside in value.items() if name != UNKNOWN_TAGGED_FIELDS}
    is_topic = any(name.startswith(("partition", "topicId")) for name in value)
    if is_topic:
        turned |= {name: topic.name for name in _NAMES & value.keys() if isinstance(value[name], str)}
        turned |= {"topicId": topic.topic_id} if value.get("topicId", ZERO_UUID) != ZERO_UUID else {}
    return turned

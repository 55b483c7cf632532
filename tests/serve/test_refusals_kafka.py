"""kseg refuses in the words of a broker with ACLs to a client without rights. Needs Java and Maven."""

import socket
from collections.abc import Iterator

import pytest

from kseg.formats.messages import Fields
from kseg.protocol.messages import read_response
from tests.log.real_broker import PATIENCE, Broker, new_broker
from tests.protocol.packets import frame_message, request
from tests.serve.test_refusals import ADDED, CLUSTER, KEYS, REFUSED, VERSIONS, errors
from tests.serve.test_server import API_VERSIONS

pytestmark = pytest.mark.kafka

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": f'{LOGIN} username="admin" password="x" user_admin="x";',
}
"""The broker itself is `admin`; clients are nobody, who may do nothing."""
OTHERWISE = {"CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken"}
"""Requests that a broker refuses for another reason: it gives no tokens over connections without a password."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = new_broker(tmp_path_factory, SETTINGS)
    with made.running("refusing"):
        yield made


def ask(broker: Broker, api_key: int, version: int, body: Fields) -> Fields:
    with socket.create_connection(("127.0.0.1", broker.port), PATIENCE) as client, client.makefile("rb") as stream:
        client.sendall(frame_message(request(api_key, version, body)))
        size = int.from_bytes(stream.read(4), "big")
        message = read_response(stream.read(size), api_key, version)
    assert message.body is not None
    return message.body


def test_a_broker_with_acls_refuses_the_same_at_the_same_places(broker: Broker) -> None:
    answer = ask(broker, API_VERSIONS, 3, {"clientSoftwareName": "test", "clientSoftwareVersion": "1"})
    known = {row["apiKey"]: range(row["minVersion"], row["maxVersion"] + 1) for row in answer["apiKeys"]}
    compared = 0
    for api, (body, found) in REFUSED.items():
        versions = range(VERSIONS[api].first, VERSIONS[api].last + 1)
        for version in versions if api not in OTHERWISE else ():
            if version in known[KEYS[api]]:
                assert errors(ask(broker, KEYS[api], version, body)) == found, (api, version)
                compared += 1
    assert compared > 60


def test_a_broker_with_acls_refuses_transactions_the_same_way(broker: Broker) -> None:
    for version in range(6):
        answer = ask(broker, KEYS["AddPartitionsToTxn"], version, ADDED)
        if version > 3:
            assert (answer["errorCode"], answer["resultsByTransaction"]) == (CLUSTER, [])
        else:
            (topic,) = answer["resultsByTopicV3AndBelow"]
            assert [each["partitionErrorCode"] for each in topic["resultsByPartition"]] == [53, 53]

"""A broker with listeners for each kind of log-in and an authorizer, for tests marked `kafka`. Needs Java and Maven."""

import base64
import json
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives import serialization

from tests.log.real_broker import PATIENCE, Broker, new_broker
from tests.serve.certificates import Files, issue_certificate, root, write_files

USER, PASSWORD = "alice", "s3cr,et"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
LISTENERS = {"SASL": "SASL_PLAINTEXT", "SAFE": "SASL_SSL", "MTLS": "SSL"}


class SecureBroker(NamedTuple):
    """A broker, its ports by listener, and the files of the root and of a client. Plaintext clients may do anything."""

    broker: Broker
    ports: dict[str, int]
    root: Files
    client: Path

    @property
    def admin(self) -> Any:
        """A client that may do anything."""
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": f"127.0.0.1:{self.broker.port}"})

    def write_settings(self, name: str, values: dict[str, object]) -> Path:
        """Write a client's settings."""
        path = self.broker.work / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        path.chmod(0o600)
        return path


def new_secure_broker(tmp_path_factory: pytest.TempPathFactory) -> SecureBroker:
    """Return a broker that isn't running."""
    broker = new_broker(tmp_path_factory)
    client = write_files(broker.work, "client", issue_certificate("alice", root()))
    both = broker.work / "both.pem"
    both.write_bytes(client.key.read_bytes() + client.certificate.read_bytes())
    own = issue_certificate("broker", root())
    key = own.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    store = broker.work / "broker.pem"
    store.write_bytes(key + own.certificate.public_bytes(serialization.Encoding.PEM))
    ports = {name: broker.tools.free_port() for name in LISTENERS}
    properties = broker.work / "server.properties"
    text = properties.read_text()
    found = re.search("^listeners=(.*)$", text, re.MULTILINE)
    assert found is not None
    open_to_clients = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    protocols = {**LISTENERS, "PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
    settings = {
        "listeners": f"{found[1]},{open_to_clients}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker.port},{open_to_clients}",
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": store,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": write_files(broker.work, "root", root()).certificate,
        "listener.name.mtls.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=([a-z]+)$/$1/,DEFAULT",
        **{f"listener.name.{name}.sasl.enabled.mechanisms": MECHANISMS for name in ("sasl", "safe")},
        **{f"listener.name.{name}.{key}": value for name in ("sasl", "safe") for key, value in MODULES.items()},
    }
    properties.write_text(text + "".join(f"{name}={value}\n" for name, value in settings.items()))
    return SecureBroker(broker, ports, write_files(broker.work, "root", root()), both)


MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
MODULES = {
    "plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_{USER}="{PASSWORD}";',
    "scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    "scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    "oauthbearer.sasl.jaas.config": f'{BEARER_MODULE} required unsecuredLoginStringClaim_sub="broker";',
}


def make_users(secure: SecureBroker) -> None:
    """Give the user SCRAM credentials."""
    from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

    infos = [ScramCredentialInfo(each, 4096) for each in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)]
    wanted = [UserScramCredentialUpsertion(USER, each, PASSWORD.encode()) for each in infos]
    admin = secure.admin  # a client that nobody holds ends before it answers
    for each in wanted:
        for future in admin.alter_user_scram_credentials([each]).values():
            future.result(PATIENCE)


def allow(secure: SecureBroker, kind: str, name: str, *operations: str) -> None:
    """Allow the user operations on a resource."""
    from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

    admin, may = secure.admin, AclPermissionType.ALLOW
    user, pattern = f"User:{USER}", ResourcePatternType.LITERAL
    rules = [
        AclBinding(ResourceType[kind], name, pattern, user, "*", AclOperation[operation], may)
        for operation in operations
    ]
    for future in admin.create_acls(rules).values():
        future.result(PATIENCE)


def forbid_all(secure: SecureBroker) -> None:
    """Remove all that the user is allowed."""
    from confluent_kafka.admin import (
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        ResourcePatternType,
        ResourceType,
    )

    admin = secure.admin
    any_pattern = ResourceType.ANY, None, ResourcePatternType.ANY
    rules = AclBindingFilter(*any_pattern, f"User:{USER}", None, AclOperation.ANY, AclPermissionType.ANY)
    for future in admin.delete_acls([rules]).values():
        future.result(PATIENCE)
    while admin.describe_acls(rules).result(PATIENCE):  # the broker learns it from its controller
        pass


def unsecured_token() -> str:
    """Return a token of the user that the broker accepts without a signature."""
    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": USER, "iat": now, "exp": now + 3600})
    texts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return f"{'.'.join(texts)}."

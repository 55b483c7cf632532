"""Settings of a client as Kafka's Java client reads them: security from a file such as client.properties.

Source: SslConfigs, SaslConfigs, DefaultSslEngineFactory, JaasConfig.
"""

import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kseg.client.security import EXCHANGES, PLAINTEXT, ClientSecurity, Login
from kseg.errors import FileError, UsageError
from kseg.formats.checkpoints import parse_meta_properties
from kseg.system.files import read_small, secrets_risk
from kseg.system.tls import load_certificate, load_roots

LARGEST_FILE = 1 << 20
PROTOCOL, MECHANISM, JAAS = "security.protocol", "sasl.mechanism", "sasl.jaas.config"
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105  a setting's name
ROOTS, ROOTS_TEXT = "ssl.truststore.location", "ssl.truststore.certificates"
KEYS, KEYS_TEXT, CHAIN_TEXT = "ssl.keystore.location", "ssl.keystore.key", "ssl.keystore.certificate.chain"
PASSPHRASE, HOST_CHECK = "ssl.key.password", "ssl.endpoint.identification.algorithm"
UNNEEDED = frozenset(
    {"ssl.truststore.type", "ssl.truststore.password", "ssl.keystore.type", "ssl.keystore.password", "config.providers"}
)
"""Settings that need no note: PEM files have no password of their own, and kseg reads their type from their bytes."""
PROTOCOLS = {
    "PLAINTEXT": (False, False),
    "SSL": (True, False),
    "SASL_PLAINTEXT": (False, True),
    "SASL_SSL": (True, True),
}
"""Protocols: whether each has TLS and a log-in."""
KERBEROS = "GSSAPI"
"""The mechanism of SASL without a setting."""
UNSUPPORTED = {
    KERBEROS: "no log-in by Kerberos (GSSAPI)",
    "AWS_MSK_IAM": "no log-in by AWS IAM (AWS_MSK_IAM)",
}
"""Mechanisms that need a library, and what kseg lacks for them."""
_VARIABLE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_JAAS = re.compile(
    r"""\s*[\w.$]+\s+\w+((?:\s+[\w.]+\s*=\s*(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^\s;"']+))*)\s*;?\s*"""
)
_JAAS_OPTION = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))""")
_JKS = b"\xfe\xed\xfe\xed"
_DER = b"\x30\x82", b"\x30\x80"
"""Beginnings of PKCS12: a sequence with its length, or without."""


@dataclass(frozen=True)
class ClientSettings:
    """The settings of a client. notes: ignored settings, and risks."""

    security: ClientSecurity
    notes: tuple[str, ...] = ()


class _Properties:
    """The properties of a file; notes which ones were read."""

    def __init__(self, path: Path, values: Mapping[str, str]) -> None:
        self.path, self._values = path, values
        self._known = set(UNNEEDED)

    def get(self, name: str, default: str | None = None) -> str | None:
        """Return a value; the default if it isn't there."""
        self._known.add(name)
        return self._values.get(name, default)

    def error(self, name: str, problem: str) -> UsageError:
        """Return an error of a setting."""
        return UsageError(f"{self.path}: {name}: {problem}")

    @property
    def unread(self) -> list[str]:
        """The names of values that nobody read."""
        return [name for name in self._values if name not in self._known and not name.startswith("config.providers.")]


def read_client_settings(path: Path) -> ClientSettings:
    """Read the security settings in a properties file.

    `${env:NAME}` in a value stands for a variable of the environment, as with Kafka's EnvVarConfigProvider.

    Raises:
        OpenError: the file, or one that it names, can't be opened.
        UsageError: a setting is wrong, or kseg doesn't have its mechanism or kind of file.
    """
    content = read_small(path, LARGEST_FILE)
    try:
        stored = dict(parse_meta_properties(content).properties)
    except FileError as error:
        raise UsageError(f"{path}: a line isn't a property; write lines NAME=VALUE") from error
    properties = _Properties(path, {name: _with_variables(path, name, value) for name, value in stored.items()})
    protocol = (properties.get(PROTOCOL) or "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise properties.error(PROTOCOL, f"{protocol} isn't one of {', '.join(PROTOCOLS)}")
    has_tls, has_login = PROTOCOLS[protocol]
    # Also settings of another protocol count as read, since Java's client takes them without a word.
    for name in (ROOTS, ROOTS_TEXT, KEYS, KEYS_TEXT, CHAIN_TEXT, PASSPHRASE, HOST_CHECK, MECHANISM, JAAS, TOKEN_URL):
        properties.get(name)
    security = ClientSecurity(
        _tls(properties) if has_tls else None,
        _login(properties) if has_login else None,
    )
    notes = []
    if unread := properties.unread:
        notes.append(f"{path}: kseg ignores {', '.join(unread)}")
    if has_login and (risk := secrets_risk(path)) is not None:
        notes.append(risk)
    return ClientSettings(security, tuple(notes))


NO_SETTINGS = ClientSettings(PLAINTEXT)


def _with_variables(path: Path, name: str, value: str) -> str:
    def of_environment(found: re.Match[str]) -> str:
        text = os.environ.get(found[1])
        if text is None:
            raise UsageError(f"{path}: {name}: the environment has no variable {found[1]}; set it")
        return text

    return _VARIABLE.sub(of_environment, value)


def _tls(properties: _Properties) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = bool(properties.get(HOST_CHECK, "https"))
    roots, text = properties.get(ROOTS), properties.get(ROOTS_TEXT)
    if roots is not None:
        _require_pem(properties, ROOTS, Path(roots))
        load_roots(context, Path(roots))
    elif text is not None:
        try:
            context.load_verify_locations(cadata=text)
        except (ssl.SSLError, ValueError) as error:
            raise properties.error(ROOTS_TEXT, "no certificates in PEM") from error
    else:
        context.load_default_certs()
    if properties.get(KEYS_TEXT) is not None:
        raise properties.error(
            KEYS_TEXT,
            f"kseg reads keys only from files; write key and certificates to a PEM file, and set {KEYS} to it",
        )
    keys = properties.get(KEYS)
    if keys is not None:
        _require_pem(properties, KEYS, Path(keys))
        load_certificate(context, Path(keys), Path(keys), properties.get(PASSPHRASE))
    return context


def _require_pem(properties: _Properties, name: str, path: Path) -> None:
    """Raise UsageError for a key store of Java, with the commands that convert it."""
    content = read_small(path, LARGEST_FILE)
    if not content.startswith((_JKS, *_DER)):
        return
    pem, is_jks = path.with_suffix(".pem"), content.startswith(_JKS)
    if name == ROOTS:
        line = f"keytool -list -rfc -keystore {path} >{pem}"
    elif is_jks:
        store = path.with_suffix(".p12")
        line = (
            f"keytool -importkeystore -srckeystore {path} -destkeystore {store} -deststoretype PKCS12"
            f" && openssl pkcs12 -in {store} -out {pem}"
        )
    else:
        line = f"openssl pkcs12 -in {path} -out {pem}"
    kind = "a JKS file" if is_jks else "a PKCS12 file"
    raise properties.error(name, f"{path} is {kind}, and kseg reads PEM; run `{line}`, then set {name} to {pem}")


def _login(properties: _Properties) -> Login:
    mechanism = properties.get(MECHANISM) or KERBEROS
    if mechanism not in EXCHANGES:
        lack = UNSUPPORTED.get(mechanism, f"no {mechanism}")
        raise properties.error(MECHANISM, f"kseg has {lack}; use a listener with {', '.join(EXCHANGES)}, or mutual TLS")
    if mechanism == "OAUTHBEARER":
        return Login(mechanism, "", _bearer_token(properties))
    options = _jaas_options(properties)
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise properties.error(JAAS, f'{mechanism} needs a {missing[0]}; add {missing[0]}="…" before the semicolon')
    return Login(mechanism, options["username"], options["password"])


def _jaas_options(properties: _Properties) -> dict[str, str]:
    text = properties.get(JAAS)
    if text is None:
        raise properties.error(JAAS, f"{PROTOCOL} {properties.get(PROTOCOL)} needs it; add it with user and password")
    module = _JAAS.fullmatch(text)
    if module is None:
        raise properties.error(JAAS, 'it isn\'t CLASS required username="…" password="…";')
    return {
        found[1]: re.sub(r"\\(.)", r"\1", next(part for part in found.groups()[1:] if part is not None))
        for found in _JAAS_OPTION.finditer(module[1])
    }


def _bearer_token(properties: _Properties) -> str:
    url = urlsplit(properties.get(TOKEN_URL) or "")
    if url.scheme != "file":
        raise properties.error(
            TOKEN_URL, "kseg asks no server for a token; write one to a file, and set this to file:///PATH"
        )
    path = Path(unquote(url.path))
    token = read_small(path, LARGEST_FILE).decode(errors="replace").strip()
    if not re.fullmatch(r"[A-Za-z0-9._~+/=-]+", token):
        raise UsageError(f"{path}: it has no token")
    return token

"""The matrix: the settings of a user, the commands, and impossible cells.

In values and files, `$name` stands for values of a run: a server's URL, a folder.
"""

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from tests import golden
from tests.stores.servers import AZURE_ACCOUNT, AZURE_KEY, BUCKET, MARK, REGION, ROLE, S3_HOST, Signer

SECRET = f"{MARK}/of+a=key"
SESSION = f"{MARK}session/token+="
CONTAINER = f"{MARK}token"
KEYS: dict[str, tuple[str, str | None]] = {
    name: (f"{SECRET}{name}", SESSION if name in ("AKSESSION", "AKCONTAINER", "AKPROCESS") else None)
    for name in (
        "AKENVIRONMENT",
        "AKSESSION",
        "AKPROFILE",
        "AKDEFAULT",
        "AKPROCESS",
        "AKSOURCE",
        "AKCONTAINER",
    )
}
"""Access keys of S3, one for each way to provide them: secret and session token."""


class Setting(NamedTuple):
    """A user's settings for a store.

    url: the root of all files. environment, files: variables, and files below the user's home. signers: the required
    signature of each request to S3. has_proxy: whether all requests must come through the proxy, or none.
    """

    name: str
    url: str
    environment: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    signers: tuple[Signer, ...] = ()
    has_proxy: bool = False

    @property
    def store(self) -> str:
        """The fixture that starts the server."""
        return self.name.partition("-")[0]


def _environment(key: str) -> dict[str, str]:
    """Return keys in the environment."""
    return {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": KEYS[key][0], "AWS_REGION": REGION}


def _section(key: str) -> str:
    """Return keys in a profile."""
    return f"aws_access_key_id = {key}\naws_secret_access_key = {KEYS[key][0]}\n"


def _signers(key: str, style: str = "path", region: str = REGION) -> tuple[Signer, ...]:
    return (Signer(key, region, style),)


NOBODY = "http://127.0.0.1:9"
"""An address without a server."""
_URL = f"s3://{BUCKET}"
_ENVIRONMENT = _environment("AKENVIRONMENT")
_OF_LAB = {"AWS_PROFILE": "lab", "AWS_CONFIG_FILE": "$home/config", "AWS_SHARED_CREDENTIALS_FILE": "$home/keys"}
_LAB = f"[profile lab]\nregion = {REGION}\nendpoint_url = $s3\n"
_LAB_BY_NAME = _LAB.replace("$s3", f"http://{S3_HOST}")
_LAB_KEYS = {"keys": f"[lab]\n{_section('AKPROFILE')}"}
_CONNECTION = f"DefaultEndpointsProtocol=http;AccountName={AZURE_ACCOUNT};"
_AZURE_URL = f"az://{BUCKET}"
_AZURE = {"AZURE_STORAGE_ACCOUNT": AZURE_ACCOUNT, "AZURE_STORAGE_ENDPOINT": "$azure"}
_BY_STRING = {"AZURE_STORAGE_CONNECTION_STRING": f"{_CONNECTION}AccountKey={AZURE_KEY};BlobEndpoint=$azure;"}

SETTINGS = (
    Setting("s3-environment", _URL, {**_ENVIRONMENT, "AWS_ENDPOINT_URL": "$s3"}, {}, _signers("AKENVIRONMENT")),
    Setting(
        "s3-endpoint-of-s3",
        _URL,
        {**_ENVIRONMENT, "AWS_ENDPOINT_URL": NOBODY, "AWS_ENDPOINT_URL_S3": "$s3"},
        {},
        _signers("AKENVIRONMENT"),
    ),
    Setting(
        "s3-session-token",
        _URL,
        {**_environment("AKSESSION"), "AWS_SESSION_TOKEN": SESSION, "AWS_ENDPOINT_URL": "$s3"},
        {},
        _signers("AKSESSION"),
    ),
    Setting("s3-profile", _URL, _OF_LAB, {"config": _LAB, **_LAB_KEYS}, _signers("AKPROFILE")),
    Setting(
        "s3-profile-services",
        _URL,
        _OF_LAB,
        {
            "config": f"[profile lab]\nregion = {REGION}\nservices = here\nendpoint_url = {NOBODY}\n"
            "[services here]\ns3 =\n  endpoint_url = $s3\n",
            **_LAB_KEYS,
        },
        _signers("AKPROFILE"),
    ),
    Setting(
        "s3-profile-endpoint-of-s3",
        _URL,
        {**_OF_LAB, "AWS_ENDPOINT_URL_S3": "$s3"},
        {"config": _LAB.replace("$s3", NOBODY), **_LAB_KEYS},
        _signers("AKPROFILE"),
    ),
    Setting(
        "s3-default-profile",
        _URL,
        {},
        {
            ".aws/config": f"[default]\nregion = {REGION}\nendpoint_url = $s3\n",
            ".aws/credentials": f"[default]\n{_section('AKDEFAULT')}",
        },
        _signers("AKDEFAULT"),
    ),
    Setting(
        "s3-credential-process",
        _URL,
        _OF_LAB,
        {
            "config": f"{_LAB}credential_process = cat $home/process.json\n",
            "process.json": json.dumps(
                {
                    "Version": 1,
                    "AccessKeyId": "AKPROCESS",
                    "SecretAccessKey": KEYS["AKPROCESS"][0],
                    "SessionToken": SESSION,
                }
            ),
        },
        _signers("AKPROCESS"),
    ),
    Setting(
        "s3-assumed-role",
        _URL,
        _OF_LAB,
        {
            "config": f"{_LAB}source_profile = source\nrole_arn = arn:aws:iam::123456789012:role/kseg\n"
            f"[profile source]\nregion = {REGION}\n",
            "keys": f"[source]\n{_section('AKSOURCE')}",
        },
        _signers(ROLE),
    ),
    Setting(
        "s3-virtual-hosted",
        _URL,
        {**_OF_LAB, "HTTP_PROXY": "$proxy"},
        {"config": f"{_LAB_BY_NAME}s3 =\n  addressing_style = virtual\n", **_LAB_KEYS},
        _signers("AKPROFILE", "virtual"),
        has_proxy=True,
    ),
    Setting(
        "s3-path-style",
        _URL,
        {**_OF_LAB, "HTTP_PROXY": "$proxy"},
        {"config": f"{_LAB_BY_NAME}s3 =\n  addressing_style = path\n", **_LAB_KEYS},
        _signers("AKPROFILE"),
        has_proxy=True,
    ),
    Setting(
        "s3-no-proxy",
        _URL,
        {**_ENVIRONMENT, "AWS_ENDPOINT_URL": "$s3", "HTTP_PROXY": NOBODY, "NO_PROXY": "127.0.0.1"},
        {},
        _signers("AKENVIRONMENT"),
    ),
    Setting(
        "s3-anonymous",
        _URL,
        {"AWS_SKIP_SIGNATURE": "true", "AWS_ENDPOINT_URL": "$s3", "AWS_REGION": REGION},
        {},
        (Signer(None, None),),
    ),
    Setting(
        "s3-authority",
        _URL,
        {**_ENVIRONMENT, "AWS_ENDPOINT_URL": "$s3tls", "AWS_CA_BUNDLE": "$authority"},
        {},
        _signers("AKENVIRONMENT"),
    ),
    Setting(
        "s3-container",
        _URL,
        {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": "$container/keys",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": CONTAINER,
            "AWS_ENDPOINT_URL": "$s3",
            "AWS_REGION": REGION,
        },
        {},
        _signers("AKCONTAINER"),
    ),
    Setting("gcs-emulator", f"gs://{BUCKET}", {"STORAGE_EMULATOR_HOST": "$gcs"}),
    Setting("gcs-emulator-without-scheme", f"gs://{BUCKET}", {"STORAGE_EMULATOR_HOST": "$gcshost"}),
    Setting(
        "gcs-service-account",
        f"gs://{BUCKET}",
        {
            "GOOGLE_APPLICATION_CREDENTIALS": "$home/account.json",
            "GOOGLE_BASE_URL": "$gcssigned",
            "SSL_CERT_FILE": "$authority",
        },
        {"account.json": "$account"},
    ),
    Setting("azure-connection-string", _AZURE_URL, _BY_STRING),
    Setting("azure-abfss", f"abfss://{BUCKET}@{AZURE_ACCOUNT}.dfs.core.windows.net", _BY_STRING),
    Setting(
        "azure-connection-string-sas",
        _AZURE_URL,
        {"AZURE_STORAGE_CONNECTION_STRING": f"{_CONNECTION}BlobEndpoint=$azure;SharedAccessSignature=$sas"},
    ),
    Setting("azure-key", _AZURE_URL, {**_AZURE, "AZURE_STORAGE_KEY": AZURE_KEY}),
    Setting("azure-sas", _AZURE_URL, {**_AZURE, "AZURE_STORAGE_SAS_TOKEN": "$sas"}),
    Setting("http", "$http"),
    Setting("https-authority", "$https", {"SSL_CERT_FILE": "$authority"}),
)


class Command(NamedTuple):
    """A command line.

    `$url` stands for the store's root, `$local` for the same local files, `$out` for an empty place there. has_rows:
    whether it exports, so that its rows are compared; it then runs twice. is_of_all: whether it runs with each setting;
    if not, it runs with the first one of each store, since its requests are like others'.
    """

    name: str
    line: str
    has_rows: bool = False
    is_of_all: bool = False


_PRIVATE = f"--private-key key1={golden.ROOT / 'tiered' / 'private.pem'}"
_LAKE = "--format iceberg --catalog lake"

COMMANDS = (
    Command("ls", "ls $url/tier --by segment --deep --now 2026-11-24", is_of_all=True),
    Command("verify", "verify $url/tier -v"),
    Command("lookup", f"lookup $url/tier --topic aes --partition 0 --offset 200 {_PRIVATE}"),
    Command("salvage", f"salvage $url/tier --to saved {_PRIVATE}"),
    Command("dump-file", "dump --files $url/logs/zstd-0/00000000000000000281.log --print-data-log", is_of_all=True),
    Command("dump-topic", "dump $url/logs --topic zstd --print-data-log"),
    Command("remote", "dump $local/disk --tier $url/remote --topic tier-txn --print-data-log"),
    Command("export-read", "export $url/logs saved", has_rows=True),
    Command("export-write", "export $local/logs $out", has_rows=True, is_of_all=True),
    Command("delta", "export $url/logs $out --format delta", has_rows=True, is_of_all=True),
    Command("iceberg", f"export $url/logs $out {_LAKE}", has_rows=True, is_of_all=True),
)
OF_DISKS = (
    Command("lookup-disk", "lookup $url/logs --topic zstd --partition 0 --offset 300"),
    Command("salvage-disk", "salvage $url/logs --to saved"),
    Command("verify-disk", "verify $url/logs -v"),
)
"""Commands on a copy of a broker's disk, with one setting: their output depends on the files, not on the store."""
SPARK_COMMANDS = (Command("spark-export", "spark-export $url/logs $out --master local[1]", has_rows=True),)
SPARK_SETTINGS = ("s3-profile", "gcs-emulator", "azure-connection-string")


class Limit(NamedTuple):
    """Impossible cells, as globs of settings and commands, separated by spaces: the reason, and kseg's message."""

    settings: str
    commands: str
    why: str
    message: str

    def includes(self, setting: Setting, command: Command) -> bool:
        settings, commands = self.settings.split(), self.commands.split()
        return any(fnmatchcase(setting.name, each) for each in settings) and any(
            fnmatchcase(command.name, each) for each in commands
        )


LIMITS = (
    Limit(
        "http*",
        "ls verify lookup salvage dump-topic remote *export* delta iceberg",
        "HTTP has no listing: files are read one by one, by their names",
        "can't be",
    ),
)

"""Settings of object stores (endpoint, region, credentials and so on), found as the store's own tools find them.

No other module reads such settings. Names of options are those of the Rust crate object_store, which the libraries
obstore and deltalake share. Source: the crate's AmazonS3ConfigKey, GoogleConfigKey, AzureConfigKey and ClientConfigKey.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from kseg.errors import OpenError, UsageError, missing_library, quote, reason
from kseg.store.location import StoreKind, StoreUrl, is_host

Credentials = dict[str, Any]
"""S3 credentials in obstore's form: access_key_id, secret_access_key, token, expires_at."""
_CREDENTIALS_LAST = timedelta(minutes=15)
"""The age at which botocore is asked again: it renews credentials that are about to expire."""
_MOST_RETRIES = 4
"""The number of retries if AWS_MAX_ATTEMPTS isn't set, the same as botocore's."""
_MOST_THAT_HELP = 100


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Settings of a store.

    options: by object_store's names. client: options of its HTTP client. credentials: returns temporary keys, and is
    called again when they expire; None if the options have keys, or the library finds them. retries: how often a
    request is repeated. authorities: the file of certificate authorities that the client trusts. locks: the service
    that other writers of Delta tables lock commits with.
    """

    options: Mapping[str, str]
    client: Mapping[str, Any] = field(default_factory=dict)
    credentials: Callable[[], Credentials] | None = None
    retries: int = _MOST_RETRIES
    authorities: str | None = None
    locks: str | None = None

    def with_keys(self) -> dict[str, str]:
        """Return the options with the current keys."""
        if self.credentials is None:
            return dict(self.options)
        keys = self.credentials()
        named = {"aws_access_key_id": "access_key_id", "aws_secret_access_key": "secret_access_key"}
        found = {name: keys[key] for name, key in {**named, "aws_session_token": "token"}.items() if keys.get(key)}
        return {**self.options, **found}

    def of_delta(self) -> dict[str, str]:
        """Return deltalake's storage options. Raises UsageError if other writers rely on locks: deltalake has none."""
        if self.locks is not None:
            raise UsageError(
                f"AWS_S3_LOCKING_PROVIDER is {quote(self.locks)}, and deltalake has no such locks; unset it if no other"
                " program writes the table"
            )
        return {**self.with_keys(), **{name: str(value) for name, value in self.client.items() if name == "allow_http"}}


_YES = ("true", "1", "yes", "on")
_OF_ROLES = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_NO_KEYS = "no AWS credentials are set; set AWS_PROFILE, or AWS_SKIP_SIGNATURE=true for a public bucket"


def settings_of(url: StoreUrl) -> StoreSettings:
    """Return the settings of a store.

    Raises UsageError if settings are invalid, or if they need a missing library.
    """
    match url.kind:
        case StoreKind.S3:
            return _s3(url.bucket)
        case StoreKind.GCS:
            return _gcs()
        case StoreKind.AZURE:
            return _azure(url)
    return StoreSettings({}, {"allow_http": True} if url.root.startswith("http://") else {})


def _first_variable(*names: str) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)


def _client(endpoint: str | None, authorities: str | None = None) -> dict[str, Any]:
    """Return the HTTP settings for an endpoint; authorities: the file of trusted certificate authorities."""
    client: dict[str, Any] = {}
    if endpoint is not None:
        _check_endpoint(endpoint)
    if endpoint is not None and endpoint.startswith("http://"):
        client["allow_http"] = True
    if authorities is not None:
        try:
            client["root_certificate"] = Path(authorities).read_bytes()
        except OSError as error:
            raise UsageError(f"the certificates can't be read: {error.strerror}", authorities) from error
    return client


def _check_endpoint(endpoint: str) -> None:
    """Raise UsageError for an invalid endpoint: obstore's Rust code panics at some, and drops a query or fragment."""
    scheme, separator, rest = endpoint.partition("://")
    if not separator or scheme not in ("http", "https"):
        raise UsageError(
            f"the store's endpoint {_without_user(endpoint)} isn't a URL; put http:// or https:// before it"
        )
    host, _, path = rest.partition("/")
    if not (endpoint.isascii() and "@" not in host and is_host(host) and re.fullmatch(_PATH, path)):
        raise UsageError(f"the store's endpoint {_without_user(endpoint)} isn't valid; specify https://HOST:PORT")


def _without_user(endpoint: str) -> str:
    """Return an endpoint for messages, without its user name and password."""
    return quote(endpoint.rpartition("@")[2])


_PATH = r"[!$-;=@-Z_a-z~]*"
_REGION = r"[\w.-]+"
_ACCOUNT = r"[\w-]+"


def _check_variables(prefix: str) -> None:
    """Raise UsageError if an environment variable contains characters that would make obstore panic."""
    for name, value in os.environ.items():
        is_url = name in _OF_ROLES and name.endswith("_URI")
        if name.startswith(prefix) and (not value.isprintable() or (is_url and " " in value)):
            raise UsageError(
                f"{name} has a character that can't be sent, such as a line feed; set it without that character"
            )


def _s3(bucket: str) -> StoreSettings:
    _check_variables("AWS_")
    profile = _profile(_profile_variables()) if _has_profile() else None
    endpoint = profile.endpoint if profile else _first_variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    region = _first_variable("AWS_REGION", "AWS_DEFAULT_REGION") or (profile.region if profile else None)
    authorities = profile.authorities if profile else _first_variable("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE")
    style = _first_variable("AWS_VIRTUAL_HOSTED_STYLE_REQUEST")
    is_virtual = endpoint is None and "." not in bucket  # Amazon's certificates cover only one label
    if style is not None:
        is_virtual = style.lower() in _YES
    elif profile is not None and profile.addressing_style in ("virtual", "path"):
        is_virtual = profile.addressing_style == "virtual"
    # Some S3-compatible stores can't delete several objects in a request.
    options = {"aws_virtual_hosted_style_request": str(is_virtual).lower(), "aws_disable_bulk_delete": "true"}
    if region is not None:
        if not re.fullmatch(_REGION, region, re.ASCII):
            raise UsageError(
                f"the region {quote(region)} isn't valid; correct AWS_REGION, or the region of the profile"
            )
        options["aws_region"] = region
    if endpoint is not None:
        options["aws_endpoint"] = endpoint.replace("://", f"://{bucket}.", 1) if is_virtual else endpoint
    credentials = None
    if (_first_variable("AWS_SKIP_SIGNATURE") or "").lower() in _YES:
        options["aws_skip_signature"] = "true"
    elif _first_variable("AWS_PROFILE", "AWS_DEFAULT_PROFILE") is None and _first_variable("AWS_ACCESS_KEY_ID"):
        keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        options |= {name.lower(): value for name in keys if (value := _first_variable(name))}
    elif profile is not None:
        credentials = profile.credentials
    elif not _first_variable(*_OF_ROLES) and (_first_variable("AWS_EC2_METADATA_DISABLED") or "").lower() in _YES:
        raise OpenError(_NO_KEYS)
    retries = _first_variable("AWS_MAX_ATTEMPTS") or ""
    count = min(max(int(retries[:9]) - 1, 0), _MOST_THAT_HELP) if retries.isdecimal() else _MOST_RETRIES
    client = _client(options.get("aws_endpoint"), authorities)
    locks = _first_variable("AWS_S3_LOCKING_PROVIDER")
    return StoreSettings(options, client, credentials, count, authorities, locks)


def _has_profile() -> bool:
    """Return True if an AWS profile may be in use, so that botocore has to be imported.

    botocore is also needed for credentials of a container's role that object_store can't request.
    """
    if _first_variable("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        return True
    if _first_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI") and not _first_variable(
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"
    ):
        return True
    files = (("AWS_CONFIG_FILE", "~/.aws/config"), ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"))
    return any(os.path.isfile(os.path.expanduser(os.environ.get(name) or usual)) for name, usual in files)  # noqa: PTH111, PTH113  never raises


def _profile_variables() -> tuple[tuple[str, str], ...]:
    """Return the environment variables that a profile depends on."""
    return tuple((name, value) for name, value in os.environ.items() if name.startswith("AWS_") or name == "HOME")


@lru_cache(maxsize=1)
def _profile(_: tuple[tuple[str, str], ...]) -> "_Profile":
    """Return the cached profile: a new one would request keys again, from a program or a service that may prompt."""
    return _Profile()


class _Profile:
    """A profile of Amazon's files as botocore reads it; environment variables take precedence.

    Raises UsageError without botocore, or for an unknown profile.
    """

    def __init__(self) -> None:
        try:
            from botocore.configprovider import ConfiguredEndpointProvider
            from botocore.exceptions import BotoCoreError
            from botocore.session import Session
        except ImportError as error:
            raise UsageError(missing_library("botocore", "s3")) from error
        self._session = Session()
        try:
            own = self._session.get_scoped_config()
            self.region: str | None = self._session.get_config_variable("region")
            self.authorities: str | None = self._session.get_config_variable("ca_bundle") or _first_variable(
                "REQUESTS_CA_BUNDLE"
            )
            self.endpoint: str | None = None
            if not self._session.get_config_variable("ignore_configured_endpoint_urls"):
                everything = self._session.full_config
                self.endpoint = ConfiguredEndpointProvider(everything, own, "s3", os.environ).provide()
        except BotoCoreError as error:
            raise UsageError(
                f"the AWS profile can't be used: {reason(error)}; correct AWS_PROFILE, or its files"
            ) from error
        of_s3 = own.get("s3")
        self.addressing_style: str | None = of_s3.get("addressing_style") if isinstance(of_s3, Mapping) else None

    def credentials(self) -> Credentials:
        """Return the profile's keys, renewed if needed. Raises OpenError if there are none."""
        from botocore.exceptions import BotoCoreError

        try:
            found = self._session.get_credentials()
            keys = None if found is None else found.get_frozen_credentials()
        except BotoCoreError as error:
            raise OpenError(f"no AWS credentials are available: {reason(error)}") from error
        if keys is None:
            raise OpenError(_NO_KEYS)
        return {
            "access_key_id": keys.access_key,
            "secret_access_key": keys.secret_key,
            "token": keys.token,
            "expires_at": datetime.now(UTC) + _CREDENTIALS_LAST,
        }


def _gcs() -> StoreSettings:
    endpoint = _first_variable(
        "STORAGE_EMULATOR_HOST"
    )  # Google's own libraries use it too, and then send no credentials
    if endpoint is None:
        return StoreSettings({})
    url = endpoint if "://" in endpoint else f"http://{endpoint}"
    account = {
        "gcs_base_url": url.rstrip("/"),
        "disable_oauth": True,
        "client_email": "",
        "private_key": "",
        "private_key_id": "",
    }
    return StoreSettings({"google_service_account_key": json.dumps(account)}, _client(url))


_PARTS_OF_CONNECTION = {
    "AccountName": "azure_storage_account_name",
    "AccountKey": "azure_storage_account_key",
    "SharedAccessSignature": "azure_storage_sas_key",
    "BlobEndpoint": "azure_storage_endpoint",
}
"""Options by the names in a connection string. Source: Azure's page on storage connection strings."""


def _azure(url: StoreUrl) -> StoreSettings:
    _check_variables("AZURE_")
    options: dict[str, str] = {}
    connection = _first_variable("AZURE_STORAGE_CONNECTION_STRING")
    if connection is not None:
        parts = dict(part.split("=", 1) for part in connection.split(";") if "=" in part)
        options = {new: parts[old] for old, new in _PARTS_OF_CONNECTION.items() if parts.get(old)}
        if parts.get("UseDevelopmentStorage") == "true":
            options["azure_storage_use_emulator"] = "true"
        if parts.get("EndpointSuffix") and parts.get("AccountName"):
            own = f"{parts.get('DefaultEndpointsProtocol', 'https')}://{parts['AccountName']}.blob.{parts['EndpointSuffix']}"
            options.setdefault("azure_storage_endpoint", own)
        if url.account not in (None, parts.get("AccountName") or _account_at(parts.get("BlobEndpoint", ""))):
            options = {}  # the options belong to another account
    if url.account is not None:
        options["azure_storage_account_name"] = url.account
    for name, option in (("AZURE_STORAGE_ACCOUNT", "azure_storage_account_name"), ("AZURE_STORAGE_KEY", _AZURE_KEY)):
        value = _first_variable(name)  # the names used by Azure's command line; object_store knows longer names
        if value is not None:
            options.setdefault(option, value)
    endpoint = options.get("azure_storage_endpoint") or _first_variable("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
    is_emulator = "azure_storage_use_emulator" in options or _first_variable("AZURE_STORAGE_USE_EMULATOR") is not None
    account = options.get("azure_storage_account_name")
    if account is not None and not re.fullmatch(_ACCOUNT, account, re.ASCII):
        raise UsageError(f"the Azure account {quote(account)} isn't valid; correct AZURE_STORAGE_ACCOUNT")
    return StoreSettings(options, _client("http://localhost" if is_emulator else endpoint))


def _account_at(endpoint: str) -> str:
    """Return the account of an endpoint: the host's first label."""
    return endpoint.partition("://")[2].partition(".")[0]


_AZURE_KEY = "azure_storage_account_key"

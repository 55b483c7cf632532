"""Servers of object stores, each with the same files; and the number of the matrix's cells."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import obstore
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from obstore.store import AzureStore, GCSStore, ObjectStore, S3Store

from tests import golden
from tests.export import exports
from tests.stores import servers, table
from tests.stores.servers import AZURE_ACCOUNT, AZURE_KEY, BUCKET, REGION

FILES = {
    "logs": golden.ROOT / "logs" / "4.3.1",
    "remote": golden.ROOT / "logs" / "4.3.1-tiered-remote",
    "tier": golden.ROOT / "tiered" / "bucket",
}
"""The contents of each store, by the folder below its root."""


@dataclass
class Store:
    """A running store. names: values of `$name` in the table. secrets: further texts that may not be printed."""

    names: Mapping[str, str]
    objects: ObjectStore | None = None
    s3: servers.S3 | None = None
    secrets: Callable[[], set[str]] = field(default=lambda: set())

    def download(self, prefix: str, folder: Path) -> None:
        """Copy the objects below a prefix to a folder."""
        assert self.objects is not None
        for page in obstore.list(self.objects, f"{prefix}/"):
            for each in page:
                path = folder / each["path"].removeprefix(f"{prefix}/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(obstore.get(self.objects, each["path"]).bytes())


def _upload(objects: ObjectStore) -> None:
    for name, folder in FILES.items():
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                key = f"{name}/{path.relative_to(folder).as_posix()}"
                obstore.put(objects, key, path.read_bytes(), use_multipart=False)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the same local files, with the stores' timestamps; and a disk whose log continues the remote one."""
    root = tmp_path_factory.mktemp("local")
    for name, folder in FILES.items():
        shutil.copytree(folder, root / name, copy_function=shutil.copyfile)
    exports.write_log(root / "disk" / "tier-txn-0", 284, 20)
    return root


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> servers.Authority:
    return servers.new_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def s3(authority: servers.Authority) -> Iterator[Store]:
    gate = servers.S3(table.KEYS)
    secret, session = table.KEYS["AKCONTAINER"]
    container = servers.Container("AKCONTAINER", secret, session or "", table.CONTAINER)
    with ExitStack() as stack:
        url = stack.enter_context(servers.serving(gate))
        names = {
            "s3": url,
            "s3tls": stack.enter_context(servers.serving(gate, authority.context)),
            "proxy": stack.enter_context(servers.serving(gate.proxy)),
            "container": stack.enter_context(servers.serving(container)),
            "authority": str(authority.file),
        }
        secret, _ = table.KEYS["AKENVIRONMENT"]
        objects = S3Store(
            BUCKET,
            endpoint=url,
            region=REGION,
            access_key_id="AKENVIRONMENT",
            secret_access_key=secret,
            client_options={"allow_http": True},
        )
        gate.create_bucket()
        _upload(objects)
        yield Store(names, objects, gate, gate.secrets)


@pytest.fixture(scope="module")
def gcs(authority: servers.Authority) -> Iterator[Store]:
    key = rsa.generate_private_key(65537, 2048)
    everybody = servers.Gcs()
    signed = everybody.shared(key.public_key())
    with servers.serving(everybody) as url, servers.serving(signed, authority.context) as strict:
        account = servers.service_account(key, strict)
        names = {"gcs": url, "gcshost": url.removeprefix("http://"), "gcssigned": strict, "account": account}
        names["authority"] = str(authority.file)
        writable = servers.service_account(key, url)
        objects = GCSStore(BUCKET, service_account_key=writable, client_options={"allow_http": True})
        _upload(objects)
        pem = max(account.split("\\n"), key=len)
        yield Store(names, objects, secrets=lambda: {pem} | signed.tokens)


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with servers.azurite(tmp_path_factory.mktemp("azurite")) as url:
        servers.create_container(url)
        objects = AzureStore(
            BUCKET,
            account_name=AZURE_ACCOUNT,
            account_key=AZURE_KEY,
            endpoint=url,
            client_options={"allow_http": True},
        )
        _upload(objects)
        sas = servers.azure_sas()
        signature = sas.rpartition("sig=")[2]
        yield Store({"azure": url, "sas": sas}, objects, secrets=lambda: {signature, servers.unquote(signature)})


@pytest.fixture(scope="module")
def http(local: Path) -> Iterator[Store]:
    with servers.serving(servers.file_server(local)) as url:
        yield Store({"http": url})


@pytest.fixture(scope="module")
def https(local: Path, authority: servers.Authority) -> Iterator[Store]:
    with servers.serving(servers.file_server(local), authority.context) as url:
        yield Store({"https": url, "authority": str(authority.file)})


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the numbers of cells that ran and failed."""
    here = f"{Path(__file__).parent.name}/test_matrix.py"
    reports = {
        outcome: [each for each in terminalreporter.stats.get(outcome, []) if here in each.nodeid]
        for outcome in ("passed", "failed", "error")
    }
    count = sum(map(len, reports.values()))
    if count:
        failed = count - len(reports["passed"])
        limited = sum("test_limit" in each.nodeid for each in reports["passed"])
        terminalreporter.write_line(f"cells: {count} run, {limited} of them beyond a library's limits; {failed} failed")

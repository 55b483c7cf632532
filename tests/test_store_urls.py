"""URLs and settings of stores that can't be: each is a line that says what to do, and nothing of the library's."""

from pathlib import Path

import pytest

from tests.export.object_store import meant
from tests.loops import for_each
from tests.run import process

NOWHERE = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def _no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any, so that each test has only its own; a store that is asked refuses at once."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", NOWHERE)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "some")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", NOWHERE)


def line_of(arguments: list[str], directory: Path, **variables: str) -> str:
    """What a run says that ends with status 2, in one line; `URL`: what is said to be at fault."""
    with meant(NOWHERE) as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        ran = process(arguments, directory)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1), ran
    return ran.stderr.decode().removeprefix("kseg: ").removesuffix("\n")


ODD_URLS = {
    "s3://my bucket/x": "s3://my bucket/x: 'my bucket' can't be the name of a bucket: correct it",
    "s3://my\tbucket/x": r"s3://my\tbucket/x: 'my\tbucket' can't be the name of a bucket: correct it",
    "s3://<b>/x": "s3://<b>/x: '<b>' can't be the name of a bucket: correct it",
    "s3://../x": "s3://../x: '..' can't be the name of a bucket: correct it",
    "s3://[b/x": "s3://[b/x: '[b' can't be the name of a bucket: correct it",
    "gs://my bucket/x": "gs://my bucket/x: 'my bucket' can't be the name of a bucket: correct it",
    "az://my box/x": "az://my box/x: 'my box' can't be the name of a container: correct it",
    "http://a b/x.log": "http://a b/x.log: 'a b' can't be the name of a host: correct it",
    "http://h:99999/x.log": "http://h:99999/x.log: 'h:99999' can't be the name of a host: correct it",
    "http://[zz]/x.log": "http://[zz]/x.log: '[zz]' can't be the name of a host: correct it",
    "http://999.1.1.1/x.log": "http://999.1.1.1/x.log: '999.1.1.1' can't be the name of a host: correct it",
    "s3://b/x\ny": r"s3://b/x\ny: has a control character, . or .. in its path, as no object that kseg reads:"
    " correct it",
    "s3://b/a/../y": "s3://b/a/../y: has a control character, . or .. in its path, as no object that kseg reads:"
    " correct it",
}


@for_each("url, said", ODD_URLS.items())
def test_url_that_can_not_be_one_is_named(url: str, said: str, tmp_path: Path) -> None:
    assert line_of(["ls", url], tmp_path) == said


ODD_ENDPOINTS = (
    "http://",
    "http://a b",
    "http://a:99999",
    "http://[::1",
    "http://999.1.1.1",
    f"{NOWHERE}/<",
    "http://é",
)


@for_each("endpoint", ODD_ENDPOINTS)
def test_endpoint_without_a_host_is_named(endpoint: str, tmp_path: Path) -> None:
    said = f"the store's endpoint {endpoint!r} can't be one: give https://HOST:PORT"
    assert line_of(["ls", "s3://b/x"], tmp_path, AWS_ENDPOINT_URL=endpoint) == f"s3://b/x: {said}"
    assert line_of(["ls", "gs://b/x"], tmp_path, STORAGE_EMULATOR_HOST=endpoint) == f"gs://b/x: {said}"
    assert line_of(["ls", "az://b/x"], tmp_path, AZURE_STORAGE_ENDPOINT=endpoint) == f"az://b/x: {said}"


def test_endpoint_loses_no_query(tmp_path: Path) -> None:
    """The library left the bucket out of its requests, and listed another one."""
    said = line_of(["ls", "s3://b/x"], tmp_path, AWS_ENDPOINT_URL=f"{NOWHERE}?a=b")
    assert said == f"s3://b/x: the store's endpoint '{NOWHERE}?a=b' can't be one: give https://HOST:PORT"


def test_emulator_without_a_host_is_named(tmp_path: Path) -> None:
    said = line_of(["ls", "gs://b/x"], tmp_path, STORAGE_EMULATOR_HOST=":::")
    assert said == "gs://b/x: the store's endpoint 'http://:::' can't be one: give https://HOST:PORT"


def test_variables_that_can_not_be_sent_are_named(tmp_path: Path) -> None:
    for name, url in (
        ("AWS_ACCESS_KEY_ID", "s3://b"),
        ("AWS_SESSION_TOKEN", "s3://b"),
        ("AZURE_STORAGE_TOKEN", "az://b"),
    ):
        said = line_of(["ls", url], tmp_path, **{name: "a\nb"})
        assert said == f"{url}: {name} has a character that can't be sent, such as a line feed: set it without"
    said = line_of(["ls", "s3://b"], tmp_path, AWS_REGION="us east")
    assert said == "s3://b: the region 'us east' can't be one: correct AWS_REGION, or the profile's"
    said = line_of(["ls", "az://b"], tmp_path, AZURE_STORAGE_ACCOUNT="a b")
    assert said == "az://b: Azure's account 'a b' can't be one: correct AZURE_STORAGE_ACCOUNT"

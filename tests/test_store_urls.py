"""URLs and settings of stores that can't be: each is a line that says what to do, and nothing of the library's."""

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import botocore.session
import pytest

from tests import golden
from tests.export.object_store import CountingStore, meant, serving
from tests.loops import for_each
from tests.run import kseg, process

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse

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


@for_each("command", ("ls", "dump", "verify", "plan-move", "rebuild-metadata --to out"))
def test_url_without_a_bucket_is_shown_as_it_was_given(command: str, tmp_path: Path) -> None:
    for url in ("s3:///x", "s3://", "S3://"):
        assert line_of([*command.split(), url], tmp_path) == f"{url}: names no bucket: s3://BUCKET/PREFIX"


def test_schemes_may_have_capitals(tmp_path: Path) -> None:
    logs = golden.ROOT / "docs/test-1-0"
    with serving(CountingStore()) as url, meant(url):
        client = botocore.session.get_session().create_client("s3", endpoint_url=url)
        client.create_bucket(Bucket="logs")
        for path in logs.iterdir():
            client.put_object(Bucket="logs", Key=f"test-1-0/{path.name}", Body=path.read_bytes())
        for command in ("ls", "dump", "verify"):
            small, large = (kseg([command, f"{scheme}://logs/test-1-0"], tmp_path) for scheme in ("s3", "S3"))
            assert small == large
            assert small.stdout
    assert kseg(["ls", f"FILE://{logs}"], tmp_path).status == 0


def test_plan_moves_nothing_in_a_store(tmp_path: Path) -> None:
    said = "is no directory of a broker, between which a plan moves partitions: give its log.dirs"
    assert line_of(["plan-move", "s3://a/b", "s3://a/c"], tmp_path) == f"s3://a/b: {said}"
    assert line_of(["plan-move", "--cluster-metadata", "s3://a/b", "."], tmp_path) == f"s3://a/b: {said}"


PAGE = b"<!DOCTYPE html><html><head><title>Log in</title></head><body><p>Who are you?</p></body></html>"


VERSION = [("ETag", '"1"'), ("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")]


def web_server(_: dict[str, Any], start_response: "StartResponse") -> list[bytes]:
    """Answers everything with a page that is well-formed XML, too."""
    start_response("200 OK", [("Content-Type", "text/html"), ("Content-Length", str(len(PAGE))), *VERSION])
    return [PAGE]


def test_page_of_html_is_no_empty_bucket(tmp_path: Path) -> None:
    with serving(web_server) as url, meant(url) as patch:
        patch.setenv("STORAGE_EMULATOR_HOST", url)
        for place, command in itertools.product(("s3://b", "gs://b/x"), ("ls", "verify", "export --dry-run")):
            ran = kseg([*command.split(), place, *(["out"] if "export" in command else [])], tmp_path)
            said = f"kseg: {place}: can't be listed: a page of HTML came; correct the store's endpoint, or a proxy\n"
            assert (ran.status, ran.stdout, ran.stderr.decode()) == (3, b"", said), (place, command)


def test_archive_in_a_bucket_is_no_directory_without_partitions(tmp_path: Path) -> None:
    with serving(CountingStore()) as url, meant(url):
        client = botocore.session.get_session().create_client("s3", endpoint_url=url)
        client.create_bucket(Bucket="backups")
        client.put_object(Bucket="backups", Key="disk.tar.gz", Body=b"x")
        for place in ("s3://backups/disk.tar.gz", "s3://backups/disk.tar.gz/orders-0"):
            said = f"kseg: {place}: archives are read on this machine only: copy it here first\n"
            for command in ("ls", "dump", "verify"):
                ran = kseg([command, place], tmp_path)
                assert (ran.status, ran.stderr.decode()) == (2, said)


def test_account_and_profile_that_are_not_there_say_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "no account: set AZURE_STORAGE_ACCOUNT, or give az://CONTAINER@ACCOUNT.blob.core.windows.net/PREFIX"
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT")
    assert line_of(["ls", "az://backups/x"], tmp_path) == f"az://backups/x: {said}"
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert line_of(["ls", "s3://b/x"], tmp_path).endswith("; correct AWS_PROFILE, or its files")

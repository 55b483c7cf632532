"""Invalid URLs and settings of stores: each has a message with the next step, without the library's text."""

import itertools
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import botocore.session
import pytest

from kseg.errors import UsageError
from kseg.store.location import parse_url
from kseg.store.remote_files import check_destination
from kseg.store.settings import settings_of
from tests import golden
from tests.export.object_store import CountingStore, redirect_to, serving
from tests.loops import for_each
from tests.run import kseg, process

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse

NOWHERE = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def _no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove all settings, so that each test has only its own; requests to a store are refused at once."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", NOWHERE)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "some")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", NOWHERE)


def line_of(arguments: list[str], directory: Path, **variables: str) -> str:
    """Return the single line of a run that ends with status 2; `URL`: the subject of the message."""
    with redirect_to(NOWHERE) as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        ran = process(arguments, directory)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1), ran
    return ran.stderr.decode().removeprefix("kseg: ").removesuffix("\n")


ODD_URLS = {
    "s3://my bucket/x": "s3://my bucket/x: 'my bucket' isn't a valid name of a bucket; correct it",
    "s3://my\tbucket/x": r"s3://my\tbucket/x: 'my\tbucket' isn't a valid name of a bucket; correct it",
    "s3://<b>/x": "s3://<b>/x: '<b>' isn't a valid name of a bucket; correct it",
    "s3://../x": "s3://../x: '..' isn't a valid name of a bucket; correct it",
    "s3://[b/x": "s3://[b/x: '[b' isn't a valid name of a bucket; correct it",
    "gs://my bucket/x": "gs://my bucket/x: 'my bucket' isn't a valid name of a bucket; correct it",
    "az://my box/x": "az://my box/x: 'my box' isn't a valid name of a container; correct it",
    "http://a b/x.log": "http://a b/x.log: 'a b' isn't a valid name of a host; correct it",
    "http://h:99999/x.log": "http://h:99999/x.log: 'h:99999' isn't a valid name of a host; correct it",
    "http://[zz]/x.log": "http://[zz]/x.log: '[zz]' isn't a valid name of a host; correct it",
    "http://999.1.1.1/x.log": "http://999.1.1.1/x.log: '999.1.1.1' isn't a valid name of a host; correct it",
    "s3://b/x\ny": r"s3://b/x\ny: has a control character, . or .. in its path, which kseg doesn't read;"
    " correct it",
    "s3://b/a/../y": "s3://b/a/../y: has a control character, . or .. in its path, which kseg doesn't read; correct it",
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
    said = f"the store's endpoint {endpoint!r} isn't valid; specify https://HOST:PORT"
    assert line_of(["ls", "s3://b/x"], tmp_path, AWS_ENDPOINT_URL=endpoint) == f"s3://b/x: {said}"
    assert line_of(["ls", "gs://b/x"], tmp_path, STORAGE_EMULATOR_HOST=endpoint) == f"gs://b/x: {said}"
    assert line_of(["ls", "az://b/x"], tmp_path, AZURE_STORAGE_ENDPOINT=endpoint) == f"az://b/x: {said}"


def test_endpoint_loses_no_query(tmp_path: Path) -> None:
    """The library omitted the bucket in its requests, and listed another one."""
    said = line_of(["ls", "s3://b/x"], tmp_path, AWS_ENDPOINT_URL=f"{NOWHERE}?a=b")
    assert said == f"s3://b/x: the store's endpoint '{NOWHERE}?a=b' isn't valid; specify https://HOST:PORT"


def test_emulator_without_a_host_is_named(tmp_path: Path) -> None:
    said = line_of(["ls", "gs://b/x"], tmp_path, STORAGE_EMULATOR_HOST=":::")
    assert said == "gs://b/x: the store's endpoint 'http://:::' isn't valid; specify https://HOST:PORT"


def test_variables_that_can_not_be_sent_are_named(tmp_path: Path) -> None:
    for name, url in (
        ("AWS_ACCESS_KEY_ID", "s3://b"),
        ("AWS_SESSION_TOKEN", "s3://b"),
        ("AZURE_STORAGE_TOKEN", "az://b"),
    ):
        said = line_of(["ls", url], tmp_path, **{name: "a\nb"})
        assert (
            said
            == f"{url}: {name} has a character that can't be sent, such as a line feed; set it without that character"
        )
    said = line_of(["ls", "s3://b"], tmp_path, AWS_REGION="us east")
    assert said == "s3://b: the region 'us east' isn't valid; correct AWS_REGION, or the region of the profile"
    said = line_of(["ls", "az://b"], tmp_path, AZURE_STORAGE_ACCOUNT="a b")
    assert said == "az://b: the Azure account 'a b' isn't valid; correct AZURE_STORAGE_ACCOUNT"


@for_each("command", ("ls", "dump", "verify", "plan-move", "rebuild-metadata --to out"))
def test_url_without_a_bucket_is_shown_as_it_was_given(command: str, tmp_path: Path) -> None:
    for url in ("s3:///x", "s3://", "S3://"):
        assert line_of([*command.split(), url], tmp_path) == f"{url}: has no bucket; specify s3://BUCKET/PREFIX"


def test_schemes_may_have_capitals(tmp_path: Path) -> None:
    logs = golden.ROOT / "docs/test-1-0"
    with serving(CountingStore()) as url, redirect_to(url):
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
    said = "isn't a directory of a broker; specify the broker's log.dirs"
    assert line_of(["plan-move", "s3://a/b", "s3://a/c"], tmp_path) == f"s3://a/b: {said}"
    assert line_of(["plan-move", "--cluster-metadata", "s3://a/b", "."], tmp_path) == f"s3://a/b: {said}"


PAGE = b"<!DOCTYPE html><html><head><title>Log in</title></head><body><p>Who are you?</p></body></html>"


VERSION = [("ETag", '"1"'), ("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")]


def web_server(_: dict[str, Any], start_response: "StartResponse") -> list[bytes]:
    """Answer everything with a page that is well-formed XML, too."""
    start_response("200 OK", [("Content-Type", "text/html"), ("Content-Length", str(len(PAGE))), *VERSION])
    return [PAGE]


def test_page_of_html_is_no_empty_bucket(tmp_path: Path) -> None:
    with serving(web_server) as url, redirect_to(url) as patch:
        patch.setenv("STORAGE_EMULATOR_HOST", url)
        for place, command in itertools.product(("s3://b", "gs://b/x"), ("ls", "verify", "export --dry-run")):
            ran = kseg([*command.split(), place, *(["out"] if "export" in command else [])], tmp_path)
            said = (
                f"kseg: {place}: can't be listed: the answer is an HTML page; correct the store's"
                f" endpoint, or the proxy\n"
            )
            assert (ran.status, ran.stdout, ran.stderr.decode()) == (3, b"", said), (place, command)


def test_archive_in_a_bucket_is_no_directory_without_partitions(tmp_path: Path) -> None:
    with serving(CountingStore()) as url, redirect_to(url):
        client = botocore.session.get_session().create_client("s3", endpoint_url=url)
        client.create_bucket(Bucket="backups")
        client.put_object(Bucket="backups", Key="disk.tar.gz", Body=b"x")
        for place in ("s3://backups/disk.tar.gz", "s3://backups/disk.tar.gz/orders-0"):
            said = f"kseg: {place}: kseg reads archives on this machine only; copy it here first\n"
            for command in ("ls", "dump", "verify"):
                ran = kseg([command, place], tmp_path)
                assert (ran.status, ran.stderr.decode()) == (2, said)


def test_account_and_profile_that_are_not_there_say_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = (
        "no account is set; set AZURE_STORAGE_ACCOUNT, or specify az://CONTAINER@ACCOUNT.blob.core.windows.net/PREFIX"
    )
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT")
    assert line_of(["ls", "az://backups/x"], tmp_path) == f"az://backups/x: {said}"
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert line_of(["ls", "s3://b/x"], tmp_path).endswith("; correct AWS_PROFILE, or its files")


@for_each(
    "source, target",
    [
        ("s3a://b/disk", "s3://b/disk/out"),
        ("gs://b/disk", "gcs://b/disk/out"),
        ("https://acct.blob.core.windows.net/c/d", "abfss://c@acct.dfs.core.windows.net/d/out"),
        ("s3://b/disk/orders-0", "s3://b/disk"),
    ],
)
def test_nothing_is_written_into_what_is_read_however_it_is_named(source: str, target: str) -> None:
    with pytest.raises(UsageError, match="which kseg reads; specify"):
        check_destination(target, [source])


def test_nothing_is_written_into_a_tier_that_a_file_url_names(tmp_path: Path) -> None:
    tier = tmp_path / "my tier"
    shutil.copytree(golden.ROOT / "logs/4.3.1-tiered-remote", tier)
    for place in (str(tier), f"file://{tmp_path}/my%20tier"):
        said = line_of(["salvage", place, "--to", str(tier / "out")], tmp_path)
        assert said.startswith(f"{tier}/out: is inside"), said


def azure_options(url: str, connection: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the options from a connection string for a URL."""
    for name in ("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection)
    return dict(settings_of(parse_url(url)).options)


def test_connection_string_is_for_its_own_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container of the string's account was read, or written to, instead of the URL's."""
    own = "BlobEndpoint=https://acct.blob.core.windows.net;SharedAccessSignature=sig"
    other = "abfss://logs@other.dfs.core.windows.net/x"
    assert azure_options(other, own, monkeypatch) == {"azure_storage_account_name": "other"}
    assert azure_options(other.replace("other", "acct"), own, monkeypatch)["azure_storage_sas_key"] == "sig"
    china = "AccountName=acct;AccountKey=a2V5;EndpointSuffix=core.chinacloudapi.cn"
    endpoint = azure_options("az://logs/x", china, monkeypatch)["azure_storage_endpoint"]
    assert endpoint == "https://acct.blob.core.chinacloudapi.cn"


def test_environment_says_how_buckets_are_addressed_before_a_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_virtual(style: str) -> str:
        (tmp_path / "config").write_text(f"[default]\nregion = eu-west-1\ns3 =\n  addressing_style = {style}\n")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        monkeypatch.setenv("AWS_RUN", style)  # profiles are read again if a variable differs
        return settings_of(parse_url("s3://logs")).options["aws_virtual_hosted_style_request"]

    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    assert [is_virtual(style) for style in ("path", "virtual", "auto")] == ["false", "true", "true"]
    monkeypatch.setenv("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "false")
    assert is_virtual("virtual") == "false"


def test_endpoint_with_a_password_is_refused_without_it(tmp_path: Path) -> None:
    for endpoint in ("AKIA:S3CRET@minio:9000", "http://AKIA:S3CRET@minio:9000"):
        said = line_of(["ls", "s3://b"], tmp_path, AWS_ENDPOINT_URL=endpoint)
        assert "endpoint 'minio:9000'" in said
        assert "S3CRET" not in said


def test_tier_is_exported_by_a_file_url_as_by_its_path(tmp_path: Path) -> None:
    tier = golden.ROOT / "logs/4.3.1-tiered-remote"
    sums = [
        kseg(["export", place, f"out{number}", "-q"], tmp_path).stdout.replace(b"out1", b"out0")
        for number, place in enumerate((str(tier), f"file://{tier}"))
    ]
    assert sums[0] == sums[1]
    assert [len([*(tmp_path / name).rglob("*.parquet")]) for name in ("out0", "out1")] == [1, 1]


def test_mark_of_an_empty_folder_is_a_directory(tmp_path: Path) -> None:
    shutil.copytree(golden.ROOT / "docs", tmp_path / "disk")
    (tmp_path / "disk" / "test-1-1").mkdir()
    with serving(CountingStore()) as url, redirect_to(url):
        client = botocore.session.get_session().create_client("s3", endpoint_url=url)
        client.create_bucket(Bucket="disk")
        client.put_object(Bucket="disk", Key="disk/test-1-1/", Body=b"")
        for path in (tmp_path / "disk").rglob("*.*"):
            client.put_object(Bucket="disk", Key=path.relative_to(tmp_path).as_posix(), Body=path.read_bytes())
        here, there = (kseg(["ls", place], tmp_path) for place in ("disk", "s3://disk/disk"))
    assert there.status == here.status
    assert there.stdout.replace(b"s3://disk/", b"").split() == here.stdout.split()

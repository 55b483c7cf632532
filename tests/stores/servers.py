"""Object stores on this machine, which refuse requests that aren't signed according to the setting under test."""

import base64
import hashlib
import hmac
import json
import ssl
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from ipaddress import ip_address
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urlencode, urlsplit

import requests
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from moto.sts.models import sts_backends
from werkzeug import Request, Response
from werkzeug.serving import make_server
from werkzeug.utils import send_file

from tests.spark.processes import free_port, is_listening, running, wait_until

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

BUCKET = "kafka"
MARK = "53cr3t"
"""A part of each secret, which identifies it anywhere."""
REGION = "eu-west-3"
S3_HOST = "s3.test"
"""A name that only the proxy knows, for addresses that begin with the bucket."""
AZURE_ACCOUNT = "ksegtest"
AZURE_KEY = f"Key{MARK}of+kseg" * 7
AZURITE = Path(sys.prefix) / "azurite/node_modules/.bin/azurite-blob"
ROLE = "a role's"
"""A stand-in for the access key that moto makes for a role."""
_ACCOUNT_OF_MOTO = "123456789012"


@contextmanager
def serving(application: "WSGIApplication", certificate: ssl.SSLContext | None = None) -> Iterator[str]:
    """Yield the URL of a server on this machine."""
    server = make_server("127.0.0.1", 0, application, threaded=True, ssl_context=certificate)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"{'http' if certificate is None else 'https'}://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()


class Authority(NamedTuple):
    """A certificate authority, as a PEM file, and a server's context with a certificate of it."""

    file: Path
    context: ssl.SSLContext


def new_authority(folder: Path) -> Authority:
    """Make an unknown authority, and a certificate for 127.0.0.1."""
    key, own = rsa.generate_private_key(65537, 2048), rsa.generate_private_key(65537, 2048)
    root, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kseg's tests")]), datetime.now(UTC)
    dated = x509.CertificateBuilder().issuer_name(root).not_valid_before(now - timedelta(days=1))
    dated = dated.not_valid_after(now + timedelta(days=1))
    signed = (
        dated.subject_name(root)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    of_server = (
        dated.subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")]))
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "authority.pem").write_bytes(signed.public_bytes(pem))
    (folder / "server.pem").write_bytes(
        of_server.public_bytes(pem)
        + own.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return Authority(folder / "authority.pem", context)


class Signer(NamedTuple):
    """The signer of a request to S3, and the bucket's address style. key: None without a signature."""

    key: str | None
    region: str | None
    style: str = "path"


class S3:
    """A moto server behind a check of signatures. keys: secrets by access key, and session tokens if they have one."""

    def __init__(self, keys: Mapping[str, tuple[str, str | None]]) -> None:
        self._keys = keys
        self._backend = DomainDispatcherApplication(create_backend_app)
        self.signers: set[Signer] = set()
        self.by_proxy = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Answer a request according to WSGI."""
        request = Request(environ)
        authorization = request.headers.get("Authorization", "")
        if authorization and "/s3/" not in authorization:  # STS
            return self._backend(environ, start_response)
        host = request.headers["Host"].partition(":")[0]
        style = "virtual" if host == f"{BUCKET}.{S3_HOST}" else "path"
        signer = Signer(None, None, style)
        if authorization:
            _, key, _, region = _parse(authorization)
            signer = Signer(key, region, style)
            if not self._is_signed(request, authorization):
                return _error_response("SignatureDoesNotMatch")(environ, start_response)
        self.signers.add(signer)
        if style == "virtual":
            environ = {**environ, "PATH_INFO": f"/{BUCKET}{environ['PATH_INFO']}"}
            environ["RAW_URI"] = environ["REQUEST_URI"] = f"/{BUCKET}{_address(request)}"
        return self._backend({**environ, "HTTP_HOST": "127.0.0.1"}, start_response)

    def proxy(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Answer a request as an HTTP proxy that knows no other server."""
        self.by_proxy += 1
        return self(environ, start_response)

    def create_bucket(self) -> None:
        """Make an empty bucket that anybody may read and write."""
        backend = s3_backends[_ACCOUNT_OF_MOTO]["aws"]
        backend.create_bucket(BUCKET, REGION)
        allowed = {"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": [f"arn:aws:s3:::{BUCKET}/*"]}
        backend.put_bucket_policy(BUCKET, json.dumps({"Version": "2012-10-17", "Statement": [allowed]}).encode())

    def secrets(self) -> set[str]:
        """Return secrets without the mark: keys of assumed roles."""
        roles = sts_backends[_ACCOUNT_OF_MOTO]["aws"].assumed_roles
        return {secret for role in roles for secret in (role.secret_access_key, role.session_token)}

    def keys_of_roles(self) -> set[str]:
        """Return the access keys of assumed roles."""
        return {role.access_key_id for role in sts_backends[_ACCOUNT_OF_MOTO]["aws"].assumed_roles}

    def _is_signed(self, request: Request, authorization: str) -> bool:
        """Return True if a signature is right. Source: botocore, which signs the same request."""
        names, key, signature, region = _parse(authorization)
        roles = sts_backends[_ACCOUNT_OF_MOTO]["aws"].assumed_roles
        of_roles = {role.access_key_id: (role.secret_access_key, role.session_token) for role in roles}
        secret, token = {**self._keys, **of_roles}.get(key, ("", None))
        if token != request.headers.get("X-Amz-Security-Token"):
            return False
        headers = {name: request.headers.get(name, "") for name in names}
        address = f"http://{request.headers['Host']}{_address(request)}"
        again = AWSRequest(request.method, address, headers)
        again.context["timestamp"] = request.headers["X-Amz-Date"]
        if "x-amz-content-sha256" not in headers:
            return False
        signer = S3SigV4Auth(Credentials(key, secret), "s3", region)
        wanted = signer.string_to_sign(again, signer.canonical_request(again))
        return signer.signature(wanted, again) == signature


def _parse(authorization: str) -> tuple[list[str], str, str, str]:
    """Return the signed headers' names, access key, signature and region in a request header."""
    parts = dict(part.strip().split("=", 1) for part in authorization.partition(" ")[2].split(","))
    key, _, region, *_ = parts["Credential"].split("/")
    return parts["SignedHeaders"].split(";"), key, parts["Signature"], region


def _address(request: Request) -> str:
    """Return path and query as sent; a proxy gets the host before them."""
    return request.environ["RAW_URI"].removeprefix(f"http://{request.headers['Host']}") or "/"


def _error_response(code: str, status: int = 403) -> Response:
    """Return an error in the form of S3 and Google."""
    return Response(f"<Error><Code>{code}</Code><Message>by the test</Message></Error>", status, mimetype="text/xml")


class Container:
    """Credentials of a container's role, for requests with its token."""

    def __init__(self, key: str, secret: str, session: str, token: str) -> None:
        expires = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        keys = {"AccessKeyId": key, "SecretAccessKey": secret, "Token": session, "Expiration": expires}
        self._answer, self._token = json.dumps(keys), token

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Answer a request according to WSGI."""
        is_allowed = environ.get("HTTP_AUTHORIZATION") == self._token
        answer = Response(self._answer, mimetype="application/json") if is_allowed else _error_response("AccessDenied")
        return answer(environ, start_response)


class Gcs:
    """Google's store: the part of its XML API that object_store uses.

    key: the key of bearer tokens' signatures; without it, anybody may read and write. PyPI's emulator answers neither
    HEAD nor a listing of this API. Source: Google's reference of the XML API.
    """

    def __init__(self, key: rsa.RSAPublicKey | None = None, objects: "dict[str, _Stored] | None" = None) -> None:
        self._key = key
        self._objects = {} if objects is None else objects
        self._uploads: dict[str, dict[int, bytes]] = {}
        self.tokens: set[str] = set()

    def shared(self, key: rsa.RSAPublicKey) -> "Gcs":
        """Return a server of the same objects for signed requests."""
        return Gcs(key, self._objects)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Answer a request according to WSGI."""
        request = Request(environ)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self._key is not None and not _is_signed_by(self._key, token):
            return _error_response("AccessDenied")(environ, start_response)
        self.tokens |= {token} - {""}
        bucket, _, name = unquote(urlsplit(environ["RAW_URI"]).path).lstrip("/").partition("/")
        if bucket in ("storage", "upload", "download"):
            answer = _error_response("NotTheXmlApi", 400)
        elif bucket != BUCKET:
            answer = _error_response("NoSuchBucket", 404)
        elif not name:
            answer = self._listing(request)
        elif "uploads" in request.args or "uploadId" in request.args:
            answer = self._in_parts(request, name)
        else:
            answer = self._object(request, name)
        return answer(environ, start_response)

    def _object(self, request: Request, name: str) -> Response:
        if request.method == "PUT":
            if request.headers.get("x-goog-if-generation-match") == "0" and name in self._objects:
                return _error_response("PreconditionFailed", 412)
            source = unquote(request.headers.get("x-goog-copy-source", "")).lstrip("/").partition("/")[2]
            if source and source not in self._objects:
                return _error_response("NoSuchKey", 404)
            return self._put(name, self._objects[source].content if source else request.get_data())
        stored = self._objects.get(name)
        if stored is None:
            return _error_response("NoSuchKey", 404)
        if request.method == "DELETE":
            del self._objects[name]
            return Response(status=204)
        answer = Response(stored.content, mimetype="application/octet-stream")
        answer.last_modified = stored.modified
        answer.set_etag(stored.tag)
        return answer.make_conditional(request.environ, accept_ranges=True, complete_length=len(stored.content))

    def _put(self, name: str, content: bytes) -> Response:
        self._objects[name] = stored = _Stored(content, datetime.now(UTC))
        return Response(status=200, headers={"ETag": f'"{stored.tag}"', "x-goog-generation": "1"})

    def _in_parts(self, request: Request, name: str) -> Response:
        upload = request.args.get("uploadId", str(len(self._uploads)))
        if request.method == "PUT":
            self._uploads[upload][int(request.args["partNumber"])] = request.get_data()
            return Response(headers={"ETag": f'"{request.args["partNumber"]}"'})
        if request.method == "DELETE":
            return Response(status=204)
        if "uploads" in request.args:
            self._uploads[upload] = {}
            return _xml("InitiateMultipartUploadResult", {"Bucket": BUCKET, "Key": name, "UploadId": upload})
        self._put(name, b"".join(content for _, content in sorted(self._uploads[upload].items())))
        return _xml("CompleteMultipartUploadResult", {"ETag": f'"{self._objects[name].tag}"'})

    def _listing(self, request: Request) -> Response:
        """Return a page of names: of objects and, if there is a delimiter, of folders."""
        prefix, delimiter = request.args.get("prefix", ""), request.args.get("delimiter", "")
        after = request.args.get("continuation-token") or request.args.get("start-after", "")
        page: dict[str, _Stored | None] = {}
        for name in sorted(self._objects):
            if not name.startswith(prefix):
                continue
            folder, found, _ = name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            shown = f"{prefix}{folder}{delimiter}" if found else name
            if shown > after:
                page.setdefault(shown, None if found else self._objects[name])
        names = list(page)[: int(request.args.get("max-keys", 1000))]
        fields = {"IsTruncated": str(len(names) < len(page)).lower()}
        answer = _element("ListBucketResult", fields | ({"NextContinuationToken": names[-1]} if names else {}))
        for name in names:
            if (stored := page[name]) is None:
                answer.append(_element("CommonPrefixes", {"Prefix": name}))
                continue
            size, time = str(len(stored.content)), stored.modified.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            about = {"Key": name, "Size": size, "LastModified": time, "ETag": f'"{stored.tag}"'}
            answer.append(_element("Contents", about))
        return Response(ET.tostring(answer), mimetype="text/xml")


class _Stored(NamedTuple):
    content: bytes
    modified: datetime

    @property
    def tag(self) -> str:
        return hashlib.md5(self.content, usedforsecurity=False).hexdigest()


def _element(name: str, fields: Mapping[str, str]) -> ET.Element:
    element = ET.Element(name)
    for each, value in fields.items():
        ET.SubElement(element, each).text = value
    return element


def _xml(name: str, fields: Mapping[str, str]) -> Response:
    return Response(ET.tostring(_element(name, fields)), mimetype="text/xml")


def _is_signed_by(key: rsa.RSAPublicKey, token: str) -> bool:
    """Return True if a token is a JSON Web Token with a key's signature."""
    signed, _, signature = token.rpartition(".")
    try:
        key.verify(base64.urlsafe_b64decode(f"{signature}=="), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    except (InvalidSignature, ValueError):
        return False
    return True


def service_account(key: rsa.RSAPrivateKey, url: str) -> str:
    """Return the file of a service account, as Google's console makes it, for a store at a URL."""
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    named = {"type": "service_account", "project_id": "kseg", "client_email": "kseg@kseg.iam.gserviceaccount.com"}
    return json.dumps({**named, "private_key_id": "1", "private_key": pem, "gcs_base_url": url})


@contextmanager
def azurite(folder: Path) -> Iterator[str]:
    """Yield the account's URL of Microsoft's emulator of Azure's store."""
    port = free_port()
    asked = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    fixed = ["--skipApiVersionCheck", "--inMemoryPersistence", "--disableTelemetry"]
    accounts = {"AZURITE_ACCOUNTS": f"{AZURE_ACCOUNT}:{AZURE_KEY}"}
    assert AZURITE.exists(), "`make test-stores` installs Azure's emulator"
    with running([str(AZURITE), *asked, *fixed], folder / "azurite.log", accounts) as process:
        wait_until(lambda: is_listening(port), "azurite listens", process)
        yield f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}"


def create_container(url: str) -> None:
    """Make the container in an account at a URL. Source: Azure's page "authorize with Shared Key"."""
    date, version = formatdate(usegmt=True), "2020-08-04"
    path = f"{urlsplit(url).path}/{BUCKET}"
    named = f"x-ms-date:{date}\nx-ms-version:{version}\n/{AZURE_ACCOUNT}{path}\nrestype:container"
    text = "PUT" + "\n" * 12 + named
    key = base64.b64decode(AZURE_KEY)
    signature = base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()
    headers = {
        "x-ms-date": date,
        "x-ms-version": version,
        "Authorization": f"SharedKey {AZURE_ACCOUNT}:{signature}",
    }
    requests.put(f"{url}/{BUCKET}?restype=container", headers=headers, timeout=60).raise_for_status()


def azure_sas() -> str:
    """Return a signature that allows everything in the container. Source: Azure's page "create a service SAS"."""
    allowed, expiry, version = "racwdl", "2099-01-01T00:00:00Z", "2019-12-12"
    fields = [allowed, "", expiry, f"/blob/{AZURE_ACCOUNT}/{BUCKET}", "", "", "", version, "c", "", "", "", "", "", ""]
    signature = hmac.new(base64.b64decode(AZURE_KEY), "\n".join(fields).encode(), hashlib.sha256).digest()
    given = {"sv": version, "sr": "c", "sp": allowed, "se": expiry, "sig": base64.b64encode(signature).decode()}
    return urlencode(given)


def file_server(folder: Path) -> "WSGIApplication":
    """Return a server of files, which answers ranges and lists nothing."""

    def answer(environ: dict[str, Any], start_response: Any) -> Any:
        path = folder / unquote(environ["PATH_INFO"]).lstrip("/")
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD") or not path.is_file():
            return Response(status=404 if environ["REQUEST_METHOD"] in ("GET", "HEAD") else 405)(
                environ, start_response
            )
        return send_file(path, environ, conditional=True)(environ, start_response)

    return answer


def spellings(secret: str) -> set[str]:
    """Return the spellings of a secret: also in URLs, and a key by its longest line."""
    line = max(secret.split("\n"), key=len)
    return {line, quote(line, safe="")}

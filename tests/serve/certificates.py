"""Certificates for tests: a server's, a client's, and an untrusted one's."""

from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_SPAN = timedelta(days=2)


class Certified(NamedTuple):
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


class Files(NamedTuple):
    """PEM files of a certificate and its key."""

    certificate: Path
    key: Path


def issue_certificate(name: str, issuer: Certified | None = None) -> Certified:
    """Issue a certificate for 127.0.0.1; without an issuer it is a root of its own."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SPAN)
        .not_valid_after(now + _SPAN)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
    )
    return Certified(builder.sign(key if issuer is None else issuer.key, hashes.SHA256()), key)


@cache
def root() -> Certified:
    """Return the common root of servers and clients."""
    return issue_certificate("root")


def write_files(directory: Path, name: str, what: Certified, passphrase: bytes | None = None) -> Files:
    """Write the files into a directory."""
    files = Files(directory / f"{name}.pem", directory / f"{name}.key")
    files.certificate.write_bytes(what.certificate.public_bytes(serialization.Encoding.PEM))
    encryption = (
        serialization.NoEncryption() if passphrase is None else serialization.BestAvailableEncryption(passphrase)
    )
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    files.key.write_bytes(what.key.private_bytes(pem, pkcs8, encryption))
    return files

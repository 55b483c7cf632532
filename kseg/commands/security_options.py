"""The options that say who may connect to a server, and the security that they describe."""

from functools import wraps
from pathlib import Path
from typing import Any, cast

import click

from kseg.commands.options import Command
from kseg.errors import UsageError
from kseg.serve.security import Security
from kseg.serve.tls import server_tls

_FILE = click.Path(path_type=Path)


def security_options(command: Command) -> Command:
    """`--tls-cert` and its kin; the command gets them as one Security, `security`."""

    @click.option("--tls-cert", metavar="FILE", type=_FILE, help="Encrypt by TLS with this certificate, in PEM.")
    @click.option("--tls-key", metavar="FILE", type=_FILE, help="Its private key, if that isn't in the same file.")
    @click.option(
        "--tls-ca", metavar="FILE", type=_FILE, help="Let only clients in that have a certificate from these."
    )
    @wraps(command)
    def secured(*arguments: Any, **options: Any) -> Any:
        return command(*arguments, security=_security_of(options), **options)

    return cast(Command, secured)


def _security_of(options: dict[str, Any]) -> Security:
    """The security that the options describe; removes them from `options`."""
    certificate, key, clients = (options.pop(name) for name in ("tls_cert", "tls_key", "tls_ca"))
    if certificate is None and (key or clients):
        raise UsageError(f"--tls-{'key' if key else 'ca'} needs --tls-cert, the server's certificate")
    return Security(None if certificate is None else server_tls(certificate, key, clients))

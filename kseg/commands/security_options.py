"""The options that say who may connect to a server, and the security that they describe."""

from functools import wraps
from pathlib import Path
from typing import Any, cast

import click

from kseg.commands.options import Command
from kseg.errors import UsageError
from kseg.output.talk import note_unless
from kseg.serve.login.mechanisms import MECHANISMS, Logins
from kseg.serve.login.plain_login import PLAIN
from kseg.serve.login.users import read_passwords
from kseg.serve.security import Security
from kseg.serve.tls import server_tls

_FILE = click.Path(path_type=Path)


def security_options(command: Command) -> Command:
    """`--tls-cert`, `--sasl-users` and their kin; the command gets them as one Security, `security`."""

    @click.option("--tls-cert", metavar="FILE", type=_FILE, help="Encrypt by TLS with this certificate, in PEM.")
    @click.option("--tls-key", metavar="FILE", type=_FILE, help="Its private key, if that isn't in the same file.")
    @click.option(
        "--tls-ca", metavar="FILE", type=_FILE, help="Let only clients in that have a certificate from these."
    )
    @click.option("--sasl-users", metavar="FILE", type=_FILE, help="Let clients in that log in: lines USER:PASSWORD.")
    @click.option(
        "--sasl-mechanism",
        "mechanisms",
        type=click.Choice(MECHANISMS),
        multiple=True,
        help="How; may be repeated. By default all, PLAIN only with --tls-cert.",
    )
    @wraps(command)
    def secured(*arguments: Any, **options: Any) -> Any:
        return command(*arguments, security=_security_of(options), **options)

    return cast(Command, secured)


def _security_of(options: dict[str, Any]) -> Security:
    """The security that the options describe; removes them from `options`."""
    names = ("tls_cert", "tls_key", "tls_ca", "sasl_users", "mechanisms")
    certificate, key, clients, users, mechanisms = (options.pop(name) for name in names)
    if certificate is None and (key or clients):
        raise UsageError(f"--tls-{'key' if key else 'ca'} needs --tls-cert, the server's certificate")
    if mechanisms and users is None:
        raise UsageError("--sasl-mechanism needs --sasl-users, who may log in")
    if PLAIN in mechanisms and certificate is None:
        raise UsageError("--sasl-mechanism PLAIN needs --tls-cert: passwords would go over the network as they are")
    tls = None if certificate is None else server_tls(certificate, key, clients)
    offered = mechanisms or [each for each in MECHANISMS if tls or each != PLAIN]
    passwords = None if users is None else read_passwords(users, note_unless(quiet=False))
    return Security(tls, None if passwords is None else Logins(passwords, offered))

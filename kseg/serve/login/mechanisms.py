"""The mechanisms of SASL: which there are, which are offered, and the exchange of each."""

import secrets
from collections.abc import Mapping, Sequence

from kseg.serve.login.exchange import Exchange
from kseg.serve.login.failed_logins import Failures
from kseg.serve.login.plain_login import PLAIN, Plain
from kseg.serve.login.scram import Scram
from kseg.serve.login.users import HASHES, Users

MECHANISMS = (*HASHES, PLAIN)


class Logins:
    """How clients log in: who may, by which mechanisms, and who has just failed.

    The command that a server runs for has a user of its own, who lasts as long as the server.
    """

    def __init__(self, passwords: Mapping[str, str], mechanisms: Sequence[str]) -> None:
        """Takes passwords by user, and the mechanisms that are offered: at least one."""
        self._own = f"kseg-{secrets.token_hex(8)}", secrets.token_urlsafe()
        self.users = Users(dict((*passwords.items(), self._own)))
        self.mechanisms = tuple(mechanisms)
        self.failures = Failures()

    def exchange(self, mechanism: str) -> Exchange | None:
        """A new try to log in; None if the mechanism isn't offered."""
        if mechanism not in self.mechanisms:
            return None
        return Plain(self.users) if mechanism == PLAIN else Scram(mechanism, self.users)

    def client_settings(self) -> dict[str, str]:
        """Librdkafka's settings for the server's own command."""
        name, password = self._own
        return {"sasl.mechanism": self.mechanisms[0], "sasl.username": name, "sasl.password": password}

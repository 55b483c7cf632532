"""Who may connect, and what others on the network can read of it."""

from dataclasses import dataclass

from kseg.serve.login.mechanisms import Logins
from kseg.serve.tls import ServerTls


@dataclass(frozen=True, slots=True)
class Security:
    """How connections are encrypted, and who must log in; by default they aren't, and nobody."""

    tls: ServerTls | None = None
    logins: Logins | None = None

    @property
    def warning(self) -> str | None:
        """What others can do if they reach the server, and why; None if nothing is missing."""
        is_open = self.logins is None and not (self.tls is not None and self.tls.asks_certificate)
        if is_open:
            why = "nobody is asked for a password" + (", and nothing is encrypted" if self.tls is None else "")
            return f"whoever reaches this address reads all that is served: {why}"
        return None if self.tls else "whoever listens on the way to this address reads along: nothing is encrypted"

    def client_settings(self, *, is_here: bool) -> dict[str, str]:
        """Librdkafka's settings for who connects.

        is_here: to an address of this machine, which is in few certificates: then it isn't looked for in there.
        """
        if self.tls is None and self.logins is None:
            return {}
        encryption = "plaintext" if self.tls is None else "ssl"
        settings = {"security.protocol": encryption if self.logins is None else f"sasl_{encryption}"}
        if self.tls is not None and self.tls.root is not None:
            settings["ssl.ca.location"] = str(self.tls.root.resolve())
        if self.tls is not None and is_here:
            settings["ssl.endpoint.identification.algorithm"] = "none"
        return settings | ({} if self.logins is None else self.logins.client_settings())

"""Who may connect, and what others on the network can read of it."""

from dataclasses import dataclass

from kseg.serve.tls import ServerTls


@dataclass(frozen=True, slots=True)
class Security:
    """How connections are encrypted; by default they aren't."""

    tls: ServerTls | None = None

    @property
    def warning(self) -> str | None:
        """What others can do if they reach the server, and why; None if nothing is missing."""
        missing = []
        if self.tls is None or not self.tls.asks_certificate:
            missing.append("nobody is asked for a password")
        if self.tls is None:
            missing.append("nothing is encrypted")
        return f"whoever reaches this address reads all that is served: {', and '.join(missing)}" if missing else None

    def client_settings(self, *, is_here: bool) -> dict[str, str]:
        """Librdkafka's settings for who connects.

        is_here: to an address of this machine, which is in few certificates: then it isn't looked for in there.
        """
        if self.tls is None:
            return {}
        settings = {"security.protocol": "ssl"}
        if self.tls.root is not None:
            settings["ssl.ca.location"] = str(self.tls.root.resolve())
        if is_here:
            settings["ssl.endpoint.identification.algorithm"] = "none"
        return settings

"""The error that stops writing."""

from kseg.errors import UsageError


class RecordError(UsageError):
    """A record or batch that none of Kafka's formats can hold: wrong fields for the magic, too large, out of order."""

"""What stops writing."""

from kseg.errors import UsageError


class RecordError(UsageError):
    """A record or batch that no format of Kafka's can hold: wrong fields for the magic, too large, out of order."""

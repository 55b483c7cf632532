"""Decoders of keys and values while a log is printed: the user's choice, and internal topics' own."""

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.errors import plural
from kseg.formats.file_names import parse_partition_directory
from kseg.releases import NEWEST
from kseg.system.terminal_text import json_bytes_escaped, json_escaped

if TYPE_CHECKING:
    from kseg.decode.decoded import Decoded, ValueDecoder
    from kseg.decode.schema_registry import SchemaRecords
    from kseg.kernel.contract import Headers
    from kseg.kernel.record import Header
    from kseg.redaction import Redaction


INTERNAL_TOPICS = {
    "__consumer_offsets": "offsets-decoder",
    "__transaction_state": "transaction-log-decoder",
    "__cluster_metadata": "cluster-metadata-decoder",
    "__remote_log_metadata": "remote-log-metadata-decoder",
    "__share_group_state": "share-group-state-decoder",
}
"""Internal topics and the options of their decoders."""


class Texts(NamedTuple):
    """A record's decoded key and value, None for null and undecoded ones, and the reasons for failures."""

    key: bytes | None
    value: bytes | None
    key_error: str | None = None
    value_error: str | None = None
    has_failed: bool = False
    """True if Kafka's tool fails here too, or shows a placeholder for unknown values."""
    newer: str | None = None
    """The parts of the value that aren't shown because they are newer than kseg knows."""


ReadRecord = Callable[[bytes | None, bytes | None, int, "Headers"], Texts]


class Decoding(NamedTuple):
    """The decoding of records.

    key_decoder, value_decoder: names of kseg.decode.values; schema, message, schema_registry: their arguments.
    internal_decoder: an internal topic's, by its option; `decodes_internal`: whether internal topics are decoded by
    default. redaction: replaces keys and values before decoding. keeps_raw: as in RecordDecoder.
    """

    key_decoder: str | None
    value_decoder: str | None
    schema: Path | None
    message: str | None
    schema_registry: "SchemaRecords | None"
    internal_decoder: str | None
    decodes_internal: bool
    redaction: "Redaction | None"
    keeps_raw: bool


class DecoderCounts(NamedTuple):
    """Counts of a decoder: undecodable records, and records that are newer than kseg; offset and reason of the first.

    has_failed: whether Kafka's own tool would have failed at one.
    """

    failed: int = 0
    first_failure: tuple[int, str] | None = None
    has_failed: bool = False
    newer: int = 0
    first_newer: tuple[int, str] | None = None


class RecordDecoder:
    """Provides record texts for the kernel and counts decoding failures, as in DecoderCounts."""

    def __init__(self, read: ReadRecord, *, keeps_raw: bool) -> None:
        """Take the function that reads records.

        Args:
            read: the decoder.
            keeps_raw: whether key and value stay next to the decoded ones, for JSON, rather than being replaced.
        """
        self._read = read
        self._keeps_raw = keeps_raw
        self.failed, self.first_failure, self.has_failed, self.newer, self.first_newer = DecoderCounts()

    def __call__(
        self, key: bytes | None, value: bytes | None, offset: int, headers: "Headers"
    ) -> Sequence[bytes | None]:
        """Return the texts of a record according to the kernel's contract."""
        texts = self._read(key, value, offset, headers)
        reasons = [reason for reason in (texts.key_error, texts.value_error) if reason is not None]
        self.has_failed |= texts.has_failed
        if reasons:
            self.failed += 1
            self.first_failure = self.first_failure or (offset, reasons[0])
        value_error = texts.value_error or texts.newer
        if texts.newer is not None:
            self.newer += 1
            self.first_newer = self.first_newer or (offset, texts.newer)
        if self._keeps_raw:
            errors = (_json_string(texts.key_error), _json_string(value_error))
            return key, value, _escape(texts.key), _escape(texts.value), *errors
        shown_key = key if texts.key is None else texts.key
        shown_value = value if texts.value is None else texts.value
        return shown_key, shown_value, texts.key, texts.value, _encode(texts.key_error), _encode(value_error)

    def take_counts(self) -> DecoderCounts:
        """Return the counts, and reset them."""
        counts = DecoderCounts(self.failed, self.first_failure, self.has_failed, self.newer, self.first_newer)
        self.failed, self.first_failure, self.has_failed, self.newer, self.first_newer = DecoderCounts()
        return counts

    def add_counts(self, counts: DecoderCounts) -> None:
        """Add the counts of the following records, which another process decoded."""
        self.failed += counts.failed
        self.first_failure = self.first_failure or counts.first_failure
        self.has_failed |= counts.has_failed
        self.newer += counts.newer
        self.first_newer = self.first_newer or counts.first_newer

    def summary_lines(self, path: str | PathLike[str]) -> "Iterator[str]":
        """Yield lines about decoding failures and about data that is newer than this version of kseg."""
        if self.first_failure is not None:
            offset, reason = self.first_failure
            told = plural(
                self.failed, "record can't be decoded and is shown raw", "records can't be decoded and are shown raw"
            )
            yield f"kseg: {path}: {told}; the first at offset {offset}: {reason}"
        if self.first_newer is not None:
            offset, reason = self.first_newer
            told = plural(self.newer, "record isn't shown completely", "records aren't shown completely")
            yield f"kseg: {path}: {told}; the first at offset {offset}: {reason}"


def _escape(decoded: bytes | None) -> bytes | None:
    return None if decoded is None else json_bytes_escaped(decoded)


def _json_string(text: str | None) -> bytes | None:
    import json

    return None if text is None else json_escaped(json.dumps(text, ensure_ascii=False)).encode("utf-8", "replace")


def _encode(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "replace")


class RedactingDecoder(RecordDecoder):
    """A decoder that redacts keys, values or both first."""

    def __init__(self, read: ReadRecord, redaction: "Redaction", *, keeps_raw: bool) -> None:
        """Take the redaction, and a decoder's arguments."""
        super().__init__(read, keeps_raw=keeps_raw)
        self._replace = redaction.redactor().replace
        self._has_keys, self._has_values = ("keys" in redaction.parts), ("values" in redaction.parts)

    def __call__(
        self, key: bytes | None, value: bytes | None, offset: int, headers: "Headers"
    ) -> Sequence[bytes | None]:
        """Return the texts of a record according to the kernel's contract."""
        shown_key = self._replace(key) if self._has_keys else key
        shown_value = self._replace(value) if self._has_values else value
        return super().__call__(shown_key, shown_value, offset, headers)


def redacting_decoder(redaction: "Redaction | None", *, keeps_raw: bool) -> RedactingDecoder | None:
    """Return a redactor of undecoded keys and values, or None if these stay."""
    if redaction is None or not {"keys", "values"} & set(redaction.parts):
        return None
    return RedactingDecoder(_decode_nothing, redaction, keeps_raw=keeps_raw)


def record_decoder(decoding: Decoding, path: str | PathLike[str]) -> RecordDecoder | None:
    """Return the decoder of the records of a log: the requested one, or its topic's, or None if neither applies.

    Redaction replaces contents; internal topics aren't decoded then.

    Raises:
        UsageError: a decoder's name or option is wrong, or its library isn't installed.
        OpenError: a schema or registry can't be read.
    """
    keeps_raw = decoding.keeps_raw
    is_decoded = decoding.key_decoder is not None or decoding.value_decoder is not None
    if decoding.redaction is not None and {"keys", "values"} & set(decoding.redaction.parts):
        read = _chosen_decoder(decoding) if is_decoded else _decode_nothing
        return RedactingDecoder(read, decoding.redaction, keeps_raw=keeps_raw)
    if is_decoded:
        return RecordDecoder(_chosen_decoder(decoding), keeps_raw=keeps_raw)
    if decoding.internal_decoder is not None:
        return RecordDecoder(_internal(decoding.internal_decoder), keeps_raw=keeps_raw)
    if decoding.decodes_internal:
        name = parse_partition_directory(Path(path).absolute().parent)
        if name is not None and name.topic in INTERNAL_TOPICS:
            return RecordDecoder(_internal(INTERNAL_TOPICS[name.topic]), keeps_raw=keeps_raw)
    return None


def _decode_nothing(_: bytes | None, __: bytes | None, ___: int, ____: "Headers") -> Texts:
    return Texts(None, None)


def check_decoders(decoding: Decoding) -> None:
    """Raise the errors of `record_decoder` for the requested decoders."""
    if decoding.key_decoder is not None or decoding.value_decoder is not None:
        _chosen_decoder(decoding)


def _chosen_decoder(decoding: Decoding) -> ReadRecord:
    from kseg.decode.decoded import decode_header_names, decoded_text, json_able, json_bytes
    from kseg.decode.values import PRETTY_JSON, DecoderOptions, value_decoder

    needed = DecoderOptions(decoding.schema, decoding.message, decoding.schema_registry)
    of_key: ValueDecoder | None = None
    of_value: ValueDecoder | None = None
    if decoding.key_decoder is not None:
        of_key = value_decoder(decoding.key_decoder, needed, "key")
    if decoding.value_decoder is not None:
        of_value = value_decoder(decoding.value_decoder, needed, "value")

    def shown(decoded: "Decoded | None", decoder_name: str | None) -> bytes | None:
        if decoded is None or decoded.reason is not None:
            return None
        if decoding.keeps_raw:
            return json_bytes(json_able(decoded.value))
        return decoded_text(decoded.value, pretty=decoder_name == PRETTY_JSON)

    def read(key: bytes | None, value: bytes | None, _: int, headers: "Headers") -> Texts:
        told = decode_header_names(headers)
        of_keys = _apply(of_key, key, told)
        of_values = _apply(of_value, value, told)
        key_text, value_text = shown(of_keys, decoding.key_decoder), shown(of_values, decoding.value_decoder)
        return Texts(key_text, value_text, of_keys and of_keys.reason, of_values and of_values.reason)

    return read


def _apply(decoder: "ValueDecoder | None", data: bytes | None, headers: "Sequence[Header]") -> "Decoded | None":
    return None if decoder is None or data is None else decoder(data, headers)


# --- internal topics -------------------------------------------------------------------------------------------------


def _internal(option: str) -> ReadRecord:
    """Return a decoder of an internal topic's records into the JSON of the latest release's tool."""
    if option == "remote-log-metadata-decoder":
        return _remote_log_metadata()
    from kseg.decode.decoded import DecodeError
    from kseg.decode.internal_records import newer_in
    from kseg.decode.kafka_text import decoder_for

    decode = decoder_for(option, NEWEST.numbers)

    def read(key: bytes | None, value: bytes | None, offset: int, _: "Headers") -> Texts:
        try:
            parts = decode(key, value, offset)
        except DecodeError as error:
            return Texts(None, None, key_error=error.message, has_failed=True)
        shown_key, key_error = _json_or_reason(parts.key)
        shown_value, value_error = (None, None) if value is None else _json_or_reason(parts.payload)
        newer = newer_in(option, key, value) if shown_value is not None else None
        return Texts(shown_key, shown_value, key_error, value_error, newer=newer)

    return read


def _json_or_reason(text: bytes | None) -> tuple[bytes | None, str | None]:
    """Return the tool's text if it is JSON; else None and the tool's message as the reason."""
    if text is None or text.startswith(b"{"):
        return text, None
    return None, text.decode("utf-8", "replace")


def _remote_log_metadata() -> ReadRecord:
    """Return a decoder into JSON, where the tool prints Java's `toString`."""
    from kseg.decode.internal_records import newer_part, parse_framed
    from kseg.decode.kafka_text import cluster_metadata_text
    from kseg.formats.messages import MessageError
    from kseg.formats.schemas import REMOTE_LOG_RECORDS

    def read(_: bytes | None, value: bytes | None, __: int, ___: "Headers") -> Texts:
        if value is None:
            return Texts(None, None)
        try:
            record = parse_framed(REMOTE_LOG_RECORDS, value)
            newer = newer_part(record.message, record.version, record.fields)
            return Texts(None, cluster_metadata_text(record).encode(), newer=newer)
        except MessageError as error:
            return Texts(None, None, value_error=str(error))

    return read

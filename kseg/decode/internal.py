"""The decoders of internal topics that DumpLogSegments has, by option and release."""

from collections.abc import Callable

from kseg.decode.coordinator import coordinator_decoder
from kseg.decode.group_text import group_text_decoder
from kseg.decode.history import offsets_messages, share_state_messages, transaction_messages
from kseg.decode.metadata_text import cluster_metadata_decoder, remote_log_metadata_decoder
from kseg.decode.parts import Decoder
from kseg.decode.transaction_text import transaction_text_decoder
from kseg.errors import UsageError
from kseg.releases import Release, Since, value_in


def offsets_json_decoder(release: Release) -> Decoder:
    """`__consumer_offsets` from 3.8 on."""
    return coordinator_decoder(offsets_messages(release), release)


def transaction_json_decoder(release: Release) -> Decoder:
    """`__transaction_state` from 4.1 on."""
    return coordinator_decoder(transaction_messages(release), release)


def share_state_decoder(release: Release) -> Decoder:
    """`__share_group_state`; 4.0 called a value's version its type."""
    return coordinator_decoder(
        share_state_messages(release), release, "version" if release.numbers >= (4, 1) else "type"
    )


DECODERS: dict[str, Since[Callable[[Release], Decoder]]] = {
    "offsets-decoder": (((0, 9), group_text_decoder), ((3, 8), offsets_json_decoder)),
    "transaction-log-decoder": (((0, 11), transaction_text_decoder), ((4, 1), transaction_json_decoder)),
    "cluster-metadata-decoder": (((2, 8), cluster_metadata_decoder),),
    "remote-log-metadata-decoder": (((3, 9), remote_log_metadata_decoder),),
    "share-group-state-decoder": (((4, 0), share_state_decoder),),
}
"""Option, without its dashes, to what makes its decoder since which release; the first of several options wins."""


def decoder_for(option: str, release: tuple[int, ...]) -> Decoder:
    """The decoder that an option (`offsets-decoder`, …) meant in a release.

    A release before the option's first one is treated like that one.

    Raises:
        UsageError: there is no such option.
    """
    if option not in DECODERS:
        raise UsageError(f"{option} isn't a decoder of an internal topic; there are {', '.join(DECODERS)}")
    first = DECODERS[option][0][0]
    since = Release(max(tuple(release), first))
    return value_in(since, DECODERS[option])(since)

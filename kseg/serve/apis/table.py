"""The table of apis: which are answered, in which versions, by what; and ApiVersions, which tells it to clients."""

from kseg.formats.messages import Fields
from kseg.formats.schemas.protocol import REQUESTS
from kseg.formats.schemas.schema import VersionRange, version_range
from kseg.protocol.api_message import API_VERSIONS, PRODUCE
from kseg.serve.apis.api_request import Api, ApiAnswer, ApiRequest
from kseg.serve.apis.cluster_metadata import answer_metadata
from kseg.serve.apis.consumer_heartbeat import answer_consumer_heartbeat
from kseg.serve.apis.fetch import answer_fetch
from kseg.serve.apis.find_coordinator import answer_find_coordinator
from kseg.serve.apis.group_listings import answer_consumer_group_describe, answer_describe_groups, answer_list_groups
from kseg.serve.apis.group_offsets import answer_offset_commit, answer_offset_fetch
from kseg.serve.apis.groups import answer_heartbeat, answer_join_group, answer_leave_group, answer_sync_group
from kseg.serve.apis.list_offsets import answer_list_offsets
from kseg.serve.apis.produce import refuse_produce
from kseg.serve.error_code import ErrorCode

FETCH, LIST_OFFSETS, METADATA = 1, 2, 3
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, DESCRIBE_GROUPS, LIST_GROUPS = 11, 12, 13, 14, 15, 16
CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE = 68, 69
OLD_PRODUCE = VersionRange(0, 13)
"""Brokers tell versions that they no longer take: some clients look for them to know what a broker can compress."""


def answer_api_versions(request: ApiRequest) -> ApiAnswer:
    """The table; in version 5 an error if the client is looking for another cluster or broker (KIP-1242)."""
    wanted, node = request.body.get("clusterId"), request.body.get("nodeId", -1)
    is_other = wanted is not None and wanted != request.served.cluster_id
    is_other = is_other or (node >= 0 and wanted is not None and node != request.served.node_id)
    error = ErrorCode.REBOOTSTRAP_REQUIRED if is_other else ErrorCode.NONE
    return ApiAnswer({"errorCode": error, "apiKeys": [_row(api) for api in APIS.values()]})


def unsupported_versions() -> Fields:
    """The answer, in version 0, to an ApiVersions request of a version that isn't known."""
    return {"errorCode": ErrorCode.UNSUPPORTED_VERSION, "apiKeys": [_row(APIS[API_VERSIONS])]}


def _row(api: Api) -> Fields:
    return {"apiKey": api.key, "minVersion": api.versions.first, "maxVersion": api.versions.last}


def _known(key: int) -> VersionRange:
    return version_range(REQUESTS[key].versions)


APIS = {
    api.key: api
    for api in (
        Api(PRODUCE, OLD_PRODUCE, refuse_produce),
        Api(FETCH, _known(FETCH), answer_fetch),
        Api(LIST_OFFSETS, _known(LIST_OFFSETS), answer_list_offsets),
        Api(METADATA, _known(METADATA), answer_metadata),
        Api(OFFSET_COMMIT, _known(OFFSET_COMMIT), answer_offset_commit),
        Api(OFFSET_FETCH, _known(OFFSET_FETCH), answer_offset_fetch),
        Api(FIND_COORDINATOR, _known(FIND_COORDINATOR), answer_find_coordinator),
        Api(JOIN_GROUP, _known(JOIN_GROUP), answer_join_group),
        Api(HEARTBEAT, _known(HEARTBEAT), answer_heartbeat),
        Api(LEAVE_GROUP, _known(LEAVE_GROUP), answer_leave_group),
        Api(SYNC_GROUP, _known(SYNC_GROUP), answer_sync_group),
        Api(DESCRIBE_GROUPS, _known(DESCRIBE_GROUPS), answer_describe_groups),
        Api(LIST_GROUPS, _known(LIST_GROUPS), answer_list_groups),
        Api(CONSUMER_GROUP_HEARTBEAT, _known(CONSUMER_GROUP_HEARTBEAT), answer_consumer_heartbeat),
        Api(CONSUMER_GROUP_DESCRIBE, _known(CONSUMER_GROUP_DESCRIBE), answer_consumer_group_describe),
        Api(API_VERSIONS, _known(API_VERSIONS), answer_api_versions),
    )
}

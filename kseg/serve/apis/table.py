"""The table of apis: which are answered, in which versions, by what; and ApiVersions, which tells it to clients."""

from kseg.formats.messages import Fields
from kseg.formats.schemas import REQUESTS, VersionRange
from kseg.protocol.api_message import API_VERSIONS, PRODUCE, api_name
from kseg.serve.apis.api_request import Api, ApiAnswer, ApiRequest
from kseg.serve.apis.cluster_metadata import answer_metadata
from kseg.serve.apis.consumer_heartbeat import answer_consumer_heartbeat
from kseg.serve.apis.describe_cluster import answer_describe_cluster
from kseg.serve.apis.describe_configs import answer_describe_configs
from kseg.serve.apis.describe_log_dirs import answer_describe_log_dirs
from kseg.serve.apis.describe_producers import answer_describe_producers
from kseg.serve.apis.describe_topic_partitions import answer_describe_topic_partitions
from kseg.serve.apis.fetch import answer_fetch
from kseg.serve.apis.find_coordinator import answer_find_coordinator
from kseg.serve.apis.group_listings import answer_consumer_group_describe, answer_describe_groups, answer_list_groups
from kseg.serve.apis.group_membership import answer_heartbeat, answer_join_group, answer_leave_group, answer_sync_group
from kseg.serve.apis.group_offsets import answer_offset_commit, answer_offset_fetch
from kseg.serve.apis.list_offsets import answer_list_offsets
from kseg.serve.apis.offset_for_leader_epoch import answer_offset_for_leader_epoch
from kseg.serve.apis.produce import refuse_produce
from kseg.serve.apis.reassignments_and_acls import answer_describe_acls, answer_list_partition_reassignments
from kseg.serve.apis.refusals import REFUSALS, Refusal
from kseg.serve.apis.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE, refuse_authentication, refuse_handshake
from kseg.serve.apis.transaction_listings import answer_describe_transactions, answer_list_transactions
from kseg.serve.error_code import ErrorCode

FETCH, LIST_OFFSETS, METADATA = 1, 2, 3
OFFSET_FOR_LEADER_EPOCH, DESCRIBE_ACLS, LIST_PARTITION_REASSIGNMENTS = 23, 29, 46
DESCRIBE_CONFIGS, DESCRIBE_LOG_DIRS = 32, 35
DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS = 60, 75
DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 61, 65, 66
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
    return ApiAnswer({"errorCode": error, "apiKeys": [_row(api) for api in APIS.values() if api.is_offered]})


def unsupported_versions() -> Fields:
    """The answer, in version 0, to an ApiVersions request of a version that isn't known."""
    return {"errorCode": ErrorCode.UNSUPPORTED_VERSION, "apiKeys": [_row(APIS[API_VERSIONS])]}


def _row(api: Api) -> Fields:
    return {"apiKey": api.key, "minVersion": api.versions.first, "maxVersion": api.versions.last}


def _refused(refusal: Refusal) -> Api:
    key = next(key for key in REQUESTS if api_name(key) == refusal.api)
    return Api(key, refusal.answer, is_offered=False)


APIS = {
    api.key: api
    for api in (
        Api(PRODUCE, refuse_produce, told_versions=OLD_PRODUCE),
        Api(FETCH, answer_fetch),
        Api(LIST_OFFSETS, answer_list_offsets),
        Api(METADATA, answer_metadata),
        Api(OFFSET_FOR_LEADER_EPOCH, answer_offset_for_leader_epoch),
        Api(DESCRIBE_ACLS, answer_describe_acls),
        Api(DESCRIBE_CONFIGS, answer_describe_configs),
        Api(DESCRIBE_LOG_DIRS, answer_describe_log_dirs),
        Api(DESCRIBE_PRODUCERS, answer_describe_producers),
        Api(DESCRIBE_TRANSACTIONS, answer_describe_transactions),
        Api(LIST_TRANSACTIONS, answer_list_transactions),
        Api(LIST_PARTITION_REASSIGNMENTS, answer_list_partition_reassignments),
        Api(DESCRIBE_CLUSTER, answer_describe_cluster),
        Api(DESCRIBE_TOPIC_PARTITIONS, answer_describe_topic_partitions),
        Api(SASL_HANDSHAKE, refuse_handshake),
        Api(OFFSET_COMMIT, answer_offset_commit),
        Api(OFFSET_FETCH, answer_offset_fetch),
        Api(FIND_COORDINATOR, answer_find_coordinator),
        Api(JOIN_GROUP, answer_join_group),
        Api(HEARTBEAT, answer_heartbeat),
        Api(LEAVE_GROUP, answer_leave_group),
        Api(SYNC_GROUP, answer_sync_group),
        Api(DESCRIBE_GROUPS, answer_describe_groups),
        Api(LIST_GROUPS, answer_list_groups),
        Api(CONSUMER_GROUP_HEARTBEAT, answer_consumer_heartbeat),
        Api(CONSUMER_GROUP_DESCRIBE, answer_consumer_group_describe),
        Api(API_VERSIONS, answer_api_versions),
        Api(SASL_AUTHENTICATE, refuse_authentication),
        *(_refused(refusal) for refusal in REFUSALS),
    )
}

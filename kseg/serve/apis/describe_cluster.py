"""DescribeCluster: the one broker, which is asked, and the cluster's id."""

from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.apis.cluster_metadata import DESCRIBE_CLUSTER
from kseg.serve.error_code import ErrorCode

_BROKERS, _CONTROLLERS = 1, 2
"""Kinds of endpoints that a client may have wanted to reach."""


def answer_describe_cluster(request: ApiRequest) -> ApiAnswer:
    """The cluster; an error if the client wanted controllers, which aren't here."""
    served, wanted = request.served, request.body.get("endpointType", _BROKERS)
    if wanted != _BROKERS:
        is_known = wanted == _CONTROLLERS
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE if is_known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = "this is a broker" if is_known else f"endpoint type {wanted} isn't known"
        return ApiAnswer({"errorCode": error, "errorMessage": message, "clusterId": ""}, "no controller here")
    is_asked = request.body["includeClusterAuthorizedOperations"]
    operations = {"clusterAuthorizedOperations": DESCRIBE_CLUSTER} if is_asked else {}
    return ApiAnswer(
        {
            "clusterId": served.cluster_id,
            "controllerId": served.node_id,
            "brokers": [{"brokerId": served.node_id, "host": request.host, "port": request.port}],
            **operations,
        }
    )

"""ListPartitionReassignments and DescribeAcls: nobody reassigns partitions here, and everybody may read."""

from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.error_code import ErrorCode


def answer_list_partition_reassignments(_: ApiRequest) -> ApiAnswer:
    """None."""
    return ApiAnswer({"errorMessage": None, "topics": []})


def answer_describe_acls(_: ApiRequest) -> ApiAnswer:
    """The error of a broker without authorizer."""
    return ApiAnswer(
        {"errorCode": ErrorCode.SECURITY_DISABLED, "errorMessage": "kseg serve has no authorizer", "resources": []}
    )

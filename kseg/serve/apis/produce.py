"""Produce: refused. Some clients fetch nothing from brokers that don't have it (librdkafka, Java up to 2.7)."""

from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.error_code import ErrorCode

REFUSAL = "kseg serve is read-only: nothing can be produced"
_NO_ANSWER = 0
"""As acks: then there is no response."""


def refuse_produce(request: ApiRequest) -> ApiAnswer:
    """An authorization error for each partition."""
    if request.body["acks"] == _NO_ANSWER:
        return ApiAnswer(None, "refused")
    failed = {"errorCode": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "baseOffset": -1, "errorMessage": REFUSAL}
    responses = [
        {
            **{key: topic[key] for key in ("name", "topicId") if key in topic},
            "partitionResponses": [{"index": each["index"], **failed} for each in topic["partitionData"]],
        }
        for topic in request.body["topicData"]
    ]
    return ApiAnswer({"responses": responses}, "refused")

"""SaslHandshake and SaslAuthenticate of who is logged in, or needn't: refused, as by a broker whose sessions don't end.

Logging in itself is kseg.serve.login.
"""

from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.error_code import ErrorCode

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
LATE = "SaslAuthenticate request received after successful authentication"
"""Kafka's text."""


def refuse_handshake(_: ApiRequest) -> ApiAnswer:
    """ILLEGAL_SASL_STATE, and no mechanisms."""
    return ApiAnswer({"errorCode": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": []}, "refused")


def refuse_authentication(_: ApiRequest) -> ApiAnswer:
    """ILLEGAL_SASL_STATE."""
    body = {"errorCode": ErrorCode.ILLEGAL_SASL_STATE, "errorMessage": LATE, "authBytes": b""}
    return ApiAnswer(body, "refused")

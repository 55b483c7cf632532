"""Error codes of Kafka's protocol that the server answers with."""

from enum import IntEnum


class ErrorCode(IntEnum):
    """Kafka's codes, under Kafka's names. Source: Errors."""

    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    TOPIC_AUTHORIZATION_FAILED = 29
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    KAFKA_STORAGE_ERROR = 56
    SASL_AUTHENTICATION_FAILED = 58
    FETCH_SESSION_ID_NOT_FOUND = 70
    UNKNOWN_TOPIC_ID = 100
    REBOOTSTRAP_REQUIRED = 129

"""Why a group refuses what a client asks for."""

from kseg.errors import KsegError
from kseg.serve.error_code import ErrorCode


class GroupError(KsegError):
    """A refusal, as one of Kafka's codes. `member_id`: the one that a client is to join with, empty for none."""

    def __init__(self, code: ErrorCode, message: str = "", member_id: str = "") -> None:
        """Takes the code, what newer versions tell clients beside it, and a member's new id."""
        super().__init__(message or code.name)
        self.code, self.member_id = code, member_id

"""FindCoordinator: the one broker coordinates all groups."""

from kseg.formats.messages import Fields
from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.error_code import ErrorCode

GROUP, TRANSACTION = 0, 1
"""Of what a coordinator is looked for. Source: FindCoordinatorRequest.CoordinatorType."""
_MANY = 4
"""From this version on a request has several keys."""


def answer_find_coordinator(request: ApiRequest) -> ApiAnswer:
    """The broker that everybody is connected to."""
    body = request.body
    kind = body.get("keyType", GROUP)
    if request.version < _MANY:
        return ApiAnswer({"errorMessage": "NONE", **_coordinator(request, kind)}, body["key"])
    found = [{"key": key, "errorMessage": "", **_coordinator(request, kind)} for key in body["coordinatorKeys"]]
    return ApiAnswer({"coordinators": found}, ", ".join(body["coordinatorKeys"][:1]))


def _coordinator(request: ApiRequest, kind: int) -> Fields:
    if kind not in (GROUP, TRANSACTION):
        return {"errorCode": ErrorCode.INVALID_REQUEST, "nodeId": -1, "host": "", "port": -1, "errorMessage": None}
    here = {"nodeId": request.served.node_id, "host": request.host, "port": request.port}
    return {"errorCode": ErrorCode.NONE, **here}

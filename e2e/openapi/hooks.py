"""Hooks and checks of the fuzzer, beside schemathesis.toml.

The hooks lead more of the random requests to where something is: a queue that
was made, a channel that was published to. The checks are what the fuzzer does
not check by itself.
"""

import re

import schemathesis

queues = []  # that were made
deleted = set()
changes = []  # work requests
receipts = {}  # the last one of each queue
channels = set()  # that were published to


def operation(case):
    return case.operation.definition.raw.get("operationId")


def positive(case):
    """Whether the request conforms to the document."""
    return case.meta is not None and case.meta.generation.mode.is_positive


def stateful(case):
    return case.meta is not None and case.meta.phase.name == "stateful"


@schemathesis.hook
def before_call(context, case, kwargs):
    if operation(case) == "GetMessages" and isinstance(case.query, dict):
        do_not_wait(case.query)
        if positive(case) and stateful(case) and case.query.get("channelFilter") not in channels:
            case.query.pop("channelFilter", None)
    if positive(case) and stateful(case):
        lead(case.path_parameters or {}, operation(case))


def lead(path, to):
    """What a path names at random becomes what there is."""
    if queues and "queueId" in path and path["queueId"] not in queues and to != "DeleteQueue":
        path["queueId"] = queues[-1]
    if "messageReceipt" in path and path["messageReceipt"] not in receipts.values():
        path["messageReceipt"] = receipts.get(path["queueId"], path["messageReceipt"])
    if changes and "workRequestId" in path and path["workRequestId"] not in changes:
        path["workRequestId"] = changes[-1]


def do_not_wait(query):
    """A long poll that is as it should be takes no time of the run."""
    try:
        if 0 <= int(query.get("timeoutInSeconds", 30)) <= 30:
            query["timeoutInSeconds"] = 0
    except (TypeError, ValueError):
        pass  # it is refused


@schemathesis.hook
def after_call(context, case, response):
    if response.status_code == 202:
        changes.append(response.headers["opc-work-request-id"][0])
    if response.status_code == 202 and operation(case) == "CreateQueue":
        queues.append(response.json()["id"])
    elif response.status_code == 202 and operation(case) == "DeleteQueue":
        gone = case.path_parameters["queueId"]
        deleted.add(gone)
        if gone in queues:
            queues.remove(gone)
    elif response.status_code == 200 and operation(case) == "PutMessages":
        for message in case.body["messages"]:
            channels.add((message.get("metadata") or {}).get("channelId"))
    elif response.status_code == 200 and operation(case) == "GetMessages":
        for message in response.json()["messages"]:
            receipts[case.path_parameters["queueId"]] = message["receipt"]


# Why a request that conforms to the document may be refused with 400, with the
# words of the refusal.
UNSAID = [
    r"is not a page token of this list",  # tokens are the server's
    r"receipt is not one of ours",
    r"retry.token was used for (another|other)",
    r"consumerGroupId is given, but the queue does not have",  # it is the queue that decides
    r"does not have the capability",
    r"behind a queue means",  # a dead letter queue, which not every operation has
    r"consumerGroupId may not be given here",
    r"which queueId names, is not known",  # a resource that the body names
    r"to the retentionInSeconds of the queue",  # one value bounds another
    r"must be below the retention of the message",
    r"has \d+ octets; it (may|must) have",  # schemas count characters
    r"is no name for a property",  # OpenAPI 3.0 knows no rules for names
    r"(freeformTags|definedTags) has a \w+ whose name has \d+ characters",
    r"definedTags has more than \d+ tags",  # over all namespaces
    r"the property .*content-encoding|content-encoding.* is reserved",
    r"is not base64, as contentEncoding says",  # one value tells what another is
    r"cannot be kept exactly",  # numbers in defined tags
    r"[fF]ilter",  # the language of consumer groups is no regular one
]


@schemathesis.check
def refused_for_what_no_schema_says(ctx, response, case):
    """The ranges, lengths, patterns and types of the document are the server's."""
    if response.status_code == 400 and positive(case):
        body = response.json()
        if not re.search("|".join(UNSAID), body["message"]):
            raise AssertionError(f"the document allows what the server refuses: {body}")


@schemathesis.check
def deleted_is_deleted(ctx, response, case):
    """A queue that was deleted is DELETED where it can be read at all."""
    if response.status_code == 200 and operation(case) == "GetQueue":
        body = response.json()
        if body["id"] in deleted and body["lifecycleState"] != "DELETED":
            raise AssertionError(f"{body['id']} was deleted and is {body['lifecycleState']}")


@schemathesis.check
def refused_entry_by_entry(ctx, response, case):
    """A batch that does not conform fails, whole or in an entry."""
    if response.status_code == 200 and operation(case) in ("UpdateMessages", "DeleteMessages"):
        body = response.json()
        failed = sum("errorCode" in entry for entry in body["entries"])
        if body["clientFailures"] + body["serverFailures"] != failed:
            raise AssertionError(f"{failed} entries failed, other numbers are told: {body}")
        if not positive(case) and breaks_entries(case) and failed == 0:
            raise AssertionError(f"nothing failed of {case.body}")


def breaks_entries(case):
    """Whether it is the body that does not conform."""
    info = case.meta.components.get("body") if case.meta is not None else None
    return info is not None and info.mode.is_negative

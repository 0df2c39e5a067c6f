"""The life of a queue: made, read, listed, changed, moved, purged, deleted."""

import oci
from oci.queue import models

from checks import same, true
from sdk_common import AWAY, HOME, counts, create, delete, finished, get, put, refused


def check(admin, messages):
    life(admin, messages)
    lists(admin)
    tokens(admin)


def life(admin, messages):
    details = models.CreateQueueDetails(
        display_name="Bestellungen ✓", compartment_id=HOME, retention_in_seconds=3600, visibility_in_seconds=11,
        timeout_in_seconds=12, dead_letter_queue_delivery_count=3, channel_consumption_limit=50,
        custom_encryption_key_id="ocid1.key.oc1..k", freeform_tags={"team": "post"}, defined_tags={"ops": {"cost": 42}})
    made = admin.create_queue(details)
    same("CreateQueue", "202 with a work request", (made.status, made.data), (202, None))
    request = finished(admin, made)
    same("GetWorkRequest", "a created queue: SUCCEEDED, 100 percent",
         (request.id, request.operation_type, request.status, request.percent_complete, request.compartment_id),
         (made.headers["opc-work-request-id"], "CREATE_QUEUE", "SUCCEEDED", 100.0, HOME))
    same("GetWorkRequest", "names what was made", [(r.entity_type.lower(), r.action_type) for r in request.resources], [("queue", "CREATED")])
    true("GetWorkRequest", "is over", request.time_accepted <= request.time_finished, request)
    queue = request.resources[0].identifier

    first = admin.get_queue(queue)
    q = first.data
    same("GetQueue", "every setting", (
        q.id, q.display_name, q.compartment_id, q.lifecycle_state, q.retention_in_seconds, q.visibility_in_seconds, q.timeout_in_seconds,
        q.dead_letter_queue_delivery_count, q.channel_consumption_limit, q.custom_encryption_key_id, q.freeform_tags, q.defined_tags,
    ), (queue, "Bestellungen ✓", HOME, "ACTIVE", 3600, 11, 12, 3, 50, "ocid1.key.oc1..k", {"team": "post"}, {"ops": {"cost": 42}}))
    same("GetQueue", "messagesEndpoint is where the SDK went", q.messages_endpoint, admin.base_client.endpoint.removesuffix("/20210201"))
    true("GetQueue", "an etag", first.headers["etag"])
    same("GetQueue", "made and changed at the same instant", q.time_created, q.time_updated)

    # Every change is guarded by the etag, and gives a new one.
    etag = first.headers["etag"]
    change = admin.update_queue(queue, models.UpdateQueueDetails(
        display_name="orders", visibility_in_seconds=30, timeout_in_seconds=0, custom_encryption_key_id=""), if_match=etag)
    request = finished(admin, change)
    same("UpdateQueue", "with if-match", (request.operation_type, request.resources[0].action_type), ("UPDATE_QUEUE", "UPDATED"))
    now = admin.get_queue(queue)
    same("UpdateQueue", "what was named has changed, the rest stays", (
        now.data.display_name, now.data.visibility_in_seconds, now.data.timeout_in_seconds, now.data.custom_encryption_key_id,
        now.data.channel_consumption_limit, now.data.freeform_tags,
    ), ("orders", 30, 0, None, 50, {"team": "post"}))
    true("UpdateQueue", "a new etag", now.headers["etag"] != etag)
    nothing = models.UpdateQueueDetails()
    purge = models.PurgeQueueDetails(purge_type="BOTH")
    move = models.ChangeQueueCompartmentDetails(compartment_id=AWAY)
    refused("UpdateQueue", "an old etag: 412", 412, "NoEtagMatch", admin.update_queue, queue, nothing, if_match=etag)
    refused("ChangeQueueCompartment", "an old etag: 412", 412, "NoEtagMatch", admin.change_queue_compartment, queue, move, if_match=etag)
    refused("PurgeQueue", "an old etag: 412", 412, "NoEtagMatch", admin.purge_queue, queue, purge, if_match=etag)
    refused("DeleteQueue", "an old etag: 412", 412, "NoEtagMatch", admin.delete_queue, queue, if_match=etag)

    request = finished(admin, admin.change_queue_compartment(queue, move, if_match=now.headers["etag"]))
    same("ChangeQueueCompartment", "the work request", (request.operation_type, request.resources[0].identifier), ("MOVE_QUEUE", queue))
    same("ChangeQueueCompartment", "the queue has moved", admin.get_queue(queue).data.compartment_id, AWAY)

    purges(admin, messages, queue)

    request = finished(admin, admin.delete_queue(queue, if_match=admin.get_queue(queue).headers["etag"]))
    same("DeleteQueue", "the work request", (request.operation_type, request.resources[0].action_type), ("DELETE_QUEUE", "DELETED"))
    gone = oci.wait_until(admin, admin.get_queue(queue), "lifecycle_state", "DELETED", succeed_on_not_found=True)
    same("DeleteQueue", "the record stays to be read", gone.data.lifecycle_state, "DELETED")
    refused("DeleteQueue", "a second time: 404", 404, "NotAuthorizedOrNotFound", admin.delete_queue, queue)
    refused("GetMessages", "of a deleted queue: 404", 404, "NotAuthorizedOrNotFound", messages.get_messages, queue)

    work_requests(admin, queue, made.headers["opc-work-request-id"])


def purges(admin, messages, queue):
    put(messages, queue, "a", "b")
    refused("PurgeQueue", "an unknown kind: 400", 400, "InvalidParameter", admin.purge_queue, queue, {"purgeType": "SOME"})
    finished(admin, admin.purge_queue(queue, models.PurgeQueueDetails(purge_type="DLQ")))
    same("PurgeQueue", "DLQ leaves the queue alone", counts(messages, queue), (2, 0, 0, 0))
    request = finished(admin, admin.purge_queue(queue, models.PurgeQueueDetails(purge_type="NORMAL")))
    same("PurgeQueue", "the work request", (request.operation_type, request.resources[0].action_type), ("PURGE_QUEUE", "UPDATED"))
    same("PurgeQueue", "NORMAL empties the queue", (counts(messages, queue), get(messages, queue)), ((0, 0, 0, 0), []))


def work_requests(admin, queue, made):
    """All five work requests of the queue's life, newest last or first."""
    away = admin.list_work_requests(compartment_id=AWAY).data.items
    true("ListWorkRequests", "by compartment: what was done there", {"PURGE_QUEUE", "DELETE_QUEUE"} <= {r.operation_type for r in away}, away)
    one = admin.list_work_requests(work_request_id=made).data.items
    same("ListWorkRequests", "by its id", [(r.id, r.operation_type, r.status) for r in one], [(made, "CREATE_QUEUE", "SUCCEEDED")])
    pages = oci.pagination.list_call_get_all_results(admin.list_work_requests, compartment_id=AWAY, limit=1).data
    same("paging", "ListWorkRequests one by one gives each once", sorted(r.id for r in pages), sorted(r.id for r in away))
    same("ListWorkRequestErrors", "none of one that succeeded", admin.list_work_request_errors(made).data.items, [])
    logs = admin.list_work_request_logs(made).data.items
    true("ListWorkRequestLogs", "what was done, with its time", all(l.message and l.timestamp for l in logs) and logs, logs)
    for name, call in ("GetWorkRequest", admin.get_work_request), ("ListWorkRequestErrors", admin.list_work_request_errors), \
            ("ListWorkRequestLogs", admin.list_work_request_logs):
        refused(name, "an unknown one: 404", 404, "NotAuthorizedOrNotFound", call, "ocid1.queueworkrequest.oc1.local.none")


def lists(admin):
    made = [create(admin, display_name=name) for name in ("c", "a", "b")]
    c, a, b = made

    def ids(**how):
        return [q.id for q in admin.list_queues(**how).data.items]

    same("ListQueues", "newest first", ids(compartment_id=HOME), [b, a, c])
    same("ListQueues", "oldest first", ids(compartment_id=HOME, sort_order="ASC"), [c, a, b])
    same("ListQueues", "by name", ids(compartment_id=HOME, sort_by="displayName"), [a, b, c])
    same("ListQueues", "by name, backwards", ids(compartment_id=HOME, sort_by="displayName", sort_order="DESC"), [c, b, a])
    same("ListQueues", "of a name", ids(compartment_id=HOME, display_name="b"), [b])
    same("ListQueues", "of an id", ids(id=a), [a])
    same("ListQueues", "of a state", (sorted(ids(lifecycle_state="ACTIVE")), ids(lifecycle_state="CREATING")), (sorted(made), []))
    same("ListQueues", "nothing of another compartment", ids(compartment_id=AWAY), [])
    deleted = admin.list_queues(lifecycle_state="DELETED").data.items
    same("ListQueues", "deleted ones if asked for", [q.display_name for q in deleted], ["orders"])

    first = admin.list_queues(compartment_id=HOME, limit=2)
    second = admin.list_queues(compartment_id=HOME, limit=2, page=first.headers["opc-next-page"])
    same("paging", "ListQueues: two and one, and no third page",
         ([q.id for q in first.data.items], [q.id for q in second.data.items], second.headers.get("opc-next-page")), ([b, a], [c], None))
    same("paging", "the SDK's own paging", [q.id for q in oci.pagination.list_call_get_all_results_generator(
        admin.list_queues, "record", compartment_id=HOME, limit=1)], [b, a, c])
    refused("paging", "a made-up page: 400", 400, "InvalidParameter", admin.list_queues, page="made-up")
    for queue in made:
        delete(admin, queue)


def tokens(admin):
    details = models.CreateQueueDetails(display_name="once", compartment_id=HOME)
    first = admin.create_queue(details, opc_retry_token="token-1")
    again = admin.create_queue(details, opc_retry_token="token-1")
    same("CreateQueue", "the same retry token: the same work request", again.headers["opc-work-request-id"], first.headers["opc-work-request-id"])
    live = admin.list_queues(display_name="once").data.items
    same("CreateQueue", "the same retry token: one queue", len(live), 1)
    other = models.CreateQueueDetails(display_name="other", compartment_id=HOME)
    refused("CreateQueue", "the same retry token, another queue: 400", 400, "InvalidParameter", admin.create_queue, other, opc_retry_token="token-1")
    delete(admin, live[0].id)
    refused("CreateQueue", "the retry token of a deleted queue: 409", 409, "InvalidatedRetryToken",
            admin.create_queue, details, opc_retry_token="token-1")
    refused("CreateQueue", "no name: 400", 400, "MissingParameter", admin.create_queue, models.CreateQueueDetails(compartment_id=HOME))
    refused("CreateQueue", "a retention that is too short: 400", 400, "InvalidParameter", admin.create_queue,
            models.CreateQueueDetails(display_name="x", compartment_id=HOME, retention_in_seconds=9))

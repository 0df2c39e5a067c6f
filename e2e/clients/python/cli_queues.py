"""The life of a queue, and the lists."""

import json
import os

from checks import same, true
from cli_run import admin, queue, refused, run

HOME = "ocid1.compartment.oc1..home"
AWAY = "ocid1.compartment.oc1..away"


def create(**options):
    """A new queue, whose work request oci follows to its end."""
    options.setdefault("compartment_id", HOME)
    done = admin("queue", "create", wait_for_state="SUCCEEDED", **options)["data"]
    return done["resources"][0]["identifier"]


def items(*args, **options):
    return admin(*args, **options)["data"]["items"]


def check():
    life()
    lists()


def life():
    made = admin("queue", "create", display_name="Bestellungen ✓", compartment_id=HOME, retention_in_seconds=3600, visibility_in_seconds=11,
                 timeout_in_seconds=12, dlq_delivery_count=3, channel_consumption_limit=50, custom_key="ocid1.key.oc1..k",
                 freeform_tags={"team": "post"}, defined_tags={"ops": {"cost": 42}})
    request = made["opc-work-request-id"]
    true("CreateQueue", "answered with a work request", request.startswith("ocid1.queueworkrequest."), made)
    done = admin("work-request", "get", work_request_id=request)["data"]
    same("GetWorkRequest", "of a created queue",
         (done["operation-type"], done["status"], done["percent-complete"], [r["action-type"] for r in done["resources"]]),
         ("CREATE_QUEUE", "SUCCEEDED", 100.0, ["CREATED"]))
    at = done["resources"][0]["identifier"]

    first = admin("queue", "get", queue_id=at)
    names = ("display-name", "compartment-id", "lifecycle-state", "retention-in-seconds", "visibility-in-seconds", "timeout-in-seconds",
             "dead-letter-queue-delivery-count", "channel-consumption-limit", "custom-encryption-key-id", "freeform-tags", "defined-tags",
             "messages-endpoint")
    same("GetQueue", "every setting", [first["data"][n] for n in names],
         ["Bestellungen ✓", HOME, "ACTIVE", 3600, 11, 12, 3, 50, "ocid1.key.oc1..k", {"team": "post"}, {"ops": {"cost": 42}}, os.environ["QUEUED"]])
    same("GetQueue", "by its name", admin("queue", "get", queue_id="Bestellungen ✓"), first)
    refused("GetQueue", "of an unknown queue: 404", 404, "NotAuthorizedOrNotFound", "queue-admin", "queue", "get", queue_id="none")

    change = admin("queue", "update", queue_id=at, display_name="orders", visibility_in_seconds=30, custom_key="", if_match=first["etag"],
                   wait_for_state="SUCCEEDED")["data"]
    now = admin("queue", "get", queue_id=at)
    same("UpdateQueue", "with if-match, followed to its end",
         (change["operation-type"], change["status"], now["data"]["display-name"], now["data"]["visibility-in-seconds"],
          now["data"]["custom-encryption-key-id"], now["data"]["timeout-in-seconds"]),
         ("UPDATE_QUEUE", "SUCCEEDED", "orders", 30, None, 12))
    true("UpdateQueue", "a new etag", now["etag"] != first["etag"])
    refused("UpdateQueue", "an old etag: 412", 412, "NoEtagMatch", "queue-admin", "queue", "update", queue_id=at, timeout_in_seconds=1,
            if_match=first["etag"])

    moved = admin("queue", "change-compartment", queue_id=at, compartment_id=AWAY, wait_for_state="SUCCEEDED")["data"]
    same("ChangeQueueCompartment", "followed to its end",
         (moved["operation-type"], moved["status"], admin("queue", "get", queue_id=at)["data"]["compartment-id"]), ("MOVE_QUEUE", "SUCCEEDED", AWAY))

    queue("messages", "put-messages", queue_id=at, messages=[{"content": "a", "metadata": {"channelId": "north"}}, {"content": "b"}])
    purged = admin("queue", "purge", queue_id=at, purge_type="normal", channel_ids=["north"], wait_for_state="SUCCEEDED")["data"]
    left = queue("messages", "get-stats", queue_id=at)["data"]["queue"]["visible-messages"]
    same("PurgeQueue", "of one channel", (purged["operation-type"], left), ("PURGE_QUEUE", 1))
    admin("queue", "purge", queue_id=at, purge_type="BOTH")
    same("PurgeQueue", "of all", queue("messages", "get-messages", queue_id=at, timeout_in_seconds=0), {"data": {"messages": []}})

    gone = admin("queue", "delete", queue_id=at, force=True, wait_for_state="SUCCEEDED")["data"]
    same("DeleteQueue", "followed to its end", (gone["operation-type"], gone["status"], gone["resources"][0]["action-type"]),
         ("DELETE_QUEUE", "SUCCEEDED", "DELETED"))
    refused("DeleteQueue", "a second time: 404", 404, "NotAuthorizedOrNotFound", "queue-admin", "queue", "delete", queue_id=at, force=True)

    all_of_it = items("work-request", "list", compartment_id=AWAY, page_size=1, all=True)
    same("ListWorkRequests", "all that was done there, a page at a time",
         sorted(r["operation-type"] for r in all_of_it), ["DELETE_QUEUE", "MOVE_QUEUE", "PURGE_QUEUE", "PURGE_QUEUE"])
    same("ListWorkRequestErrors", "none", items("work-request-error", "list", work_request_id=request), [])
    logs = items("work-request-log", "list", work_request_id=request)
    true("ListWorkRequestLogs", "what was done, with its time", logs and all(l["message"] and l["timestamp"] for l in logs), logs)


def lists():
    made = [create(display_name=name) for name in ("c", "a", "b")]
    c, a, b = made

    def ids(**options):
        return [q["id"] for q in items("queue", "list", **options)]

    same("ListQueues", "by name", ids(compartment_id=HOME, sort_by="displayName"), [a, b, c])
    same("ListQueues", "of a name, an id, a state",
         (ids(display_name="b"), ids(id=a), ids(compartment_id=HOME, lifecycle_state="ACTIVE", sort_order="ASC")), ([b], [a], [c, a, b]))
    first = admin("queue", "list", compartment_id=HOME, limit=2)
    second = admin("queue", "list", compartment_id=HOME, limit=2, page=first["opc-next-page"])
    same("paging", "two and one, and no third page",
         ([q["id"] for p in (first, second) for q in p["data"]["items"]], "opc-next-page" in second), ([b, a, c], False))
    same("paging", "--all with pages of one", ids(compartment_id=HOME, all=True, page_size=1), [b, a, c])
    os.environ["OCI_CLI_ENDPOINT"] = os.environ["QUEUED"]
    out, _, code = run("queue", "queue-admin", "queue", "list", "--compartment-id", HOME, "--query", "length(data.items)")
    same("ListQueues", "the endpoint from the environment", (json.loads(out), code), (3, 0))
    for q in made:
        admin("queue", "delete", queue_id=q, force=True)

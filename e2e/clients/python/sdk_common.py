"""What the checks of the SDK share."""

import time

import oci
from oci.queue import models

from checks import ok

HOME = "ocid1.compartment.oc1..home"
AWAY = "ocid1.compartment.oc1..away"


def create(admin, **settings):
    """A new queue, made as the SDK's own composite operation makes one: the
    work request is followed to its end."""
    settings.setdefault("compartment_id", HOME)
    wait = oci.queue.QueueAdminClientCompositeOperations(admin)
    done = wait.create_queue_and_wait_for_state(models.CreateQueueDetails(**settings), ["SUCCEEDED"]).data
    return done.resources[0].identifier


def finished(admin, response):
    """The work request of a change, which is followed to SUCCEEDED."""
    first = admin.get_work_request(response.headers["opc-work-request-id"])
    return oci.wait_until(admin, first, "status", "SUCCEEDED", max_interval_seconds=1).data


def delete(admin, queue):
    finished(admin, admin.delete_queue(queue))


def entry(content, channel=None, **properties):
    metadata = None
    if channel or properties:
        metadata = models.MessageMetadata(channel_id=channel, custom_properties=properties or None)
    return models.PutMessagesDetailsEntry(content=content, metadata=metadata)


def put(messages, queue, *entries):
    entries = [entry(e) if isinstance(e, str) else e for e in entries]
    return messages.put_messages(queue, models.PutMessagesDetails(messages=entries)).data.messages


def get(messages, queue, **how):
    how.setdefault("timeout_in_seconds", 0)
    return messages.get_messages(queue, **how).data.messages


def visibility(seconds):
    return models.UpdateMessageDetails(visibility_in_seconds=seconds)


def counts(messages, queue, **what):
    """Visible and in flight, in the queue and in its dead letter queue."""
    s = messages.get_stats(queue, **what).data
    return (s.queue.visible_messages, s.queue.in_flight_messages, s.dlq.visible_messages, s.dlq.in_flight_messages)


def refused(operation, what, status, code, call, *args, **how):
    """One check: the service refuses the call, and the SDK shows it so. Nothing
    is tried again."""
    how.setdefault("retry_strategy", oci.retry.NoneRetryStrategy())
    try:
        call(*args, **how)
    except oci.exceptions.ServiceError as e:
        if (e.status, e.code) != (status, code) or not e.message or not e.request_id:
            raise AssertionError(f"{operation}: {what}: {e.status} {e.code} {e.message}, want {status} {code}") from e
        ok(operation, what)
        return
    raise AssertionError(f"{operation}: {what}: not refused")


def soon(call, want):
    """Waits until the call gives what is wanted, and returns what it gave last:
    some things happen by the server's clock."""
    deadline = time.monotonic() + 30
    while True:
        got = call()
        if got == want or time.monotonic() > deadline:
            return got
        time.sleep(0.1)

"""Consumer groups: their life, and what they get, lose and refuse."""

import oci
from oci.queue import models

from checks import same, true
from sdk_common import counts, create, delete, entry, finished, get, put, refused, soon, visibility

CAPABILITY = models.ConsumerGroupsCapabilityDetails(
    type="CONSUMER_GROUPS", is_primary_consumer_group_enabled=True, primary_consumer_group_display_name="everybody")


def check(admin, messages):
    queue = create(admin, display_name="fan", capabilities=[CAPABILITY])
    primary = capability(admin, queue)
    orders = life(admin, queue)
    bills = make(admin, display_name="bills", queue_id=queue, filter=':kind = "bill" AND :amount > 100')
    lists(admin, queue, primary, orders, bills)
    fan_out(messages, queue, primary, orders, bills)
    dead(messages, queue, orders, bills)
    purges(admin, messages, queue, [primary, orders, bills])
    disabled(admin, messages, queue, orders)
    refusals(admin, messages, queue, primary, orders)
    gone(admin, messages, queue, bills)
    delete(admin, queue)
    later(admin, messages)


def make(admin, **settings):
    wait = oci.queue.QueueAdminClientCompositeOperations(admin)
    done = wait.create_consumer_group_and_wait_for_state(models.CreateConsumerGroupDetails(**settings), ["SUCCEEDED"]).data
    return done.resources[0].identifier


def capability(admin, queue):
    same("GetQueue", "capabilities are objects", [c.type for c in admin.get_queue(queue).data.capabilities], ["CONSUMER_GROUPS"])
    same("ListQueues", "capabilities are texts", admin.list_queues(id=queue).data.items[0].capabilities, ["CONSUMER_GROUPS"])
    only, = admin.list_consumer_groups(queue_id=queue).data.items
    same("CreateQueue", "with the capability comes the primary group",
         (only.display_name, only.filter, only.lifecycle_state, only.queue_id), ("everybody", "", "ACTIVE", queue))
    return only.id


def life(admin, queue):
    details = models.CreateConsumerGroupDetails(display_name="shop", queue_id=queue, filter=":kind", dead_letter_queue_delivery_count=7,
                                                freeform_tags={"team": "post"}, defined_tags={"ops": {"cost": 42}})
    made = admin.create_consumer_group(details, opc_retry_token="group-1")
    request = finished(admin, made)
    same("CreateConsumerGroup", "the work request",
         (made.status, request.operation_type, [(r.entity_type.lower(), r.action_type) for r in request.resources]),
         (202, "CREATE_CONSUMER_GROUP", [("consumergroup", "CREATED")]))
    again = admin.create_consumer_group(details, opc_retry_token="group-1")
    same("CreateConsumerGroup", "the same retry token: the same work request", again.headers["opc-work-request-id"], request.id)
    group = request.resources[0].identifier
    first = admin.get_consumer_group(group)
    g = first.data
    same("GetConsumerGroup", "every setting", (
        g.id, g.display_name, g.queue_id, g.filter, g.lifecycle_state, g.dead_letter_queue_delivery_count, g.freeform_tags, g.defined_tags,
    ), (group, "shop", queue, ":kind", "ACTIVE", 7, {"team": "post"}, {"ops": {"cost": 42}}))

    def update(match, **fields):
        return admin.update_consumer_group(group, models.UpdateConsumerGroupDetails(**fields), if_match=match)

    request = finished(admin, update(first.headers["etag"], display_name="orders", filter=':kind = "order"', dead_letter_queue_delivery_count=-1))
    now = admin.get_consumer_group(group)
    g = now.data
    same("UpdateConsumerGroup", "what was named has changed, the rest stays; -1 unsets the delivery count",
         (request.operation_type, request.resources[0].action_type, g.display_name, g.filter, g.dead_letter_queue_delivery_count, g.freeform_tags),
         ("UPDATE_CONSUMER_GROUP", "UPDATED", "orders", ':kind = "order"', None, {"team": "post"}))
    true("UpdateConsumerGroup", "a new etag", now.headers["etag"] != first.headers["etag"])
    refused("UpdateConsumerGroup", "an old etag: 412", 412, "NoEtagMatch",
            admin.update_consumer_group, group, models.UpdateConsumerGroupDetails(), if_match=first.headers["etag"])
    finished(admin, update(None, dead_letter_queue_delivery_count=1))
    return group


def lists(admin, queue, primary, orders, bills):
    def ids(**how):
        return [g.id for g in admin.list_consumer_groups(**how).data.items]

    same("ListConsumerGroups", "of a queue, newest first", ids(queue_id=queue), [bills, orders, primary])
    same("ListConsumerGroups", "by name", ids(queue_id=queue, sort_by="displayName"), [bills, primary, orders])
    same("ListConsumerGroups", "of a name, an id, a state",
         (ids(queue_id=queue, display_name="bills"), ids(id=orders), ids(queue_id=queue, lifecycle_state="INACTIVE")), ([bills], [orders], []))
    same("ListConsumerGroups", "of a state alone", sorted(ids(lifecycle_state="ACTIVE")), sorted([primary, orders, bills]))
    same("paging", "ListConsumerGroups one by one", [g.id for g in oci.pagination.list_call_get_all_results(
        admin.list_consumer_groups, queue_id=queue, limit=1).data], [bills, orders, primary])


def fan_out(messages, queue, primary, orders, bills):
    put(messages, queue, entry("order", kind="order"), entry("small", kind="bill", amount="9"), entry("big", kind="bill", amount="900"))

    def got(**how):
        return {m.content: m for m in get(messages, queue, visibility_in_seconds=600, **how)}

    everybody, o, b = got(), got(consumer_group_id=orders), got(consumer_group_id=bills)
    same("groups", "each gets what its filter takes, the primary one gets all",
         (sorted(everybody), list(o), list(b)), (["big", "order", "small"], ["order"], ["big"]))
    same("groups", "copies have delivery counts of their own", [m.delivery_count for c in (everybody, o, b) for m in c.values()], [1] * 5)
    same("GetMessages", "of a group by its name, and of the primary one by its id",
         (got(consumer_group_id="Orders"), got(consumer_group_id=primary)), ({}, {}))

    receipt = o["order"].receipt
    refused("groups", "a receipt is good in its own group only: 404", 404, "NotAuthorizedOrNotFound",
            messages.update_message, queue, receipt, visibility(1), consumer_group_id=bills)
    true("UpdateMessage", "in a group",
         messages.update_message(queue, receipt, visibility(900), consumer_group_id=orders).data.visible_after > o["order"].visible_after)
    r = messages.update_messages(queue, models.UpdateMessagesDetails(entries=[
        models.UpdateMessagesDetailsEntry(receipt=x.receipt, visibility_in_seconds=900) for x in (o["order"], b["big"])]), consumer_group_id=orders).data
    same("UpdateMessages", "in a group; a receipt of another fails", [e.error_code for e in r.entries], [None, 404])
    same("GetStats", "of each group",
         [counts(messages, queue, consumer_group_id=g)[:2] for g in (primary, orders, bills)] + [counts(messages, queue)[:2]],
         [(0, 3), (0, 1), (0, 1), (0, 3)])
    same("GetStats", "names the group", messages.get_stats(queue, consumer_group_id=bills).data.consumer_group_id, bills)
    messages.delete_message(queue, receipt, consumer_group_id=orders)
    same("DeleteMessage", "in a group: the others keep theirs",
         [counts(messages, queue, consumer_group_id=g)[:2] for g in (primary, orders, bills)], [(0, 3), (0, 0), (0, 1)])
    r = messages.delete_messages(queue, models.DeleteMessagesDetails(entries=[
        models.DeleteMessagesDetailsEntry(receipt=m.receipt) for m in (b["big"], everybody["big"])]), consumer_group_id=bills).data
    same("DeleteMessages", "in a group; a receipt of another fails", [e.error_code for e in r.entries], [None, 404])
    for m in everybody.values():
        messages.delete_message(queue, m.receipt)

    put(messages, queue, entry("1", channel="north", kind="order"), entry("2", channel="south", kind="other"))
    same("ListChannels", "of a group", (messages.list_channels(queue, consumer_group_id=orders).data.items,
                                        sorted(messages.list_channels(queue).data.items)), (["north"], ["north", "south"]))
    same("channels", "a filter in a group", (list(got(consumer_group_id=orders, channel_filter="south")),
                                             list(got(consumer_group_id=orders, channel_filter="north"))), ([], ["1"]))


def dead(messages, queue, orders, bills):
    """orders gives up after one delivery."""
    put(messages, queue, entry("poison", channel="dark", kind="order"))
    m, = get(messages, queue, channel_filter="dark", visibility_in_seconds=600, consumer_group_id=orders)
    messages.update_message(queue, m.receipt, visibility(0), consumer_group_id=orders)

    def letters(group):
        return counts(messages, queue, consumer_group_id=group)[2]

    same("dlq", "of a group, by its own delivery count", soon(lambda: letters(orders), 1), 1)
    same("dlq", "of a group is not that of another", (letters(bills), counts(messages, queue)[2]), (0, 0))
    m, = get(messages, queue + "_dlq", visibility_in_seconds=600, consumer_group_id=orders)
    same("dlq", "read by <queue>_dlq and the group", (m.content, get(messages, queue + "_dlq")), ("poison", []))


def purges(admin, messages, queue, groups):
    def purge(kind, group=None):
        finished(admin, admin.purge_queue(queue, models.PurgeQueueDetails(purge_type=kind, consumer_group_id=group)))
        return [sum(counts(messages, queue, consumer_group_id=g)) for g in groups]

    put(messages, queue, entry("x", kind="bill", amount="900"))
    same("PurgeQueue", "of one group", [n > 0 for n in purge("BOTH", groups[1])], [True, False, True])
    same("PurgeQueue", "of no group by name: of the primary one", [n > 0 for n in purge("BOTH")], [False, False, True])
    put(messages, queue, entry("x", kind="order"))
    same("PurgeQueue", "of all", purge("BOTH", "all"), [0, 0, 0])


def disabled(admin, messages, queue, orders):
    def enable(on):
        finished(admin, admin.update_consumer_group(orders, models.UpdateConsumerGroupDetails(is_enabled=on)))

    put(messages, queue, entry("kept", kind="order"), entry("held", kind="order"))
    held, = get(messages, queue, limit=1, visibility_in_seconds=600, consumer_group_id=orders)
    enable(False)
    same("GetConsumerGroup", "a disabled one is INACTIVE", admin.get_consumer_group(orders).data.lifecycle_state, "INACTIVE")
    refused("groups", "a disabled one gives nothing out: 409", 409, "IncorrectState", messages.get_messages, queue, consumer_group_id=orders)
    put(messages, queue, entry("missed", kind="order"))
    messages.delete_message(queue, held.receipt, consumer_group_id=orders)
    same("groups", "what is in flight can be finished, what waits is kept, nothing is added", counts(messages, queue, consumer_group_id=orders), (1, 0, 0, 0))
    enable(True)
    same("groups", "enabled again it gives what it kept",
         [m.id != held.id for m in get(messages, queue, visibility_in_seconds=600, consumer_group_id=orders)], [True])


def refusals(admin, messages, queue, primary, orders):
    def creates(what, status, code, **settings):
        settings.setdefault("queue_id", queue)
        settings.setdefault("display_name", "other")
        refused("CreateConsumerGroup", what, status, code, admin.create_consumer_group, models.CreateConsumerGroupDetails(**settings))

    creates("a name that is there, in other letters: 409", 409, "NotAuthorizedOrResourceAlreadyExists", display_name="ORDERS")
    creates("a filter that does not parse: 400", 400, "InvalidParameter", filter=":kind = ")
    creates("of an unknown queue: 400", 400, "RelatedResourceNotAuthorizedOrNotFound", queue_id="ocid1.queue.oc1.local.none")
    unknown = "ocid1.queueconsumergroup.oc1.local.none"
    for name, call, *args in (("GetConsumerGroup", admin.get_consumer_group), ("DeleteConsumerGroup", admin.delete_consumer_group),
                              ("UpdateConsumerGroup", admin.update_consumer_group, models.UpdateConsumerGroupDetails())):
        refused(name, "an unknown one: 404", 404, "NotAuthorizedOrNotFound", call, unknown, *args)
    refused("errors", "messages of an unknown group: 404", 404, "NotAuthorizedOrNotFound", messages.get_messages, queue, consumer_group_id=unknown)
    refused("DeleteConsumerGroup", "the primary one: 409", 409, "Conflict", admin.delete_consumer_group, primary)
    plain = create(admin, display_name="plain")
    refused("errors", "a group on a queue without groups: 400", 400, "InvalidParameter", messages.get_messages, plain, consumer_group_id=orders)
    delete(admin, plain)


def gone(admin, messages, queue, bills):
    refused("DeleteConsumerGroup", "an old etag: 412", 412, "NoEtagMatch", admin.delete_consumer_group, bills, if_match="old")
    request = finished(admin, admin.delete_consumer_group(bills, if_match=admin.get_consumer_group(bills).headers["etag"]))
    same("DeleteConsumerGroup", "the work request", (request.operation_type, request.resources[0].action_type), ("DELETE_CONSUMER_GROUP", "DELETED"))
    same("DeleteConsumerGroup", "the record stays to be read", admin.get_consumer_group(bills).data.lifecycle_state, "DELETED")
    refused("GetMessages", "of a deleted group: 404", 404, "NotAuthorizedOrNotFound", messages.get_messages, queue, consumer_group_id=bills)


def later(admin, messages):
    queue = create(admin, display_name="later")
    put(messages, queue, "before")
    details = models.UpdateQueueDetails(capabilities=[models.ConsumerGroupsCapabilityDetails(type="CONSUMER_GROUPS")])
    finished(admin, admin.update_queue(queue, details))
    group, = admin.list_consumer_groups(queue_id=queue).data.items
    same("UpdateQueue", "groups switched on: what was there is the primary group's", (group.display_name, [
        m.content for m in get(messages, queue, consumer_group_id=group.id, visibility_in_seconds=600)]), ("Primary Consumer Group", ["before"]))
    delete(admin, queue)

// Consumer groups: their life, and the fan-out of messages to them.
import { paginateResponses } from "oci-common";
import { models, requests } from "oci-queue";
import { millis, ok, refused, same } from "./checks";
import { admin, client, create, finished, get, put, remove, waiters } from "./connect";

const { LifecycleState } = models.ConsumerGroup;
const capability: models.ConsumerGroupsCapabilityDetails = {
  type: models.ConsumerGroupsCapabilityDetails.type,
  isPrimaryConsumerGroupEnabled: true,
  primaryConsumerGroupDisplayName: "everything",
};

export async function groups(): Promise<void> {
  const queueId = await create({ displayName: "fan", visibilityInSeconds: 600, capabilities: [capability] });
  const primary = await primaryOf(queueId);
  const orders = await created(queueId);
  const bills = await make({ displayName: "bills", queueId, filter: ':kind = "bill" AND :amount > 100' });
  await listed(queueId, primary, orders, bills);
  await fanOut(queueId, primary, orders, bills);
  await deadLetters(queueId, orders);
  await purged(queueId, primary, bills);
  await changed(queueId, orders);
  await refusals(queueId, primary, bills);
  await deleted(queueId, bills);
  await remove(queueId);
  await lateCapability();
}

async function primaryOf(queueId: string): Promise<string> {
  const { capabilities } = (await admin.getQueue({ queueId })).queue;
  same(capabilities?.map((c) => c.type), ["CONSUMER_GROUPS"], "capabilities");
  const [summary] = (await admin.listQueues({ id: queueId })).queueCollection.items;
  same(summary.capabilities, ["CONSUMER_GROUPS"], "capabilities in a list");
  ok("groups", "a queue names its capability, and so does the list");
  const { items } = (await admin.listConsumerGroups({ queueId })).consumerGroupCollection;
  same(items.map((g) => [g.displayName, g.lifecycleState, g.filter, g.queueId]), [["everything", "ACTIVE", "", queueId]], "groups");
  ok("groups", "the capability makes the primary group");
  return items[0].id;
}

async function make(createConsumerGroupDetails: models.CreateConsumerGroupDetails): Promise<string> {
  const { opcWorkRequestId } = await admin.createConsumerGroup({ createConsumerGroupDetails });
  return (await finished(opcWorkRequestId, "CREATE_CONSUMER_GROUP", "CREATED", "consumergroup")).identifier;
}

async function created(queueId: string): Promise<string> {
  const details = { displayName: "orders", queueId, filter: ':kind = "order"', deadLetterQueueDeliveryCount: 1, freeformTags: { team: "post" } };
  const request = { createConsumerGroupDetails: details, opcRetryToken: "typescript-2" };
  const { opcWorkRequestId } = await admin.createConsumerGroup(request);
  same((await admin.createConsumerGroup(request)).opcWorkRequestId, opcWorkRequestId, "the work request of a retry");
  const { identifier: id } = await finished(opcWorkRequestId, "CREATE_CONSUMER_GROUP", "CREATED", "consumergroup");
  ok("CreateConsumerGroup", "with every setting, and once for a retry token");
  const got = await waiters.forConsumerGroup({ consumerGroupId: id }, LifecycleState.Active);
  const g = got!.consumerGroup;
  same([g.id, g.displayName, g.queueId, g.filter], [id, "orders", queueId, ':kind = "order"'], "group");
  same([g.deadLetterQueueDeliveryCount, g.freeformTags, millis(g.timeCreated) > 0], [1, { team: "post" }, true], "group");
  same(Boolean(got!.etag), true, "etag");
  ok("GetConsumerGroup", "what was sent comes back, and the SDK's waiter sees it active");
  return id;
}

async function listed(queueId: string, primary: string, orders: string, bills: string): Promise<void> {
  const list = async (r: requests.ListConsumerGroupsRequest) => (await admin.listConsumerGroups({ queueId, ...r })).consumerGroupCollection.items.map((g) => g.id);
  const { SortBy } = requests.ListConsumerGroupsRequest;
  same(await list({}), [bills, orders, primary], "groups of a queue");
  same(await list({ sortBy: SortBy.DisplayName }), [bills, primary, orders], "by name");
  same(await list({ sortOrder: models.SortOrder.Asc }), [primary, orders, bills], "by time");
  ok("ListConsumerGroups", "those of a queue, sorted by time and by name");
  same(await list({ displayName: "orders" }), [orders], "by display name");
  same(await list({ id: bills }), [bills], "by id");
  same(await list({ lifecycleState: LifecycleState.Inactive }), [], "by state");
  ok("ListConsumerGroups", "filtered by name, id and state");
  const ids: string[] = [];
  const pages = paginateResponses({ queueId, limit: 1 }, (r: requests.ListConsumerGroupsRequest) => admin.listConsumerGroups(r));
  for await (const { consumerGroupCollection } of pages) ids.push(...consumerGroupCollection.items.map((g) => g.id));
  same(ids, [bills, orders, primary], "all pages");
  ok("paging", "the SDK's paginator walks through ListConsumerGroups");
}

const message = (content: string, customProperties: { [key: string]: string }, channelId = "") => ({ content, metadata: { channelId, customProperties } });
const contents = (messages: models.GetMessage[]) => messages.map((m) => m.content).sort();

async function fanOut(queueId: string, primary: string, orders: string, bills: string): Promise<void> {
  await put(queueId, message("o", { kind: "order" }), message("b", { kind: "bill", amount: "50" }), message("B", { kind: "bill", amount: "200" }));
  const [o] = await get(queueId, { consumerGroupId: orders });
  const [b, ...more] = await get(queueId, { consumerGroupId: bills });
  same([o.content, b.content, more], ["o", "B", []], "what the groups got");
  const all = [...(await get(queueId, { limit: 1 })), ...(await get(queueId, { consumerGroupId: primary }))];
  same(contents(all), ["B", "b", "o"], "what the primary group got");
  same([...all.map((m) => m.deliveryCount), o.deliveryCount], [1, 1, 1, 1], "delivery counts");
  ok("groups", "each group gets its own copy of what its filter lets through");
  ok("GetMessages", "without a group those of the primary one");

  await refused(client.deleteMessage({ queueId, messageReceipt: b.receipt, consumerGroupId: orders }), 404, "NotAuthorizedOrNotFound");
  ok("groups", "a receipt is good in its own group only");
  const updated = await client.updateMessage({ queueId, messageReceipt: b.receipt, consumerGroupId: bills, updateMessageDetails: { visibilityInSeconds: 600 } });
  same(updated.updatedMessage.id, b.id, "updated");
  ok("UpdateMessage", "in a group");
  const batch = await client.updateMessages({ queueId, consumerGroupId: bills, updateMessagesDetails: { entries: [b, o].map(({ receipt }) => ({ receipt, visibilityInSeconds: 600 })) } });
  same(batch.updateMessagesResult.entries.map((e) => e.errorCode), [undefined, 404], "batch");
  ok("UpdateMessages", "in a group, with a receipt of another");
  const stats = async (consumerGroupId?: string) => {
    const s = (await client.getStats({ queueId, consumerGroupId })).queueStats;
    return [s.consumerGroupId, s.queue.inFlightMessages, s.queue.visibleMessages];
  };
  same(await stats(bills), [bills, 1, 0], "statistics of a group");
  await client.deleteMessage({ queueId, messageReceipt: b.receipt, consumerGroupId: bills });
  ok("DeleteMessage", "in a group");
  same(await stats(bills), [bills, 0, 0], "statistics of a group");
  same((await stats()).slice(1), [3, 0], "statistics of the primary group");
  ok("GetStats", "of a group, and without one of the primary");
  const gone = await client.deleteMessages({ queueId, consumerGroupId: orders, deleteMessagesDetails: { entries: [{ receipt: o.receipt }] } });
  same(gone.deleteMessagesResult, { clientFailures: 0, serverFailures: 0, entries: [{}] }, "batch");
  ok("DeleteMessages", "in a group");

  await put(queueId, message("x", { kind: "order" }, "north"));
  const channels = async (consumerGroupId: string) => (await client.listChannels({ queueId, consumerGroupId })).channelCollection.items;
  same([await channels(orders), await channels(bills)], [["north"], []], "channels of groups");
  ok("ListChannels", "of a group");
  const [x] = await get(queueId, { consumerGroupId: orders, channelFilter: "north" });
  same(x.content, "x", "by channel");
  ok("channels", "a filter inside a group");
  await client.deleteMessage({ queueId, messageReceipt: x.receipt, consumerGroupId: orders });
}

async function deadLetters(queueId: string, consumerGroupId: string): Promise<void> {
  await put(queueId, message("poison", { kind: "order" }));
  const [m] = await get(queueId, { consumerGroupId, visibilityInSeconds: 1 });
  const [dead] = await get(`${queueId}_dlq`, { consumerGroupId, timeoutInSeconds: 20 });
  same([dead.id, dead.content], [m.id, "poison"], "dead letter");
  await client.deleteMessage({ queueId: `${queueId}_dlq`, messageReceipt: dead.receipt, consumerGroupId });
  ok("dlq", "a group has dead letters of its own, by its own count");
}

async function purged(queueId: string, primary: string, bills: string): Promise<void> {
  const purge = async (consumerGroupId?: string) => {
    const purgeQueueDetails = { purgeType: models.PurgeQueueDetails.PurgeType.Both, consumerGroupId };
    await finished((await admin.purgeQueue({ queueId, purgeQueueDetails })).opcWorkRequestId, "PURGE_QUEUE", "UPDATED");
    const size = async (g: string) => (await client.getStats({ queueId, consumerGroupId: g })).queueStats.queue.sizeInBytes;
    return [(await size(primary)) > 0, (await size(bills)) > 0];
  };
  const bill = message("B", { kind: "bill", amount: "200" });
  await put(queueId, bill);
  same(await purge(bills), [true, false], "after a purge of one group");
  await put(queueId, bill);
  same(await purge(), [false, true], "after a purge of no group by name");
  await put(queueId, bill);
  same(await purge("all"), [false, false], "after a purge of all groups");
  ok("PurgeQueue", "one group, the primary one, all");
}

async function changed(queueId: string, consumerGroupId: string): Promise<void> {
  const update = (updateConsumerGroupDetails: models.UpdateConsumerGroupDetails, ifMatch?: string) => admin.updateConsumerGroup({ consumerGroupId, updateConsumerGroupDetails, ifMatch });
  const before = await admin.getConsumerGroup({ consumerGroupId });
  const done = await update({ displayName: "orders north", filter: ":region", deadLetterQueueDeliveryCount: -1 }, before.etag);
  await finished(done.opcWorkRequestId, "UPDATE_CONSUMER_GROUP", "UPDATED", "consumergroup");
  const { consumerGroup: g, etag } = await admin.getConsumerGroup({ consumerGroupId });
  same([g.displayName, g.filter, g.deadLetterQueueDeliveryCount, g.freeformTags], ["orders north", ":region", undefined, { team: "post" }], "changed");
  ok("UpdateConsumerGroup", "what is named changes, the rest stays");
  same(etag === before.etag, false, "the etag after a change");
  await refused(update({ filter: "" }, before.etag), 412, "NoEtagMatch");
  ok("UpdateConsumerGroup", "only with the etag of now");

  await put(queueId, message("kept", { region: "north" }));
  await finished((await update({ isEnabled: false })).opcWorkRequestId, "UPDATE_CONSUMER_GROUP", "UPDATED", "consumergroup");
  await waiters.forConsumerGroup({ consumerGroupId }, LifecycleState.Inactive);
  await refused(get(queueId, { consumerGroupId }), 409, "IncorrectState");
  await put(queueId, message("missed", { region: "north" }));
  await finished((await update({ isEnabled: true })).opcWorkRequestId, "UPDATE_CONSUMER_GROUP", "UPDATED", "consumergroup");
  await waiters.forConsumerGroup({ consumerGroupId }, LifecycleState.Active);
  same(contents(await get(queueId, { consumerGroupId })), ["kept"], "after it was disabled");
  ok("groups", "a disabled group gives nothing, gets nothing and keeps what it had");
}

async function refusals(queueId: string, primary: string, bills: string): Promise<void> {
  await refused(make({ displayName: "BILLS", queueId }), 409, "NotAuthorizedOrResourceAlreadyExists");
  await refused(make({ displayName: "bad", queueId, filter: ":a = = 1" }), 400, "InvalidParameter");
  await refused(make({ displayName: "lost", queueId: "ocid1.queue.oc1.local.nobody" }), 400, "RelatedResourceNotAuthorizedOrNotFound");
  ok("CreateConsumerGroup", "refused with a name that is there, a bad filter, an unknown queue");
  await refused(admin.deleteConsumerGroup({ consumerGroupId: primary }), 409, "Conflict");
  ok("DeleteConsumerGroup", "never the primary one");
  await refused(get(queueId, { consumerGroupId: "ocid1.queueconsumergroup.oc1.local.nobody" }), 404, "NotAuthorizedOrNotFound");
  const plain = await create({ displayName: "plain" });
  await refused(get(plain, { consumerGroupId: bills }), 400, "InvalidParameter");
  await remove(plain);
  ok("errors", "404 of an unknown group, 400 of a group on a queue without any");
}

async function deleted(queueId: string, consumerGroupId: string): Promise<void> {
  await refused(admin.deleteConsumerGroup({ consumerGroupId, ifMatch: "stale" }), 412, "NoEtagMatch");
  const { etag } = await admin.getConsumerGroup({ consumerGroupId });
  const done = await admin.deleteConsumerGroup({ consumerGroupId, ifMatch: etag });
  await finished(done.opcWorkRequestId, "DELETE_CONSUMER_GROUP", "DELETED", "consumergroup");
  await waiters.forConsumerGroup({ consumerGroupId }, LifecycleState.Deleted);
  await refused(get(queueId, { consumerGroupId }), 404, "NotAuthorizedOrNotFound");
  ok("DeleteConsumerGroup", "the SDK's waiter sees it deleted, and it gives nothing more");
}

async function lateCapability(): Promise<void> {
  const queueId = await create({ displayName: "late" });
  await put(queueId, "before");
  const done = await admin.updateQueue({ queueId, updateQueueDetails: { capabilities: [capability] } });
  await finished(done.opcWorkRequestId, "UPDATE_QUEUE", "UPDATED");
  const [group] = (await admin.listConsumerGroups({ queueId })).consumerGroupCollection.items;
  same(contents(await get(queueId, { consumerGroupId: group.id })), ["before"], "what the primary group holds");
  ok("UpdateQueue", "the capability added later gives the primary group what was there");
  await remove(queueId);
}

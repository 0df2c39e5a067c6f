// The life of a queue and its work requests.
import { paginateResponses } from "oci-common";
import { models, requests } from "oci-queue";
import { millis, ok, refused, same } from "./checks";
import { admin, client, compartment, create, finished, put, remove, server, waiters } from "./connect";

export async function queues(): Promise<void> {
  const orders = await created();
  await read(orders);
  await listed(orders);
  await changed(orders);
  await purged(orders);
  await workRequests(orders);
  await deleted(orders);
}

const details: models.CreateQueueDetails = {
  displayName: "orders",
  compartmentId: compartment,
  retentionInSeconds: 3600,
  visibilityInSeconds: 20,
  timeoutInSeconds: 5,
  channelConsumptionLimit: 50,
  deadLetterQueueDeliveryCount: 3,
  customEncryptionKeyId: "ocid1.key.oc1..k",
  freeformTags: { team: "Bücher 書" },
  definedTags: { ops: { cost: 42 } },
};

async function created(): Promise<string> {
  const made = await admin.createQueue({ createQueueDetails: details, opcRetryToken: "typescript-1" });
  const { workRequest } = await admin.getWorkRequest({ workRequestId: made.opcWorkRequestId });
  same([workRequest.id, workRequest.compartmentId, workRequest.resources.length], [made.opcWorkRequestId, compartment, 1], "work request");
  ok("GetWorkRequest", "it is there as soon as its operation was answered");
  const queue = await finished(made.opcWorkRequestId, "CREATE_QUEUE", "CREATED");
  ok("GetWorkRequest", "the SDK's waiter sees it succeed");
  ok("CreateQueue", "with every setting");

  const again = await admin.createQueue({ createQueueDetails: details, opcRetryToken: "typescript-1" });
  same(again.opcWorkRequestId, made.opcWorkRequestId, "the work request of a retry");
  ok("CreateQueue", "a retry token makes one queue");
  const other = { ...details, displayName: "another" };
  await refused(admin.createQueue({ createQueueDetails: other, opcRetryToken: "typescript-1" }), 400, "InvalidParameter");
  ok("CreateQueue", "a retry token belongs to one request");
  return queue.identifier;
}

async function read(queueId: string): Promise<void> {
  const got = await admin.getQueue({ queueId, opcRequestId: "mine" });
  const { id, timeCreated, timeUpdated, lifecycleState, messagesEndpoint, ...rest } = got.queue;
  delete rest.capabilities;
  delete rest.systemTags;
  same(rest, details, "settings");
  same([id, lifecycleState, messagesEndpoint], [queueId, "ACTIVE", server], "queue");
  same(millis(timeCreated), millis(timeUpdated), "times");
  ok("GetQueue", "what was sent comes back, with state, times and endpoint");
  same(got.opcRequestId.split("/")[0], "mine", "request id");
  ok("GetQueue", "the caller's request id is in the answer");
  const waited = await waiters.forQueue({ queueId }, models.Queue.LifecycleState.Active);
  same([waited?.queue.id, waited?.etag], [queueId, got.etag], "what the waiter gives");
  ok("GetQueue", "the SDK's waiter sees it active");
  client.endpoint = messagesEndpoint; // as OCI's manual says
}

async function listed(orders: string): Promise<void> {
  const alpha = await create({ displayName: "alpha" });
  const beta = await create({ displayName: "beta" });
  const elsewhere = await create({ displayName: "orders", compartmentId: "ocid1.compartment.oc1..elsewhere" });
  const list = async (r: requests.ListQueuesRequest) => (await admin.listQueues(r)).queueCollection.items.map((q) => q.id);
  const { SortBy } = requests.ListQueuesRequest;

  const all = { compartmentId: compartment };
  same(await list(all), [beta, alpha, orders], "queues of a compartment");
  ok("ListQueues", "those of a compartment, the newest first");
  same(await list({ ...all, sortBy: SortBy.DisplayName }), [alpha, beta, orders], "by name");
  same(await list({ ...all, sortBy: SortBy.TimeCreated, sortOrder: models.SortOrder.Asc }), [orders, alpha, beta], "by time");
  ok("ListQueues", "sorted by name and by time");
  same(await list({ displayName: "orders" }), [elsewhere, orders], "by display name");
  same(await list({ id: alpha }), [alpha], "by id");
  same(await list({ ...all, lifecycleState: models.Queue.LifecycleState.Failed }), [], "by state");
  ok("ListQueues", "filtered by name, id and state");

  const first = await admin.listQueues({ ...all, limit: 2 });
  same([first.queueCollection.items.length, Boolean(first.opcNextPage)], [2, true], "first page");
  const second = await admin.listQueues({ ...all, limit: 2, page: first.opcNextPage });
  same([second.queueCollection.items.length, Boolean(second.opcNextPage)], [1, false], "second page");
  ok("paging", "pages of ListQueues by hand");
  const ids: string[] = [];
  const pages = paginateResponses({ ...all, limit: 1 }, (r: requests.ListQueuesRequest) => admin.listQueues(r));
  for await (const { queueCollection } of pages) ids.push(...queueCollection.items.map((q) => q.id));
  same(ids, [beta, alpha, orders], "all pages");
  ok("paging", "the SDK's paginator walks through ListQueues");
  await remove(elsewhere);
  await remove(alpha);
  await remove(beta);
  same(await list(all), [orders], "without what was deleted");
  ok("ListQueues", "deleted ones are gone from it");
}

async function changed(queueId: string): Promise<void> {
  const before = await admin.getQueue({ queueId });
  const update = (updateQueueDetails: models.UpdateQueueDetails, ifMatch?: string) => admin.updateQueue({ queueId, updateQueueDetails, ifMatch });
  const done = await update({ displayName: "orders north", visibilityInSeconds: 30, customEncryptionKeyId: "" }, before.etag);
  await finished(done.opcWorkRequestId, "UPDATE_QUEUE", "UPDATED");
  const after = await admin.getQueue({ queueId });
  const { displayName, visibilityInSeconds, timeoutInSeconds, customEncryptionKeyId } = after.queue;
  same([displayName, visibilityInSeconds, timeoutInSeconds, customEncryptionKeyId], ["orders north", 30, 5, undefined], "changed");
  ok("UpdateQueue", "what is named changes, the rest stays");
  same(after.etag === before.etag, false, "the etag after a change");
  await refused(update({ visibilityInSeconds: 40 }, before.etag), 412, "NoEtagMatch");
  ok("UpdateQueue", "only with the etag of now");

  const change = { queueId, changeQueueCompartmentDetails: { compartmentId: compartment + "2" } };
  await refused(admin.changeQueueCompartment({ ...change, ifMatch: before.etag }), 412, "NoEtagMatch");
  const moved = await admin.changeQueueCompartment({ ...change, ifMatch: after.etag });
  await finished(moved.opcWorkRequestId, "MOVE_QUEUE", "UPDATED");
  same((await admin.getQueue({ queueId })).queue.compartmentId, compartment + "2", "compartment");
  ok("ChangeQueueCompartment", "it is in the other compartment");
}

async function purged(queueId: string): Promise<void> {
  const { PurgeType } = models.PurgeQueueDetails;
  const purge = async (purgeType: models.PurgeQueueDetails.PurgeType, channelIds?: string[]) => {
    const done = await admin.purgeQueue({ queueId, purgeQueueDetails: { purgeType, channelIds } });
    await finished(done.opcWorkRequestId, "PURGE_QUEUE", "UPDATED");
    return (await client.getStats({ queueId })).queueStats.queue.visibleMessages;
  };
  await put(queueId, "a", { content: "b", metadata: { channelId: "north" } });
  same(await purge(PurgeType.Dlq), 2, "left by a purge of dead letters");
  same(await purge(PurgeType.Normal, ["north"]), 1, "left by a purge of a channel");
  same(await purge(PurgeType.Both), 0, "left by a purge of all");
  ok("PurgeQueue", "dead letters, a channel, all");
}

async function workRequests(queueId: string): Promise<void> {
  const all = { compartmentId: compartment + "2" };
  const { items } = (await admin.listWorkRequests(all)).workRequestSummaryCollection;
  const operations = items.filter((w) => w.resources[0].identifier === queueId).map((w) => w.operationType as string);
  same(operations.includes("PURGE_QUEUE"), true, `${operations}`);
  ok("ListWorkRequests", "those of a compartment");
  const workRequestId = items[0].id;
  const one = (await admin.listWorkRequests({ workRequestId })).workRequestSummaryCollection.items;
  same(one, [items[0]], "by its id");
  ok("ListWorkRequests", "one by its id");
  const ids: string[] = [];
  const pages = paginateResponses({ ...all, limit: 1 }, (r: requests.ListWorkRequestsRequest) => admin.listWorkRequests(r));
  for await (const { workRequestSummaryCollection } of pages) ids.push(...workRequestSummaryCollection.items.map((w) => w.id));
  same(ids, items.map((w) => w.id), "all pages");
  ok("paging", "the SDK's paginator walks through ListWorkRequests");
  same((await admin.listWorkRequestErrors({ workRequestId })).workRequestErrorCollection.items, [], "errors");
  ok("ListWorkRequestErrors", "none of what succeeded");
  const logs = (await admin.listWorkRequestLogs({ workRequestId })).workRequestLogEntryCollection.items;
  same([logs[0].message !== "", millis(logs[0].timestamp) >= millis(items[0].timeAccepted)], [true, true], "logs");
  ok("ListWorkRequestLogs", "entries with their time");
}

async function deleted(queueId: string): Promise<void> {
  await refused(admin.deleteQueue({ queueId, ifMatch: "stale" }), 412, "NoEtagMatch");
  const { etag } = await admin.getQueue({ queueId });
  const done = await admin.deleteQueue({ queueId, ifMatch: etag });
  await finished(done.opcWorkRequestId, "DELETE_QUEUE", "DELETED");
  const gone = await waiters.forQueue({ queueId }, models.Queue.LifecycleState.Deleted);
  same(gone?.queue.lifecycleState, "DELETED", "state");
  ok("DeleteQueue", "the SDK's waiter sees it deleted");
  await refused(put(queueId, "late"), 404, "NotAuthorizedOrNotFound");
  ok("DeleteQueue", "nothing can be put any more");
}

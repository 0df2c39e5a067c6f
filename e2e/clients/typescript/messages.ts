// Messages from end to end, channels, statistics and dead letters.
import { paginateResponses } from "oci-common";
import { models, requests } from "oci-queue";
import { millis, ok, same } from "./checks";
import { admin, client, create, get, put, remove } from "./connect";

export async function messages(): Promise<void> {
  const queueId = await create({ displayName: "letters", visibilityInSeconds: 600 });
  await there(queueId);
  await longPoll(queueId);
  await visibility(queueId);
  await batches(queueId);
  await channels(queueId);
  await remove(queueId);
  await names();
  await deadLetters();
}

const contents = (messages: models.GetMessage[]) => messages.map((m) => m.content).sort();

async function there(queueId: string): Promise<void> {
  const text = 'Grüße, 世界 🎈 \u0000 "quoted"\n<tag>';
  const [answer] = await put(queueId, { content: text, metadata: { channelId: "", customProperties: { kind: "Größe 書" } } });
  same([Number.isSafeInteger(answer.id), millis(answer.expireAfter) > Date.now()], [true, true], "answer");
  ok("PutMessages", "an id and an end of life");

  const [m] = await get(queueId, { visibilityInSeconds: 300 });
  same([m.id, m.content, m.deliveryCount, m.expireAfter], [answer.id, text, 1, answer.expireAfter], "message");
  ok("GetMessages", "the same text comes back, of any script");
  same(m.metadata?.customProperties, { kind: "Größe 書" }, "properties");
  ok("GetMessages", "custom properties come back");
  same([millis(m.createdAt) < millis(m.visibleAfter), millis(m.visibleAfter) < millis(m.expireAfter)], [true, true], "times");
  same(await get(queueId), [], "a hidden message");
  ok("GetMessages", "a message that was given is hidden, and nothing is an empty list");

  await client.deleteMessage({ queueId, messageReceipt: m.receipt });
  await client.deleteMessage({ queueId, messageReceipt: m.receipt });
  ok("DeleteMessage", "once, and again as a retry");
  const many = Array.from({ length: 20 }, (_, i) => `${i}`);
  same((await put(queueId, ...many)).length, 20, "answers");
  ok("PutMessages", "twenty at once");
  const few = await get(queueId, { limit: 5 });
  same(few.length, 5, "at most five");
  same(contents([...few, ...(await get(queueId))]), [...many].sort(), "all of them");
  ok("GetMessages", "at most as many as asked for, each once");
}

async function longPoll(queueId: string): Promise<void> {
  const poll = get(queueId, { timeoutInSeconds: 20 });
  await put(queueId, "at last");
  const [m] = await poll;
  same(m.content, "at last", "what a long poll gives");
  ok("GetMessages", "a long poll ends with the first message");
  await client.deleteMessage({ queueId, messageReceipt: m.receipt });
  same(await get(queueId, { timeoutInSeconds: 1 }), [], "a long poll of nothing");
  ok("GetMessages", "a long poll ends without one");
}

async function visibility(queueId: string): Promise<void> {
  await put(queueId, "mine");
  const [m] = await get(queueId);
  const update = async (visibilityInSeconds: number, receipt = m.receipt) =>
    (await client.updateMessage({ queueId, messageReceipt: receipt, updateMessageDetails: { visibilityInSeconds } })).updatedMessage;
  const longer = await update(3600);
  same([longer.id, millis(longer.visibleAfter) > millis(m.visibleAfter)], [m.id, true], "hidden for longer");
  ok("UpdateMessage", "hidden for longer");
  await update(0);
  const [again] = await get(queueId);
  same([again.id, again.deliveryCount], [m.id, 2], "given back");
  ok("UpdateMessage", "given back it comes again, counted");
  await client.deleteMessage({ queueId, messageReceipt: again.receipt });
}

async function batches(queueId: string): Promise<void> {
  await put(queueId, "a", "b");
  const [a, b] = await get(queueId);
  const updates = [a.receipt, "no-receipt", b.receipt].map((receipt) => ({ receipt, visibilityInSeconds: 1200 }));
  const updated = (await client.updateMessages({ queueId, updateMessagesDetails: { entries: updates } })).updateMessagesResult;
  same([updated.clientFailures, updated.serverFailures, updated.entries.length], [1, 0, 3], "counts");
  same([updated.entries[0].id, updated.entries[1].id, updated.entries[2].id], [a.id, undefined, b.id], "entries");
  same([millis(updated.entries[0].visibleAfter) > millis(a.visibleAfter), updated.entries[1].errorCode], [true, 400], "entries");
  ok("UpdateMessages", "entry by entry, with one that fails");
  const entries = [{ receipt: a.receipt }, { receipt: "no-receipt" }, { receipt: b.receipt }];
  const deleted = (await client.deleteMessages({ queueId, deleteMessagesDetails: { entries } })).deleteMessagesResult;
  same([deleted.clientFailures, deleted.serverFailures], [1, 0], "counts");
  same(deleted.entries.map((e) => e.errorCode), [undefined, 400, undefined], "entries");
  same(Boolean(deleted.entries[1].errorMessage), true, "why not");
  ok("DeleteMessages", "entry by entry, with one that fails");
}

async function channels(queueId: string): Promise<void> {
  for (const channelId of ["north", "north-west", "south"]) await put(queueId, { content: `to ${channelId}`, metadata: { channelId } });
  const [m] = await get(queueId, { channelFilter: "south" });
  same([m.content, m.metadata?.channelId], ["to south", "south"], "by channel");
  ok("channels", "a filter gives the messages of a channel");
  const list = async (r: Partial<requests.ListChannelsRequest>) => (await client.listChannels({ queueId, ...r })).channelCollection.items.sort();
  same(await list({}), ["north", "north-west", "south"], "channels");
  same(await list({ channelFilter: "north*" }), ["north", "north-west"], "channels by pattern");
  ok("ListChannels", "those that hold messages, by pattern too");
  const pages: string[] = [];
  const responses = paginateResponses({ queueId, limit: 1 }, (r: requests.ListChannelsRequest) => client.listChannels(r));
  for await (const { channelCollection } of responses) pages.push(...channelCollection.items);
  same(pages.sort(), ["north", "north-west", "south"], "all pages");
  ok("paging", "the SDK's paginator walks through ListChannels");

  const stats = async (channelId?: string) => (await client.getStats({ queueId, channelId })).queueStats;
  const { queue, dlq, channelId } = await stats("south");
  same([channelId, queue.visibleMessages, queue.inFlightMessages, queue.sizeInBytes, dlq.sizeInBytes], ["south", 0, 1, 8, 0], "of a channel");
  ok("GetStats", "of a channel");
  await client.deleteMessage({ queueId, messageReceipt: m.receipt });
  const rest = [...(await get(queueId, { channelFilter: "north*" })), ...(await get(queueId, { channelFilter: "north*" }))];
  same(contents(rest), ["to north", "to north-west"], "by pattern");
  ok("channels", "a pattern gives one channel after the other");
  await client.deleteMessages({ queueId, deleteMessagesDetails: { entries: rest.map(({ receipt }) => ({ receipt })) } });
}

/** What must be spelled otherwise in an address. */
async function names(): Promise<void> {
  const displayName = "Größe 100% & mehr?";
  const queueId = await create({ displayName });
  same((await admin.getQueue({ queueId: displayName })).queue.id, queueId, "queue by name");
  ok("GetQueue", "by a name that needs encoding");
  const channelId = "a+b:c@d=e.f_g-h";
  await put(displayName, { content: "x", metadata: { channelId } });
  // The SDK encodes paths, but no values of queries.
  const encoded = encodeURIComponent(channelId);
  const { queue } = (await client.getStats({ queueId: displayName, channelId: encoded })).queueStats;
  same(queue.visibleMessages, 1, "messages of the channel");
  const [m] = await get(displayName, { channelFilter: encoded });
  await client.deleteMessage({ queueId: displayName, messageReceipt: m.receipt });
  same(m.metadata?.channelId, channelId, "channel");
  ok("channels", "a channel whose name needs encoding");
  await remove(queueId);
}

async function deadLetters(): Promise<void> {
  const queueId = await create({ displayName: "poison", visibilityInSeconds: 600, deadLetterQueueDeliveryCount: 1 });
  const dlq = `${queueId}_dlq`;
  await put(queueId, { content: "bad", metadata: { channelId: "north", customProperties: { k: "v" } } });
  const [m] = await get(queueId, { visibilityInSeconds: 1 }); // its only delivery, and nobody deletes it
  const [dead] = await get(dlq, { timeoutInSeconds: 20 });
  same([dead.id, dead.content, dead.deliveryCount, dead.metadata], [m.id, "bad", 2, { channelId: "north", customProperties: { k: "v" } }], "dead letter");
  ok("dlq", "it is read as a queue whose id ends in _dlq");
  const { queue, dlq: counters } = (await client.getStats({ queueId })).queueStats;
  same([queue.visibleMessages + queue.inFlightMessages, counters.inFlightMessages, counters.sizeInBytes], [0, 1, 5], "statistics");
  ok("GetStats", "of a queue and its dead letters");
  await client.updateMessage({ queueId: dlq, messageReceipt: dead.receipt, updateMessageDetails: { visibilityInSeconds: 0 } });
  const [again] = await get(dlq);
  await client.deleteMessage({ queueId: dlq, messageReceipt: again.receipt });
  same((await client.getStats({ queueId })).queueStats.dlq.inFlightMessages, 0, "dead letters");
  ok("dlq", "dead letters are updated and deleted there");
  await remove(queueId);
}

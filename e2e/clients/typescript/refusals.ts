// What the SDK makes of the server's refusals.
import { ok, refused, same } from "./checks";
import { admin, client, create, get, put, remove } from "./connect";

export async function refusals(): Promise<void> {
  const queueId = await create({ displayName: "refusals" });
  const nobody = "ocid1.queue.oc1.local.nobody";
  const e = await refused(admin.getQueue({ queueId: nobody, opcRequestId: "mine" }), 404, "NotAuthorizedOrNotFound");
  same(e.opcRequestId?.split("/")[0], "mine", "request id");
  await refused(get(nobody), 404, "NotAuthorizedOrNotFound");
  ok("errors", "404 of a queue that is not there, with the caller's request id");

  const bad = await refused(create({ retentionInSeconds: 5 }), 400, "InvalidParameter");
  same(bad.message.includes("retentionInSeconds"), true, bad.message);
  await refused(get(queueId, { limit: 21 }), 400, "InvalidParameter");
  await refused(put(queueId, { content: "x", metadata: { channelId: "", customProperties: { "größe": "1" } } }), 400, "InvalidParameter");
  ok("errors", "400 of a value out of its range, which it names");
  await refused(put(queueId, "x".repeat((256 << 10) + 1)), 413, "PayloadTooLarge");
  ok("errors", "413 of a message that is too large");
  await refused(admin.deleteQueue({ queueId, ifMatch: "stale" }), 412, "NoEtagMatch");
  ok("errors", "412 of an etag that is not that of now");

  await put(queueId, "x");
  const [first] = await get(queueId, { visibilityInSeconds: 0 });
  await get(queueId);
  await refused(client.deleteMessage({ queueId, messageReceipt: first.receipt }), 404, "NotAuthorizedOrNotFound");
  await refused(client.deleteMessage({ queueId, messageReceipt: "no-receipt" }), 400, "InvalidParameter");
  ok("errors", "404 of a receipt whose message went to another, 400 of none");
  await remove(queueId);
}

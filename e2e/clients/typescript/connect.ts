// The SDK's two clients, with nothing of their own but the endpoint.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { FixedTimeDelayStrategy, MaxTimeTerminationStrategy, SimpleAuthenticationDetailsProvider } from "oci-common";
import { QueueAdminClient, QueueAdminWaiter, QueueClient, models } from "oci-queue";
import { millis, same } from "./checks";

const server = process.env.QUEUED ?? "http://127.0.0.1:8080";

// A server without users takes every signature: the key was made just now.
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const key = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
const authenticationDetailsProvider = new SimpleAuthenticationDetailsProvider("tenancy", "user", "fingerprint", key, null);

const admin = new QueueAdminClient({ authenticationDetailsProvider });
admin.endpoint = server;
const client = new QueueClient({ authenticationDetailsProvider });
client.endpoint = server;

/** The SDK's waiters, which would sleep for longer than an answer takes here. */
const waiters: QueueAdminWaiter = admin.createWaiters({
  delayStrategy: new FixedTimeDelayStrategy(0.1),
  terminationStrategy: new MaxTimeTerminationStrategy(60),
});

export { admin, client, server, waiters };

export const compartment = "ocid1.compartment.oc1..typescript";

type Entity = "queue" | "consumergroup";

/** Follows a work request to its end, and gives what it was about. */
export async function finished(workRequestId: string, operation: string, action: string, entity: Entity = "queue"): Promise<models.WorkRequestResource> {
  const { workRequest: w } = await waiters.forWorkRequest({ workRequestId });
  same([w.operationType, w.status, w.percentComplete], [operation, "SUCCEEDED", 100], "work request");
  same(millis(w.timeFinished) >= millis(w.timeAccepted), true, "times of a work request");
  const resource = w.resources.find((r) => r.entityType === entity);
  assert(resource, `a work request without a ${entity}`);
  same(resource.actionType, action, "what a work request did");
  return resource;
}

/** Makes a queue and gives its OCID. */
export async function create(details: Partial<models.CreateQueueDetails>): Promise<string> {
  const createQueueDetails = { displayName: "queue", compartmentId: compartment, ...details };
  const made = await admin.createQueue({ createQueueDetails });
  return (await finished(made.opcWorkRequestId, "CREATE_QUEUE", "CREATED")).identifier;
}

export async function remove(queueId: string): Promise<void> {
  await finished((await admin.deleteQueue({ queueId })).opcWorkRequestId, "DELETE_QUEUE", "DELETED");
}

/** Gets without waiting, unless told otherwise. */
export async function get(queueId: string, options: Omit<Parameters<typeof client.getMessages>[0], "queueId"> = {}): Promise<models.GetMessage[]> {
  const got = await client.getMessages({ queueId, timeoutInSeconds: 0, ...options });
  return got.getMessages.messages;
}

/** Puts messages of these contents. */
export async function put(queueId: string, ...messages: (string | models.PutMessagesDetailsEntry)[]): Promise<models.PutMessage[]> {
  const entries = messages.map((m) => (typeof m === "string" ? { content: m } : m));
  return (await client.putMessages({ queueId, putMessagesDetails: { messages: entries } })).putMessages.messages;
}

// Checks queued with the OCI SDK for TypeScript: every operation of the Queue
// API once at least, as a program written for OCI calls it.
import { queues } from "./queues";
import { messages } from "./messages";
import { refusals } from "./refusals";
import { groups } from "./groups";
import { admin, client } from "./connect";

async function main(): Promise<void> {
  await queues();
  await messages();
  await refusals();
  await groups();
  admin.close();
  client.close();
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});

// What the program says of what it checked, and how it compares.
import assert from "node:assert/strict";
import { OciError } from "oci-common";

/** Says that something of an operation is as it must be. */
export function ok(operation: string, what: string): void {
  console.log(`ok\t${operation}\t${what}`);
}

/** Fails unless both are the same throughout. */
export function same(got: unknown, want: unknown, what: string): void {
  assert.deepEqual(got, want, `${what}: ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

/** Milliseconds of an instant: the SDK hands out text where its types say Date. */
export function millis(instant: Date | undefined): number {
  const text = `${instant}`;
  assert.match(text, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  return Date.parse(text);
}

/** Fails unless the call is refused with this status and code. */
export async function refused(call: Promise<unknown>, status: number, code: string): Promise<OciError> {
  try {
    await call;
  } catch (e) {
    assert(e instanceof OciError, `${e}`);
    same([e.statusCode, e.serviceCode], [status, code], e.message);
    assert(e.opcRequestId, "a refusal without a request id");
    return e;
  }
  assert.fail(`not refused with ${status} ${code}`);
}

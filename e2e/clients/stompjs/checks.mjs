// Checks queued with stompjs, whatever carries its octets.
//
//   open(version)  a Client that is not active yet
//   ok(topic, what), stats(), restart()
import { hello } from "./hello.mjs";

const letters = "letters"; // the queue of all checks; each leaves it empty
const patience = 30_000; // ms that anything may take
const text = "a\nb: \\ é 😀 שלום";
const octets = Uint8Array.from({ length: 256 }, (_, i) => i);

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

function same(got, want, what) {
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

// Inbox is what comes, in order, to be waited for.
class Inbox {
  constructor() { this.here = []; this.waiting = []; }
  put(x) { this.waiting.length ? this.waiting.shift()(x) : this.here.push(x); }
  async next() {
    if (this.here.length) return this.here.shift();
    let timer;
    const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error("nothing came")), patience); });
    const x = await Promise.race([new Promise(resolve => this.waiting.push(resolve)), late]);
    clearTimeout(timer);
    if (x instanceof Error) throw x;
    return x;
  }
}

// Session is a client that is connected.
class Session {
  constructor(client) {
    this.client = client;
    this.events = new Inbox();
    this.receipts = 0;
    client.onConnect = frame => this.events.put(frame);
    client.onStompError = frame => {
      const error = Object.assign(new Error(frame.headers.message), { frame });
      this.events.put(error);
      this.refused?.(error);
    };
  }
  static async open(client) {
    const s = new Session(client);
    client.activate();
    s.connected = await s.events.next();
    return s;
  }
  // receipt runs send with headers that ask for one, and waits for it.
  async receipt(send) {
    const id = `r-${++this.receipts}`, inbox = new Inbox();
    this.client.watchForReceipt(id, frame => inbox.put(frame));
    send({ receipt: id });
    await inbox.next();
  }
  subscribe(ack, headers = {}) {
    const inbox = new Inbox();
    this.refused = error => inbox.put(error);
    const { id, unsubscribe } = this.client.subscribe(letters, m => inbox.put(m), { ack, ...headers });
    return { inbox, id, unsubscribe, next: () => inbox.next() };
  }
  send(body, headers = {}, destination = letters) {
    this.client.publish({ destination, headers, ...(body instanceof Uint8Array ? { binaryBody: body } : { body }) });
  }
}

export async function checks({ versions, open, ok, stats, restart }) {
  const left = async (visible, inFlight, what) => same(await stats(), [visible, inFlight], what);
  // gone: what ack:auto has delivered is deleted soon behind.
  const gone = async () => {
    for (const end = Date.now() + patience; String(await stats()) !== "0,0" && Date.now() < end;) await sleep(20);
    await left(0, 0, "auto");
  };

  async function sessions(version) {
    const s = await Session.open(open(version));
    same(s.client.connectedVersion, version, "version");
    ok(version, `${version}: opens a session`);
    s.send("x");
    const sub = s.subscribe("client-individual");
    (await sub.next()).ack();
    await s.client.deactivate();
    await left(0, 0, "behind a disconnect");
    ok("DISCONNECT", `${version}: deactivate waits for its receipt, and all before it is done`);
  }

  async function bodies(version) {
    const s = await Session.open(open(version));
    s.send(text);
    await s.receipt(headers => s.send("told", headers));
    await left(2, 0, "behind a receipt");
    ok("receipts", `${version}: one says that a message is stored, and those before it too`);
    s.send(octets, { "content-type": "application/octet-stream" });
    s.send("");
    s.client.publish({ destination: letters, body: "to its NUL", skipContentLengthHeader: true });
    const sub = s.subscribe("client-individual");
    for (const want of [text, "told", octets, "", "to its NUL"]) {
      const m = await sub.next();
      if (want === octets) same([...m.binaryBody], [...octets], "octets");
      else same(m.body, want, "body");
      await s.receipt(headers => m.ack(headers));
    }
    await left(0, 0, "acknowledged");
    ok("receipts", `${version}: one says that an ACK is done`);
    ok("text", `${version}: comes as it went, empty and without content-length too`);
    ok("octets", `${version}: all 256, NUL among them`);
    ok("client-individual", `${version}: each ACK deletes one message`);
    await s.client.deactivate();
  }

  async function headers(version) {
    // It escapes in 1.2 alone, and takes a backslash before c, n or r for an escape.
    const value = { "1.0": "a:b é", "1.1": "a\\cb é", "1.2": "a:b\\ \nd\re é" }[version];
    const s = await Session.open(open(version));
    const sub = s.subscribe("client-individual");
    s.send("x", { kind: value, "content-type": "text/x; charset=utf-8" });
    const m = await sub.next();
    same([m.headers.kind, m.headers["content-type"]], [value, "text/x; charset=utf-8"], "headers");
    m.ack();
    await s.client.deactivate();
    ok("headers", `${version}: of the caller's own come back: ${JSON.stringify(value)}`);
  }

  async function modes(version) {
    const s = await Session.open(open(version));
    let sub = s.subscribe("auto");
    s.send("auto");
    same((await sub.next()).body, "auto", "body");
    await s.receipt(headers => sub.unsubscribe(headers));
    await gone();
    ok("auto", `${version}: what was delivered is gone`);
    await s.receipt(headers => s.send("unseen", headers));
    await left(1, 0, "behind an UNSUBSCRIBE");
    ok("UNSUBSCRIBE", `${version}: nothing comes behind it`);
    s.send("second");
    s.send("third");
    sub = s.subscribe("client");
    await sub.next();
    const second = await sub.next(), third = await sub.next();
    await s.receipt(headers => second.ack(headers));
    await left(0, 1, "client");
    ok("client", `${version}: an ACK deletes what came before it too`);
    await s.receipt(headers => sub.unsubscribe(headers));
    await s.receipt(headers => third.ack(headers));
    await left(0, 0, "client");
    ok("UNSUBSCRIBE", `${version}: what came before it can be acknowledged behind it`);
    await s.client.deactivate();
  }

  async function back(version) {
    const s = await Session.open(open(version));
    const sub = s.subscribe("client-individual");
    s.send("x");
    let m = await sub.next();
    same(m.headers["delivery-count"], "1", "delivery-count");
    m.nack();
    m = await sub.next();
    same([m.headers["delivery-count"], m.headers.redelivered], ["2", "true"], "delivery-count");
    m.ack();
    await s.client.deactivate();
    await left(0, 0, "acknowledged at last");
    ok("NACK", `${version}: the message comes again at once`);
  }

  async function refused(version) {
    for (const [what, code, provoke] of [
      ["an unknown queue", "NotAuthorizedOrNotFound", s => s.send("x", {}, "nowhere")],
      ["a topic", "InvalidParameter", s => s.send("x", {}, "/topic/prices")],
      ["a bad name of a property", "InvalidParameter", s => s.send("x", { "no blanks": "y" })],
    ]) {
      const client = open(version);
      client.reconnectDelay = 0;
      const s = await Session.open(client);
      const closed = new Promise(resolve => { client.onWebSocketClose = resolve; });
      provoke(s);
      const error = await s.events.next().catch(e => e);
      same(error.frame?.headers.code, code, `${what}: ${error}`);
      await closed;
      await client.deactivate();
      ok("ERROR", `${version}: ${what}: ${code}, then the end`);
    }
  }

  async function beats(version) {
    const client = open(version);
    client.heartbeatIncoming = client.heartbeatOutgoing = 1000;
    let heard = 0;
    client.onHeartbeatReceived = () => heard++;
    const s = await Session.open(client);
    await sleep(5000); // the server cuts who is silent for three
    if (heard < 2) throw new Error(`${heard} heart-beats in 5 s`);
    const sub = s.subscribe("client-individual");
    s.send("still here");
    (await sub.next()).ack();
    await client.deactivate();
    await left(0, 0, "behind heart-beats");
    ok("heart-beats", `${version}: keep a session that is silent otherwise, and are heard`);
  }

  async function transactions(version) {
    const s = await Session.open(open(version));
    let tx = s.client.begin();
    s.send("never", { transaction: tx.id });
    tx.abort();
    tx = s.client.begin();
    s.send("two", { transaction: tx.id });
    await s.receipt(headers => s.send("three", { transaction: tx.id, ...headers }));
    await s.receipt(headers => s.send("one", headers));
    await left(1, 0, "before the COMMIT");
    tx.commit();
    const sub = s.subscribe("client-individual"), three = [await sub.next(), await sub.next(), await sub.next()];
    same(three.map(m => m.body), ["one", "two", "three"], "bodies");
    ok("transactions", `${version}: a COMMIT publishes all, an ABORT nothing`);
    tx = s.client.begin();
    for (const m of three) await s.receipt(headers => m.ack({ transaction: tx.id, ...headers }));
    await left(0, 3, "before the COMMIT");
    tx.commit();
    await s.client.deactivate();
    await left(0, 0, "behind the COMMIT");
    ok("transactions", `${version}: a COMMIT deletes what was acknowledged in it`);
  }

  async function reconnects(version) {
    const client = open(version);
    client.reconnectDelay = 200;
    const s = await Session.open(client);
    let sub = s.subscribe("client-individual", { visibility: "2" });
    s.send("before");
    same((await sub.next()).headers["delivery-count"], "1", "delivery-count");
    await restart();
    await s.events.next(); // connected again
    ok("reconnect", `${version}: a cut session is opened again by itself`);
    sub = s.subscribe("client-individual");
    const m = await sub.next();
    same([m.body, m.headers["delivery-count"]], ["before", "2"], "message");
    m.ack();
    await client.deactivate();
    await left(0, 0, "behind a restart");
    ok("reconnect", `${version}: subscribed again, it has what it had not acknowledged`);
  }

  await hello(open(versions.at(-1)));
  await left(0, 0, "behind what the page shows");
  for (const version of versions) {
    for (const check of [sessions, bodies, headers, modes, refused, transactions]) await check(version);
    if (version !== "1.0") { // which has neither
      await back(version);
      await beats(version);
    }
  }
  await reconnects(versions.at(-1));
}

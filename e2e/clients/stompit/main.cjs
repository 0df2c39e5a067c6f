// Checks queued with stompit, a STOMP client for Node.js.
const stompit = require("stompit");
const frame = require("../stompjs/node.cjs");
const { connect, hello } = require("./hello.cjs");

const { ok, stats } = frame;
const letters = "letters"; // the queue of all checks; each leaves it empty
const patience = 30_000; // ms that anything may take
const text = "a\nb: \\ é 😀 שלום";
const octets = Buffer.from(Array.from({ length: 256 }, (_, i) => i));

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

function same(got, want, what) {
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

const left = async (visible, inFlight, what) => same(await stats(), [visible, inFlight], what);

// gone: what ack:auto has delivered is deleted soon behind.
async function gone() {
  for (const end = Date.now() + patience; String(await stats()) !== "0,0" && Date.now() < end;) await sleep(20);
  await left(0, 0, "auto");
}

function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`${what} did not come`)), patience); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// send sends a whole message; with a receipt it waits for it.
function send(client, body, headers = {}, receipt = false) {
  body = Buffer.from(body);
  const done = new Promise((resolve, reject) => {
    const options = receipt ? { onReceipt: resolve, onError: reject } : undefined;
    const f = client.send({ destination: letters, "content-length": body.length, ...headers }, options);
    f.end(body, () => receipt || resolve());
  });
  return within(done, "a receipt");
}

// settle is ACK or NACK; with a receipt it waits for it.
function settle(client, verb, message, headers = {}, receipt = false) {
  const done = new Promise((resolve, reject) => {
    client[verb](message, headers, receipt ? { onReceipt: resolve, onError: reject } : undefined, e => (e ? reject(e) : receipt || resolve()));
  });
  return within(done, "a receipt");
}

// subscribe gathers what comes: messages with their bodies, and errors.
function subscribe(client, ack, headers = {}) {
  const here = [], waiting = [];
  const put = x => (waiting.length ? waiting.shift()(x) : here.push(x));
  const sub = client.subscribe({ destination: letters, ack, ...headers }, (error, message) => {
    if (error) return put(error);
    const chunks = [];
    message.on("data", chunk => chunks.push(chunk));
    message.on("end", () => put(Object.assign(message, { body: Buffer.concat(chunks) })));
  });
  return {
    unsubscribe: () => sub.unsubscribe(),
    event: () => within(here.length ? Promise.resolve(here.shift()) : new Promise(resolve => waiting.push(resolve)), "a message"),
    async next() {
      const x = await this.event();
      if (x instanceof Error) throw x;
      return x;
    },
  };
}

const disconnect = client => within(new Promise((resolve, reject) => client.disconnect(e => (e ? reject(e) : resolve()))), "the end");

async function sessions(version) {
  const c = await connect(version);
  same(c.headers.version, version, "version");
  ok(version, `${version}: opens a session`);
  await send(c, "x");
  const sub = subscribe(c, "client-individual");
  await settle(c, "ack", await sub.next());
  await disconnect(c);
  await left(0, 0, "behind a disconnect");
  ok("DISCONNECT", `${version}: waits for its receipt, and all before it is done`);
}

async function bodies(version) {
  const c = await connect(version);
  await send(c, text);
  await send(c, "told", {}, true);
  await left(2, 0, "behind a receipt");
  ok("receipts", `${version}: one says that a message is stored, and those before it too`);
  await send(c, octets);
  await send(c, "");
  const f = c.send({ destination: letters });
  f.write("in parts, ");
  f.end("to its NUL");
  const sub = subscribe(c, "client-individual");
  for (const want of [text, "told", octets, "", "in parts, to its NUL"]) {
    const m = await sub.next();
    same(m.body.equals(Buffer.from(want)), true, `body ${m.body}`);
    await settle(c, "ack", m, {}, true);
  }
  await left(0, 0, "acknowledged");
  ok("receipts", `${version}: one says that an ACK is done`);
  ok("text", `${version}: comes as it went, empty and without content-length too`);
  ok("octets", `${version}: all 256, NUL among them`);
  ok("client-individual", `${version}: each ACK deletes one message`);
  await disconnect(c);
}

async function headers(version) {
  const value = { "1.0": "a b é", "1.1": "a:b\\c\nd é", "1.2": "a:b\\c\nd\re é" }[version];
  const c = await connect(version);
  const sub = subscribe(c, "client-individual");
  await send(c, "x", { kind: value, "content-type": "text/x; charset=utf-8" });
  const m = await sub.next();
  same([m.headers.kind, m.headers["content-type"]], [value, "text/x; charset=utf-8"], "headers");
  await settle(c, "ack", m);
  await disconnect(c);
  ok("headers", `${version}: of the caller's own come back: ${JSON.stringify(value)}`);
}

async function modes(version) {
  const c = await connect(version);
  let sub = subscribe(c, "auto");
  await send(c, "auto");
  same(String((await sub.next()).body), "auto", "body");
  sub.unsubscribe();
  await gone();
  ok("auto", `${version}: what was delivered is gone`);
  await send(c, "unseen", {}, true);
  await left(1, 0, "behind an UNSUBSCRIBE");
  ok("UNSUBSCRIBE", `${version}: nothing comes behind it`);
  await send(c, "second");
  await send(c, "third");
  sub = subscribe(c, "client");
  await sub.next();
  const second = await sub.next(), third = await sub.next();
  await settle(c, "ack", second, {}, true);
  await left(0, 1, "client");
  ok("client", `${version}: an ACK deletes what came before it too`);
  sub.unsubscribe();
  await settle(c, "ack", third, {}, true);
  await left(0, 0, "client");
  ok("UNSUBSCRIBE", `${version}: what came before it can be acknowledged behind it`);
  await disconnect(c);
}

async function back(version) {
  const c = await connect(version);
  const sub = subscribe(c, "client-individual");
  await send(c, "x");
  let m = await sub.next();
  same(m.headers["delivery-count"], "1", "delivery-count");
  await settle(c, "nack", m);
  m = await sub.next();
  same([m.headers["delivery-count"], m.headers.redelivered], ["2", "true"], "delivery-count");
  await settle(c, "ack", m);
  await disconnect(c);
  await left(0, 0, "acknowledged at last");
  ok("NACK", `${version}: the message comes again at once`);
}

async function refused(version) {
  for (const [what, headers, word] of [
    ["an unknown queue", { destination: "nowhere" }, "nowhere"],
    ["a topic", { destination: "/topic/prices" }, "/queue/"],
    ["a bad name of a property", { "no blanks": "y" }, "no blanks"],
  ]) {
    const c = await connect(version);
    const error = await send(c, "x", headers, true).then(() => new Error("it is stored"), e => e);
    same(error.message.includes(word), true, `${what}: ${error}`);
    ok("ERROR", `${version}: ${what}: an error with the server's words`);
  }
}

async function beats(version) {
  const c = await connect(version, { "heart-beat": "1000,1000" });
  const sub = subscribe(c, "client-individual");
  await sleep(5000); // the server cuts who is silent for three, and stompit too
  await send(c, "still here");
  await settle(c, "ack", await sub.next());
  await disconnect(c);
  await left(0, 0, "behind heart-beats");
  ok("heart-beats", `${version}: keep a session that is silent otherwise, both ways`);
}

async function transactions(version) {
  const c = await connect(version);
  let tx = c.begin();
  tx.send({ destination: letters }).end("never");
  tx.abort();
  tx = c.begin();
  tx.send({ destination: letters }).end("two");
  tx.send({ destination: letters }).end("three");
  await send(c, "one", {}, true);
  await left(1, 0, "before the COMMIT");
  tx.commit();
  const sub = subscribe(c, "client-individual"), three = [await sub.next(), await sub.next(), await sub.next()];
  same(three.map(m => String(m.body)), ["one", "two", "three"], "bodies");
  ok("transactions", `${version}: a COMMIT publishes all, an ABORT nothing`);
  tx = c.begin();
  for (const m of three) await settle(c, "ack", m, { transaction: tx.id }, true);
  await left(0, 3, "before the COMMIT");
  await within(new Promise(resolve => tx.commit({ onReceipt: resolve })), "a receipt");
  await left(0, 0, "behind the COMMIT");
  ok("transactions", `${version}: a COMMIT deletes what was acknowledged in it`);
  await disconnect(c);
}

// reconnects: a client of stompit is one connection; ConnectFailover makes the next.
async function reconnects(version) {
  const [host, port] = process.env.STOMP.split(":");
  const servers = new stompit.ConnectFailover([{ host, port, connectHeaders: { "accept-version": version } }], { initialReconnectDelay: 200 });
  const dial = () => within(new Promise((resolve, reject) => {
    servers.connect((error, client, reconnect) => (error ? reject(error) : resolve([client, reconnect])));
  }), "a session");
  const [c] = await dial();
  const failed = new Promise(resolve => c.on("error", resolve));
  const sub = subscribe(c, "client-individual", { visibility: "2" });
  await send(c, "before");
  same((await sub.next()).headers["delivery-count"], "1", "delivery-count");
  await frame.restart();
  await within(failed, "an error");
  same((await sub.event()) instanceof Error, true, "the subscription");
  ok("reconnect", `${version}: a cut session is an error of the client and of its subscriptions`);
  const [again] = await dial();
  const m = await subscribe(again, "client-individual").next();
  same([String(m.body), m.headers["delivery-count"]], ["before", "2"], "message");
  await settle(again, "ack", m);
  await disconnect(again);
  await left(0, 0, "behind a restart");
  ok("reconnect", `${version}: connected again, it has what it had not acknowledged`);
}

frame.run(async () => {
  await hello();
  await left(0, 0, "behind what the page shows");
  for (const version of ["1.0", "1.1", "1.2"]) {
    for (const check of [sessions, bodies, headers, modes, refused, transactions]) await check(version);
    if (version !== "1.0") { // which has neither
      await back(version);
      await beats(version);
    }
  }
  await reconnects("1.2");
});

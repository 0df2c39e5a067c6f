"""Checks queued with stomp.py, a STOMP client for Python."""

import json
import os
import queue
import time
import urllib.request

import stomp

from hello import connect, hello

LETTERS = "letters"  # the queue of all checks; each leaves it empty
WAIT = 30  # seconds that anything may take
OCTETS = bytes(range(256))
TEXT = "a\nb: \\ é 😀\u202eשלום"


def ok(topic, version, what):
    print("ok", topic, f"{version}: {what}", sep="\t", flush=True)


def same(got, want, what):
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")


def stats():
    with urllib.request.urlopen(f"{os.environ['QUEUED']}/20210201/queues/{LETTERS}/stats") as answer:
        queue = json.load(answer)["queue"]
    return queue["visibleMessages"], queue["inFlightMessages"]


def left(visible, in_flight, what):
    """So many messages must be there."""
    same(stats(), (visible, in_flight), what)


def gone():
    """What ack:auto has delivered is deleted soon behind."""
    end = time.time() + WAIT
    while stats() != (0, 0) and time.time() < end:
        time.sleep(0.02)
    left(0, 0, "auto")


class Listener(stomp.ConnectionListener):
    """Keeps all frames that come, in order."""

    def __init__(self):
        self.frames = queue.Queue()
        self.beats = 0

    def on_connected(self, frame):
        self.frames.put(("CONNECTED", frame.headers, frame.body))

    def on_message(self, frame):
        self.frames.put(("MESSAGE", frame.headers, frame.body))

    def on_receipt(self, frame):
        self.frames.put(("RECEIPT", frame.headers, frame.body))

    def on_error(self, frame):
        self.frames.put(("ERROR", frame.headers, frame.body))

    def on_heartbeat(self):
        self.beats += 1

    def on_heartbeat_timeout(self):
        self.frames.put(("TIMEOUT", {}, b""))

    def on_disconnected(self):
        self.frames.put(("DISCONNECTED", {}, b""))


class Client:
    def __init__(self, version, **options):
        self.version = version
        self.conn = connect(version, auto_decode=False, reconnect_attempts_max=1, **options)
        self.heard = Listener()
        self.conn.set_listener("heard", self.heard)
        self.conn.connect(wait=True)
        headers, _ = self.expect("CONNECTED")
        same(headers["version"], version, "version of CONNECTED")

    def expect(self, command, **headers):
        """The next frame, which must be such a one."""
        got, have, body = self.heard.frames.get(timeout=WAIT)
        same(got, command, f"frame with {have} {body[:200]!r}")
        for name, value in headers.items():
            same(have.get(name.replace("_", "-")), value, f"{name} of {have}")
        return have, body

    def send(self, body, receipt=None, to=LETTERS, **headers):
        if isinstance(body, str):
            body = body.encode()  # stomp.py counts characters, not octets
        if receipt:
            headers["receipt"] = receipt
        self.conn.send(to, body, headers=headers)
        if receipt:
            self.expect("RECEIPT", receipt_id=receipt)

    def subscribe(self, ack="client-individual", to=LETTERS):
        self.conn.subscribe(to, id="s", ack=ack)

    def unsubscribe(self):
        self.conn.unsubscribe(destination=LETTERS, id="s", receipt="u")
        self.expect("RECEIPT", receipt_id="u")

    def settle(self, verb, message, receipt=None, transaction=None):
        """ACK or NACK, as the version spells it."""
        how = self.conn.ack if verb == "ACK" else self.conn.nack
        if self.version == "1.0":
            how(message["message-id"], transaction=transaction, receipt=receipt)
        elif self.version == "1.1":
            how(message["message-id"], message["subscription"], transaction=transaction, receipt=receipt)
        else:
            how(message["ack"], transaction=transaction, receipt=receipt)
        if receipt:
            self.expect("RECEIPT", receipt_id=receipt)

    def disconnect(self):
        self.conn.disconnect()  # stomp.py asks for a receipt by itself
        got = [self.heard.frames.get(timeout=WAIT)[0] for _ in range(2)]
        same(sorted(got), ["DISCONNECTED", "RECEIPT"], "frames after DISCONNECT")


def sessions(version):
    c = Client(version)
    ok(version, version, "opens a session")
    c.send("x")
    c.subscribe()
    message, _ = c.expect("MESSAGE")
    c.settle("ACK", message)
    c.disconnect()
    left(0, 0, "behind a disconnect")
    ok("DISCONNECT", version, "has its receipt, and all before it is done")


def bodies(version):
    c = Client(version)
    c.send(TEXT)
    c.send(b"told", receipt="r")
    left(2, 0, "behind a receipt")
    ok("receipts", version, "one says that a message is stored, and those before it too")
    c.send(OCTETS)
    c.send(b"")
    c.subscribe()
    for want in [TEXT.encode(), b"told", OCTETS, b""]:
        message, body = c.expect("MESSAGE", content_length=str(len(want)))
        same(bytes(body or b""), want, "body")
        c.settle("ACK", message)
    c.disconnect()
    left(0, 0, "acknowledged")
    ok("text", version, "comes as it went, empty too")
    ok("octets", version, "all 256, NUL among them")
    ok("client-individual", version, "each ACK deletes one message")


def headers(version):
    value = {"1.0": "plain é", "1.1": "a:b\\c\nd é", "1.2": "a:b\\c\nd\re é"}[version]
    c = Client(version)
    c.subscribe()
    c.send("x", p=value, **{"content-type": "text/x; charset=utf-8"})
    message, _ = c.expect("MESSAGE", p=value, content_type="text/x; charset=utf-8")
    c.settle("ACK", message, receipt="a")
    ok("receipts", version, "one says that an ACK is done")
    c.disconnect()
    ok("headers", version, f"of the caller's own come back: {value!r}")


def modes(version):
    c = Client(version)
    c.subscribe(ack="auto")
    c.send("auto")
    c.expect("MESSAGE")
    c.unsubscribe()
    gone()
    ok("auto", version, "what was delivered is gone")
    c.send("unseen", receipt="r")
    left(1, 0, "behind an UNSUBSCRIBE")
    ok("UNSUBSCRIBE", version, "nothing comes behind it")
    c.send("second")
    c.send("third")
    c.subscribe(ack="client")
    c.expect("MESSAGE")
    second, _ = c.expect("MESSAGE")
    third, _ = c.expect("MESSAGE")
    c.settle("ACK", second, receipt="a-2")
    left(0, 1, "client")
    ok("client", version, "an ACK deletes what came before it too")
    c.unsubscribe()
    c.settle("ACK", third, receipt="a-3")
    left(0, 0, "client")
    ok("UNSUBSCRIBE", version, "what came before it can be acknowledged behind it")
    c.disconnect()


def back(version):
    c = Client(version)
    c.subscribe()
    c.send("x")
    message, _ = c.expect("MESSAGE", delivery_count="1", redelivered="false")
    c.settle("NACK", message)
    message, _ = c.expect("MESSAGE", delivery_count="2", redelivered="true")
    c.settle("ACK", message)
    c.disconnect()
    left(0, 0, "acknowledged at last")
    ok("NACK", version, "the message comes again at once")


def errors(version):
    for what, code, provoke in [
        ("an unknown queue", "NotAuthorizedOrNotFound", lambda c: c.send("x", to="nowhere")),
        ("a topic", "InvalidParameter", lambda c: c.send("x", to="/topic/prices")),
        ("a bad name of a property", "InvalidParameter", lambda c: c.send("x", **{"no blanks": "y"})),
        ("a second SUBSCRIBE of one id", "InvalidFrame", lambda c: (c.subscribe(), c.subscribe())),
        ("an ACK of nothing", "InvalidFrame", lambda c: c.settle("ACK", {"message-id": "?", "ack": "?", "subscription": "s"})),
    ]:
        c = Client(version)
        provoke(c)
        have, _ = c.expect("ERROR", code=code)
        if not have.get("message"):
            raise AssertionError(f"{what}: an ERROR without message: {have}")
        c.expect("DISCONNECTED")
        ok("ERROR", version, f"{what}: {code}")


def beats(version):
    c = Client(version, heartbeats=(1000, 1000))
    c.subscribe()
    time.sleep(5)  # the server cuts who is silent for three
    if c.heard.beats < 2:
        raise AssertionError(f"{c.heard.beats} heart-beats in 5 s")
    c.send("still here")
    message, _ = c.expect("MESSAGE")
    c.settle("ACK", message)
    c.disconnect()
    ok("heart-beats", version, "keep a session that is silent otherwise, and are heard")


def transactions(version):
    c = Client(version)
    tx = c.conn.begin()
    c.send("never", transaction=tx)
    c.conn.abort(tx)
    tx = c.conn.begin()
    c.send("two", transaction=tx)
    c.send("three", transaction=tx, receipt="t-3")
    c.send("one", receipt="t-1")
    left(1, 0, "before the COMMIT")
    c.conn.commit(tx)
    c.subscribe()
    three = [c.expect("MESSAGE") for _ in range(3)]
    same([body for _, body in three], [b"one", b"two", b"three"], "bodies")
    ok("transactions", version, "a COMMIT publishes all, an ABORT nothing")
    tx = c.conn.begin()
    for message, _ in three:
        c.settle("ACK", message, transaction=tx)
    c.unsubscribe()  # its receipt says that the server has seen them
    left(0, 3, "before the COMMIT")
    c.conn.commit(tx)
    c.disconnect()
    left(0, 0, "behind the COMMIT")
    ok("transactions", version, "a COMMIT deletes what was acknowledged in it")


def reconnects():
    """stomp.py tells its listener, which connects and subscribes again."""
    version = "1.2"
    c = Client(version)
    c.conn.subscribe(LETTERS, id="s", ack="client-individual", headers={"visibility": "2"})
    c.send("before", receipt="r")
    c.expect("MESSAGE", delivery_count="1")
    urllib.request.urlopen(os.environ["RESTART"]).close()
    c.expect("DISCONNECTED")
    ok("reconnect", version, "a cut session is told to the listener")
    c.conn.connect(wait=True)
    c.expect("CONNECTED")
    c.subscribe()
    message, body = c.expect("MESSAGE", delivery_count="2")
    same(body, b"before", "body")
    c.settle("ACK", message)
    c.disconnect()
    left(0, 0, "behind a restart")
    ok("reconnect", version, "connected again, it has what it had not acknowledged")


def main():
    hello()
    left(0, 0, "behind what the page shows")
    for version in ["1.0", "1.1", "1.2"]:
        for check in [sessions, bodies, headers, modes, errors, transactions]:
            check(version)
        if version != "1.0":  # which has neither
            back(version)
            beats(version)
    reconnects()


main()

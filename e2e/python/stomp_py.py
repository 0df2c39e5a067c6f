"""Drives the STOMP face with stomp.py, a client that is not ours.

    stomp_py.py HOST PORT QUEUE

Speaks 1.0, 1.1 and 1.2 in turn, and prints a line for all that was checked.
The queue must be empty and have a visibility of 2 s or less.
"""

import queue
import sys
import time

import stomp

WAIT = 10  # seconds that anything may take
OCTETS = bytes(range(256))
TEXT = "a\nb: \\ é 😀\u202eשלום"


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
    def __init__(self, version, addr, **options):
        self.version = version
        kind = {
            "1.0": stomp.StompConnection10,
            "1.1": stomp.StompConnection11,
            "1.2": stomp.StompConnection12,
        }[version]
        self.conn = kind([addr], auto_decode=False, reconnect_attempts_max=1, **options)
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

    def silent(self, seconds):
        try:
            frame = self.heard.frames.get(timeout=seconds)
        except queue.Empty:
            return
        raise AssertionError(f"{frame} came unasked")

    def send(self, to, body, receipt=None, **headers):
        if isinstance(body, str):
            body = body.encode()  # stomp.py counts characters, not octets
        if receipt:
            headers["receipt"] = receipt
        self.conn.send(to, body, headers=headers)
        if receipt:
            self.expect("RECEIPT", receipt_id=receipt)

    def subscribe(self, to, **headers):
        self.conn.subscribe(to, id="s", ack="client-individual", headers=headers)

    def settle(self, verb, message, receipt=None):
        """ACK or NACK, as the version spells it."""
        how = self.conn.ack if verb == "ACK" else self.conn.nack
        if self.version == "1.0":
            how(message["message-id"], receipt=receipt)
        elif self.version == "1.1":
            how(message["message-id"], message["subscription"], receipt=receipt)
        else:
            how(message["ack"], receipt=receipt)
        if receipt:
            self.expect("RECEIPT", receipt_id=receipt)

    def disconnect(self):
        self.conn.disconnect()  # stomp.py asks for a receipt by itself
        got = [self.heard.frames.get(timeout=WAIT)[0] for _ in range(2)]
        same(sorted(got), ["DISCONNECTED", "RECEIPT"], "frames after DISCONNECT")


def same(got, want, what):
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")


def messages(version, addr, to):
    """Send, subscribe, acknowledge, give back."""
    c = Client(version, addr)
    c.send(to, TEXT, receipt="r-1", kind="text")
    c.send(to, OCTETS, receipt="r-2")
    c.send(to, b"", receipt="r-3")
    c.subscribe(to)
    first, body = c.expect("MESSAGE", kind="text", delivery_count="1", redelivered="false")
    same(body, TEXT.encode(), "text")
    same(first["content-length"], str(len(TEXT.encode())), "content-length")
    second, body = c.expect("MESSAGE")
    same(body, OCTETS, "octets")
    third, body = c.expect("MESSAGE")
    same(bytes(body or b""), b"", "empty body")
    c.settle("ACK", first, receipt="a-1")
    c.settle("ACK", second)
    print(f"{version} sends and receives text, every octet and nothing, with receipts")

    if version == "1.0":  # which has no NACK
        again, _ = c.expect("MESSAGE", delivery_count="2", redelivered="true")
        print(f"{version} gets again what lapsed")
    else:
        c.settle("NACK", third, receipt="n-1")
        again, _ = c.expect("MESSAGE", delivery_count="2", redelivered="true")
        print(f"{version} gets again at once what it gave back")
    c.settle("ACK", again, receipt="a-2")
    c.silent(0.2)
    c.conn.unsubscribe(destination=to, id="s")
    c.send(to, "unseen", receipt="r-4")
    c.silent(0.2)
    c.subscribe(to)
    last, _ = c.expect("MESSAGE")
    c.settle("ACK", last)
    c.disconnect()
    print(f"{version} unsubscribes and disconnects")


def headers(version, addr, to):
    """Headers that must be escaped come back as they were."""
    value = {"1.0": "plain", "1.1": "a:b\\c\nd", "1.2": "a:b\\c\nd\re"}[version]
    c = Client(version, addr)
    c.subscribe(to)
    c.send(to, "x", p=value, **{"content-type": "text/x; charset=utf-8"})
    got, _ = c.expect("MESSAGE", p=value, content_type="text/x; charset=utf-8")
    c.settle("ACK", got, receipt="a")
    c.disconnect()
    print(f"{version} carries {value!r} in a header, and the content-type")


def errors(version, addr, to):
    for what, code, provoke in [
        ("an unknown queue", "NotAuthorizedOrNotFound", lambda c: c.send("nowhere", "x")),
        ("a topic", "InvalidParameter", lambda c: c.send("/topic/prices", "x")),
        ("a bad name of a property", "InvalidParameter", lambda c: c.send(to, "x", **{"no blanks": "y"})),
        ("a second SUBSCRIBE of one id", "InvalidFrame", lambda c: (c.subscribe(to), c.subscribe(to))),
        ("an ACK of nothing", "InvalidFrame", lambda c: c.settle("ACK", {"message-id": "?", "ack": "?", "subscription": "s"})),
    ]:
        c = Client(version, addr)
        provoke(c)
        have, body = c.expect("ERROR", code=code)
        if not have.get("message"):
            raise AssertionError(f"{what}: an ERROR without message: {have}")
        c.expect("DISCONNECTED")
        print(f"{version} is refused {what}: {code}")


def beats(version, addr, to):
    if version == "1.0":  # which has none
        return
    c = Client(version, addr, heartbeats=(1000, 1000))
    c.subscribe(to)
    time.sleep(2.5)
    if c.heard.beats < 2:
        raise AssertionError(f"{c.heard.beats} heart-beats in 2.5 s")
    c.send(to, "still here")
    got, _ = c.expect("MESSAGE")
    c.settle("ACK", got, receipt="a")
    c.disconnect()
    print(f"{version} beats and hears heart-beats")


def main():
    host, port, to = sys.argv[1:]
    for version in ["1.0", "1.1", "1.2"]:
        for check in [messages, headers, errors, beats]:
            check(version, (host, int(port)), to)


main()

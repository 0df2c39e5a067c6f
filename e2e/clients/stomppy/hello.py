"""What docs/clients.md shows of stomp.py."""

import os
import queue

import stomp


def connect(version, **options):
    host, port = os.environ["STOMP"].split(":")
    kinds = {"1.0": stomp.StompConnection10, "1.1": stomp.StompConnection11, "1.2": stomp.StompConnection12}
    return kinds[version]([(host, int(port))], **options)


class Inbox(stomp.ConnectionListener):
    def __init__(self):
        self.frames = queue.Queue()

    def on_message(self, frame):
        self.frames.put(frame)

    def on_error(self, frame):
        self.frames.put(RuntimeError(frame.headers["message"]))

    def on_disconnected(self):
        self.frames.put(None)


def hello():
    inbox = Inbox()
    c = connect("1.2")
    c.set_listener("inbox", inbox)
    c.connect(wait=True)
    c.subscribe("letters", id="1", ack="client-individual")
    c.send("letters", "hello".encode())  # octets, since it counts characters otherwise
    frame = inbox.frames.get(timeout=30)
    if isinstance(frame, Exception):
        raise frame
    c.ack(frame.headers["ack"])
    c.disconnect()  # asks for a receipt, and does not wait for it
    while inbox.frames.get(timeout=30):
        pass

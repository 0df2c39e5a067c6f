"""The shortest program that uses queued over STOMP, with stomp.py."""
import os
import threading

import stomp

host, port = os.environ.get("QUEUED_STOMP", "127.0.0.1:61613").rsplit(":", 1)


def main():
    c = stomp.Connection12([(host, int(port))])
    done = threading.Event()

    class Printer(stomp.ConnectionListener):
        def on_message(self, frame):
            print(frame.body, "delivery", frame.headers["delivery-count"])
            c.ack(frame.headers["ack"])  # with a receipt it would tell when the message is gone
            done.set()

    c.set_listener("printer", Printer())
    c.connect(wait=True)
    c.subscribe("orders", id="1", ack="client-individual", headers={"visibility": "60"})
    c.send("orders", "hello over STOMP", kind="greeting")
    done.wait(10)
    c.disconnect()


main()

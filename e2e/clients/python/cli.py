"""The OCI command line through everything that it has for queues. cli.sh runs
it, behind the lines that docs/clients.md shows."""

import cli_groups
import cli_messages
import cli_queues
from checks import same
from cli_run import admin, queue


def page():
    """What the lines of the page have left behind."""
    left, = admin("queue", "list", display_name="greetings")["data"]["items"]
    stats = queue("messages", "get-stats", queue_id="greetings")["data"]["queue"]
    same("GetMessages", "the lines of the page: a message was sent and received", (stats["visible-messages"], stats["in-flight-messages"]), (0, 1))
    admin("queue", "delete", queue_id=left["id"], force=True)


def main():
    page()
    cli_queues.check()
    cli_messages.check()
    cli_groups.check()


if __name__ == "__main__":
    main()

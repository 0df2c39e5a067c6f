"""Runs command lines of oci. A process of its own takes two seconds of the
processor to load Oracle's code for each; here it is loaded once, and each
command line runs in a fork of this process, from oci's own entry point on."""

import json
import os
import sys
import tempfile

from checks import ok

sys.argv = ["oci", "queue"]  # what oci loads depends on its first word
import oci_cli.cli  # noqa: E402


class Refused(Exception):
    """oci ended with an error."""


def run(*args):
    """What oci prints at its two outputs, and its exit code."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.argv = ["oci", *args]
            code = 70
            try:
                oci_cli.cli.cli()
                code = 0
            except SystemExit as e:
                code = e.code if isinstance(e.code, int) else int(e.code is not None)
                if isinstance(e.code, str):
                    print(e.code, file=sys.stderr)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        return out.read(), err.read(), os.waitstatus_to_exitcode(status)


def queue(*args, **options):
    """oci queue ..., as the page shows it; what it answers, as JSON. Options
    that are no text are given as JSON, those that are True as flags."""
    line = ["queue", *args, "--endpoint", os.environ["QUEUED"]]
    for name, value in options.items():
        line.append("--" + name.replace("_", "-"))
        if value is not True:
            line.append(value if isinstance(value, str) else json.dumps(value))
    out, err, code = run(*line)
    if code != 0:
        raise Refused(f"{' '.join(line)}: {out}{err}")
    try:
        return json.loads(out) if out.strip() else None
    except ValueError as e:
        raise AssertionError(f"{' '.join(line)}: no JSON: {out}{err}") from e


def admin(*args, **options):
    return queue("queue-admin", *args, **options)


def refused(operation, what, status, code, *args, **options):
    """One check: the service refuses this, and oci shows it so."""
    try:
        queue(*args, **options)
    except Refused as e:
        shown = json.loads(str(e).partition("ServiceError:\n")[2] or "{}")
        if (shown.get("status"), shown.get("code")) != (status, code) or not shown.get("opc-request-id"):
            raise AssertionError(f"{operation}: {what}: {e}, want {status} {code}") from e
        ok(operation, what)
        return
    raise AssertionError(f"{operation}: {what}: not refused")

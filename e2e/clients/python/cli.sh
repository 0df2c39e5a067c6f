#!/bin/sh
# The OCI command line: first what the page shows, then the checks.
set -eu
PATH=$(cd ../../../.build/python/bin && pwd):$PATH
. ./hello.sh >&2
exec python3 cli.py

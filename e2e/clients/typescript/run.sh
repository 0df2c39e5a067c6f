#!/bin/sh
# Compiles the program into a folder that nobody keeps, and runs it.
set -eu
packages=$(cd ../../../.build/typescript/node_modules && pwd)
node "$packages/typescript/bin/tsc" --outDir "$TMPDIR"
NODE_PATH=$packages exec node "$TMPDIR/main.js"

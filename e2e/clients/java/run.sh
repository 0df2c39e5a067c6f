#!/bin/sh
# Compiles the program into a folder that nobody keeps, and runs it. With a proxy
# in the environment whatever does not stay on this machine goes there.
set -eu
packages=$(cd ../../../.build/java && pwd)
javac -proc:none -cp "$packages/*" -d "$TMPDIR" ./*.java
if [ "${http_proxy:-}" ]; then
	proxy=${http_proxy#http://}
	set -- "-DsocksProxyHost=${proxy%:*}" "-DsocksProxyPort=${proxy#*:}" '-DsocksNonProxyHosts=127.0.0.1|localhost'
fi
exec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "$@" -cp "$TMPDIR:$packages/*" Main

// Package openapi proves the OpenAPI document of the REST API: a linter reads
// it, and a fuzzer, schemathesis, lets it loose on the real binary. The fuzzer
// makes requests that conform to the document and requests that do not, follows
// its links from answer to answer, and holds every answer against it: status,
// error code, headers, content type and schema.
//
// Both are programs that scripts/setup.sh installs into .build/openapi. What
// the fuzzer is told stands in schemathesis.toml and hooks.py, the rules of the
// linter in redocly.yaml. `make schemathesis MINUTES=5` runs it for longer.
package openapi

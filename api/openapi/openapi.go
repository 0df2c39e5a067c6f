// Package openapi holds the OpenAPI 3.0.3 document of the REST API.
//
// The document is not written by hand: `make generate` makes it from the
// descriptors and comments of the proto files and from the HTTP rules in
// gateway.yaml, with the program in cmd/openapi. So whoever changes the API
// changes it in api/proto, and nowhere else.
package openapi

import _ "embed"

// Document is the OpenAPI document as JSON, what GET /openapi.json answers. It
// must not be changed.
//
//go:embed openapi.json
var Document []byte

package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
)

// examplesText has for every operation what is sent and what is answered, as
// JSON, and for every parameter a value. A test holds them against the schemas.
//
//go:embed examples.json
var examplesText []byte

type examples struct {
	Parameters map[string]json.RawMessage
	Operations map[string]struct{ Request, Response json.RawMessage }
}

func readExamples() (e examples, err error) {
	d := json.NewDecoder(bytes.NewReader(examplesText))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, fmt.Errorf("examples.json: %w", err)
	}
	return e, nil
}

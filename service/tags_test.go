package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/queued-mq/queued/queue"
)

func TestTags(t *testing.T) {
	free := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint("tag", i)] = "v"
		}
		return m
	}
	defined := func(n int) map[string]map[string]json.RawMessage {
		m := map[string]map[string]json.RawMessage{}
		for i := range n {
			space := fmt.Sprint("space", i%3)
			if m[space] == nil {
				m[space] = map[string]json.RawMessage{}
			}
			m[space][fmt.Sprint("tag", i)] = json.RawMessage(`"v"`)
		}
		return m
	}
	one := func(value string) map[string]map[string]json.RawMessage {
		return map[string]map[string]json.RawMessage{"ops": {"tag": json.RawMessage(value)}}
	}
	for name, c := range map[string]struct {
		free    map[string]string
		defined map[string]map[string]json.RawMessage
		text    string // "" is fine
	}{
		"none":            {},
		"most":            {free(64), defined(64), ""},
		"empty value":     {map[string]string{"a": ""}, one(`null`), ""},
		"wide characters": {map[string]string{strings.Repeat("ß", 100): strings.Repeat("ß", 256)}, nil, ""},
		"too many free":   {free(65), nil, "freeformTags has 65 tags; it may have 64"},
		"too many":        {nil, defined(65), "definedTags has more than 64 tags"},
		"no name":         {map[string]string{"": "v"}, nil, "freeformTags has a tag whose name has 0 characters; it must have 1 to 100"},
		"long value":      {map[string]string{"a": strings.Repeat("x", 257)}, nil, `freeformTags tag "a" has a value of 257 characters; it may have 256`},
		"no namespace":    {nil, map[string]map[string]json.RawMessage{"": {}}, "definedTags has a namespace whose name has 0 characters; it must have 1 to 100"},
		"long name":       {nil, map[string]map[string]json.RawMessage{"ops": {strings.Repeat("x", 101): []byte("1")}}, "definedTags has a tag whose name has 101 characters; it must have 1 to 100"},
		"object":          {nil, one(`{"deep":[1,2,3]}`), ""},
		"large":           {nil, one(`"` + strings.Repeat("x", 1023) + `"`), `definedTags tag "tag" has a value of 1025 octets; it may have 1024`},
		"not JSON":        {nil, one(`{`), `definedTags tag "tag" has a value that is not JSON`},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkTags(c.free, c.defined)
			if c.text == "" {
				want(t, err, "", "")
			} else {
				want(t, err, queue.InvalidParameter, c.text)
			}
		})
	}
}

package service

import (
	"slices"
	"strings"
	"testing"

	"github.com/queued-mq/queued/queue"
)

func TestOrder(t *testing.T) {
	places := []place{
		{createdAt: 10, id: "b", name: "zoo"},
		{createdAt: 10, id: "a", name: "ant"},
		{createdAt: 20, id: "c", name: "ant"},
		{createdAt: 5, id: "d", name: "Bee"},
	}
	for _, c := range []struct {
		by, direction *string
		want          string
	}{
		{nil, nil, "cbad"},
		{p("timecreated"), p("asc"), "dabc"},
		{p("TIMECREATED"), p("DESC"), "cbad"},
		{p("displayName"), nil, "dacb"},
		{p("displayName"), p("Desc"), "bcad"},
		{nil, p("ASC"), "dabc"},
	} {
		o, err := parseOrder(c.by, c.direction)
		if err != nil {
			t.Fatal(err)
		}
		sorted := slices.SortedFunc(slices.Values(places), o.compare)
		var ids strings.Builder
		for _, p := range sorted {
			ids.WriteString(string(p.id))
		}
		if ids.String() != c.want {
			t.Errorf("by %q %q: %s, want %s", given(c.by), given(c.direction), ids.String(), c.want)
		}
	}
	_, err := parseOrder(p("size"), nil)
	want(t, err, queue.InvalidParameter, "sortBy must be one of timeCreated, displayName")
	_, err = parseOrder(nil, p(""))
	want(t, err, queue.InvalidParameter, "sortOrder must be one of ASC, DESC")
}

func TestPlaceRoundTrip(t *testing.T) {
	for _, c := range []place{
		{createdAt: 1700000000123, id: "ocid1.queue.oc1.local.a", name: "orders"},
		{createdAt: 1, id: "x", name: " two  spaces "},
		{createdAt: -1, id: "x", name: "x"},
	} {
		if got, err := parsePlace(c.String()); err != nil || got != c {
			t.Errorf("%+v came back as %+v, %v", c, got, err)
		}
	}
	for _, bad := range []string{" ", "x y z", "1", "1 x", "99999999999999999999 x y"} {
		_, err := parsePlace(bad)
		want(t, err, queue.InvalidParameter, "")
	}
}

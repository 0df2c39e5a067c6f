package service

import (
	"testing"

	"github.com/queued-mq/queued/queue"
)

func TestIfMatch(t *testing.T) {
	now := etag(42)
	for _, ok := range []string{now, "*", `"` + now + `"`, `W/"` + now + `"`, " " + now + " ", etag(41) + ", " + now} {
		want(t, checkMatch(&ok, 42), "", "")
	}
	want(t, checkMatch(nil, 42), "", "")
	for _, stale := range []string{"", etag(41), etag(43), "42", `"*x"`, now + "0", now[1:]} {
		want(t, checkMatch(&stale, 42), queue.NoEtagMatch, "")
	}
}

func TestEtagsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for v := range uint64(1000) {
		seen[etag(v)] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d etags for 1000 versions", len(seen))
	}
}

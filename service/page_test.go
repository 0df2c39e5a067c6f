package service

import (
	"encoding/base64"
	"strconv"
	"strings"
	"testing"

	"github.com/queued-mq/queued/queue"
)

func TestPageTokenRoundTrip(t *testing.T) {
	pages := pagesOf("ListQueues", nil, p("ACTIVE"))
	for _, position := range []string{"x", "1234 ocid1.queue 名前 with spaces", strings.Repeat("long", 500), "\x00\xff"} {
		token := pages.token(position)
		if got, err := pages.position(&token); err != nil || got != position {
			t.Errorf("%q came back as %q, %v", position, got, err)
		}
		if strings.ContainsAny(token, "+/=& ") {
			t.Errorf("%q cannot stand in a query", token)
		}
	}
	if got, err := pages.position(nil); err != nil || got != "" {
		t.Errorf("without a token: %q, %v", got, err)
	}
}

// A command line takes what begins with a minus for an option: OCI's own prints
// its help for `--page -h8Ksd...`.
func TestPageTokenOnACommandLine(t *testing.T) {
	pages := pagesOf("ListQueues")
	for i := range 1000 {
		for _, token := range []string{
			pages.token(place{createdAt: queue.Instant(1700000000000 + i), id: "ocid1.queue.oc1.local.a", name: "orders"}.String()),
			pagesOf("ListChannels").token("north-" + strconv.Itoa(i)),
		} {
			if token[0] == '-' {
				t.Fatalf("token %s", token)
			}
		}
	}
}

func TestPageTokenIsBoundToItsList(t *testing.T) {
	lists := []pages{
		pagesOf("ListQueues"),
		pagesOf("ListQueues", nil),
		pagesOf("ListQueues", p("")),
		pagesOf("ListQueues", p(""), nil),
		pagesOf("ListQueues", nil, p("")),
		pagesOf("ListQueues", p("ab"), p("c")),
		pagesOf("ListQueues", p("a"), p("bc")),
		pagesOf("ListQueue", p("s")),
		pagesOf("ListChannels", nil),
	}
	for i, from := range lists {
		token := from.token("here")
		for j, to := range lists {
			if _, err := to.position(&token); (err == nil) != (i == j) {
				t.Errorf("token of list %d on list %d: %v", i, j, err)
			}
		}
	}
}

func TestPageTokenDamaged(t *testing.T) {
	pages := pagesOf("ListChannels", p("id"))
	token := pages.token("here")
	bad := []string{"", "x", "!", token[1:], token[:len(token)-1], token + "A", token + "=", token + "\n", token[:4] + "\n" + token[4:],
		base64.RawURLEncoding.EncodeToString(pages.seal(nil)), strings.Repeat("A", maxPageToken+1)}
	raw, _ := base64.RawURLEncoding.DecodeString(token)
	for i := range raw {
		for bit := range 8 {
			b := []byte(string(raw))
			b[i] ^= 1 << bit
			bad = append(bad, base64.RawURLEncoding.EncodeToString(b))
		}
	}
	for _, b := range bad {
		_, err := pages.position(&b)
		want(t, err, queue.InvalidParameter, "page is not a page token of this list")
	}
}

func TestPageLimit(t *testing.T) {
	s := formOnly()
	for in, out := range map[int32]int{1: 1, 77: 77, 1000: 1000} {
		if got, err := s.pageLimit(&in); err != nil || got != out {
			t.Errorf("%d: %d, %v", in, got, err)
		}
	}
	if got, err := s.pageLimit(nil); err != nil || got != 100 {
		t.Errorf("absent: %d, %v", got, err)
	}
	for _, bad := range []int32{0, -1, 1001, -1 << 31} {
		_, err := s.pageLimit(&bad)
		want(t, err, queue.InvalidParameter, "")
	}
}

func TestPageOf(t *testing.T) {
	s, pages, all := formOnly(), pagesOf("ListWorkRequestLogs", p("w")), []int{1, 2, 3, 4, 5}
	var got []int
	var page *string
	for range 3 {
		items, next, err := pageOf(s, all, pages, p(int32(2)), page)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, items...)
		if page = &next; next == "" {
			break
		}
	}
	if len(got) != 5 || *page != "" {
		t.Errorf("got %v, then %q", got, *page)
	}
	for _, position := range []string{"-1", "x", "99999999999999999999"} {
		_, _, err := pageOf(s, all, pages, nil, p(pages.token(position)))
		want(t, err, queue.InvalidParameter, "")
	}
	if items, next, err := pageOf(s, all, pages, nil, p(pages.token("7"))); err != nil || len(items) != 0 || next != "" {
		t.Errorf("behind the end: %v, %q, %v", items, next, err)
	}
}

// A token from outside is refused or is one of ours to the last character, and
// no text whatever makes the reader panic.
func FuzzPageToken(f *testing.F) {
	pages := pagesOf("ListQueues", nil, p("ACTIVE"))
	f.Add("")
	f.Add(pages.token("1700000000000 ocid1.queue.oc1.local.a orders"))
	f.Add(pages.token("x")[:11])
	f.Add("AAAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, token string) {
		position, err := pages.position(&token)
		if err != nil {
			want(t, err, queue.InvalidParameter, "")
		} else if position == "" || pages.token(position) != token {
			t.Errorf("%q was taken for a token of %q", token, position)
		}
		if place, err := parsePlace(token); err == nil && token != "" {
			if again, err := parsePlace(place.String()); err != nil || again != place {
				t.Errorf("place %+v came back as %+v, %v", place, again, err)
			}
		}
	})
}

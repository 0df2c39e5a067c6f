package bench

import (
	"bufio"
	"errors"
	"strings"
	"testing"
)

var head = strings.Repeat("0", 15) + "7" + strings.Repeat("0", 15) + "9"

func TestReadMessages(t *testing.T) {
	t.Parallel()
	got, err := readMessages([]byte(`{"messages":[{"id":1,"content":"` + head + `abc","receipt":"r1"},{"id":2,"content":"` + head + `","receipt":"r2"}]}`))
	if err != nil || len(got) != 2 || got[0].receipt != "r1" || got[1].receipt != "r2" || got[0].number != 7 || got[0].meant != 9 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := readMessages([]byte(`{"messages":[]}`)); err != nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{`{"messages":[{"content":"` + head + `"}]}`, `{"messages":[{"content":"hello","receipt":"r"}]}`} {
		if _, err := readMessages([]byte(text)); err == nil {
			t.Errorf("%s is no error", text)
		}
	}
}

func TestSTOMPFrame(t *testing.T) {
	t.Parallel()
	s := &stompSession{r: bufio.NewReader(strings.NewReader("\nRECEIPT\nreceipt-id:s\n\n\x00\n" +
		"MESSAGE\nack:r1\nack:other\ncontent-length:35\n\n" + head + "a\x00c\x00" +
		"ERROR\r\ncode:TooManyRequests\r\nmessage:slow\\c down\r\n\r\n\x00"))}
	if f, err := s.frame(); err != nil || f.command != "RECEIPT" {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err := s.frame(); err != nil || f.command != "MESSAGE" || string(f.head) != head {
		t.Errorf("%+v, %v", f, err)
	}
	_, err := s.frame()
	if r, ok := errors.AsType[*Refusal](err); !ok || r.Code != "TooManyRequests" || r.Message != "slow: down" || !r.Broken {
		t.Error(err)
	}
}

// FuzzWires feeds both readers noise; they must end.
func FuzzWires(f *testing.F) {
	f.Add([]byte("MESSAGE\nack:r\ncontent-length:3\n\nabc\x00"))
	f.Add([]byte(`{"messages":[{"content":"` + head + `","receipt":"r"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = readMessages(text)
		s := &stompSession{r: bufio.NewReader(strings.NewReader(string(text)))}
		for {
			if _, err := s.frame(); err != nil {
				return
			}
		}
	})
}

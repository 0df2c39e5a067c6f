package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
)

// session is a STOMP client that does no more than it must: frames are written
// ahead, and of what comes only what is needed is looked at.
type session struct {
	net.Conn
	r *bufio.Reader
}

func (t *target) session(window int) (*session, error) {
	c, err := net.Dial("tcp", t.s.STOMP)
	if err != nil {
		return nil, err
	}
	s := &session{c, bufio.NewReaderSize(c, 64<<10)}
	fmt.Fprint(c, "CONNECT\naccept-version:1.2\nhost:bench\n\n\x00")
	if command, _, err := s.frame(); err != nil || command != "CONNECTED" {
		return nil, fmt.Errorf("CONNECT is answered %s, %v", command, err)
	}
	if window > 0 {
		fmt.Fprintf(c, "SUBSCRIBE\nid:0\ndestination:bench\nack:client\nprefetch-count:%d\n\n\x00", window)
	}
	return s, nil
}

// frame reads a frame and gives the value of its header ack.
func (s *session) frame() (command, ack string, err error) {
	line := []byte{}
	for len(line) == 0 {
		if line, err = s.r.ReadSlice('\n'); err != nil {
			return "", "", err
		}
		line = bytes.TrimRight(line, "\n")
	}
	command = string(line)
	length := 0
	for {
		if line, err = s.r.ReadSlice('\n'); err != nil {
			return "", "", err
		}
		if line = line[:len(line)-1]; len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch string(name) {
		case "ack":
			ack = string(value)
		case "content-length":
			if length, err = strconv.Atoi(string(value)); err != nil {
				return "", "", err
			}
		}
	}
	if _, err := io.CopyN(io.Discard, s.r, int64(length+1)); err != nil {
		return "", "", err
	}
	if command == "ERROR" {
		return "", "", fmt.Errorf("ERROR")
	}
	return command, ack, nil
}

// BenchmarkSTOMPPublish sends a number of frames ahead on each session, each
// with a receipt.
func BenchmarkSTOMPPublish(b *testing.B) {
	for _, c := range []struct{ sessions, ahead int }{{1, 1}, {64, 1}, {1, 64}, {64, 20}} {
		b.Run(fmt.Sprintf("sessions=%d/ahead=%d", c.sessions, c.ahead), func(b *testing.B) {
			t := start(b)
			send := []byte("SEND\ndestination:bench\nreceipt:r\ncontent-length:" + strconv.Itoa(bodyBytes) + "\n\n" + content() + "\x00\n")
			var runs atomic.Int64
			t.measure(b, c.sessions, func(left *atomic.Int64) (int, error) {
				if runs.Add(1) > int64(c.sessions) { // one session each, once
					left.Store(0)
					return 0, nil
				}
				s, err := t.session(0)
				if err != nil {
					return 0, err
				}
				defer s.Close()
				total := max(1, b.N/c.sessions)
				window := make(chan struct{}, c.ahead)
				go func() {
					for range total {
						window <- struct{}{}
						if _, err := s.Write(send); err != nil {
							return // the reader knows why
						}
					}
				}()
				for range total {
					if _, _, err := s.frame(); err != nil {
						return 0, err
					}
					<-window
				}
				return total, nil
			})
		})
	}
}

// BenchmarkSTOMPConsume acknowledges what comes within a window, once for each
// half of it.
func BenchmarkSTOMPConsume(b *testing.B) {
	for _, c := range []struct{ sessions, window int }{{1, 1}, {64, 1}, {1, 100}, {64, 20}} {
		b.Run(fmt.Sprintf("sessions=%d/window=%d", c.sessions, c.window), func(b *testing.B) {
			t := start(b)
			t.fill(b.N + 2*c.sessions*c.window)
			var runs atomic.Int64
			t.measure(b, c.sessions, func(left *atomic.Int64) (int, error) {
				if runs.Add(1) > int64(c.sessions) { // one session each, once
					left.Store(0)
					return 0, nil
				}
				s, err := t.session(c.window)
				if err != nil {
					return 0, err
				}
				defer s.Close()
				total, since := max(1, b.N/c.sessions), 0
				for n := 1; n <= total; n++ {
					_, ack, err := s.frame()
					if err != nil {
						return 0, err
					}
					if since++; since >= (c.window+1)/2 || n == total {
						since = 0
						if _, err := fmt.Fprintf(s, "ACK\nid:%s\n\n\x00", ack); err != nil {
							return 0, err
						}
					}
				}
				return total, nil
			})
		})
	}
}

package stompdiff

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/queued-mq/queued/internal/exchange"
)

// play is an exchange under way.
type play struct {
	*Broker
	x       *exchange.Exchange
	version string
	words   exchange.Words
	peers   map[string]*peer
	found   []Difference
}

// peer is the client's side of a connection.
type peer struct {
	net.Conn
	rest     []byte          // read and not looked at
	answered map[string]bool // receipts that were named
}

// errOver is that the exchange cannot go on, since the broker does something
// else.
var errOver = errors.New("the exchange is over")

// PlayOne plays an exchange in one version, and then asks whether another
// connection is served. An error is that it could not be played.
func (b *Broker) PlayOne(x *exchange.Exchange, version string) ([]Difference, error) {
	p := &play{Broker: b, x: x, version: version, words: exchange.Words{"version": version}, peers: map[string]*peer{}}
	defer func() {
		for _, c := range p.peers {
			_ = c.Close()
		}
	}()
	for _, s := range x.Steps(version) {
		err := p.step(&s)
		if errors.Is(err, errOver) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", x.File, s.Line, err)
		}
	}
	c, err := p.open("1.2", nil)
	if err != nil {
		return nil, fmt.Errorf("another connection: %w", err)
	}
	return p.found, c.Close()
}

// differs notes a difference.
func (p *play) differs(want, got string) {
	p.found = append(p.found, Difference{p.x.Title(), p.version, clip(want), clip(got)})
}

// over notes a difference behind which nothing can be compared.
func (p *play) over(want, got string) error {
	p.differs(want, got)
	return errOver
}

// clip spells text for one line of a table.
func clip(text string) string {
	text = strconv.Quote(text)
	text = text[1 : len(text)-1]
	text = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(text)
	if runes := []rune(text); len(runes) > 100 {
		text = string(runes[:100]) + "..."
	}
	return text
}

func (p *play) dial() (*peer, error) {
	c, err := net.DialTimeout("tcp", p.Addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &peer{Conn: c, answered: map[string]bool{}}, nil
}

// open opens a session.
func (p *play) open(version string, headers []string) (*peer, error) {
	c, err := p.dial()
	if err != nil {
		return nil, err
	}
	lines := append([]string{"CONNECT", "accept-version:" + version, "host:" + p.Host}, headers...)
	if _, err := io.WriteString(c, strings.Join(lines, "\n")+"\n\n\x00"); err != nil {
		return nil, err
	}
	f, err := c.next(10 * time.Second)
	if err == nil && (f.Command != "CONNECTED" || f.Header["version"] != version) {
		err = fmt.Errorf("CONNECT is answered %s %v", f.Command, f.Header)
	}
	return c, err
}

// peer is the connection of that name, made when it is first named.
func (p *play) peer(name string) (c *peer, err error) {
	if c = p.peers[name]; c != nil {
		return c, nil
	}
	if p.x.ByHand {
		c, err = p.dial()
	} else {
		c, err = p.open(p.version, p.x.Headers)
	}
	if err == nil {
		p.peers[name] = c
	}
	return c, err
}

// next reads one frame, for so long.
func (c *peer) next(wait time.Duration) (*exchange.Frame, error) {
	if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return nil, err
	}
	for {
		f, rest, err := exchange.Next(c.rest)
		if f != nil || err != nil {
			c.rest = rest
			return f, err
		}
		b := make([]byte, 64<<10)
		n, err := c.Read(b)
		c.rest = append(c.rest, b[:n]...)
		if err != nil && n == 0 {
			return nil, err
		}
	}
}

func (p *play) step(s *exchange.Step) error {
	if s.Verb == "put" {
		return p.put(s.Rest)
	}
	c, err := p.peer(s.Peer)
	if err != nil {
		return err
	}
	switch s.Verb {
	case ">":
		said := *s
		said.Text = p.translate(p.x, p.version, s.Text)
		packets, err := p.words.Packets(&said)
		if err != nil {
			return err
		}
		for i, packet := range packets {
			if i > 0 {
				time.Sleep(time.Millisecond) // a packet of its own, most likely
			}
			if _, err := io.WriteString(c, packet); err != nil {
				return nil // it may have closed; what it said is heard next
			}
		}
		return nil
	case "<":
		return p.hear(c, s)
	case "closed":
		f, err := c.next(p.Wait)
		switch {
		case f != nil:
			return p.over("closes", described(f))
		case isTimeout(err):
			return p.over("closes", "stays open")
		case !ended(err) || !p.Foreign && err != io.EOF:
			return p.over("closes", "closes: "+err.Error())
		}
		return nil
	case "silent":
		f, err := c.next(p.Silence)
		switch {
		case f != nil:
			return p.over("says nothing", described(f))
		case !isTimeout(err):
			return p.over("says nothing", "closes")
		}
		return nil
	case "beat":
		return p.beat(c, s)
	case "close":
		return c.Close()
	case "half-close":
		return c.Conn.(*net.TCPConn).CloseWrite()
	}
	return fmt.Errorf("a step that needs more than a socket: %s", s.Verb)
}

// beat wants a heart-beat within so much time.
func (p *play) beat(c *peer, s *exchange.Step) error {
	within, err := time.ParseDuration(s.Rest)
	if err != nil {
		return err
	}
	if len(c.rest) == 0 {
		if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
			return err
		}
		b := make([]byte, 1)
		n, err := c.Read(b)
		if err != nil {
			return p.over("a heart-beat", happened(err))
		}
		c.rest = b[:n]
	}
	if c.rest[0] != '\n' {
		return p.over("a heart-beat", "something else")
	}
	c.rest = c.rest[1:]
	return nil
}

// put sends a message on a connection of its own.
func (p *play) put(text string) error {
	name, body, _ := strings.Cut(text, " ")
	c, err := p.open("1.2", nil)
	if err != nil {
		return err
	}
	defer c.Close()
	dest := p.translate(p.x, p.version, []string{"destination:" + name})[0]
	if _, err := io.WriteString(c, "SEND\n"+dest+"\nreceipt:put\n\n"+body+"\x00"); err != nil {
		return err
	}
	f, err := c.next(10 * time.Second)
	if err == nil && f.Command != "RECEIPT" {
		err = fmt.Errorf("put is answered %s %v", f.Command, f.Header)
	}
	return err
}

// hear reads one frame and compares it.
func (p *play) hear(c *peer, s *exchange.Step) error {
	wanted := *s
	wanted.Text = p.translate(p.x, p.version, s.Text)
	want, err := p.words.Wants(&wanted)
	if err != nil {
		return err
	}
	f, err := c.next(p.Wait)
	if err != nil {
		return p.over(want.Command, happened(err))
	}
	if r, named := f.Header["receipt-id"]; named {
		if c.answered[r] {
			p.differs("one answer for each receipt", "two for one")
		}
		c.answered[r] = true
	}
	if f.Command != want.Command {
		return p.over(want.Command, described(f))
	}
	for _, condition := range p.asked(&want) {
		if differs := f.Differs(condition); differs != "" {
			// The name of the queue is that of this run.
			p.differs(f.Command+" with "+p.plain(condition), f.Command+" with "+p.plain(differs))
		}
	}
	if f.Command == "ERROR" && f.Header["message"] == "" {
		p.differs("ERROR with message", "ERROR without message")
	}
	if want.HasBody && f.Body != want.Body && (f.Command != "ERROR" || !p.Foreign) {
		p.differs(fmt.Sprintf("%s with the body %q", f.Command, want.Body), fmt.Sprintf("%s with the body %q", f.Command, f.Body))
	}
	if want.Alias != "" {
		p.words.Learn(want.Alias, p.version, f)
	}
	return nil
}

// plain takes out what the names of queues have in a play, and turns a
// condition into words.
func (p *play) plain(text string) string {
	for _, q := range p.x.Queues {
		text = strings.ReplaceAll(text, queueOf(p.x, p.version, q), q)
	}
	text = strings.TrimSuffix(text, ":*")
	if rest, found := strings.CutPrefix(text, "!"); found {
		return "no " + rest
	}
	return text
}

// described is a frame in few words.
func described(f *exchange.Frame) string {
	if f.Command == "ERROR" {
		return "ERROR: " + f.Header["message"]
	}
	if r, named := f.Header["receipt-id"]; named {
		return f.Command + " of " + r
	}
	return f.Command
}

// happened is why no frame came.
func happened(err error) string {
	switch {
	case isTimeout(err):
		return "says nothing"
	case ended(err):
		return "closes without a word"
	}
	return err.Error()
}

// ended reports whether the other side has closed, in good order or not.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed)
}

package abuse

import (
	"bytes"

	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2 is one connection of HTTP/2, frame by frame. What the server says is
// read in the background and counted, unless the client is deaf.
type h2 struct {
	net.Conn
	*http2.Framer
	a      *abuser
	out    bytes.Buffer // frames that wait for flush
	block  bytes.Buffer
	enc    *hpack.Encoder
	stream uint32 // the next

	mu     sync.Mutex
	heard  sync.Cond // of mu
	over   bool      // the connection has ended
	goAway *http2.ErrCode
	resets map[http2.ErrCode]int
	acks   int // of SETTINGS
	pongs  int
	status map[string]int // :status and grpc-status, as in "grpc-status 8"
	data   int            // octets
}

// h2 opens a connection, with the client's preface and these settings.
func (a *abuser) h2(addr string, deaf bool, settings ...http2.Setting) *h2 {
	a.Helper()
	c := &h2{Conn: a.open(addr), a: a, stream: 1, resets: map[http2.ErrCode]int{}, status: map[string]int{}}
	c.heard.L = &c.mu
	c.Framer = http2.NewFramer(&c.out, c.Conn)
	c.AllowIllegalWrites = true
	c.enc = hpack.NewEncoder(&c.block)
	c.out.WriteString(http2.ClientPreface)
	_ = c.WriteSettings(settings...) // into memory
	c.flush()
	if !deaf {
		go c.listen() // ends with the connection
	}
	return c
}

func (c *h2) listen() {
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		f, err := c.ReadFrame()
		c.mu.Lock()
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			// A server that ends in order says so twice.
			if code := f.ErrCode; c.goAway == nil || code != http2.ErrCodeNo {
				c.goAway = &code
			}
		case *http2.RSTStreamFrame:
			c.resets[f.ErrCode]++
		case *http2.SettingsFrame:
			if f.IsAck() {
				c.acks++
			}
		case *http2.PingFrame:
			if f.IsAck() {
				c.pongs++
			}
		case *http2.DataFrame:
			c.data += len(f.Data())
		case *http2.MetaHeadersFrame:
			for _, h := range f.Fields {
				if h.Name == ":status" || h.Name == "grpc-status" {
					c.status[h.Name+" "+h.Value]++
				}
			}
		}
		c.over = err != nil
		c.heard.Broadcast()
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// flush sends what was written. It reports false if the server has hung up.
func (c *h2) flush() bool {
	_ = c.SetWriteDeadline(time.Now().Add(waitFor))
	_, err := c.Conn.Write(c.out.Bytes())
	c.out.Reset()
	if err != nil && !gone(err) {
		c.a.Errorf("write: %v", err)
	}
	return err == nil
}

// fields encodes a header block.
func (c *h2) fields(fields ...[2]string) []byte {
	c.block.Reset()
	for _, f := range fields {
		_ = c.enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}) // into memory
	}
	return bytes.Clone(c.block.Bytes())
}

// ask writes the headers of a request and is its stream.
func (c *h2) ask(end bool, fields ...[2]string) uint32 {
	id := c.stream
	c.stream += 2
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.fields(fields...), EndStream: end, EndHeaders: true})
	return id
}

// until waits until ok, which may look at what was heard, or the connection
// ends. It reports false for that.
func (c *h2) until(what string, ok func() bool) bool {
	c.a.Helper()
	late := time.AfterFunc(waitFor, func() {
		c.a.Errorf("%s: not within %v", what, waitFor)
		c.Close()
	})
	defer late.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !ok() && !c.over {
		c.heard.Wait()
	}
	return ok()
}

// ended waits until the server has hung up. It must have said one of these codes
// before, if it said any at all.
func (c *h2) ended(codes ...http2.ErrCode) {
	c.a.Helper()
	c.until("the server hangs up", func() bool { return false })
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.goAway == nil {
		return
	}
	for _, code := range codes {
		if code == *c.goAway {
			return
		}
	}
	c.a.Errorf("the server hung up with %v, not one of %v", *c.goAway, codes)
}

// alive asks with a PING whether the connection is of use still; the server
// may have taken all before then.
func (c *h2) alive() bool {
	c.a.Helper()
	c.mu.Lock()
	pongs := c.pongs
	c.mu.Unlock()
	_ = c.WritePing(false, [8]byte{'a', 'l', 'i', 'v', 'e'})
	return c.flush() && c.until("a PING is answered", func() bool { return c.pongs > pongs })
}

// door is a face over HTTP/2.
type door struct {
	addr func(*abuser) string
	ask  [][2]string // the headers of a publish
	get  [][2]string // of a get of as many messages as may be, which stay visible
	body []byte      // that goes with get
	poll [][2]string // of a get that waits
	wait []byte      // that goes with poll
}

// withField is the headers of a publish and one more.
func (d *door) withField(name, value string) [][2]string {
	return append(d.ask[:len(d.ask):len(d.ask)], [2]string{name, value})
}

// most is how many frames of one kind a flood has.
const most = 20_000

// floods are rows that send one kind of frame without end. The server may serve
// them, or call for calm: the connection then is at its end.
func (d *door) floods() (rows []row) {
	flood := func(name string, deaf bool, write func(c *h2, i int)) {
		rows = append(rows, row{name: name, abuse: func(a *abuser) {
			c := a.h2(d.addr(a), deaf)
			for i := range most {
				write(c, i)
				a.count.Add(1)
				if c.out.Len() > 32<<10 && !c.flushSome(deaf) {
					break
				}
			}
			c.flushSome(deaf)
			if deaf {
				return
			}
			if alive := c.alive(); !alive {
				c.ended(http2.ErrCodeEnhanceYourCalm, http2.ErrCodeProtocol)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			a.Logf("heard: %d pongs, %d acks, %v, %v", c.pongs, c.acks, c.resets, c.status)
		}, most: 192 << 20}) // a thousand streams, and some thousands that net/http lets wait behind them
	}
	reset := func(c *h2, id uint32) { _ = c.WriteRSTStream(id, http2.ErrCodeCancel) }
	flood("resets of requests", false, func(c *h2, _ int) { reset(c, c.ask(true, d.ask...)) })
	flood("resets of bodies", false, func(c *h2, _ int) { reset(c, c.ask(false, d.ask...)) })
	flood("resets of polls", false, func(c *h2, _ int) {
		id := c.ask(len(d.wait) == 0, d.poll...)
		if len(d.wait) > 0 {
			_ = c.WriteData(id, true, d.wait)
		}
		reset(c, id)
	})
	flood("requests made to be reset by the server", false, func(c *h2, _ int) {
		_ = c.WriteWindowUpdate(c.ask(true, d.ask...), 0) // an increment of 0 is an error of the stream
	})
	flood("PINGs", false, func(c *h2, i int) { _ = c.WritePing(false, [8]byte{byte(i), byte(i >> 8)}) })
	flood("PINGs, their answers unread", true, func(c *h2, i int) { _ = c.WritePing(false, [8]byte{byte(i)}) })
	flood("SETTINGS", false, func(c *h2, i int) {
		_ = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(i)})
	})
	flood("SETTINGS, their answers unread", true, func(c *h2, i int) {
		_ = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(i)})
	})
	flood("WINDOW_UPDATEs", false, func(c *h2, _ int) { _ = c.WriteWindowUpdate(0, 1) })
	flood("PRIORITYs", false, func(c *h2, i int) { _ = c.WritePriority(uint32(2*i+1), http2.PriorityParam{StreamDep: 0}) })
	flood("empty DATA", false, func(c *h2, i int) {
		if i == 0 {
			c.ask(false, d.ask...)
		}
		_ = c.WriteData(1, false, nil)
	})
	flood("frames of no known kind", false, func(c *h2, _ int) { _ = c.WriteRawFrame(0x77, 0xff, 0, []byte("what")) })
	return rows
}

// flushSome is flush; a deaf client may find the pipes full, which is its end.
func (c *h2) flushSome(deaf bool) bool {
	if !deaf {
		return c.flush()
	}
	_ = c.SetWriteDeadline(time.Now().Add(2 * time.Second))
	_, err := c.Conn.Write(c.out.Bytes())
	c.out.Reset()
	return err == nil
}

// broken is a row that breaks the protocol, for which the connection must end.
func (d *door) broken(name string, write func(c *h2), codes ...http2.ErrCode) row {
	return row{name: name, abuse: func(a *abuser) {
		for range many {
			c := a.h2(d.addr(a), false)
			write(c)
			c.flush()
			c.ended(codes...)
			a.count.Add(1)
		}
	}}
}

// openings are rows that break the protocol or stop in the middle of it.
func (d *door) openings() []row {
	raw := func(name, text string) row {
		return row{name: name, abuse: func(a *abuser) {
			a.each(d.addr(a), func(c net.Conn) {
				a.flooded(c, 1, []byte(text), len(text))
				a.said(c)
			})
		}}
	}
	settings := "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	return []row{
		raw("a preface that is none", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"+settings),
		raw("a preface and no more", http2.ClientPreface),
		raw("half of a preface and no more", http2.ClientPreface[:10]),
		raw("a preface and a frame that is no SETTINGS", http2.ClientPreface+"\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678"),
		raw("a frame of 16 MiB is announced", http2.ClientPreface+settings+"\xff\xff\xff\x00\x00\x00\x00\x00\x01"),
		{name: "half of a frame and no more", abuse: func(a *abuser) {
			// It is found out by a PING that nobody answers, after 45 s.
			a.each(d.addr(a), func(c net.Conn) {
				text := http2.ClientPreface + settings + "\x00\x40\x00\x01\x00\x00"
				a.flooded(c, 1, []byte(text), len(text))
			})
		}},
		{name: "frames octet by octet", abuse: func(a *abuser) {
			a.each(d.addr(a), func(c net.Conn) {
				text := http2.ClientPreface + settings + strings.Repeat("\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678", 2)
				for _, b := range []byte(text) {
					a.flooded(c, 1, []byte{b}, 1)
					time.Sleep(10 * time.Millisecond) // the abuse itself
				}
				_ = c.SetReadDeadline(time.Now().Add(waitFor))
				for f := http2.NewFramer(nil, c); ; { // a client of little speed is a client
					if frame, err := f.ReadFrame(); err != nil {
						a.Error(err)
						return
					} else if ping, ok := frame.(*http2.PingFrame); ok && ping.IsAck() {
						return
					}
				}
			})
		}},
		d.broken("a CONTINUATION of nothing", func(c *h2) {
			_ = c.WriteContinuation(1, true, nil)
		}, http2.ErrCodeProtocol),
		d.broken("headers that are no HPACK", func(c *h2) {
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte("\xff\xff\xff\xff\xff\xff"), EndHeaders: true})
		}, http2.ErrCodeCompression),
	}
}

// bombs are rows whose headers are more than they look.
func (d *door) bombs(refused func(c *h2) bool) []row {
	// bomb sends streams, each of whose headers must be refused, and looks
	// whether the connection, which may be ended for it, is of use still.
	bomb := func(name string, streams int, write func(c *h2), codes ...http2.ErrCode) row {
		return row{name: name, abuse: func(a *abuser) {
			c := a.h2(d.addr(a), false)
			for range streams {
				write(c)
				if !c.flush() {
					break
				}
				a.count.Add(1)
				if !c.until("the headers are refused", func() bool { return refused(c) }) {
					break
				}
			}
			if !c.alive() {
				c.ended(codes...)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			a.Logf("heard: %v, %v, %v", c.resets, c.status, c.goAway)
			if !c.over && !refused(c) {
				a.Error("the headers were not refused")
			}
			a.count.Add(many) // what was sent is more than one
		}}
	}
	endless := func(piece []byte) func(c *h2) {
		return func(c *h2) {
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields(d.ask...)})
			for range 20_000 {
				_ = c.WriteContinuation(1, false, piece)
				c.a.count.Add(1)
				if c.out.Len() > 32<<10 && !c.flush() {
					return
				}
			}
		}
	}
	return []row{
		bomb("one header named again and again", 500, func(c *h2) {
			// The first time it takes its place in the table, then an octet is
			// enough to name it: 60 MiB are told in 16 KiB.
			block := append(c.fields(d.withField("x-bomb", strings.Repeat("b", 3900))...), bytes.Repeat([]byte{0x80 | 62}, 16_000-4000)...)
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: c.stream, BlockFragment: block, EndHeaders: true, EndStream: true})
			c.stream += 2
		}, http2.ErrCodeEnhanceYourCalm, http2.ErrCodeProtocol, http2.ErrCodeCompression),
		bomb("ten thousand headers", 50, func(c *h2) {
			fields := d.withField("x-a", "b")
			for range 10_000 {
				fields = append(fields, [2]string{"x-a", "b"})
			}
			c.ask(true, fields...)
		}, http2.ErrCodeEnhanceYourCalm, http2.ErrCodeProtocol),
		bomb("one header of 1 MiB", 50, func(c *h2) {
			block := c.fields(d.withField("x-a", strings.Repeat("\x00", 1<<20))...)
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: c.stream, BlockFragment: block[:16<<10], EndStream: true})
			for block = block[16<<10:]; len(block) > 0; block = block[min(len(block), 16<<10):] {
				_ = c.WriteContinuation(c.stream, len(block) <= 16<<10, block[:min(len(block), 16<<10)])
			}
			c.stream += 2
		}, http2.ErrCodeEnhanceYourCalm, http2.ErrCodeProtocol, http2.ErrCodeCompression),
		bomb("CONTINUATIONs without end", 1, endless(bytes.Repeat([]byte("\x00\x01a\x01b"), 3000)),
			http2.ErrCodeEnhanceYourCalm, http2.ErrCodeProtocol),
		{name: "empty CONTINUATIONs without end", abuse: func(a *abuser) {
			// They cost nothing; the end is a PING that cannot be answered, after 45 s.
			c := a.h2(d.addr(a), true)
			endless(nil)(c)
			c.flush()
		}},
	}
}

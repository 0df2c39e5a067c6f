// Package stompdiff plays the table of STOMP exchanges over sockets: to our
// server, which must answer as the table says, and to RabbitMQ (make
// stomp-differential), to show where the two differ and why.
//
// What is played is every exchange of stomp/testdata/exchanges that needs
// nothing but a socket, each in queues of its own.
package stompdiff

import (
	"fmt"
	"hash/crc32"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/queued-mq/queued/internal/exchange"
)

// Broker is a server, and what must be known to play exchanges to it.
type Broker struct {
	Addr    string        // host:port
	Host    string        // what CONNECT calls it
	Wait    time.Duration // for what must come
	Silence time.Duration // for what must not

	// Foreign is a broker that has not heard of our headers, and to which every
	// queue is /queue/NAME.
	Foreign bool
}

// Difference is where a broker does not do what the table says.
type Difference struct {
	Exchange string // file/name
	Version  string
	Want     string // and this is what ours does
	Got      string
}

// Table is the exchanges that need nothing but a socket.
func Table() ([]*exchange.Exchange, error) {
	all, err := exchange.Read("../../stomp/testdata/exchanges/*.txt")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(x *exchange.Exchange) bool { return !x.Plain() }), nil
}

// ownRules begin the reason of an exchange that shows a rule of ours, not one
// of the protocol.
var ownRules = regexp.MustCompile(`^(contract|oci|decision|conventions|FC)`)

// OfProtocol is those that another broker can be asked for.
func OfProtocol(table []*exchange.Exchange) []*exchange.Exchange {
	return slices.DeleteFunc(slices.Clone(table), func(x *exchange.Exchange) bool { return ownRules.MatchString(x.Why) })
}

// Everywhere is how many run in all three versions.
func Everywhere(table []*exchange.Exchange) (n int) {
	for _, x := range table {
		if len(x.Versions) == 3 {
			n++
		}
	}
	return n
}

// destination is the name of a queue where it stands in a frame.
var destination = regexp.MustCompile(`^(destination:)(/queue/)?([A-Za-z]+)`)

// queueOf is the name that a queue has in an exchange.
func queueOf(x *exchange.Exchange, version, name string) string {
	sum := crc32.ChecksumIEEE([]byte(x.Title())) // the name stays as it is when the table grows
	return fmt.Sprintf("%s-%08x-%s", name, sum, strings.ReplaceAll(version, ".", ""))
}

// Queues is the queues that an exchange needs.
func Queues(x *exchange.Exchange, version string) (names []string) {
	for _, q := range x.Queues {
		names = append(names, queueOf(x, version, q))
	}
	return names
}

// translate puts the broker's name of each queue into lines of a table.
func (b *Broker) translate(x *exchange.Exchange, version string, lines []string) []string {
	lines = slices.Clone(lines)
	for i, line := range lines {
		// Several lines may stand in one, and between packets.
		parts := strings.Split(line, "^J")
		for j, part := range parts {
			mark := ""
			if rest, found := strings.CutPrefix(part, "^|"); found {
				mark, part = "^|", rest
			}
			parts[j] = mark + destination.ReplaceAllStringFunc(part, func(text string) string {
				m := destination.FindStringSubmatch(text)
				if b.Foreign {
					m[2] = "/queue/"
				}
				return m[1] + m[2] + queueOf(x, version, m[3])
			})
		}
		lines[i] = strings.Join(parts, "^J")
	}
	return lines
}

// ours are headers that no other broker has, or that it fills as it likes.
var ours = []string{"code", "oci-message-id", "delivery-count", "expire-after", "visible-after", "timestamp", "omitted-properties", "server"}

// asked are the conditions of a frame that this broker must fulfil.
func (b *Broker) asked(want *exchange.Want) []string {
	if !b.Foreign {
		return want.Headers
	}
	return slices.DeleteFunc(slices.Clone(want.Headers), func(c string) bool {
		name := exchange.HeaderOf(c)
		return slices.Contains(ours, name) || name == "message" || want.Command == "ERROR" && name == "content-type"
	})
}

// Play plays exchanges, many at a time, each in its versions, and is the
// differences in the order of the table.
func (b *Broker) Play(table []*exchange.Exchange) ([]Difference, error) {
	type job struct {
		x       *exchange.Exchange
		version string
		found   []Difference
		err     error
	}
	var jobs []*job
	for _, x := range table {
		for _, v := range x.Versions {
			jobs = append(jobs, &job{x: x, version: v})
		}
	}
	var all sync.WaitGroup
	places := make(chan struct{}, 16)
	for _, j := range jobs {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			j.found, j.err = b.PlayOne(j.x, j.version)
		})
	}
	all.Wait()
	var found []Difference
	for _, j := range jobs {
		if j.err != nil {
			return nil, fmt.Errorf("%s in %s: %w", j.x.Title(), j.version, j.err)
		}
		found = append(found, j.found...)
	}
	return found, nil
}

// isTimeout reports whether nothing came in time.
func isTimeout(err error) bool { return os.IsTimeout(err) }

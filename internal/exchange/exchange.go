// Package exchange reads tables of what clients and a STOMP server say to one
// another, line by line, and compares what was heard with what a table wants.
// The language is told in stomp/testdata/exchanges/README. The package opens
// no connection: the tests of the server play the tables in process, and
// e2e/stompdiff plays them over sockets, to our server and to others.
package exchange

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Exchange is one entry of a file.
type Exchange struct {
	File     string
	Name     string
	Why      string
	Versions []string // it is run in each; "none": nobody has said CONNECT
	ByHand   bool     // its lines open the connections themselves
	Headers  []string // more of them for CONNECT
	Queues   []string
	Options  []string // settings of the server
	Fake     bool     // runs in fake time

	lines []line
}

// line is one of those that are played; an empty one parts what stands around
// it.
type line struct {
	number   int
	versions []string // in which it is played; nil: in all
	text     string
}

// Step is one or more lines of an exchange.
type Step struct {
	Line int
	Peer string
	Verb string
	Rest string
	Text []string // of > and <
}

// Title names the exchange, with its file.
func (x *Exchange) Title() string {
	return strings.TrimSuffix(filepath.Base(x.File), ".txt") + "/" + x.Name
}

// Read reads all files that the pattern matches.
func Read(pattern string) ([]*Exchange, error) {
	files, err := filepath.Glob(pattern)
	if err == nil && len(files) == 0 {
		err = errors.New("no such files")
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", pattern, err)
	}
	var all []*Exchange
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		some, err := Parse(file, string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// condition is what stands before a line that not every version has.
var condition = regexp.MustCompile(`^\[([\d. ]+)\] (.*)$`)

// Parse reads the exchanges of one file.
func Parse(file, text string) (all []*Exchange, err error) {
	var x *Exchange
	names := map[string]bool{}
	for i, text := range strings.Split(text, "\n") {
		bad := func(what string) error { return fmt.Errorf("%s:%d: %q: %s", file, i+1, text, what) }
		key, value, _ := strings.Cut(text, ": ")
		if key == "name" {
			if names[value] {
				return nil, bad("there is one of that name")
			}
			names[value] = true
			x = &Exchange{File: file, Name: value, Versions: []string{"1.2"}, Queues: []string{"orders"}}
			all = append(all, x)
			continue
		}
		if strings.HasPrefix(text, "#") {
			text = ""
		}
		if x == nil {
			if strings.TrimSpace(text) != "" {
				return nil, bad("no exchange has begun")
			}
			continue
		}
		switch key {
		case "why":
			x.Why = value
		case "version", "versions":
			x.Versions = strings.Fields(value)
			x.ByHand = x.ByHand || slices.Equal(x.Versions, []string{"none"})
		case "opening":
			if value != "by hand" {
				return nil, bad("an opening is by hand, or not mentioned")
			}
			x.ByHand = true
		case "connect":
			x.Headers = append(x.Headers, value)
		case "queues":
			x.Queues = strings.Fields(value)
		case "time":
			x.Fake = value == "fake"
		case "option":
			x.Options = append(x.Options, value)
		default:
			l := line{number: i + 1, text: text}
			if m := condition.FindStringSubmatch(text); m != nil {
				l.versions, l.text = strings.Fields(m[1]), m[2]
			}
			x.lines = append(x.lines, l)
		}
	}
	for _, x := range all {
		for _, l := range x.lines {
			for _, v := range l.versions {
				if !slices.Contains(x.Versions, v) {
					return nil, fmt.Errorf("%s:%d: a line for version %s, in which %q is not run", file, l.number, v, x.Name)
				}
			}
		}
		if x.Why == "" {
			return nil, fmt.Errorf("%s: %q does not say why", file, x.Name)
		}
	}
	return all, nil
}

var stepLine = regexp.MustCompile(`^(\w*)([<>])(?: (.*))?$`)

// Steps are the steps of the exchange in that version.
func (x *Exchange) Steps(version string) (steps []Step) {
	last := ""
	for _, l := range x.lines {
		if l.versions != nil && !slices.Contains(l.versions, version) {
			continue
		}
		if strings.TrimSpace(l.text) == "" {
			last = ""
			continue
		}
		m := stepLine.FindStringSubmatch(l.text)
		if m == nil {
			last = ""
			peer, rest := "1", l.text
			if first, behind, found := strings.Cut(rest, " "); found && len(first) == 1 {
				peer, rest = first, behind
			}
			verb, rest, _ := strings.Cut(rest, " ")
			steps = append(steps, Step{Line: l.number, Peer: peer, Verb: verb, Rest: rest})
			continue
		}
		peer, verb := cmp.Or(m[1], "1"), m[2]
		// A frame that is heard ends with its NUL; what is said may hold several.
		if last != peer+verb || verb == "<" && steps[len(steps)-1].ends() {
			steps = append(steps, Step{Line: l.number, Peer: peer, Verb: verb})
		}
		s := &steps[len(steps)-1]
		s.Text = append(s.Text, m[3])
		last = peer + verb
	}
	return steps
}

func (s *Step) ends() bool { return strings.HasSuffix(s.Text[len(s.Text)-1], "^@") }

// overSocket are the steps that need nothing but a connection.
var overSocket = []string{">", "<", "closed", "silent", "beat", "close", "half-close", "put"}

// Plain reports whether a connection and queues that are there are all that
// the exchange needs.
func (x *Exchange) Plain() bool {
	if x.Fake || len(x.Options) > 0 {
		return false
	}
	for _, v := range x.Versions {
		for _, s := range x.Steps(v) {
			if !slices.Contains(overSocket, s.Verb) {
				return false
			}
		}
	}
	return true
}

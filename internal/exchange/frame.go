package exchange

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Frame is a frame of the server, its headers as they are spelled.
type Frame struct {
	Command string
	Header  map[string]string // the last of each name
	Order   []string          // names of the headers
	Body    string
}

// Next cuts the first frame off what was read. A frame that is not whole yet
// is nil.
func Next(read []byte) (f *Frame, rest []byte, err error) {
	b := bytes.TrimLeft(read, "\r\n")
	head, body, found := bytes.Cut(b, []byte("\n\n"))
	if !found {
		return nil, read, nil
	}
	lines := strings.Split(string(head), "\n")
	f = &Frame{Command: lines[0], Header: map[string]string{}}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ":")
		f.Header[name] = value
		f.Order = append(f.Order, name)
	}
	end := bytes.IndexByte(body, 0)
	if text, given := f.Header["content-length"]; given {
		end, err = strconv.Atoi(text)
		if err != nil || end < 0 {
			return nil, read, fmt.Errorf("%s has content-length:%q", f.Command, text)
		}
		if len(body) <= end {
			return nil, read, nil
		}
		if body[end] != 0 {
			return nil, read, fmt.Errorf("content-length is %d, and no NUL is behind the body in %q", end, body)
		}
	}
	if end < 0 {
		return nil, read, nil
	}
	f.Body = string(body[:end])
	return f, body[end+1:], nil
}

// Want is a frame as a table wants it.
type Want struct {
	Command string
	Alias   string   // by which later lines name it
	Headers []string // conditions, as Differs takes them
	HasBody bool
	Body    string
}

// Wants is the frame of a step "<".
func (w Words) Wants(s *Step) (want Want, err error) {
	want.Command, want.Alias, _ = strings.Cut(s.Text[0], " as ")
	for i, line := range s.Text[1:] {
		if line == "" {
			want.HasBody = true
			body, err := w.Fill(strings.TrimSuffix(strings.Join(s.Text[i+2:], "\n"), "^@"))
			want.Body = Spell(body)
			return want, err
		}
		if line, err = w.Fill(line); err != nil {
			return want, err
		}
		want.Headers = append(want.Headers, Spell(line))
	}
	return want, nil
}

// HeaderOf is the header that a condition is about.
func HeaderOf(condition string) string {
	return strings.TrimPrefix(condition[:strings.IndexAny(condition+":", ":~")], "!")
}

// Differs tells what of a frame is not as the condition wants it, or "".
// Conditions are name:value, name:* for any value, name~part, and !name for a
// header that must not be there.
func (f *Frame) Differs(condition string) string {
	name := HeaderOf(condition)
	got, there := f.Header[name]
	if strings.HasPrefix(condition, "!") {
		if there {
			return fmt.Sprintf("%s:%s", name, got)
		}
		return ""
	}
	value := condition[len(name):]
	switch {
	case !there:
		return "no " + name
	case strings.HasPrefix(value, "~"):
		if strings.Contains(got, value[1:]) {
			return ""
		}
	case value == ":*" || value == ":"+got:
		first := slices.Index(f.Order, name)
		if slices.Contains(f.Order[first+1:], name) {
			return name + " more than once"
		}
		return ""
	}
	return fmt.Sprintf("%s:%s", name, got)
}

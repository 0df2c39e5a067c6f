package exchange

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Words is what $name stands for.
type Words map[string]string

var repeated = regexp.MustCompile(`\{(\d+)\*([^}]*)\}`)
var named = regexp.MustCompile(`\$[a-z][a-z0-9]*`)

// Fill replaces $name and {9*text}, in which # is the number of the copy.
func (w Words) Fill(text string) (string, error) {
	var err error
	text = repeated.ReplaceAllStringFunc(text, func(m string) string {
		parts := repeated.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[1])
		if !strings.Contains(parts[2], "#") {
			return strings.Repeat(parts[2], n)
		}
		var all strings.Builder
		for i := range n {
			all.WriteString(strings.ReplaceAll(parts[2], "#", strconv.Itoa(i+1)))
		}
		return all.String()
	})
	text = named.ReplaceAllStringFunc(text, func(name string) string {
		word, known := w[name[1:]]
		if !known {
			err = fmt.Errorf("%s is not known", name)
		}
		return word
	})
	return text, err
}

// Learn keeps what the frame is named by in this version: $alias, $aliasid and
// $aliasreceipt.
func (w Words) Learn(alias, version string, f *Frame) {
	id, ack := f.Header["message-id"], f.Header["ack"]
	w[alias+"id"], w[alias+"receipt"] = id, id
	if ack != "" {
		w[alias+"receipt"] = ack
	}
	switch sub, there := f.Header["subscription"]; {
	case version == "1.2":
		w[alias] = "id:" + ack
	case version == "1.1" && there:
		w[alias] = "subscription:" + sub + "\nmessage-id:" + id
	default:
		w[alias] = "message-id:" + id
	}
}

var octets = strings.NewReplacer("^@", "\x00", "^M", "\r", "^J", "\n", "^I", "\t", "^_", " ")

// hexes are octets that no text can show: ^xFF.
var hexes = regexp.MustCompile(`\^x[0-9A-F]{2}`)

// Spell turns what stands for octets into them.
func Spell(text string) string {
	text = octets.Replace(text)
	return hexes.ReplaceAllStringFunc(text, func(h string) string {
		n, _ := strconv.ParseUint(h[2:], 16, 8)
		return string([]byte{byte(n)})
	})
}

// Packets is what the client says at a step: every line with a LF, but none
// behind NUL.
func (w Words) Packets(s *Step) ([]string, error) {
	var text strings.Builder
	for _, line := range s.Text {
		filled, err := w.Fill(line)
		if err != nil {
			return nil, err
		}
		text.WriteString(filled)
		if !strings.HasSuffix(line, "^@") && !strings.HasSuffix(line, "^.") {
			text.WriteString("\n")
		}
	}
	whole := strings.ReplaceAll(text.String(), "^.", "")
	pieces := strings.Split(whole, "^|")
	if len(pieces) == 2 && pieces[0] == "^*" { // every octet by itself
		pieces = strings.Split(Spell(pieces[1]), "")
	}
	for i := range pieces {
		pieces[i] = Spell(pieces[i])
	}
	return pieces, nil
}

package clients

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// path is the page that holds the tables, each between two marks.
const (
	path = "../../docs/clients.md"
	to   = "<!-- :written -->\n"
)

// from is the mark before the table of a suite.
func (s suite) from() string { return "<!-- written by make clients, " + s.name + ": -->\n" }

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// compare fails the test if the page's tables are not those of these reports.
// With WRITE=1 in the environment it writes the tables instead.
func compare(t *testing.T, text string, said map[string]*report) {
	t.Helper()
	page := text
	for _, s := range suites() {
		before, rest, ok := strings.Cut(page, s.from())
		table, after, ok2 := strings.Cut(rest, to)
		if !ok || !ok2 {
			t.Fatalf("%s has no place for the table %s", path, s.name)
		}
		// The columns of clients that did not run are kept.
		was := s.parse(table)
		for _, c := range s.clients {
			if old := was[c.name]; !said[c.name].whole && old != nil {
				said[c.name] = old
			}
		}
		page = before + s.from() + s.format(said) + to + after
	}
	switch {
	case page == text:
	case os.Getenv("WRITE") == "1":
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the clients checked something else than %s says; make clients writes it. -it +they\n%s", path, cmp.Diff(text, page))
	}
}

// format is the table, and under it the reasons.
func (s suite) format(said map[string]*report) string {
	var table, reasons strings.Builder
	table.WriteString("\n|  |")
	for _, c := range s.clients {
		table.WriteString(" " + c.name + " |")
	}
	table.WriteString("\n|---|" + strings.Repeat("---:|", len(s.clients)) + "\n")
	for _, topic := range s.topics {
		fmt.Fprintf(&table, "| %s |", topic)
		for _, c := range s.clients {
			if why := said[c.name].none[topic]; why != "" {
				table.WriteString(" none |")
				fmt.Fprintf(&reasons, "- %s, %s: %s\n", c.name, topic, why)
			} else {
				fmt.Fprintf(&table, " %d |", said[c.name].checks[topic])
			}
		}
		table.WriteString("\n")
	}
	if reasons.Len() > 0 {
		table.WriteString("\n" + reasons.String())
	}
	return table.String() + "\n"
}

// parse reads what format wrote, by client.
func (s suite) parse(table string) map[string]*report {
	said := map[string]*report{}
	var names []string
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "- "); ok {
			what, why, _ := strings.Cut(text, ": ")
			name, op, _ := strings.Cut(what, ", ")
			if r, ok := said[name]; ok {
				r.none[op] = why
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case len(cells) < 2:
		case names == nil:
			names = cells[1:]
			for _, name := range names {
				said[name] = newReport(s.topics)
			}
		default:
			for i, cell := range cells[1:] {
				n := 0
				if _, err := fmt.Sscan(cell, &n); err == nil && i < len(names) {
					said[names[i]].checks[cells[0]] = n
				}
			}
		}
	}
	return said
}

// shows fails the test unless the page has a section of this client, in which
// every block of code is part of a file in the client's folder.
func shows(t *testing.T, page string, c client) {
	t.Helper()
	_, section, ok := strings.Cut(page, "## "+c.name+"\n")
	section, _, _ = strings.Cut(section, "\n##")
	blocks := strings.Split(section, "\n```")
	if !ok || len(blocks) < 3 {
		t.Errorf("%s shows nothing of %s", path, c.name)
		return
	}
	var run strings.Builder
	err := filepath.WalkDir(c.dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		run.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(blocks); i += 2 {
		_, code, _ := strings.Cut(blocks[i], "\n") // behind the name of the language
		if !strings.Contains(run.String(), code+"\n") {
			t.Errorf("nothing in %s has what %s shows:\n%s", c.dir, path, code)
		}
	}
}

// TestReport: what the frame takes for a check, and what it does not.
func TestReport(t *testing.T) {
	t.Parallel()
	good := "ok\tGetQueue\tby its id\nok\tGetQueue\tits etag\nnone\tListChannels\tno such command\n"
	r := newReport(operations)
	if err := r.read(good); err != nil {
		t.Fatal(err)
	}
	if r.checks["GetQueue"] != 2 || r.none["ListChannels"] == "" || len(r.checks) != 1 || len(r.none) != 1 {
		t.Errorf("read %+v", r)
	}
	for _, bad := range []string{
		"GetQueue", "ok\tGetQueue", "ok\tGetQueue\t", "ok\tGetQueues\tx", "OK\tGetQueue\tx", "ok\tGetQueue\tx\ty",
		"none\tGetQueue\tno such command", "ok\tNACK\tof another table",
	} {
		if err := newReport(operations).read(good + bad + "\n"); err == nil {
			t.Errorf("taken for a check: %q", bad)
		}
	}
}

// TestTable: a table is read as it was written, so that a column can be kept.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, s := range suites() {
		said := map[string]*report{}
		for i, c := range s.clients {
			r := newReport(s.topics)
			for j, topic := range s.topics {
				if (i+j)%3 == 0 {
					r.none[topic] = fmt.Sprintf("reason: %d, %d", i, j)
				} else {
					r.checks[topic] = 10*i + j + 1
				}
			}
			said[c.name] = r
		}
		table := s.format(said)
		if again := s.format(s.parse(table)); again != table {
			t.Errorf("%s: -written +read\n%s", s.name, cmp.Diff(table, again))
		}
		if got := slices.Sorted(maps.Keys(s.parse(table))); len(got) != len(s.clients) {
			t.Errorf("%s: columns %q", s.name, got)
		}
	}
}

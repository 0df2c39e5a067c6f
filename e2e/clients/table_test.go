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

// path is the page that holds the table, between two markers.
const (
	path = "../../docs/clients.md"
	from = "<!-- written by make clients: -->\n"
	to   = "<!-- :written -->\n"
)

// page is docs/clients.md.
type page struct{ before, table, after string }

func readPage(t *testing.T) page {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), from)
	table, after, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	return page{before, table, after}
}

// compare fails the test if the page's table is not that of these reports. With
// WRITE=1 in the environment it writes the table instead.
func (p page) compare(t *testing.T, said map[string]*report) {
	t.Helper()
	// The columns of clients that did not run are kept.
	was := parse(p.table)
	for name, r := range said {
		if old := was[name]; !r.whole && old != nil {
			said[name] = old
		}
	}
	table := format(said)
	switch {
	case table == p.table:
	case os.Getenv("WRITE") == "1":
		if err := os.WriteFile(path, []byte(p.before+from+table+to+p.after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the clients checked something else than %s says; make clients writes it. -it +they\n%s", path, cmp.Diff(p.table, table))
	}
}

// format is the table, and under it the reasons.
func format(said map[string]*report) string {
	var table, reasons strings.Builder
	table.WriteString("\n|  |")
	for _, c := range clients() {
		table.WriteString(" " + c.name + " |")
	}
	table.WriteString("\n|---|" + strings.Repeat("---:|", len(clients())) + "\n")
	for _, op := range operations {
		fmt.Fprintf(&table, "| %s |", op)
		for _, c := range clients() {
			if why := said[c.name].none[op]; why != "" {
				table.WriteString(" none |")
				fmt.Fprintf(&reasons, "- %s, %s: %s\n", c.name, op, why)
			} else {
				fmt.Fprintf(&table, " %d |", said[c.name].checks[op])
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
func parse(table string) map[string]*report {
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
				said[name] = newReport()
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
func (p page) shows(t *testing.T, c client) {
	t.Helper()
	_, section, ok := strings.Cut(p.before, "\n## "+c.name+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
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
	r := newReport()
	if err := r.read(good); err != nil {
		t.Fatal(err)
	}
	if r.checks["GetQueue"] != 2 || r.none["ListChannels"] == "" || len(r.checks) != 1 || len(r.none) != 1 {
		t.Errorf("read %+v", r)
	}
	for _, bad := range []string{
		"GetQueue", "ok\tGetQueue", "ok\tGetQueue\t", "ok\tGetQueues\tx", "OK\tGetQueue\tx", "ok\tGetQueue\tx\ty",
		"none\tGetQueue\tno such command",
	} {
		if err := newReport().read(good + bad + "\n"); err == nil {
			t.Errorf("taken for a check: %q", bad)
		}
	}
}

// TestTable: a table is read as it was written, so that a column can be kept.
func TestTable(t *testing.T) {
	t.Parallel()
	said := map[string]*report{}
	for i, c := range clients() {
		r := newReport()
		for j, op := range operations {
			if (i+j)%3 == 0 {
				r.none[op] = fmt.Sprintf("reason: %d, %d", i, j)
			} else {
				r.checks[op] = 10*i + j + 1
			}
		}
		said[c.name] = r
	}
	table := format(said)
	if again := format(parse(table)); again != table {
		t.Errorf("-written +read\n%s", cmp.Diff(table, again))
	}
	if got := slices.Sorted(maps.Keys(parse(table))); len(got) != len(clients()) {
		t.Errorf("columns %q", got)
	}
}

package layers

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/queued-mq/queued"

// arrows are all arrows there may be, from each package to those it may
// import. They point downward: a request comes in at the top of the list and
// is stored at its end.
var arrows = map[string][]string{
	"cmd/queued": {"grpcapi", "gateway", "stomp", "console", "service", "broker", "limits", "store", "auth", "queue", "api/gen/queue/v1", "api/codec", "api/openapi", "bench"},

	// The faces translate, they never decide.
	"grpcapi":      {"service", "auth", "queue", "api/gen/queue/v1"},
	"gateway":      {"gateway/wire", "service", "auth", "queue", "api/gen/queue/v1", "api/openapi"},
	"gateway/wire": {"queue"},
	"stomp":        {"stomp/frame", "service", "auth", "queue"},
	"stomp/frame":  {},
	"console":      {"service", "auth", "queue"},

	// The use cases; they ask the rules about form and limits.
	"service": {"broker", "channels", "filter", "limits", "auth", "queue"},

	// The core, and the rules it decides by: strangers to one another.
	"broker":         {"visibility", "dlq", "channels", "filter", "limits", "store", "queue"},
	"visibility":     {"store", "queue"},
	"dlq":            {"store", "queue"},
	"channels":       {"store", "queue"},
	"filter":         {"queue"},
	"limits":         {"store", "queue"},
	"store":          {"queue"},
	"store/testdisk": {},
	"auth":           {"queue"},
	"queue":          {},

	// Beside the server.
	"client":                  {"api/gen/queue/v1", "api/codec"},
	"bench":                   {"api/gen/queue/v1", "api/codec"},
	"api/gen/queue/v1":        {},
	"api/codec":               {},
	"api/openapi":             {},
	"api/openapi/cmd/openapi": {},
	"internal/queuetest":      {"grpcapi", "service", "broker", "limits", "store", "store/testdisk", "api/codec", "api/gen/queue/v1"},
	"internal/exchange":       {},
	"internal/history":        {},
	"internal/layers":         {},
}

// inTests are the arrows that only test files may have, beside those above.
// Every test may import the package it tests and internal/queuetest.
var inTests = map[string][]string{
	"api/codec":   {"api/gen/queue/v1"}, // reads and writes its messages
	"api/openapi": {"api/gen/queue/v1"}, // compares the document with the services
	"store":       {"store/testdisk"},
	"broker":      {"store/testdisk", "internal/history"},
	"service":     {"store", "store/testdisk"},
	"gateway":     {"store", "store/testdisk", "broker", "limits", "grpcapi"},
	"grpcapi":     {"store", "store/testdisk", "broker", "limits", "api/codec"},
	"stomp":       {"store", "store/testdisk", "broker", "limits", "internal/exchange"},
}

// homes says where libraries that must not spread may be imported, test files
// included.
var homes = map[string][]string{
	"github.com/cockroachdb/pebble":         {"store", "store/testdisk"},
	"google.golang.org/protobuf":            {"grpcapi", "gateway", "client", "api/gen/queue/v1", "api/codec", "api/openapi", "api/openapi/cmd/openapi"},
	"github.com/grpc-ecosystem":             {"gateway", "api/gen/queue/v1"},
	"github.com/go-stomp":                   {"stomp"}, // a client for its tests
	"github.com/coder/websocket":            {"stomp"},
	"google.golang.org/genproto/googleapis": {"grpcapi", "gateway", "client", "bench", "api/gen/queue/v1", "cmd/queued"},
}

// pure packages import the standard library alone (and what arrows allows);
// their tests are free.
var pure = []string{"queue", "filter", "stomp/frame", "gateway/wire", "internal/exchange", "internal/history"}

func TestImports(t *testing.T) {
	t.Parallel()
	packages := 0
	for pkg, files := range goFiles(t, filepath.Join("..", "..")) {
		packages++
		may, listed := arrows[pkg]
		if !listed {
			t.Errorf("the package %s is not listed in arrows: say what it may import", pkg)
			continue
		}
		for _, file := range files {
			isTest := strings.HasSuffix(file, "_test.go")
			for _, imported := range imports(t, file) {
				if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
					allowed := slices.Contains(may, ours) ||
						isTest && (ours == pkg || ours == "internal/queuetest" || slices.Contains(inTests[pkg], ours))
					if !allowed {
						t.Errorf("%s: %s must not import %s", file, pkg, ours)
					}
					continue
				}
				for library, home := range homes {
					if (imported == library || strings.HasPrefix(imported, library+"/")) && !slices.Contains(home, pkg) {
						t.Errorf("%s: %s must not import %s, which stays in %s", file, pkg, imported, strings.Join(home, ", "))
					}
				}
				if first, _, _ := strings.Cut(imported, "/"); !isTest && strings.Contains(first, ".") && slices.Contains(pure, pkg) {
					t.Errorf("%s: %s must not import %s: it knows the standard library alone", file, pkg, imported)
				}
			}
		}
	}
	if packages < 2 {
		t.Fatalf("found %d packages: the test does not see the module", packages)
	}
}

// TestArrowsPointDownward checks the table itself: no two packages may reach
// one another, and every arrow ends at a package that the table lists.
func TestArrowsPointDownward(t *testing.T) {
	t.Parallel()
	for from := range arrows {
		seen := map[string]bool{}
		todo := slices.Clone(arrows[from])
		for len(todo) > 0 {
			pkg := todo[0]
			todo = todo[1:]
			if pkg == from {
				t.Errorf("%s reaches itself", from)
				break
			}
			if _, ok := arrows[pkg]; !ok {
				t.Errorf("%s may reach %s, which is not listed", from, pkg)
			}
			if !seen[pkg] {
				seen[pkg] = true
				todo = append(todo, arrows[pkg]...)
			}
		}
	}
	rules := []string{"visibility", "dlq", "channels", "filter", "limits"}
	for _, from := range rules {
		for _, to := range rules {
			if slices.Contains(arrows[from], to) {
				t.Errorf("%s and %s must be strangers", from, to)
			}
		}
	}
	for from := range inTests {
		if _, ok := arrows[from]; !ok {
			t.Errorf("inTests lists %s, arrows does not", from)
		}
	}
}

// goFiles are the Go files of the module by package, a package being named by
// its folder. Modules inside the module and testdata are not ours to judge.
//
// It reads the files rather than asking `go list`: that way files of every
// platform are seen, and a cached result of this test is no longer valid when
// one of them changes.
func goFiles(t *testing.T, root string) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			if rel, err := filepath.Rel(root, file); err != nil {
				return err
			} else if strings.HasSuffix(file, ".go") {
				pkg := path.Dir(filepath.ToSlash(rel))
				files[pkg] = append(files[pkg], file)
			}
			return nil
		}
		if file == root {
			return nil
		}
		if name := d.Name(); name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("packages: %v", slices.Sorted(maps.Keys(files)))
	return files
}

// imports are the paths that a Go file imports.
func imports(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	return paths
}

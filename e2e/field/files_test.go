//go:build field

package field

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// files is what the data directory holds, by kind of file: octets and how many.
// The ballast is none of it: it is there to be given up.
type files struct {
	logs, tables, manifest, others   int64
	logFiles, tableFiles, otherFiles int
}

func (f files) total() int64 { return f.logs + f.tables + f.manifest + f.others }

func (f files) String() string {
	return fmt.Sprintf("%d logs of %.1f MiB, %d tables of %.2f MiB, manifest %.0f KiB, %d others of %.0f KiB",
		f.logFiles, mib(f.logs), f.tableFiles, mib(f.tables), float64(f.manifest)/(1<<10), f.otherFiles, float64(f.others)/(1<<10))
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// files looks at the data directory.
func (x *head) files() (f files) {
	err := filepath.WalkDir(x.s.Dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // files come and go
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		switch n, name := info.Size(), e.Name(); {
		case name == "ballast":
		case filepath.Ext(name) == ".log":
			f.logs, f.logFiles = f.logs+n, f.logFiles+1
		case filepath.Ext(name) == ".sst", filepath.Ext(name) == ".blob":
			f.tables, f.tableFiles = f.tables+n, f.tableFiles+1
		case strings.HasPrefix(name, "MANIFEST-"):
			f.manifest += n
		default:
			f.others, f.otherFiles = f.others+n, f.otherFiles+1
		}
		return nil
	})
	if err != nil {
		x.Error(err)
	}
	return f
}

// disk is how many octets the data directory holds.
func (x *head) disk() int64 { return x.files().total() }

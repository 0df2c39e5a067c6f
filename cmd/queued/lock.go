package main

import "fmt"

// inUse says that another process has a data directory.
type inUse struct{ dir, holder string }

func (e inUse) Error() string {
	return fmt.Sprintf("data-dir %s is in use by %s; stop that one or choose another data-dir", e.dir, e.holder)
}

// Package layers holds one test: which of our packages may import which, and
// which may import the libraries that must stay in one place. It has no code
// of its own. The picture it keeps is in docs/architecture.md; a new package
// or a new arrow is a line in the test's tables, so that everybody sees it.
package layers

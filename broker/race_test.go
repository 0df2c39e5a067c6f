//go:build race

package broker

// underRace reports whether the race detector is on, which makes all slower.
const underRace = true

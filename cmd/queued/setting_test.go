package main

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseOctets(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "262144": 262144, "256KiB": 262144, "256kib": 262144, "1 MiB": 1 << 20, "2GiB": 2 << 30, "1TiB": 1 << 40, "7B": 7, "-1": -1,
	} {
		if got, err := parseOctets(text); err != nil || got != want {
			t.Errorf("parseOctets(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "KiB", "1.5MiB", "10MB", "10K", "1e6", "0x10", "9223372036854775807KiB", "1 2", "1KiBKiB"} {
		if got, err := parseOctets(text); err == nil {
			t.Errorf("parseOctets(%q) = %d, want an error", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "octets") << rapid.IntRange(0, 40).Draw(t, "shift")
		text := fmt.Sprint(formatOctets(n))
		if got, err := parseOctets(text); err != nil || got != n {
			t.Fatalf("parseOctets(%q) = %d, %v, want %d", text, got, err, n)
		}
	})
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "10": 10 * time.Second, "10s": 10 * time.Second, "1h30m": 90 * time.Minute, "250ms": 250 * time.Millisecond, "-1s": -time.Second,
	} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("parseDuration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "s", "ten", "1d", "1.5", "99999999999999999999"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("parseDuration(%q) = %v, want an error", text, got)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Second: "10s", 5 * time.Minute: "5m", 24 * time.Hour: "24h", 90 * time.Minute: "1h30m",
		time.Hour + time.Second: "1h0m1s", 20 * time.Minute: "20m",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("formatDuration(%v) = %q, want %q", d, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64().Draw(t, "duration"))
		if got, err := parseDuration(formatDuration(d)); err != nil || got != d {
			t.Fatalf("parseDuration(%q) = %v, %v", formatDuration(d), got, err)
		}
	})
}

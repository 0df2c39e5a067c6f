package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setting is one row of the table in Config.settings.
type setting struct {
	key     string // as in the config file, a group before a dot
	meaning string // one line, no full stop
	value   value
}

// flag reports whether the setting is a flag of the same name too; those in
// groups are not.
func (s setting) flag() bool { return !strings.Contains(s.key, ".") }

// withoutFlag is the setting that a flag which does not exist must mean: one
// of a group, with its group or without.
func withoutFlag(name string) (setting, bool) {
	dashes := strings.NewReplacer(".", "-", "_", "-")
	name = dashes.Replace(name)
	cfg := Default()
	for _, s := range cfg.settings() {
		_, last, _ := strings.Cut(s.key, ".")
		if !s.flag() && (name == last || name == dashes.Replace(s.key)) {
			return s, true
		}
	}
	return setting{}, false
}

// variable is the setting's name in the environment.
func (s setting) variable() string {
	return envPrefix + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(s.key))
}

// value is where a setting is kept, and how it is written. A value that is not
// a list takes exactly one text.
type value struct {
	kind  string // what to write, for the help: "count"; "bool" needs no text
	list  bool
	parse func(texts []string) error // an error says what is legal: "it must be ..."
	get   func() any                 // string, bool, int64 or []string, as YAML shall show it
}

// String is what the help shows as default.
func (v value) String() string {
	switch x := v.get().(type) {
	case []string:
		return strings.Join(x, " ")
	default:
		return fmt.Sprint(x)
	}
}

// single makes a value of one text.
func single(kind string, parse func(string) error, get func() any) value {
	return value{
		kind: kind,
		get:  get,
		parse: func(texts []string) error {
			if len(texts) != 1 {
				return errors.New("it must be a single value")
			}
			return parse(texts[0])
		},
	}
}

func text(p *string, kind string) value {
	return single(kind, func(s string) error { *p = s; return nil }, func() any { return *p })
}

func list(p *[]string, kind string) value {
	return value{
		kind:  kind,
		list:  true,
		parse: func(texts []string) error { *p = slices.Clone(texts); return nil },
		get:   func() any { return *p },
	}
}

func boolean(p *bool) value {
	return single("bool", func(s string) error {
		switch strings.ToLower(s) {
		case "true", "yes", "on", "1":
			*p = true
		case "false", "no", "off", "0":
			*p = false
		default:
			return errors.New("it must be true or false")
		}
		return nil
	}, func() any { return *p })
}

func count(p *int64) value {
	return single("count", func(s string) error {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return errors.New("it must be a whole number")
		}
		*p = n
		return nil
	}, func() any { return *p })
}

func octets(p *int64) value {
	return single("bytes", func(s string) error {
		n, err := parseOctets(s)
		if err != nil {
			return err
		}
		*p = n
		return nil
	}, func() any { return formatOctets(*p) })
}

func duration(p *time.Duration) value {
	return single("duration", func(s string) error {
		d, err := parseDuration(s)
		if err != nil {
			return err
		}
		*p = d
		return nil
	}, func() any { return formatDuration(*p) })
}

// octetUnits are the units of sizes, the largest first. KB and MB are not
// among them: half the world means 1000 by them.
var octetUnits = []struct {
	name string
	size int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// parseOctets reads a size: a whole number of octets or of a unit.
func parseOctets(s string) (int64, error) {
	bad := errors.New("it must be a whole number of octets, or of KiB, MiB, GiB or TiB, such as 256KiB")
	number, size := s, int64(1)
	for _, u := range octetUnits {
		if len(s) > len(u.name) && strings.EqualFold(s[len(s)-len(u.name):], u.name) {
			number, size = strings.TrimSpace(s[:len(s)-len(u.name)]), u.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > math.MaxInt64/size || n < math.MinInt64/size {
		return 0, bad
	}
	return n * size, nil
}

// formatOctets is the shortest text that parseOctets reads back.
func formatOctets(n int64) any {
	for _, u := range octetUnits {
		if u.size > 1 && n != 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return n
}

// parseDuration reads a length of time: "90s", "1h30m" or plain seconds.
func parseDuration(s string) (time.Duration, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n > -math.MaxInt32 && n < math.MaxInt32 {
		return time.Duration(n) * time.Second, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errors.New("it must be a duration such as 10s, 5m or 1h30m, or whole seconds")
	}
	return d, nil
}

// formatDuration leaves out the zeros that time.Duration shows: "5m" for
// "5m0s".
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

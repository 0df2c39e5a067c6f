package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/queued-mq/queued/limits"
)

const (
	envPrefix  = "QUEUED_"
	configFlag = "config" // the file; not a setting itself
)

// flags are the settings given on the command line.
type flags struct {
	set  *pflag.FlagSet
	file string
}

// settingFlags adds every setting that may be a flag to set. What is given
// there is only kept; load looks at it.
//
// With keys only those settings are flags; the others still have their values
// from environment and file.
func settingFlags(set *pflag.FlagSet, keys ...string) *flags {
	f := &flags{set: set}
	set.SortFlags = false
	set.StringVar(&f.file, configFlag, "", "YAML `file` with settings")
	cfg := Default()
	for _, s := range cfg.settings() {
		if !s.flag() || keys != nil && !slices.Contains(keys, s.key) {
			continue
		}
		flag := set.VarPF(&given{setting: s}, s.key, "", s.meaning)
		if s.value.kind == "bool" {
			flag.NoOptDefVal = "true"
		}
	}
	return f
}

// flagNames lists the names of all flags.
func flagNames() []string {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	settingFlags(set)
	var names []string
	set.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// given is a flag that keeps its texts as they were written.
type given struct {
	setting setting
	texts   []string
}

func (g *given) String() string { return g.setting.value.String() }
func (g *given) Type() string   { return g.setting.value.kind }
func (g *given) Set(text string) error {
	if !g.setting.value.list {
		g.texts = nil // the last one counts
	}
	g.texts = append(g.texts, text)
	return nil
}

// origins tells for each key where its value comes from: "flag --auth",
// "environment QUEUED_AUTH", "file queued.yaml"; those not there have their
// default.
type origins map[string]string

// load puts the settings together and checks them: flag over environment over
// file over default. The error holds all that is wrong, a sentence for each.
func (f *flags) load(environ []string) (Config, origins, error) {
	l := &loader{known: map[string]setting{}, merged: koanf.New("."), from: origins{}}
	cfg := Default()
	for _, s := range cfg.settings() {
		l.known[s.key] = s
	}

	if f.file == "" {
		f.file = fileOf(environ)
	}
	if f.file != "" {
		l.file(f.file)
	}
	l.environment(environ)
	l.flags(f.set)
	l.into(&cfg)
	if len(l.errs) == 0 { // else what is missing here would be called wrong
		l.errs = append(l.errs, cfg.Validate())
	}
	if err := errors.Join(l.errs...); err != nil {
		return Config{}, nil, err
	}
	return cfg, l.from, nil
}

// loader gathers layers, each above those before it.
type loader struct {
	known  map[string]setting
	merged *koanf.Koanf
	from   origins
	errs   []error
}

func (l *loader) wrong(format string, args ...any) {
	l.errs = append(l.errs, fmt.Errorf(format, args...))
}

// layer puts what k holds above what is there.
func (l *loader) layer(k *koanf.Koanf, from func(key string) string) {
	for _, key := range k.Keys() {
		if _, ok := l.known[key]; ok {
			l.from[key] = from(key)
		}
	}
	if err := l.merged.Merge(k); err != nil {
		l.errs = append(l.errs, err)
	}
}

func (l *loader) file(name string) {
	data, err := os.ReadFile(name)
	if err != nil {
		l.wrong("read the config file: %w", err)
		return
	}
	k := koanf.New(".")
	if err := k.Load(rawbytes.Provider(data), yaml.Parser()); err != nil {
		l.wrong("config file %s is not a YAML mapping: %s", name, oneLine(err.Error()))
		return
	}
	groups := map[string]bool{}
	for key := range l.known {
		if group, _, ok := strings.Cut(key, "."); ok {
			groups[group] = true
		}
	}
	for _, key := range k.Keys() {
		if groups[key] {
			if v := k.Get(key); !empty(v) {
				l.wrong("%s in %s is a group of settings, so it cannot be %v", key, name, v)
			}
			k.Delete(key)
		} else if _, ok := l.known[key]; !ok {
			l.wrong("%s in %s is no setting%s", key, name, meant("", slices.Collect(maps.Keys(l.known)), key))
			k.Delete(key)
		}
	}
	l.layer(k, func(string) string { return "file " + name })
}

// empty reports whether v is what a group without settings is read as.
func empty(v any) bool {
	m, ok := v.(map[string]any)
	return v == nil || ok && len(m) == 0
}

// listSeparator stands between the entries of a list in a variable, since
// entries hold commas.
const listSeparator = ";"

// environment reads the variables that begin with envPrefix. An empty one is
// as good as none.
func (l *loader) environment(environ []string) {
	keys := map[string]string{}
	for key, s := range l.known {
		keys[s.variable()] = key
	}
	k := koanf.New(".")
	err := k.Load(env.Provider(".", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, text string) (string, any) {
			key, ok := keys[name]
			switch {
			case ok && text == "", name == fileVariable, cluster.MatchString(name):
				return "", nil
			case !ok:
				l.wrong("%s in the environment is no setting%s", name, meant("", slices.Collect(maps.Keys(keys)), name))
				return "", nil
			case l.known[key].value.list:
				return key, strings.Split(text, listSeparator)
			}
			return key, text
		},
	}), nil)
	if err != nil {
		l.errs = append(l.errs, err)
	}
	l.layer(k, func(key string) string { return "environment " + l.known[key].variable() })
}

// cluster matches the variables by which Kubernetes tells every container
// about a service called queued or queued-something. They are not meant for us.
var cluster = regexp.MustCompile(`^QUEUED_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// fileVariable names the config file when no flag does.
const fileVariable = envPrefix + "CONFIG"

func fileOf(environ []string) (file string) {
	for _, v := range environ {
		if name, text, _ := strings.Cut(v, "="); name == fileVariable {
			file = text
		}
	}
	return file
}

func (l *loader) flags(set *pflag.FlagSet) {
	layer := map[string]any{}
	set.Visit(func(f *pflag.Flag) {
		if g, ok := f.Value.(*given); ok {
			layer[f.Name] = g.texts
		}
	})
	k := koanf.New(".")
	if err := k.Load(confmap.Provider(layer, "."), nil); err != nil {
		l.errs = append(l.errs, err)
	}
	l.layer(k, func(key string) string { return "flag --" + key })
}

// into reads what was gathered into cfg: first the profile, then the single
// limits on top of it.
func (l *loader) into(cfg *Config) {
	all := cfg.settings()
	profile := slices.IndexFunc(all, func(s setting) bool { return s.key == "limits-profile" })
	l.set(all[profile])
	if s, err := limits.Profile(cfg.LimitsProfile); err == nil {
		cfg.Limits = s
	} else {
		l.wrong("limits-profile is %q (%s); it must be %s", cfg.LimitsProfile, l.from["limits-profile"], either(limits.Profiles))
	}
	for i, s := range all {
		if i != profile {
			l.set(s)
		}
	}
}

// set reads one setting if it was given.
func (l *loader) set(s setting) {
	if !l.merged.Exists(s.key) {
		return
	}
	raw := l.merged.Get(s.key)
	texts, err := textsOf(raw)
	if err == nil {
		err = s.value.parse(texts)
	}
	if err != nil {
		l.wrong("%s is %s (%s); %w", s.key, quoted(texts, raw), l.from[s.key], err)
	}
}

// textsOf is a value of a layer as the texts it was written as.
func textsOf(raw any) ([]string, error) {
	switch x := raw.(type) {
	case nil:
		return nil, errors.New("it must have a value")
	case []string:
		return x, nil
	case []any:
		var texts []string
		for _, one := range x {
			t, err := textsOf(one)
			if err != nil || len(t) != 1 {
				return nil, errors.New("it must be a list of single values")
			}
			texts = append(texts, t...)
		}
		return texts, nil
	case map[string]any:
		return nil, errors.New("it must not have keys of its own")
	case string, bool, int, int64, uint64:
		return []string{fmt.Sprint(x)}, nil
	case float64:
		return []string{strings.TrimSuffix(fmt.Sprintf("%f", x), ".000000")}, nil
	}
	return []string{fmt.Sprint(raw)}, nil
}

func quoted(texts []string, raw any) string {
	switch {
	case raw == nil:
		return "empty"
	case len(texts) == 1:
		return fmt.Sprintf("%q", texts[0])
	}
	return fmt.Sprint(raw)
}

// oneLine makes a text of several lines one.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// meant is a question to put behind an unknown name: "; did you mean x?", or
// nothing if no known name is close.
func meant(prefix string, names []string, unknown string) string {
	normal := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "-") }
	unknown = normal(unknown)
	best, found := 3, ""
	for _, name := range slices.Sorted(slices.Values(names)) {
		n := normal(name)
		d := distance(n, unknown)
		if strings.HasSuffix(n, "."+unknown) { // the group is missing
			d = 0
		}
		if d < best && d < len(n)/2 {
			best, found = d, name
		}
	}
	if found == "" {
		return ""
	}
	return "; did you mean " + prefix + found + "?"
}

// distance is how many characters must be changed, put in or left out to make
// b of a; two neighbours changed round count once.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

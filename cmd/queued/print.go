package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// writeConfig writes every setting of cfg as a config file that reads back to
// the same, each below its meaning and where its value comes from.
func writeConfig(w io.Writer, cfg *Config, from origins) error {
	var b bytes.Buffer
	b.WriteString("# Every setting in force. A flag beats the environment, that the config file,\n" +
		"# that the default. In the environment a setting is " + envPrefix + " and its key in\n" +
		"# capitals with underscores: " + setting{key: "limits.message-bytes"}.variable() + ".\n")

	group := ""
	for _, s := range cfg.settings() {
		indent, key := "", s.key
		if g, rest, ok := strings.Cut(s.key, "."); ok {
			indent, key = "  ", rest
			if g != group {
				fmt.Fprintf(&b, "\n%s:", g)
				group = g
			}
		}
		origin := "default"
		if strings.HasPrefix(s.key, "limits.") {
			origin = "profile " + cfg.LimitsProfile
		}
		text, err := yaml.Marshal(map[string]any{key: s.value.get()})
		if err != nil {
			return fmt.Errorf("print %s: %w", s.key, err)
		}
		fmt.Fprintf(&b, "\n%s# %s [%s]\n", indent, s.meaning, cmp.Or(from[s.key], origin))
		for line := range strings.Lines(string(text)) {
			b.WriteString(indent + line)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

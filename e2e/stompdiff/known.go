package stompdiff

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Known is a reason why another broker differs, and where it does.
type Known struct {
	Reason      string
	Sometimes   bool // a race: it may as well do what ours does
	Differences []Where
}

// Where is a difference in some versions.
type Where struct {
	Exchange  string
	Versions  []string
	Want, Got string
}

// place is a difference without its version.
func (w *Where) place() string { return w.Exchange + "\n" + w.Want + "\n" + w.Got }

// unknown is the reason that nobody has written yet.
const unknown = "?"

// ReadKnown reads a file of differences that have a reason: "reason: ..." and
// below it, each in a line, "file/exchange | versions | ours | theirs". Where
// "sometimes: ..." stands instead, the differences need not be found. Behind
// "played: " stands how much was played when the file was written.
func ReadKnown(path string) (all []*Known, played string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		if text, found := strings.CutPrefix(line, "played: "); found {
			played = text
			continue
		}
		if reason, found := strings.CutPrefix(line, "reason: "); found {
			all = append(all, &Known{Reason: reason})
			continue
		}
		if reason, found := strings.CutPrefix(line, "sometimes: "); found {
			all = append(all, &Known{Reason: reason, Sometimes: true})
			continue
		}
		words := strings.Split(line, " | ")
		if len(words) != 4 || len(all) == 0 {
			return nil, "", fmt.Errorf("%s:%d: %q is no difference", path, n, line)
		}
		last := all[len(all)-1]
		last.Differences = append(last.Differences, Where{words[0], strings.Fields(words[1]), words[2], words[3]})
	}
	return all, played, lines.Err()
}

// Merge is the differences that were found, under the reasons that are known,
// and what is wrong: differences without a reason, reasons without a
// difference.
func Merge(known []*Known, found []Difference) (all []*Known, wrong []string) {
	versions := map[string][]string{}
	places := map[string]Where{}
	for _, d := range found {
		w := Where{Exchange: d.Exchange, Want: d.Want, Got: d.Got}
		p := w.place()
		places[p] = w
		if !slices.Contains(versions[p], d.Version) {
			versions[p] = append(versions[p], d.Version)
		}
	}
	reasons := map[string]string{}
	for _, k := range known {
		merged := &Known{Reason: k.Reason, Sometimes: k.Sometimes}
		for _, w := range k.Differences {
			p := w.place()
			if reasons[p] != "" {
				wrong = append(wrong, fmt.Sprintf("%s has two reasons", w.Exchange))
				continue
			}
			reasons[p] = k.Reason
			var there []string
			for _, v := range w.Versions {
				at := slices.Index(versions[p], v)
				if at >= 0 {
					versions[p] = slices.Delete(versions[p], at, at+1)
				}
				if at >= 0 || k.Sometimes {
					there = append(there, v)
				} else {
					wrong = append(wrong, fmt.Sprintf("%s in %s: a reason without a difference: ours: %s, theirs: %s", w.Exchange, v, w.Want, w.Got))
				}
			}
			if there != nil {
				merged.Differences = append(merged.Differences, Where{w.Exchange, there, w.Want, w.Got})
			}
		}
		if k.Reason == unknown {
			wrong = append(wrong, "some differences have no reason")
		}
		if merged.Differences != nil {
			all = append(all, merged)
		}
	}
	none := &Known{Reason: unknown}
	for p, left := range versions {
		if len(left) == 0 {
			continue
		}
		w := places[p]
		w.Versions = left
		none.Differences = append(none.Differences, w)
		wrong = append(wrong, fmt.Sprintf("%s in %s: a difference without a reason: ours: %s, theirs: %s", w.Exchange, strings.Join(left, " "), w.Want, w.Got))
	}
	if none.Differences != nil {
		all = append(all, none)
	}
	for _, k := range all {
		slices.SortFunc(k.Differences, func(a, b Where) int {
			return cmp.Or(cmp.Compare(a.Exchange, b.Exchange), cmp.Compare(a.Want, b.Want), cmp.Compare(a.Got, b.Got))
		})
	}
	slices.Sort(wrong)
	return all, wrong
}

// WriteKnown writes what ReadKnown reads.
func WriteKnown(path, head, played string, all []*Known) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\nplayed: %s\n", head, played)
	for _, k := range all {
		key := "reason"
		if k.Sometimes {
			key = "sometimes"
		}
		fmt.Fprintf(&text, "\n%s: %s\n", key, k.Reason)
		for _, w := range k.Differences {
			fmt.Fprintf(&text, "%s | %s | %s | %s\n", w.Exchange, strings.Join(w.Versions, " "), w.Want, w.Got)
		}
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

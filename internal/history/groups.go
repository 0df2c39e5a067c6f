package history

import "slices"

// Group is one consumer group of a queue. Each is judged as if it were a queue
// of its own, with its deliveries, receipts, dead letters and purges: what its
// filter accepted was published to it, and nothing else was.
type Group struct {
	Name          string
	Threshold     int // 0: none
	Before, After Stats
	Rest          *Rest // as that of the history
}

// checkGroups judges a history of a queue with consumer groups.
func (h *History) checkGroups() (found []Violation) {
	// What is true of the queue as a whole: ids, and whose a receipt is.
	all := &checker{h: &History{Tolerance: h.Tolerance, Publishes: h.Publishes}, byContent: map[string]*origin{}, byID: map[int64]*message{}, byReceipt: map[string]*lease{}}
	all.read()
	all.rising()
	all.routed(h)
	found = all.found
	for _, g := range h.Groups {
		c, foreign := h.of(&g)
		for _, v := range append(foreign, c.Check()...) {
			v.Group = g.Name
			found = append(found, v)
		}
	}
	return found
}

// of is what clients did with one group and were told, and what it had that was
// not for it.
func (h *History) of(g *Group) (c *History, foreign []Violation) {
	c = &History{
		Threshold: g.Threshold, Tolerance: h.Tolerance, Updates: h.Updates, Deletes: h.Deletes, Undelivers: h.Undelivers,
		Drain: h.Drain, Before: g.Before, After: g.After, Rest: g.Rest,
	}
	elsewhere := make(map[string]bool)
	for _, p := range h.Publishes {
		if slices.Contains(p.For, g.Name) {
			c.Publishes = append(c.Publishes, p)
		} else {
			elsewhere[p.Content] = true
		}
	}
	for _, d := range h.Deliveries {
		switch {
		case d.Group != g.Name:
		case elsewhere[d.Content]:
			foreign = append(foreign, Violation{Promise: Routed, Message: d.ID, What: "its filter does not accept what it was given"})
		default:
			c.Deliveries = append(c.Deliveries, d)
		}
	}
	if g.Rest != nil {
		for _, f := range g.Rest.Messages {
			if elsewhere[f.Content] {
				foreign = append(foreign, Violation{Promise: Routed, Message: f.ID, What: "its filter does not accept what it has on the disk"})
			}
		}
	}
	for _, l := range h.Lost {
		if l.Group == g.Name {
			c.Lost = append(c.Lost, l)
		}
	}
	for _, p := range h.Purges {
		if p.Group == g.Name {
			c.Purges = append(c.Purges, p)
		}
	}
	return c, foreign
}

// routed: what no group accepted is counted, and a receipt is of one group.
func (c *checker) routed(h *History) {
	least, most := int64(0), int64(0)
	for _, o := range c.byContent {
		if len(o.attempts[0].For) > 0 {
			continue
		}
		done, doubt, token := int64(0), int64(0), o.attempts[0].Token
		for _, p := range o.attempts {
			switch p.Outcome {
			case Done:
				done++
			case Doubt:
				doubt++
			}
			if p.Token != token {
				token = ""
			}
		}
		if doubt += done; token != "" { // one publish, however often it was tried
			done, doubt = min(done, 1), min(doubt, 1)
		}
		least, most = least+done, most+doubt
	}
	if h.Unrouted < least || h.Unrouted > most {
		c.broken(Counters, nil, "%d messages that no group accepted are counted, and there were %d to %d", h.Unrouted, least, most)
	}
	group := make(map[string]string)
	for _, d := range h.Deliveries {
		if g, given := group[d.Receipt]; given && g != d.Group {
			c.broken(Receipt, c.message(d.ID), "its receipt was given to group %s and to group %s", g, d.Group)
		}
		group[d.Receipt] = d.Group
	}
}

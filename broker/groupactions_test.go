package broker

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing/synctest"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// The consumer groups of the model, and the actions with them.

// groupFilters are filters and what they accept of the property kind ("": there
// is none), found out without the package that reads them.
var groupFilters = map[string]func(kind string) bool{
	"":            func(string) bool { return true },
	`:kind`:       func(kind string) bool { return kind != "" },
	`:kind = "a"`: func(kind string) bool { return kind == "a" },
	`:kind = "b"`: func(kind string) bool { return kind == "b" },
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.id, o.id), cmp.Compare(p.group, o.group))
}

// all are the groups of a queue by number, that of what none accepts included.
func (q *wantQueue) all() iter.Seq2[uint32, queue.ID] {
	return func(yield func(uint32, queue.ID) bool) {
		if len(q.groups) == 0 {
			yield(0, "")
			return
		}
		for _, g := range q.groups {
			if !yield(g.Number, g.ID) {
				return
			}
		}
		yield(unrouted, queue.UnroutedGroup)
	}
}

// find is the group of that id, of those deleted too; nil: the queue without
// groups, or that of what none accepts.
func (q *wantQueue) find(id queue.ID) *queue.ConsumerGroup {
	if id == "" && len(q.groups) > 0 {
		return &q.groups[0]
	}
	for _, list := range [][]queue.ConsumerGroup{q.groups, q.gone} {
		for i := range list {
			if list[i].ID == id {
				return &list[i]
			}
		}
	}
	return nil
}

func (q *wantQueue) number(id queue.ID) uint32 {
	if g := q.find(id); g != nil {
		return g.Number
	}
	if id == queue.UnroutedGroup {
		return unrouted
	}
	return 0
}

func (q *wantQueue) state(id queue.ID) queue.LifecycleState {
	if g := q.find(id); g != nil {
		return g.State
	}
	return queue.Active
}

// limit is how often the group of that number may be given a message.
func (q *wantQueue) limit(group uint32) int {
	if group == unrouted {
		return 0
	}
	for i := range q.groups {
		if own := q.groups[i].DeadLetterDeliveryCount; own != nil && q.groups[i].Number == group {
			return *own
		}
	}
	return q.DeadLetterDeliveryCount
}

// route is the groups that a message is for.
func (w *world) route(q *wantQueue, m *queue.NewMessage) (to []uint32) {
	if len(q.groups) == 0 {
		return []uint32{0}
	}
	kind := ""
	for _, p := range m.Properties {
		if p.Name == "kind" {
			kind = p.Value
		}
	}
	for _, g := range q.groups {
		if g.State == queue.Active && groupFilters[g.Filter](kind) {
			to = append(to, g.Number)
		}
	}
	w.hits[fmt.Sprint("for groups: ", min(len(to), 3))]++
	if len(to) == 0 {
		q.unrouted++
		if w.o.KeepUnrouted {
			to = append(to, unrouted)
		}
	}
	return to
}

// group is some group of the queue.
func (w *world) group(q *wantQueue) queue.ID {
	ids := []queue.ID{""}
	for _, id := range q.all() {
		ids = append(ids, id)
	}
	return pick(w, "group", ids...)
}

// someGroups are one group, or all.
func (w *world) someGroups(q *wantQueue) (ids []queue.ID) {
	if w.roll("all groups", 3) > 0 {
		return []queue.ID{w.group(q)}
	}
	for _, id := range q.all() {
		ids = append(ids, id)
	}
	return ids
}

// ofOne makes a list of receipts one of a single group, and says which; or
// leaves it, and it is of any.
func (w *world) ofOne(q *wantQueue, list []issued) ([]issued, queue.ID) {
	if w.roll("any group", 3) == 0 || len(list) == 0 {
		return list, queue.AnyGroup
	}
	for number, id := range q.all() {
		if number == list[0].group {
			return slices.DeleteFunc(list, func(r issued) bool { return r.q == q && r.group != number }), id
		}
	}
	return list, queue.AnyGroup // their group is gone
}

// deadElsewhere reports whether another group has the message of a receipt as
// a dead letter.
func (w *world) deadElsewhere(r issued) bool {
	for at, m := range w.messages {
		if at.id == r.id && at.group != r.group && m.dead {
			return true
		}
	}
	return false
}

// putGroup gives a queue one more group; the first is its primary one.
func (w *world) putGroup() {
	if q := w.queue(); len(q.groups) < 4 {
		w.addGroup(q)
	}
}

func (w *world) addGroup(q *wantQueue) {
	w.names++
	g := queue.ConsumerGroup{
		ID: queue.ID(fmt.Sprintf("ocid1.queueconsumergroup.oc1.local.g%d", w.names)), QueueID: q.ID,
		DisplayName: fmt.Sprint("group ", w.names), State: queue.Active, Filter: w.filter(), DeadLetterDeliveryCount: w.ownLimit(),
		Version: 1,
	}
	if len(q.groups) > 0 {
		q.last++
		g.Number = q.last
	} else {
		for _, m := range w.messages {
			if m.q == q {
				w.hits[fmt.Sprintf("switched on: state %d, dead %v", m.state, m.dead)]++
			}
		}
	}
	q.groups = append(q.groups, g)
	w.note("group %s of %s: number %d, filter %s, limit %d", g.ID, q.ID, g.Number, g.Filter, q.limit(g.Number))
	w.admin(func(tx *Tx) {
		g.Number, g.Version = 77, 0 // the broker sets them
		tx.PutGroup(g)
	})
	w.settle(0)
}

func (w *world) filter() string {
	return pick(w, "group filter", append(slices.Sorted(maps.Keys(groupFilters)), "", "")...)
}

func (w *world) ownLimit() *int {
	switch n := w.roll("limit of the group", 6); n {
	case 0, 1, 2:
		return &n
	default:
		return nil
	}
}

// changeGroup enables or disables a group, or changes its filter or limit.
func (w *world) changeGroup() {
	q := w.queue()
	if len(q.groups) == 0 {
		return
	}
	g := &q.groups[w.roll("group", len(q.groups))]
	switch w.roll("what", 4) {
	case 0, 1:
		if g.State = queue.Inactive; w.roll("enable", 3) > 0 {
			g.State = queue.Active
		}
	case 2:
		g.Filter = w.filter()
	default:
		g.DeadLetterDeliveryCount = w.ownLimit()
	}
	w.note("group %s is now %s, filter %s, limit %d", g.ID, g.State, g.Filter, q.limit(g.Number))
	g.Version++
	w.admin(func(tx *Tx) { tx.PutGroup(*g) })
	w.settle(0)
}

// deleteGroup deletes a group, but not the primary one, or forgets those that
// were deleted.
func (w *world) deleteGroup() {
	q := w.queue()
	if len(q.gone) > 0 && w.roll("forget", 2) == 0 {
		w.note("forget the deleted groups of %s", q.ID)
		w.admin(func(tx *Tx) {
			for _, g := range q.gone {
				tx.DropGroup(g.ID)
			}
		})
		q.gone = nil
		w.hits["group forgotten"]++
		w.settle(0)
	}
	if len(q.groups) < 2 {
		return
	}
	i := 1 + w.roll("group", len(q.groups)-1)
	g := q.groups[i]
	w.note("delete group %s", g.ID)
	q.groups = slices.Delete(q.groups, i, i+1)
	g.State, g.Version = queue.Deleted, g.Version+1
	q.gone = append(q.gone, g)
	maps.DeleteFunc(w.messages, func(_ place, m want) bool {
		if m.q == q && m.group == g.Number {
			w.hits["deleted with its group"]++
			return true
		}
		return false
	})
	w.admin(func(tx *Tx) { tx.PutGroup(g) })
	w.settle(0)
	if _, err := w.b.Delete(context.Background(), q.ID, g.ID, nil); queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
		w.fail("delete from a deleted group: %v", err)
	}
	if _, err := w.b.Receive(context.Background(), ReceiveRequest{Queue: q.ID, Group: g.ID, Limit: 1}); queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
		w.fail("get from a deleted group: %v", err)
	}
}

// wrongGroup uses receipts in a group that they are not of.
func (w *world) wrongGroup() {
	q := w.queue()
	list := w.receipts(5)
	if len(q.groups) == 0 || len(list) == 0 {
		return
	}
	group := w.group(q)
	list = slices.DeleteFunc(list, func(r issued) bool { return r.q == q && r.group == q.number(group) })
	w.note("in group %q of %s, of others: %v", group, q.ID, numbers(list))
	var receipts []queue.Receipt
	for _, r := range list {
		receipts = append(receipts, r.receipt)
	}
	errs, err := w.b.Delete(context.Background(), q.ID, group, receipts)
	if err != nil {
		w.fail("delete: %v", err)
	}
	results, err := w.b.Update(context.Background(), q.ID, group, w.newUpdates(list))
	if err != nil {
		w.fail("update: %v", err)
	}
	for i, r := range list {
		m, there := w.messages[place{r.id, r.group}]
		// What its own group has let go of may be taken for gone.
		if known := r.q != q || there && m.dead == r.dead; errs[i] == nil && known || errs[i] != nil && queue.CodeOf(errs[i]) != queue.NotAuthorizedOrNotFound {
			w.fail("delete in group %q with a receipt of group %d: %v; %+v", group, r.group, errs[i], m)
		}
		if queue.CodeOf(results[i].Err) != queue.NotAuthorizedOrNotFound {
			w.fail("update in group %q with a receipt of group %d: %v; %+v", group, r.group, results[i].Err, m)
		}
		w.hits["a receipt in another group"]++
	}
	w.settle(0)
}

// release ends deliveries whose client is gone; they stay counted.
func (w *world) release() {
	list := w.receipts(3)
	w.note("release %v", numbers(list))
	var receipts []queue.Receipt
	for _, r := range list {
		receipts = append(receipts, r.receipt)
	}
	w.b.Release(receipts)
	for _, r := range list {
		m, there, ok := w.delivery(r.q, r)
		if !there || !ok || m.state != inFlight {
			continue
		}
		if m.until = w.now(); !m.exhausted() {
			m.state, m.lease = visible, 0
		}
		w.messages[m.place()] = m
		w.hits["released"]++
	}
	synctest.Wait() // there is no answer that could be waited for
	w.settle(0)
}

// groupsText is groups as they are compared.
func groupsText(groups ...[]queue.ConsumerGroup) string {
	var lines []string
	for _, g := range slices.Concat(groups...) {
		limit := -1
		if g.DeadLetterDeliveryCount != nil {
			limit = *g.DeadLetterDeliveryCount
		}
		lines = append(lines, fmt.Sprintf("%3d %s of %s %q %s %q limit %d version %d", g.Number, g.ID, g.QueueID, g.DisplayName, g.State, g.Filter, limit, g.Version))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// compareGroups looks at what is shown of the groups of a queue.
func (w *world) compareGroups(q *wantQueue) {
	w.t.Helper()
	shown := slices.DeleteFunc(w.b.Groups(), func(g queue.ConsumerGroup) bool { return g.QueueID != q.ID })
	if got, want := groupsText(shown), groupsText(q.groups, q.gone); got != want {
		w.fail("the groups of %s are\n%s\nwant\n%s", q.ID, got, want)
	}
	for _, g := range q.groups {
		for _, text := range []string{string(g.ID), strings.ToUpper(g.DisplayName)} {
			if got, found := w.b.LookupGroup(q.ID, text); !found || got.ID != g.ID {
				w.fail("group %q is %v, %+v", text, found, got)
			}
		}
	}
	for _, g := range q.gone {
		if got, found := w.b.LookupGroup(q.ID, g.DisplayName); found {
			w.fail("a deleted group is found by its name: %+v", got)
		}
	}
	if got, found := w.b.LookupGroup(q.ID, ""); found != (len(q.groups) > 0) || found && got.ID != q.groups[0].ID {
		w.fail("the primary group of %s is %v, %+v", q.ID, found, got)
	}
}

// agreesOnGroups compares them with what a store has.
func (q *wantQueue) agreesOnGroups(have *store.Queue) error {
	var groups []queue.ConsumerGroup
	for _, g := range have.Groups {
		groups = append(groups, g.ConsumerGroup)
	}
	if got, want := groupsText(groups), groupsText(q.groups, q.gone); got != want || have.LastGroup != q.last {
		return fmt.Errorf("the groups of %s, up to %d, are\n%s\nwant, up to %d\n%s", q.ID, have.LastGroup, got, q.last, want)
	}
	return nil
}

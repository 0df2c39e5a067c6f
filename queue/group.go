package queue

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// ConsumerGroup is one consumer group of a queue as its owner sees it: a set
// of consumers that get each message of the queue once among them, those that
// its filter accepts (OCI reference 3.7, 4.10). Values are copied freely; the
// maps inside are never changed in place.
type ConsumerGroup struct {
	ID          ID
	QueueID     ID
	Number      uint32 // in its queue, given by the broker; 0 is the primary group
	DisplayName string // 1 to 255 characters, one group of a queue bears it, whatever the case
	State       LifecycleState
	Filter      string // "" accepts everything
	CreatedAt   Instant
	UpdatedAt   Instant

	DeadLetterDeliveryCount *int // deliveries before the dead letter queue; 0: never; nil: as the queue says

	FreeformTags map[string]string
	DefinedTags  map[string]map[string]json.RawMessage
	SystemTags   map[string]map[string]json.RawMessage

	Version uint64 // rises with every change; the etag is made of it
}

// Names of consumer groups that are none of a client's.
const (
	// UnroutedGroup stands for what no group accepted, where the server keeps
	// it: it is read and settled like a group of its own.
	UnroutedGroup ID = "unrouted"
	// AnyGroup is whichever group a receipt is of.
	AnyGroup ID = "*"
)

// Primary reports whether it is the group that a queue has from the moment it
// has groups, and that is meant when none is named.
func (g *ConsumerGroup) Primary() bool { return g.Number == 0 }

// Live reports whether the group exists, be it enabled or not.
func (g *ConsumerGroup) Live() bool { return g.State == Active || g.State == Inactive }

// Named reports whether text is the group's display name, whatever the case.
func (g *ConsumerGroup) Named(text string) bool { return strings.EqualFold(g.DisplayName, text) }

// Validate checks the form of the settings and names the first field that is
// wrong as the API spells it. The filter is not looked at.
func (g *ConsumerGroup) Validate() error {
	if err := checkName(g.DisplayName); err != nil {
		return err
	}
	if n := g.DeadLetterDeliveryCount; n != nil && (*n < 0 || *n > MaxDeliveryCount) {
		return Errorf(InvalidParameter, "deadLetterQueueDeliveryCount is %d; it must be 0 to %d", *n, MaxDeliveryCount)
	}
	return nil
}

func checkName(name string) error {
	if n := utf8.RuneCountInString(name); n < 1 || n > MaxDisplayName || !utf8.ValidString(name) {
		return Errorf(InvalidParameter, "displayName has %d characters; it must have 1 to %d", n, MaxDisplayName)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return Errorf(InvalidParameter, "displayName holds a control character")
	}
	return nil
}

// Has reports whether the queue has a capability.
func (q *Queue) Has(c Capability) bool { return slices.Contains(q.Capabilities, c) }

package queue

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// ID is a queue's OCID, immutable and never reused.
type ID string

// LifecycleState is where a queue stands in its life (OCI reference 4.13).
type LifecycleState string

const (
	Creating LifecycleState = "CREATING"
	Updating LifecycleState = "UPDATING"
	Active   LifecycleState = "ACTIVE"
	Deleting LifecycleState = "DELETING"
	Deleted  LifecycleState = "DELETED"
	Failed   LifecycleState = "FAILED"
	Inactive LifecycleState = "INACTIVE"
)

// Queue is one queue as its owner sees it. Values are copied freely; the maps
// inside are never changed in place: who changes a queue replaces them.
type Queue struct {
	ID               ID
	CompartmentID    string
	DisplayName      string // 1 to 255 characters, need not be unique
	State            LifecycleState
	LifecycleDetails string
	CreatedAt        Instant
	UpdatedAt        Instant

	Retention               time.Duration // how long a message lives, fixed at creation
	Visibility              time.Duration // how long a delivered message stays hidden by default
	PollingTimeout          time.Duration // how long a get waits by default
	DeadLetterDeliveryCount int           // deliveries before the dead letter queue; 0: never
	ChannelConsumptionLimit int           // percent of the queue's storage one channel may take

	Capabilities          []Capability `json:",omitempty"` // in the order in which they were added
	CustomEncryptionKeyID string       // kept and returned; "" is none
	FreeformTags          map[string]string
	DefinedTags           map[string]map[string]json.RawMessage
	SystemTags            map[string]map[string]json.RawMessage

	Version uint64 // rises with every change; the etag is made of it
}

// Live reports whether the queue serves messages.
func (q *Queue) Live() bool { return q.State == Active || q.State == Updating }

// Ranges of the settings of a queue (OCI reference, section 5).
const (
	MinRetention       = 10 * time.Second
	MaxRetention       = 7 * 24 * time.Hour
	DefaultRetention   = 24 * time.Hour
	MaxVisibility      = 12 * time.Hour
	MinVisibility      = time.Second // of a queue; a single get may ask for 0
	DefaultVisibility  = 30 * time.Second
	MaxPollingTimeout  = 30 * time.Second
	DefaultPoll        = 30 * time.Second
	MaxDeliveryCount   = 20
	MaxDisplayName     = 255
	MaxOCID            = 255
	MaxRetryToken      = 64
	MaxDelay           = 12 * time.Hour
	DefaultConsumption = 100
)

// Validate checks the form of the settings and names the first field that is
// wrong as the API spells it.
func (q *Queue) Validate() error {
	if err := checkName(q.DisplayName); err != nil {
		return err
	}
	if n := len(q.CompartmentID); n < 1 || n > MaxOCID {
		return Errorf(InvalidParameter, "compartmentId has %d octets; it must have 1 to %d", n, MaxOCID)
	}
	if err := seconds("retentionInSeconds", q.Retention, MinRetention, MaxRetention); err != nil {
		return err
	}
	if err := seconds("visibilityInSeconds", q.Visibility, MinVisibility, MaxVisibility); err != nil {
		return err
	}
	if err := seconds("timeoutInSeconds", q.PollingTimeout, 0, MaxPollingTimeout); err != nil {
		return err
	}
	if n := q.DeadLetterDeliveryCount; n < 0 || n > MaxDeliveryCount {
		return Errorf(InvalidParameter, "deadLetterQueueDeliveryCount is %d; it must be 0 to %d", n, MaxDeliveryCount)
	}
	if n := q.ChannelConsumptionLimit; n < 1 || n > 100 {
		return Errorf(InvalidParameter, "channelConsumptionLimit is %d; it must be 1 to 100", n)
	}
	if n := len(q.CustomEncryptionKeyID); n > MaxOCID {
		return Errorf(InvalidParameter, "customEncryptionKeyId has %d octets; it must have at most %d", n, MaxOCID)
	}
	return nil
}

// seconds checks that d lies between lo and hi, both included, and says so in
// the unit of the API.
func seconds(field string, d, lo, hi time.Duration) error {
	if d < lo || d > hi {
		return Errorf(InvalidParameter, "%s is %d; it must be %d to %d",
			field, int64(d/time.Second), int64(lo/time.Second), int64(hi/time.Second))
	}
	return nil
}

// Ref is how a request names a queue: by OCID or by display name, and whether
// it means the dead letter queue or what no consumer group accepted.
type Ref struct {
	ID   ID     // set when the text is an OCID
	Name string // set when it is a display name
	Dead bool   // the text ended in "_dlq"

	Unrouted bool // the text ended in "_unrouted"
}

// What stands behind a queue's OCID or name to mean another queue of it.
const (
	DeadSuffix     = "_dlq"      // its dead letter queue
	UnroutedSuffix = "_unrouted" // what no consumer group accepted
)

const ocidPrefix = "ocid1."

// ParseRef reads the text that stands where a queue is named: an OCID or a
// display name, with "_dlq" behind it for the dead letter queue or "_unrouted"
// for what no consumer group accepted. Whether such a queue exists is not its
// question; the empty text or one that is too long for any name names nothing
// and is NotAuthorizedOrNotFound.
func ParseRef(text string) (Ref, error) {
	var ref Ref
	if text, ref.Dead = strings.CutSuffix(text, DeadSuffix); !ref.Dead {
		text, ref.Unrouted = strings.CutSuffix(text, UnroutedSuffix)
	}
	switch {
	case text == "" || len(text) > 4*MaxDisplayName || !utf8.ValidString(text):
		return Ref{}, Errorf(NotAuthorizedOrNotFound, "no queue of that name is known")
	case strings.HasPrefix(text, ocidPrefix):
		ref.ID = ID(text)
	default:
		ref.Name = text
	}
	return ref, nil
}

// Addressable reports whether a queue of this display name can be had by its
// name: a name that ends in "_dlq" or "_unrouted", holds a "/" or looks like an
// OCID cannot.
func Addressable(name string) bool {
	return !strings.HasSuffix(name, DeadSuffix) && !strings.HasSuffix(name, UnroutedSuffix) && !strings.Contains(name, "/") && !strings.HasPrefix(name, ocidPrefix)
}

// PurgeType says which messages a purge removes.
type PurgeType string

const (
	PurgeNormal PurgeType = "NORMAL" // the queue, not its dead letter queue
	PurgeDLQ    PurgeType = "DLQ"    // the dead letter queue alone
	PurgeBoth   PurgeType = "BOTH"
)

// ParsePurgeType reads a purge type in any case.
func ParsePurgeType(text string) (PurgeType, error) {
	t := PurgeType(strings.ToUpper(text))
	if !slices.Contains([]PurgeType{PurgeNormal, PurgeDLQ, PurgeBoth}, t) {
		return "", Errorf(InvalidParameter, "purgeType must be NORMAL, DLQ or BOTH")
	}
	return t, nil
}

// Capability is a feature a queue can be given (OCI reference 3.6).
type Capability string

const (
	ConsumerGroups Capability = "CONSUMER_GROUPS"
	LargeMessages  Capability = "LARGE_MESSAGES"
)

package service

import (
	"encoding/base32"
	"fmt"
	"io"

	"github.com/queued-mq/queued/queue"
)

// ocids makes OCIDs: ocid1.<type>.<realm>.<region>.<unique>. Clients treat
// them as opaque.
type ocids struct {
	realm, region string
	entropy       io.Reader
}

// unique is 160 random bits in 32 letters and digits: no two are ever equal.
var unique = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func (o ocids) make(kind string) (string, error) {
	var random [20]byte
	if _, err := io.ReadFull(o.entropy, random[:]); err != nil {
		return "", fmt.Errorf("draw an OCID: %w", err)
	}
	return "ocid1." + kind + "." + o.realm + "." + o.region + "." + unique.EncodeToString(random[:]), nil
}

func (o ocids) queue() (queue.ID, error) {
	id, err := o.make("queue")
	return queue.ID(id), err
}

func (o ocids) group() (queue.ID, error) {
	id, err := o.make("queueconsumergroup")
	return queue.ID(id), err
}

func (o ocids) workRequest() (string, error) { return o.make("queueworkrequest") }

// rootCompartment owns what is made without naming a compartment.
func (o ocids) rootCompartment() string { return "ocid1.tenancy." + o.realm + "..local" }

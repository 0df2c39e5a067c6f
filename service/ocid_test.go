package service

import (
	"crypto/rand"
	"io"
	"regexp"
	"strings"
	"testing"
)

func TestOCIDs(t *testing.T) {
	o := ocids{realm: "oc1", region: "local", entropy: rand.Reader}
	form := regexp.MustCompile(`^ocid1\.queue\.oc1\.local\.[a-z2-7]{32}$`)
	a, err := o.queue()
	if err != nil || !form.MatchString(string(a)) {
		t.Errorf("queue OCID %q, %v", a, err)
	}
	if b, _ := o.queue(); a == b {
		t.Errorf("%q twice", a)
	}
	w, err := o.workRequest()
	if err != nil || !strings.HasPrefix(w, "ocid1.queueworkrequest.oc1.local.") {
		t.Errorf("work request OCID %q, %v", w, err)
	}
	if got := o.rootCompartment(); got != "ocid1.tenancy.oc1..local" {
		t.Errorf("root compartment %q", got)
	}
}

func TestOCIDNeedsEntropy(t *testing.T) {
	o := ocids{realm: "oc1", region: "local", entropy: io.LimitReader(rand.Reader, 19)}
	if id, err := o.queue(); err == nil {
		t.Errorf("made %q of 19 random octets", id)
	}
}

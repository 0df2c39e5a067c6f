package stomp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/queue"
)

// The same sessions over TLS: the ends of both sides are told in good order.
func TestTLS(t *testing.T) {
	t.Parallel()
	h := open(t, Options{}, "orders")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := New(h.service, Options{Logger: logTo(h.log)})
	served := make(chan error, 1)
	go func() {
		served <- srv.Serve(tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}}))
	}()
	t.Cleanup(func() {
		srv.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	plain := h.wire
	h.wire = func() net.Conn {
		c, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	h.works()
	p := h.connect("1.2")
	p.send("SEND\ndestination:orders\nreceipt:1\n\n" + strings.Repeat("x", 200<<10) + "^@NONSENSE\n\n^@SEND\ndestination:orders\n\ny^@")
	p.expect("RECEIPT", "receipt-id:1")
	p.fails(queue.InvalidFrame)
	p = h.connect("1.2")
	p.send("SUBSCRIBE\ndestination:orders\nid:1\n\n^@")
	if f := p.expect("MESSAGE"); len(f.body) != 200<<10 {
		t.Error(len(f.body))
	}
	p.net.(*tls.Conn).CloseWrite()
	p.closed()

	// Who does not speak TLS there is closed, and nobody else.
	h.wire = func() net.Conn {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	p = h.dial()
	p.send("CONNECT\naccept-version:1.2\n\n^@")
	if f, err := p.next(patient); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Error(f, err)
	}
	h.wire = plain
	h.works()
}

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// writeCertificate makes a certificate for 127.0.0.1 and is its files and a
// pool that trusts it.
func writeCertificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, text := range map[string][]byte{cert: public, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(public)
	return cert, key, pool
}

// TestTLS: REST speaks HTTP/1.1 and HTTP/2 as the client can, gRPC and STOMP are
// behind the same certificate, and none answers in the clear.
func TestTLS(t *testing.T) {
	cert, key, pool := writeCertificate(t)
	s := startServer(t, func(c *Config) {
		c.TLSCert, c.TLSKey = cert, key
		c.CreateQueue = []string{"orders"}
	})
	trust := &tls.Config{RootCAs: pool}
	for proto, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		transport := &http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: http2}
		if !http2 {
			transport.Protocols = new(http.Protocols)
			transport.Protocols.SetHTTP1(true)
		}
		resp, err := (&http.Client{Transport: transport}).Get("https://" + s.rest + "/20210201/queues")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		transport.CloseIdleConnections()
		if resp.Proto != proto || resp.StatusCode != http.StatusOK {
			t.Errorf("%s %s, want %s 200", resp.Proto, resp.Status, proto)
		}
	}
	if _, err := tls.Dial("tcp", s.rest, &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is accepted")
	}

	conn, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(credentials.NewTLS(trust)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	got, err := queuev1.NewQueueAdminServiceClient(conn).GetQueue(t.Context(), &queuev1.GetQueueRequest{QueueId: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	if at := got.GetQueue().GetMessagesEndpoint(); at != "https://"+s.grpc {
		t.Errorf("messagesEndpoint is %q", at)
	}

	c, err := tls.Dial("tcp", s.stomp, trust)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("CONNECT\naccept-version:1.2\nhost:x\n\n\x00SEND\ndestination:orders\nreceipt:1\n\nhello\x00SEND\n\n\x00")); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c) // to an end in good order
	if err != nil || !strings.Contains(string(text), "CONNECTED\n") || !strings.Contains(string(text), "receipt-id:1\n") || !strings.Contains(string(text), "ERROR\n") {
		t.Errorf("over TLS STOMP says %q, %v", text, err)
	}
	plain, err := net.Dial("tcp", s.stomp)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Write([]byte("CONNECT\naccept-version:1.2\nhost:x\n\n\x00")); err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(plain); strings.Contains(string(text), "CONNECTED") {
		t.Errorf("in the clear STOMP says %q", text)
	}

	if !strings.Contains(s.out.String(), "rest https://"+s.rest) {
		t.Errorf("the start line is %q", s.out)
	}
	for _, bad := range [][2]string{{cert, cert}, {key, cert}, {cert + ".none", key}} {
		if _, err := loadTLS(bad[0], bad[1]); err == nil || !strings.Contains(err.Error(), "tls-cert "+bad[0]+", tls-key "+bad[1]) {
			t.Errorf("loadTLS(%v): %v", bad, err)
		}
	}
}

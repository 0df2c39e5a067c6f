package stomp

import (
	"io"
	"log/slog"
	"testing"
)

func logTo(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// A message goes in and out in every version, with all its headers.
func TestSendAndReceive(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.0", "1.1", "1.2"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			h := open(t, Options{}, "orders")
			p := h.connect(version)
			p.send("SUBSCRIBE\nid:s\ndestination:orders\nack:client-individual\nreceipt:r1\n\n^@")
			p.expect("RECEIPT", "receipt-id:r1")
			p.send("SEND\ndestination:orders/north\ncontent-type:text/x\nkind:a\nreceipt:r2\n\nhello^@")
			p.expect("RECEIPT", "receipt-id:r2")
			m := p.expect("MESSAGE", "subscription:s", "destination:orders/north", "content-type:text/x", "kind:a",
				"content-length:5", "delivery-count:1", "redelivered:false")
			if m.body != "hello" {
				t.Errorf("body %q", m.body)
			}
			ack := "id:" + m.header["ack"]
			if version != "1.2" {
				ack = "subscription:s\nmessage-id:" + m.header["message-id"]
			}
			p.send("ACK\n" + ack + "\nreceipt:r3\n\n^@")
			p.expect("RECEIPT", "receipt-id:r3")
			if main, _ := h.stats("orders"); !main.Empty() {
				t.Errorf("left: %+v", main)
			}
			p.send("DISCONNECT\nreceipt:r4\n\n^@")
			p.expect("RECEIPT", "receipt-id:r4")
			p.closed()
		})
	}
}

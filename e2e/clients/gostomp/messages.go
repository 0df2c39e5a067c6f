package main

import "github.com/go-stomp/stomp/v3"

// text is what is not ASCII, and what STOMP must escape in headers.
const text = "a\nb: \\ é 😀 שלום"

// octets are all of them.
func octets() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// bodies go and come, with and without a receipt.
func bodies(v stomp.Version) {
	c := must(connect(v))
	try(c.Send(letters, "text/plain;charset=utf-8", []byte(text)))
	try(c.Send(letters, "", []byte("told"), stomp.SendOpt.Receipt))
	left(2, 0, "behind a receipt")
	ok("receipts", v, "a SEND with a receipt returns when it is stored, and those before it too")
	try(c.Send(letters, "application/octet-stream", octets(), stomp.SendOpt.Receipt))
	try(c.Send(letters, "", nil, stomp.SendOpt.Receipt))
	try(c.Send(letters, "", []byte("to its NUL"), stomp.SendOpt.NoContentLength, stomp.SendOpt.Receipt))
	sub := must(c.Subscribe(letters, stomp.AckClientIndividual))
	for _, want := range []string{text, "told", string(octets()), "", "to its NUL"} {
		m := next(sub)
		same(string(m.Body), want, "body")
		try(c.Ack(m))
	}
	try(c.Disconnect())
	left(0, 0, "acknowledged")
	ok("text", v, "comes as it went, empty and without content-length too")
	ok("octets", v, "all 256, NUL among them")
	ok("client-individual", v, "each ACK deletes one message")
}

// headers of the caller's own come back.
func headers(v stomp.Version) {
	value, what := "a:b\\c\nd\re é", "UTF-8 and all that is escaped"
	switch v {
	case stomp.V10:
		value, what = "a:b é", "UTF-8 and a colon"
	case stomp.V11:
		value, what = "a:b\\c\nd é", "UTF-8 and all that 1.1 escapes"
	}
	c := must(connect(v))
	sub := must(c.Subscribe(letters, stomp.AckClientIndividual))
	try(c.Send(letters, "text/x; charset=utf-8", []byte("x"), stomp.SendOpt.Header("kind", value)))
	m := next(sub)
	same(m.Header.Get("kind"), value, "kind")
	same(m.ContentType, "text/x; charset=utf-8", "content-type")
	try(c.Ack(m))
	try(c.Disconnect())
	ok("headers", v, "of the caller's own come back, "+what)
}

// modes are how messages can be settled, and an UNSUBSCRIBE between.
func modes(v stomp.Version) {
	c := must(connect(v))
	sub := must(c.Subscribe(letters, stomp.AckAuto))
	try(c.Send(letters, "", []byte("auto")))
	same(string(next(sub).Body), "auto", "body")
	try(unsubscribe(sub))
	gone()
	ok("auto", v, "what was delivered is gone")

	try(c.Send(letters, "", []byte("unseen"), stomp.SendOpt.Receipt))
	left(1, 0, "behind an UNSUBSCRIBE")
	ok("UNSUBSCRIBE", v, "nothing comes behind it")

	try(c.Send(letters, "", []byte("second")))
	try(c.Send(letters, "", []byte("third")))
	sub = must(c.Subscribe(letters, stomp.AckClient))
	next(sub)
	second := next(sub)
	third := next(sub)
	try(c.Ack(second))
	try(unsubscribe(sub))
	left(0, 1, "client")
	ok("client", v, "an ACK deletes what came before it too")
	try(c.Ack(third))
	try(c.Disconnect())
	left(0, 0, "client")
	ok("UNSUBSCRIBE", v, "what came before it can be acknowledged behind it")
}

// back gives a message back.
func back(v stomp.Version) {
	c := must(connect(v))
	sub := must(c.Subscribe(letters, stomp.AckClientIndividual))
	try(c.Send(letters, "", []byte("x")))
	m := next(sub)
	same(m.Header.Get("redelivered"), "false", "redelivered")
	try(c.Nack(m))
	m = next(sub)
	same(m.Header.Get("redelivered"), "true", "redelivered")
	same(m.Header.Get("delivery-count"), "2", "delivery-count")
	try(c.Ack(m))
	try(c.Disconnect())
	left(0, 0, "acknowledged at last")
	ok("NACK", v, "the message comes again at once")
}

// transactions take effect as a whole or not at all.
func transactions(v stomp.Version) {
	c := must(connect(v))
	tx := c.Begin()
	try(tx.Send(letters, "", []byte("never")))
	try(tx.Abort())
	tx = c.Begin()
	try(tx.Send(letters, "", []byte("two")))
	try(tx.Send(letters, "", []byte("three")))
	try(c.Send(letters, "", []byte("one"), stomp.SendOpt.Receipt))
	left(1, 0, "before the COMMIT")
	try(tx.Commit())
	sub := must(c.Subscribe(letters, stomp.AckClientIndividual))
	one, two, three := next(sub), next(sub), next(sub)
	same(string(one.Body)+string(two.Body)+string(three.Body), "onetwothree", "bodies")
	ok("transactions", v, "a COMMIT publishes all, an ABORT nothing")
	tx = c.Begin()
	try(tx.Ack(one))
	try(tx.Ack(two))
	try(tx.Ack(three))
	try(unsubscribe(sub)) // its receipt says that the server has seen them
	left(0, 3, "before the COMMIT")
	try(tx.Commit())
	try(c.Disconnect())
	left(0, 0, "behind the COMMIT")
	ok("transactions", v, "a COMMIT deletes what was acknowledged in it")
}

package main

import (
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/go-stomp/stomp/v3"
)

// connect opens a session of this version.
func connect(version stomp.Version) (*stomp.Conn, error) {
	return stomp.Dial("tcp", os.Getenv("STOMP"), stomp.ConnOpt.AcceptVersion(version), stomp.ConnOpt.HeartBeat(10*time.Second, 10*time.Second))
}

// hello is what docs/clients.md shows.
func hello(c *stomp.Conn) error {
	sub, err := c.Subscribe("letters", stomp.AckClientIndividual)
	if err != nil {
		return err
	}
	if err := c.Send("letters", "text/plain", []byte("hello"), stomp.SendOpt.Receipt); err != nil {
		return err // with a receipt it is told
	}
	m := <-sub.C
	if m.Err != nil {
		return m.Err
	}
	return c.Ack(m)
}

// sessions opens and ends one.
func sessions(v stomp.Version) {
	c := must(connect(v))
	same(c.Version(), v, "version")
	ok(string(v), v, "opens a session")
	try(hello(c))
	try(c.Disconnect())
	left(0, 0, "behind a disconnect")
	ok("DISCONNECT", v, "has its receipt, and all before it is done")
}

// refused sees every ERROR as an error.
func refused(v stomp.Version) {
	c := must(connect(v))
	var e stomp.Error // as go-stomp has it
	if err := c.Send("nowhere", "", []byte("x"), stomp.SendOpt.Receipt); !errors.As(err, &e) {
		panic(err)
	}
	same(e.Frame.Header.Get("code"), "NotAuthorizedOrNotFound", e.Message)
	ok("ERROR", v, "an unknown queue, with its code, at the SEND")
	c = must(connect(v))
	sub := must(c.Subscribe("/topic/prices", stomp.AckAuto))
	m := <-sub.C
	same(m != nil && m.Err != nil, true, "a topic")
	ok("ERROR", v, "a topic, at the subscription")
}

// beats stays silent for longer than a peer may that promised a beat a second.
func beats(v stomp.Version) {
	c := must(stomp.Dial("tcp", os.Getenv("STOMP"), stomp.ConnOpt.AcceptVersion(v), stomp.ConnOpt.HeartBeat(time.Second, time.Second)))
	time.Sleep(5 * time.Second) // the server cuts who is silent for three
	try(hello(c))
	try(c.Disconnect())
	ok("heart-beats", v, "keep a session that is silent otherwise, both ways")
}

// reconnects: go-stomp has no way to do it by itself, its caller dials again.
func reconnects() {
	v := stomp.V12
	c := must(connect(v))
	sub := must(c.Subscribe(letters, stomp.AckClientIndividual, stomp.SubscribeOpt.Header("visibility", "2")))
	try(c.Send(letters, "", []byte("before"), stomp.SendOpt.Receipt))
	same(string(next(sub).Body), "before", "body")
	must(http.Get(os.Getenv("RESTART"))).Body.Close()
	m := <-sub.C
	same(m == nil || m.Err != nil, true, "a cut session")
	ok("reconnect", v, "a cut session ends its subscriptions with an error")
	c = must(connect(v))
	sub = must(c.Subscribe(letters, stomp.AckClientIndividual))
	m = next(sub)
	same(string(m.Body), "before", "body")
	same(m.Header.Get("delivery-count"), "2", "delivery-count")
	try(c.Ack(m))
	try(c.Disconnect())
	left(0, 0, "behind a restart")
	ok("reconnect", v, "dialed again, it has what it had not acknowledged")
}

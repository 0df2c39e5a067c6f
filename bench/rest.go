package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// restFace speaks REST. Sessions share one HTTP client, which has a connection
// for each operation that is under way. JSON is written by hand: the bodies of
// a run need no escapes.
type restFace struct {
	url    string
	client *http.Client
}

func newREST(o *Options) *restFace {
	return &restFace{url: base(o.REST) + "/20210201/queues", client: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: (o.Producers+o.Consumers)*o.Ahead + 8,
		DisableCompression:  true,
	}}}
}

func (f *restFace) producer(_ context.Context, _ int, queue string) (producer, error) {
	return &restSession{f, f.url + "/" + queue}, nil
}

func (f *restFace) consumer(_ context.Context, _ int, queue string) (consumer, error) {
	return &restSession{f, f.url + "/" + queue}, nil
}

func (f *restFace) Close() error {
	f.client.CloseIdleConnections()
	return nil
}

// restSession is a queue.
type restSession struct {
	*restFace
	queue string
}

func (s *restSession) Close() error { return nil }

// buffers are for requests and answers.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// call sends a request and puts its answer into answer.
func (f *restFace) call(ctx context.Context, method, url string, body []byte, answer *bytes.Buffer) error {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := f.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer.Reset()
	if _, err := answer.ReadFrom(io.LimitReader(resp.Body, 64<<20)); err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		var e struct{ Code, Message string }
		_ = json.Unmarshal(answer.Bytes(), &e) // without a code the status must do
		return &Refusal{Code: cmp.Or(e.Code, "Status"+strconv.Itoa(resp.StatusCode)), Message: e.Message}
	}
	return nil
}

func (s *restSession) publish(ctx context.Context, batch []message) error {
	b, answer := buffers.Get().(*bytes.Buffer), buffers.Get().(*bytes.Buffer)
	b.Reset()
	b.WriteString(`{"messages":[`)
	for i, m := range batch {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"content":"`)
		b.Write(m.body)
		if m.channel != "" {
			b.WriteString(`","metadata":{"channelId":"`)
			b.WriteString(m.channel)
			b.WriteString(`"}}`)
		} else {
			b.WriteString(`"}`)
		}
	}
	b.WriteString(`]}`)
	err := s.call(ctx, http.MethodPost, s.queue+"/messages", b.Bytes(), answer)
	buffers.Put(answer)
	if err == nil { // else the transport may still read it
		buffers.Put(b)
	}
	return err
}

func (s *restSession) receive(ctx context.Context, max int) ([]delivery, error) {
	answer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(answer)
	url := s.queue + "/messages?timeoutInSeconds=" + strconv.Itoa(int(pollFor/time.Second)) + "&limit=" + strconv.Itoa(max)
	if err := s.call(ctx, http.MethodGet, url, nil, answer); err != nil {
		return nil, err
	}
	return readMessages(answer.Bytes())
}

// readMessages finds contents and receipts in the answer to a get: what stands
// between quotes behind these two names. Neither has an escape in it, and no
// content has a quote.
func readMessages(text []byte) ([]delivery, error) {
	at := time.Now()
	var got []delivery
	for {
		content, rest, ok := quoted(text, `"content":"`)
		if !ok {
			return got, nil
		}
		number, meant, err := readHead(content)
		if err != nil {
			return nil, err
		}
		receipt, rest, ok := quoted(rest, `"receipt":"`)
		if !ok {
			return nil, fmt.Errorf("a message without a receipt in %.200q", text)
		}
		got = append(got, delivery{receipt: string(receipt), number: number, meant: meant, at: at})
		text = rest
	}
}

// quoted is the text behind the name up to the next quote, and what is behind.
func quoted(text []byte, name string) (value, rest []byte, ok bool) {
	i := bytes.Index(text, []byte(name))
	if i < 0 {
		return nil, nil, false
	}
	text = text[i+len(name):]
	if i = bytes.IndexByte(text, '"'); i < 0 {
		return nil, nil, false
	}
	return text[:i], text[i+1:], true
}

func (s *restSession) settle(ctx context.Context, batch []delivery) error {
	b, answer := buffers.Get().(*bytes.Buffer), buffers.Get().(*bytes.Buffer)
	defer buffers.Put(answer)
	b.Reset()
	b.WriteString(`{"entries":[`)
	for i, d := range batch {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"receipt":"`)
		b.WriteString(d.receipt)
		b.WriteString(`"}`)
	}
	b.WriteString(`]}`)
	if err := s.call(ctx, http.MethodPost, s.queue+"/messages/actions/deleteMessages", b.Bytes(), answer); err != nil {
		return err
	}
	buffers.Put(b)
	if bytes.Contains(answer.Bytes(), []byte(`"serverFailures":0,"clientFailures":0`)) {
		return nil
	}
	var result struct {
		ServerFailures, ClientFailures int
		Entries                        []struct {
			ErrorCode    int
			ErrorMessage string
		}
	}
	if err := json.Unmarshal(answer.Bytes(), &result); err != nil {
		return fmt.Errorf("read the answer to a delete: %w", err)
	}
	for _, e := range result.Entries {
		if e.ErrorCode != 0 {
			return &Refusal{Code: "Status" + strconv.Itoa(e.ErrorCode), Message: e.ErrorMessage}
		}
	}
	return nil
}

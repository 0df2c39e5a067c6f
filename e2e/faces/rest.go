package faces

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// REST is the OCI API.
var REST = Face{
	Name: "REST",
	Dial: func(s *server.Server) Client { return &restClient{server: s} },
}

type restClient struct {
	server *server.Server
	conn   *rest.Conn
	until  time.Time
	group  string
}

func (c *restClient) As(group string) { c.group = group }

func (c *restClient) Until() time.Time { return c.until }

func (c *restClient) Drop() {
	if c.conn != nil {
		c.conn.Reset()
		c.conn = nil
	}
}

func (c *restClient) open() error {
	if c.conn != nil {
		return nil
	}
	conn, err := rest.Open(c.server.REST)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	c.conn = conn
	return nil
}

func (c *restClient) do(method, path, body string, into any, headers ...string) error {
	if err := c.open(); err != nil {
		return err
	}
	a, err := c.conn.Do(method, path, body, headers...)
	if err != nil {
		c.Drop()
		return err
	}
	if a.Closes {
		c.Drop()
	}
	return restAnswer(a, into)
}

func restAnswer(a *rest.Answer, into any) error {
	if a.Status/100 != 2 {
		code, message, err := a.Error()
		if err != nil {
			return err
		}
		return &Refusal{code, message}
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(a.Body, into)
}

// restEntry is a message as JSON spells it.
type restEntry struct {
	Content    string         `json:"content"`
	Encoding   string         `json:"contentEncoding,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	Delay      int            `json:"delayInSeconds,omitempty"`
	Retention  int            `json:"retentionInSeconds,omitempty"`
	Visibility int            `json:"visibilityInSeconds,omitempty"`
}

func (c *restClient) Publish(queue, token string, messages ...Message) (ids []int64, err error) {
	entries := make([]restEntry, len(messages))
	for i, m := range messages {
		e := restEntry{
			Content: string(m.Body), Metadata: map[string]any{},
			Delay: m.Delay, Retention: m.Retention, Visibility: m.Visibility,
		}
		if !utf8.Valid(m.Body) {
			e.Content, e.Encoding = base64.StdEncoding.EncodeToString(m.Body), "base64"
		}
		if m.Channel != "" {
			e.Metadata["channelId"] = m.Channel
		}
		if m.Properties != nil {
			e.Metadata["customProperties"] = m.Properties
		}
		entries[i] = e
	}
	body, err := json.Marshal(map[string]any{"messages": entries})
	if err != nil {
		return nil, err
	}
	var headers []string
	if token != "" {
		headers = append(headers, "opc-retry-token: "+token)
	}
	var r struct{ Messages []rest.Message }
	err = c.do("POST", "/queues/"+url.PathEscape(queue)+"/messages", string(body), &r, headers...)
	for _, m := range r.Messages {
		ids = append(ids, m.ID)
	}
	return ids, err
}

func (c *restClient) query(queue string, w Want) string {
	query := fmt.Sprintf("/queues/%s/messages?limit=%d&timeoutInSeconds=%d", url.PathEscape(queue), w.limit(), w.For/time.Second)
	if w.Visibility > 0 {
		query += fmt.Sprint("&visibilityInSeconds=", w.Visibility)
	}
	if w.Channel != "" {
		query += "&channelFilter=" + url.QueryEscape(w.Channel)
	}
	if c.group != "" {
		query += "&consumerGroupId=" + url.QueryEscape(c.group)
	}
	return query
}

func (c *restClient) Receive(queue string, w Want) ([]Delivery, error) {
	var r struct{ Messages []rest.Message }
	if err := c.do("GET", c.query(queue, w), "", &r); err != nil {
		return nil, err
	}
	return restDeliveries(r.Messages)
}

func restDeliveries(messages []rest.Message) (all []Delivery, err error) {
	for _, m := range messages {
		d := Delivery{
			ID: m.ID, Receipt: m.Receipt, Body: []byte(m.Content), Channel: m.Metadata.ChannelID,
			Properties: m.Metadata.CustomProperties, Count: m.DeliveryCount,
			CreatedAt: m.CreatedAt, VisibleAfter: m.VisibleAfter, ExpireAfter: m.ExpireAfter,
		}
		if m.ContentEncoding != "" {
			if d.Body, err = base64.StdEncoding.DecodeString(m.Content); err != nil {
				return nil, err
			}
			delete(d.Properties, "content-encoding") // which says so once more
		}
		if m.DeadLetter != nil {
			d.Dead = &Dead{m.DeadLetter.Reason, m.DeadLetter.DeliveryCount, m.DeadLetter.At}
		}
		all = append(all, d)
	}
	return all, nil
}

func (c *restClient) Wait(queue string, w Want) (*Waiting, error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	conn := c.conn
	c.conn = nil // the next request takes another one
	if err := conn.Send("GET", c.query(queue, w), ""); err != nil {
		return nil, err
	}
	return waiting(conn.Reset, func() ([]Delivery, error) {
		defer conn.Close()
		a, err := conn.Receive("GET")
		if err != nil {
			return nil, err
		}
		var r struct{ Messages []rest.Message }
		if err := restAnswer(a, &r); err != nil {
			return nil, err
		}
		return restDeliveries(r.Messages)
	}), nil
}

func (c *restClient) Extend(queue, receipt string, seconds int) error {
	var r struct{ VisibleAfter time.Time }
	err := c.do(http.MethodPut, c.message(queue, receipt), fmt.Sprintf(`{"visibilityInSeconds":%d}`, seconds), &r)
	c.until = r.VisibleAfter
	return err
}

func (c *restClient) Return(queue, receipt string, delay int) error {
	return c.Extend(queue, receipt, delay)
}

func (c *restClient) Delete(queue, receipt string) error {
	return c.do(http.MethodDelete, c.message(queue, receipt), "", nil)
}

// message is the path of a delivered message.
func (c *restClient) message(queue, receipt string) string {
	path := "/queues/" + url.PathEscape(queue) + "/messages/" + url.PathEscape(receipt)
	if c.group != "" {
		path += "?consumerGroupId=" + url.QueryEscape(c.group)
	}
	return path
}

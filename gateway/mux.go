package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/proto"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/gateway/wire"
	"github.com/queued-mq/queued/queue"
)

// newMux is the mux of the generated handlers, taught OCI's ways. Its handlers
// run over an *exchange and nothing else.
func newMux() *runtime.ServeMux {
	return runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, codec{}),
		runtime.WithErrorHandler(func(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, err error) {
			x := w.(*exchange)
			x.served = isServed(err)
			x.refuse(err)
		}),
		runtime.WithRoutingErrorHandler(func(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, status int) {
			w.(*exchange).refuse(fmt.Errorf("the mux has no handler (%d) for %s %s", status, r.Method, r.Pattern))
		}),
		runtime.WithForwardResponseOption(setHeaders),
		runtime.WithForwardResponseRewriter(spell),
		runtime.WithDisablePathLengthFallback(),
		runtime.WithDisableHTTPMethodOverride(),
	)
}

// codec is the marshaler of the mux.
type codec struct{}

var _ runtime.Marshaler = codec{}

// noBody is an answer whose body is empty.
type noBody struct{}

func (codec) ContentType(any) string { return "application/json" }

// Marshal takes the messages of the API and noBody.
func (codec) Marshal(v any) ([]byte, error) {
	switch v := v.(type) {
	case noBody:
		return nil, nil
	case proto.Message:
		return appendMessage(nil, v.ProtoReflect()), nil
	}
	return nil, fmt.Errorf("marshal a %T", v)
}

// Unmarshal takes a message, or a pointer to a field that holds one.
func (codec) Unmarshal(body []byte, v any) error {
	if m, ok := v.(proto.Message); ok {
		return unmarshal(body, m)
	}
	if field := reflect.ValueOf(v); field.Kind() == reflect.Pointer && field.Elem().Kind() == reflect.Pointer {
		made := reflect.New(field.Elem().Type().Elem())
		if m, ok := made.Interface().(proto.Message); ok {
			field.Elem().Set(made)
			return unmarshal(body, m)
		}
	}
	return fmt.Errorf("unmarshal into a %T", v)
}

func (c codec) NewDecoder(r io.Reader) runtime.Decoder {
	return runtime.DecoderFunc(func(v any) error {
		body, err := io.ReadAll(r) // bounded: it is in memory already, see body.go
		if err != nil {
			return fmt.Errorf("read the body: %w", err)
		}
		return c.Unmarshal(body, v)
	})
}

func (c codec) NewEncoder(w io.Writer) runtime.Encoder {
	return runtime.EncoderFunc(func(v any) error {
		body, err := c.Marshal(v)
		if err == nil {
			_, err = w.Write(body)
		}
		return err
	})
}

// setHeaders turns fields of an answer that REST sends as headers into headers.
func setHeaders(_ context.Context, w http.ResponseWriter, m proto.Message) error {
	x := w.(*exchange)
	x.served = true
	if m, ok := m.(interface{ GetWorkRequestId() string }); ok {
		x.set("Opc-Work-Request-Id", m.GetWorkRequestId())
	}
	if m, ok := m.(interface{ GetNextPage() string }); ok {
		x.set("Opc-Next-Page", m.GetNextPage())
	}
	if m, ok := m.(interface{ GetEtag() string }); ok {
		x.set("Etag", m.GetEtag())
	}
	if m, ok := m.(interface{ GetRetryAfter() int32 }); ok && m.GetRetryAfter() > 0 {
		x.set("Retry-After", fmt.Sprint(m.GetRetryAfter()))
	}
	x.status = x.route.status
	return nil
}

func (x *exchange) set(header, value string) {
	if value != "" {
		x.header[header] = []string{value}
	}
}

// spell makes the last changes that only REST knows: an answer all of whose
// fields are headers has no body, and octets that are no text are marked as
// base64 (contract, "Binary").
func spell(_ context.Context, m proto.Message) (any, error) {
	if get, ok := m.(interface{ GetGetMessages() *queuev1.GetMessages }); ok {
		for _, msg := range get.GetGetMessages().GetMessages() {
			if msg.GetContentEncoding() == "" && wire.IsText(msg.GetContent()) {
				continue
			}
			msg.ContentEncoding = proto.String(base64Encoding)
			if msg.Metadata == nil {
				msg.Metadata = &queuev1.MessageMetadata{}
			}
			if msg.Metadata.CustomProperties == nil {
				msg.Metadata.CustomProperties = map[string]string{}
			}
			msg.Metadata.CustomProperties[reservedProperty] = base64Encoding
		}
	}
	if _, ok := m.(interface{ XXX_ResponseBody() any }); !ok {
		return noBody{}, nil
	}
	return m, nil
}

// reservedProperty is where readers who know only OCI's fields see that a body
// is spelled in base64.
const reservedProperty = "content-encoding"

// refuse makes err the answer. One that no caller can act on is kept for the
// log and shown as an internal error.
func (x *exchange) refuse(err error) {
	e := callerError(err)
	if e == nil {
		x.fault = err
		e = &queue.Error{Code: queue.InternalServerError, Message: "internal error"}
	}
	x.fail(e)
}

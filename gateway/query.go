package gateway

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"

	"github.com/queued-mq/queued/queue"
)

// mostQuery is the greatest number of documented parameters of one operation.
const mostQuery = 8

// param is one query parameter of a request.
type param struct {
	given bool
	value string
}

// parseQuery reads the documented parameters out of the raw query into values,
// in the order of names. Others are ignored.
//
// Errors: InvalidParameter for broken percent-encoding anywhere, for a
// documented parameter that is given twice or is not UTF-8.
func parseQuery(raw string, names []string, values *[mostQuery]param) error {
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		name, value, _ := strings.Cut(pair, "=")
		name, ok := unescapeQuery(name)
		if ok {
			value, ok = unescapeQuery(value)
		}
		if !ok {
			return queue.Errorf(queue.InvalidParameter, "the query is not percent-encoded rightly at %q", clip(pair))
		}
		i := slices.Index(names, name)
		if i < 0 {
			continue
		}
		if values[i].given {
			return queue.Errorf(queue.InvalidParameter, "%s is given more than once", name)
		}
		if !utf8.ValidString(value) {
			return queue.Errorf(queue.InvalidParameter, "%s is not UTF-8", name)
		}
		values[i] = param{given: true, value: value}
	}
	return nil
}

// unescapeQuery is url.QueryUnescape that says no more than that it failed.
func unescapeQuery(s string) (string, bool) {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s, true
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '+':
			b = append(b, ' ')
		case '%':
			if i+2 >= len(s) {
				return "", false
			}
			n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
			if err != nil {
				return "", false
			}
			b = append(b, byte(n))
			i += 2
		default:
			b = append(b, c)
		}
	}
	return string(b), true
}

// int32Param is the value of a parameter that must be a whole number.
func int32Param(name, value string) (int32, error) {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || value[0] == '+' {
		return 0, queue.Errorf(queue.InvalidParameter, "%s must be a whole number of at most 32 bits", name)
	}
	return int32(n), nil
}

// queryParser sets fields of a request from what the front has put into the
// request's form: the documented query parameters and headers, under the JSON
// names of their fields. Nothing else gets there, so a client cannot set a
// field by a parameter of its own making.
type queryParser struct{}

func (queryParser) Parse(msg proto.Message, values url.Values, _ *utilities.DoubleArray) error {
	m := msg.ProtoReflect()
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		name := fd.JSONName()
		vs := values[name]
		if len(vs) == 0 {
			continue
		}
		switch fd.Kind() {
		case protoreflect.StringKind:
			m.Set(fd, protoreflect.ValueOfString(vs[0]))
		case protoreflect.Int32Kind:
			n, err := int32Param(name, vs[0])
			if err != nil {
				return err
			}
			m.Set(fd, protoreflect.ValueOfInt32(n))
		case protoreflect.EnumKind:
			n, err := enumNumber(name, fd.Enum(), vs[0])
			if err != nil {
				return err
			}
			m.Set(fd, protoreflect.ValueOfEnum(n))
		}
	}
	return nil
}

// enumNumber reads an OCI enum text in any case.
func enumNumber(field string, enum protoreflect.EnumDescriptor, text string) (protoreflect.EnumNumber, error) {
	all := enum.Values()
	var words []string
	for i := range all.Len() {
		v := all.Get(i)
		if v.Number() == 0 { // UNSPECIFIED is no word of the API
			continue
		}
		if strings.EqualFold(string(v.Name()), text) {
			return v.Number(), nil
		}
		words = append(words, string(v.Name()))
	}
	return 0, queue.Errorf(queue.InvalidParameter, "%s must be one of %s", field, strings.Join(words, ", "))
}

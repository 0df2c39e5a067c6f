package gateway

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
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

// wordParams are the query parameters that are words of an enum. States of
// queues and of consumer groups have the same words.
var wordParams = map[string]protoreflect.EnumDescriptor{
	"lifecycleState": queuev1.Queue_LifecycleState(0).Descriptor(),
	"sortOrder":      queuev1.SortOrder(0).Descriptor(),
	"sortBy":         queuev1.SortBy(0).Descriptor(),
}

// numberParams are the query parameters that are whole numbers.
var numberParams = []string{"limit", "visibilityInSeconds", "timeoutInSeconds"}

// form is what the generated handlers see: the documented query parameters and
// headers of x, each once, under the JSON name of its field and spelled as the
// mux's own parser reads it. Nothing else gets there, so a client cannot set a
// field by a parameter of its own making.
//
// Errors: InvalidParameter, naming the parameter.
func (x *exchange) form() (url.Values, error) {
	form := url.Values{}
	for i, name := range x.route.query {
		if !x.query[i].given {
			continue
		}
		value := x.query[i].value
		if enum := wordParams[name]; enum != nil {
			n, err := enumNumber(name, enum, value)
			if err != nil {
				return nil, err
			}
			value = string(enum.Values().ByNumber(n).Name())
		} else if slices.Contains(numberParams, name) {
			if _, err := int32Param(name, value); err != nil {
				return nil, err
			}
		}
		form[name] = []string{value}
	}
	if x.match != nil {
		form["ifMatch"] = []string{*x.match}
	}
	if x.token != nil {
		form["retryToken"] = []string{*x.token}
	}
	return form, nil
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

package filter_test

import (
	"fmt"

	"github.com/queued-mq/queued/filter"
	"github.com/queued-mq/queued/queue"
)

func Example() {
	f, err := filter.Parse(`:type = "order" AND (:amount >= 100 OR :priority) AND NOT :test`)
	if err != nil {
		panic(err)
	}
	fmt.Println(f.Match([]queue.Property{{Name: "amount", Value: "99.5"}, {Name: "type", Value: "order"}}))
	fmt.Println(f.Match([]queue.Property{{Name: "amount", Value: "250"}, {Name: "type", Value: "order"}}))

	_, err = filter.Parse(`:type = order`)
	fmt.Println(err)
	// Output:
	// false
	// true
	// InvalidParameter: filter: position 9: expected a value after "=", a number or text in quotes, found "order"
}

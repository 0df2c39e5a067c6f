package service

import (
	"fmt"
	"strings"

	"github.com/queued-mq/queued/queue"
)

// etag is the token of one version of one thing: opaque, different for every
// version. It needs no id in it, since it is only ever compared with the etag
// of the thing that the same request names.
func etag(version uint64) string { return fmt.Sprintf("%016x", version) }

// checkMatch compares an if-match header with the version there is: absent and
// "*" match any. As in HTTP it may list several etags, quoted or not; a weak
// mark is passed over.
//
// Errors: NoEtagMatch.
func checkMatch(ifMatch *string, version uint64) error {
	if ifMatch == nil {
		return nil
	}
	now := etag(version)
	for one := range strings.SplitSeq(*ifMatch, ",") {
		one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
		if one == "*" || strings.Trim(one, `"`) == now {
			return nil
		}
	}
	return queue.Errorf(queue.NoEtagMatch, "if-match names another version than the one there is; read the resource again")
}

package service

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"

	"github.com/queued-mq/queued/queue"
)

// pages makes and reads the page tokens of one list. A token says where the
// list goes on, as the key of the last entry shown, and is sealed together
// with all that selects and orders the list: one that is made up, damaged, cut
// off or taken from another list is refused.
//
// The seal is a checksum without a secret. A token grants nothing: it is used
// only to skip what comes before it in a list that the caller is allowed to
// read anyhow; and so it outlives a restart and works on every face.
type pages struct{ list []byte }

const (
	pageVersion  = 1
	pageSeal     = 8
	maxPageToken = 4096 // characters; more than any of ours
	defaultPage  = 100  // entries
)

// pagesOf are the pages of the list of that name with these filters. Optional
// filters are taken as given, so absent and empty differ.
func pagesOf(list string, filters ...*string) pages {
	b := []byte{pageVersion}
	b = appendPart(b, &list)
	for _, f := range filters {
		b = appendPart(b, f)
	}
	return pages{list: b}
}

// appendPart adds one part so that no two sequences of parts give the same
// octets.
func appendPart(b []byte, part *string) []byte {
	if part == nil {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(*part))+1)
	return append(b, *part...)
}

// pageLimit is how many entries a page may have, defaultPage if none is given.
//
// Errors: InvalidParameter.
func (s *Service) pageLimit(v *int32) (int, error) {
	if v == nil {
		return min(defaultPage, int(s.limits.ListPage)), nil
	}
	return int(*v), s.limits.CheckPage(int(*v))
}

func (p pages) seal(position []byte) []byte {
	sum := sha256.Sum256(append(slices.Clip(p.list), position...))
	return sum[:pageSeal]
}

// token is the page that begins behind position, which must not be empty. The
// position comes first: it is text, and what begins with text never begins with
// a minus, which command lines would take for an option.
func (p pages) token(position string) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte(position), p.seal([]byte(position))...))
}

// position is where the page begins: behind this key, or "" at the start of
// the list if page is absent.
//
// Errors: InvalidParameter for anything but a token of just this list.
func (p pages) position(page *string) (string, error) {
	if page == nil {
		return "", nil
	}
	if len(*page) <= maxPageToken {
		b, err := base64.RawURLEncoding.DecodeString(*page)
		if position := string(b[:max(len(b)-pageSeal, 0)]); err == nil && position != "" && p.token(position) == *page {
			return position, nil
		}
	}
	return "", errPage
}

var errPage = queue.Errorf(queue.InvalidParameter, "page is not a page token of this list")

package store

import (
	"fmt"
)

// The formats there have been:
//
//	1  queues without consumer groups
//	2  rows of kinds b, h and u; the flag of an m row and the bit of an l and a
//	   v row that say that the body is in a b row; the octets of such bodies in
//	   the row of a lane
//
// A store of an older format is one of the newest in which some rows do not
// occur. So an upgrade writes the number alone, in one synced commit: what is
// written from then on an older version must not read.
const firstFormat = 1

// upgrade makes the store one of the newest format. It is whole or not at all.
func (s *Store) upgrade(from uint64) error {
	if from == Format {
		return nil
	}
	if err := s.db.Set(storeKey("format"), u64(nil, Format), s.write); err != nil {
		return fmt.Errorf("upgrade store: %w", err)
	}
	s.format = Format
	s.log.Info("store upgraded; older versions of queued can no longer open it", "folder", s.dir, "from", from, "to", Format)
	return nil
}

// Package store is the Pebble engine below the broker: every key, every value,
// the ChangeSet that is the only way to write, and the reads that find a row
// from a remembered place. It knows bytes, not rules: what may follow what is
// the broker's business.
//
// The one idea to hold: the rows are the state. A ChangeSet lists effects with
// absolute new rows; Apply turns it into one Pebble batch without looking at a
// clock, a setting or the database; Commit syncs that batch once. So a crash
// leaves either all of a ChangeSet or nothing of it, and opening a store reads
// what is there and repairs nothing.
//
// keys.go draws the keys, record.go the values, changeset.go the effects.
// folder.go and damage.go look at a folder before it is opened; check.go
// recounts a store that is open. backup.go copies one, restore.go begins
// another from the copy, and readonly.go opens one without changing it.
package store

// Package field holds the field cases that take minutes. They are not part of
// the tests; each prints what it saw and ends by itself:
//
//	make field                        FC-11, five minutes
//	make field CASE=Head MINUTES=30   FC-13, with a drain behind it
//	make soak MINUTES=120             a backlog that swings between 0 and a million
package field

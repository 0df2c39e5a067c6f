// Package field holds the field cases that take minutes. They are not part of
// the tests; each prints what it saw and ends by itself:
//
//	make field                        FC-11, five minutes
//	make field CASE=Head MINUTES=30   FC-13, with a drain behind it
//	make soak MINUTES=120             a backlog that swings between 0 and a million
//	make backlog                      10,000,000 waiting: receive, memory, kill -9 and start
//	make queue PER_MINUTE=300000      5,000,000 through a queue in which 500,000 wait
package field

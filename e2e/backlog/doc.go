// Package backlog has what is needed to look at a server with very many
// messages waiting: Fill publishes them, Start measures a start, Resident and
// Read say what the process takes. Its test starts the server with 1,000,000
// waiting; `make backlog` is the same with 10,000,000 and with figures.
package backlog

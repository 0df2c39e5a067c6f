// Package e2e drives the real binary from outside. It is a module of its own,
// so that those who use the server never download what only its tests need.
//
// The folder scripts holds command lines and what they must do, each file a
// story (testscript); package server starts, kills and restarts servers for
// tests in Go.
package e2e

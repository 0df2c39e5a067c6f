//go:build !unix

package main

func openFiles() (int64, bool) { return 0, false }

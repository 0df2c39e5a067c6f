package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
)

// serve runs the server with valid settings until ctx ends, then closes it in
// order and returns nil. The line that says where it listens goes to out.
func serve(ctx context.Context, cfg Config, log *slog.Logger, out io.Writer) error {
	return errors.New("serve is not wired yet")
}

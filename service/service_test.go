package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/queue"
)

// Each outcome is observed once under its code, and only faults are logged,
// with the request id and all they say.
func TestDone(t *testing.T) {
	var seen []string
	var log bytes.Buffer
	s := New(nil, Options{
		Observe: func(face, operation string, code queue.Code, seconds float64) {
			seen = append(seen, fmt.Sprint(face, " ", operation, " ", code))
			if seconds < 0 || seconds > 60 {
				t.Errorf("took %v seconds", seconds)
			}
		},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	ctx := WithCaller(t.Context(), &Caller{Face: FaceREST, RequestID: "req-7"})
	left, leave := context.WithCancel(ctx)
	leave()

	finish := func(ctx context.Context, err error) { s.done(ctx, "GetQueue", time.Now(), &err) }
	finish(ctx, nil)
	finish(ctx, queue.Errorf(queue.NotAuthorizedOrNotFound, "no"))
	finish(left, fmt.Errorf("receive: %w", context.Canceled))
	if log.Len() > 0 {
		t.Errorf("logged %s", &log)
	}
	finish(ctx, fmt.Errorf("read: %w", errors.New("disk on fire")))
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "disk on fire") || !strings.Contains(log.String(), "req-7") {
		t.Errorf("%d lines: %s", n, &log)
	}
	finish(ctx, context.Canceled) // of something else: the caller is still there
	finish(context.Background(), nil)

	got := strings.Join(seen, "\n")
	const wanted = `rest GetQueue 
rest GetQueue NotAuthorizedOrNotFound
rest GetQueue Canceled
rest GetQueue InternalServerError
rest GetQueue InternalServerError
 GetQueue `
	if got != wanted {
		t.Errorf("observed\n%s", got)
	}
}

func TestFailure(t *testing.T) {
	s := formOnly()
	client, server := 0, 0
	for _, c := range []struct {
		err  error
		code int
		text string
	}{
		{queue.Errorf(queue.NotAuthorizedOrNotFound, "stale"), 404, "stale"},
		{queue.Errorf(queue.InvalidParameter, "bad"), 400, "bad"},
		{queue.Errorf(queue.MissingParameter, "none"), 400, "none"},
		{errors.New("disk on fire"), 500, "internal error"},
	} {
		f := s.failure(t.Context(), "UpdateMessages", c.err, &client, &server)
		if f.ErrorCode != c.code || f.ErrorMessage != c.text || !f.Failed() {
			t.Errorf("%v: %+v", c.err, f)
		}
	}
	if client != 3 || server != 1 {
		t.Errorf("%d client and %d server failures", client, server)
	}
}

func TestUpdateEntryForm(t *testing.T) {
	for text, e := range map[string]UpdateMessagesEntry{
		"receipt is missing":                                  {VisibilityInSeconds: p(int32(1))},
		"visibilityInSeconds is missing":                      {Receipt: "x"},
		"visibilityInSeconds is -1; it must be 0 to 43200":    {Receipt: "x", VisibilityInSeconds: p(int32(-1))},
		"visibilityInSeconds is 43201; it must be 0 to 43200": {Receipt: "x", VisibilityInSeconds: p(int32(43201))},
	} {
		_, err := e.read()
		if queue.MessageOf(err) != text {
			t.Errorf("%v, want %s", err, text)
		}
	}
	u, err := (&UpdateMessagesEntry{Receipt: "x", VisibilityInSeconds: p(int32(43200))}).read()
	if err != nil || u.Receipt != "x" || u.Visibility != 12*time.Hour {
		t.Errorf("%+v, %v", u, err)
	}
}

package main

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// A backup of a running server is made by two: the server makes a checkpoint
// in its data directory and keeps it for as long as the request for it lasts;
// `queued backup`, which asked, copies it meanwhile. When the copy is made, or
// the command has died, the connection ends and the checkpoint goes. Who asks
// must know a secret that is new with every start and stands in a file that
// only the owner of the data directory can read. So a request tells no path to
// the server, and no stranger can fill its disk.

// checkpointName is the folder of the checkpoint in the data directory.
const checkpointName = "checkpoint"

// pinWait is how long a request waits for the checkpoint of another to go: one
// that has just ended may not have been noticed yet.
const pinWait = time.Second

func (s *server) checkpointDir() string { return filepath.Join(s.dir, checkpointName) }

func (s *server) secretFile() string { return secretFile(s.dir) }

func secretFile(dir string) string { return filepath.Join(dir, "admin-secret") }

// writeSecret makes the secret of this run.
func (s *server) writeSecret() error {
	if err := os.Remove(s.secretFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("write secret: %w", err)
	}
	f, err := os.OpenFile(s.secretFile(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write secret: %w", err)
	}
	_, err = fmt.Fprintln(f, s.secret)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write secret: %w", err)
	}
	return nil
}

func newSecret() string { return rand.Text() }

// checkpoint makes a checkpoint, tells its name, and removes it when the
// request ends.
func (s *server) checkpoint(w http.ResponseWriter, r *http.Request) {
	given := []byte(r.Header.Get("Authorization"))
	switch {
	case r.Header["Origin"] != nil || r.Header["Sec-Fetch-Site"] != nil:
		answer(w, http.StatusForbidden, `{"code":"NotAuthorized","message":"a browser makes no backups"}`)
		return
	case subtle.ConstantTimeCompare(given, []byte("Bearer "+s.secret)) != 1:
		answer(w, http.StatusUnauthorized, `{"code":"NotAuthenticated","message":"only queued backup may ask for this, with the secret in the data directory"}`)
		return
	case !s.ready.Load():
		answer(w, http.StatusServiceUnavailable, `{"code":"ServiceUnavailable","message":"the server is not ready"}`)
		return
	}
	select {
	case s.pinned <- struct{}{}:
	case <-time.After(pinWait):
		answer(w, http.StatusConflict, `{"code":"Conflict","message":"another backup is being made; wait for its end"}`)
		return
	}
	defer func() { <-s.pinned }()
	defer func() {
		if err := os.RemoveAll(s.checkpointDir()); err != nil {
			s.log.Error("remove checkpoint", "error", err)
		}
	}()
	if err := s.store.Checkpoint(s.checkpointDir()); err != nil {
		s.log.Error("backup", "error", err)
		answer(w, http.StatusInternalServerError, `{"code":"InternalServerError","message":"no checkpoint could be made; the log of the server says why"}`)
		return
	}
	s.log.Info("backup: checkpoint made")
	answer(w, http.StatusOK, `{"checkpoint":"`+checkpointName+`"}`+"\n")
	if err := http.NewResponseController(w).Flush(); err != nil {
		return
	}
	<-r.Context().Done()
	s.log.Info("backup: checkpoint removed")
}

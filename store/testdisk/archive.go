package testdisk

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pack is the folder dir of a disk, without folders in it, as a tar.gz.
func (d *Disk) Pack(dir string) ([]byte, error) {
	names, err := d.List(dir)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	w := tar.NewWriter(zip)
	for _, name := range names {
		if name == "LOCK" {
			continue
		}
		f, err := d.Open(d.PathJoin(dir, name))
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o600, ModTime: time.Unix(0, 0)}); err != nil {
			return nil, err
		}
		if _, err := w.Write(text); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Unpack makes the folder dir on the disk from the archive in a file.
func (d *Disk) Unpack(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	if err := d.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for r := tar.NewReader(zip); ; {
		head, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		to, err := d.Create(d.PathJoin(dir, head.Name), vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		_, err = io.Copy(to, r)
		if err := errors.Join(err, to.Sync(), to.Close()); err != nil {
			return err
		}
	}
}

//go:build differential

package stompdiff

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// program is where Debian puts the script that starts RabbitMQ in the
// foreground, as the user who calls it.
const program = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// startRabbitMQ starts a RabbitMQ with its STOMP plugin, which listens on
// 127.0.0.1 alone, on ports of its own, knows nobody but its guest and keeps
// everything in a folder that goes with the test. It returns the address of
// its STOMP.
func startRabbitMQ(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(program); err != nil {
		t.Fatal("there is no RabbitMQ; install the Debian package rabbitmq-server (its service need not run)")
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	stomp, epmd := freeAddr(t), freePort(t)
	config := write("rabbitmq.conf", fmt.Sprintf(`listeners.tcp.1 = %s
stomp.listeners.tcp.1 = %s
stomp.default_user = guest
stomp.default_pass = guest
log.console = true
log.console.level = warning
log.file = false
`, freeAddr(t), stomp))
	env := []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8",
		"ERL_EPMD_ADDRESS=127.0.0.1", "ERL_EPMD_PORT=" + epmd,
		"RABBITMQ_NODENAME=queued-differential@localhost",
		"RABBITMQ_CONF_ENV_FILE=" + write("rabbitmq-env.conf", ""),
		"RABBITMQ_CONFIG_FILE=" + config,
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + write("advanced.config", "[]."),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + write("enabled_plugins", "[rabbitmq_stomp]."),
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(dir, "mnesia"),
		"RABBITMQ_LOG_BASE=" + filepath.Join(dir, "log"),
		"RABBITMQ_GENERATED_CONFIG_DIR=" + filepath.Join(dir, "generated"),
		"RABBITMQ_FEATURE_FLAGS_FILE=" + filepath.Join(dir, "feature_flags"),
		"RABBITMQ_PID_FILE=" + filepath.Join(dir, "pid"),
		"RABBITMQ_DIST_PORT=" + freePort(t),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
	}
	// The port mapper that Erlang needs is started here, since one that Erlang
	// starts outlives it.
	start(t, env, "epmd", "-port", epmd, "-address", "127.0.0.1")
	said, ended := start(t, env, program)
	for deadline := time.Now().Add(2 * time.Minute); ; {
		c, err := net.Dial("tcp", stomp)
		if err == nil {
			c.Close()
			return stomp
		}
		select {
		case <-ended:
			t.Fatalf("RabbitMQ ended:\n%s", said)
		case <-time.After(100 * time.Millisecond): // it tells nobody when it is ready
		}
		if time.Now().After(deadline) {
			t.Fatalf("RabbitMQ was not ready after two minutes: %v", err)
		}
	}
}

// start starts a program in a process group of its own, which is ended with
// the test.
func start(t *testing.T, env []string, name string, args ...string) (said *bytes.Buffer, ended chan struct{}) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Dir = env, "/"
	said, ended = &bytes.Buffer{}, make(chan struct{})
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(ended)
		_ = cmd.Wait() // a signal ends it
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // it may have ended
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left of it
		<-ended
	})
	return said, ended
}

// freeAddr is an address of loopback on which nobody listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func freePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(freeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

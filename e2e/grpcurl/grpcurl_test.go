// Package grpcurl drives the gRPC face with tools that are not ours: grpcurl,
// which knows only what reflection tells it, and grpc-health-probe.
package grpcurl

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// tool is the path of a program that tools/go.mod pins, built if it must be.
func tool(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "tool", "-n", "-modfile=../../tools/go.mod", name).Output()
	if err != nil {
		t.Fatalf("build %s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}

// run runs a program and is what it wrote, and its exit code.
func run(t *testing.T, path string, args ...string) (out, errs string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// TestGRPCurl: who has nothing but the address finds the services, their
// methods and their messages, and can use them.
func TestGRPCurl(t *testing.T) {
	t.Parallel()
	grpcurl := tool(t, "grpcurl")
	s := server.Start(t, "--create-queue", "orders")
	// must wants success; the address is put behind the options.
	must := func(options []string, rest ...string) string {
		t.Helper()
		args := slices.Concat([]string{"-plaintext"}, options, []string{s.GRPC}, rest)
		out, errs, code := run(t, grpcurl, args...)
		if code != 0 {
			t.Fatalf("grpcurl %q: exit code %d\n%s%s", args, code, out, errs)
		}
		return out
	}

	services := strings.Fields(must(nil, "list"))
	for _, want := range []string{"queue.v1.QueueAdminService", "queue.v1.QueueService", "grpc.health.v1.Health"} {
		if !slices.Contains(services, want) {
			t.Errorf("list: no %s in %q", want, services)
		}
	}
	methods := strings.Fields(must(nil, "list", "queue.v1.QueueService"))
	if len(methods) != 10 || !slices.Contains(methods, "queue.v1.QueueService.ConsumeMessages") {
		t.Errorf("list queue.v1.QueueService: %q", methods)
	}
	if text := must(nil, "describe", "queue.v1.QueueService.PublishMessages"); !strings.Contains(text,
		"rpc PublishMessages ( stream .queue.v1.PublishMessagesRequest ) returns ( stream .queue.v1.PublishMessagesResponse );") {
		t.Errorf("describe PublishMessages: %s", text)
	}
	if text := must(nil, "describe", "queue.v1.GetMessage"); !strings.Contains(text, "bytes content = 2") {
		t.Errorf("describe GetMessage: %s", text)
	}

	octets := base64.StdEncoding.EncodeToString([]byte("caf\xe9 \x00"))
	must([]string{"-d", `{"queueId":"orders","putMessagesDetails":{"messages":[{"content":"` + octets + `","metadata":{"channelId":"c","customProperties":{"k":"v"}}}]}}`},
		"queue.v1.QueueService/PutMessages")
	var got struct {
		GetMessages struct {
			Messages []struct {
				Content, Receipt string
				DeliveryCount    int
				Metadata         struct {
					ChannelID        string
					CustomProperties map[string]string
				}
			}
		}
	}
	text := must([]string{"-d", `{"queueId":"orders","visibilityInSeconds":60}`}, "queue.v1.QueueService/GetMessages")
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.GetMessages.Messages) != 1 {
		t.Fatalf("GetMessages: %s", text)
	}
	m := got.GetMessages.Messages[0]
	if m.Content != octets || m.DeliveryCount != 1 || m.Metadata.ChannelID != "c" || m.Metadata.CustomProperties["k"] != "v" {
		t.Errorf("GetMessages: %s", text)
	}
	// One batch on a stream, and its answer; then the end of the stream.
	text = must([]string{"-d", `{"number":7,"queueId":"orders","messages":[{"content":"` + octets + `"}]}`}, "queue.v1.QueueService/PublishMessages")
	if !strings.Contains(text, `"number": "7"`) || strings.Contains(text, "error") {
		t.Errorf("PublishMessages: %s", text)
	}
	must([]string{"-d", `{"queueId":"orders","messageReceipt":"` + m.Receipt + `"}`}, "queue.v1.QueueService/DeleteMessage")
	if n := rest.Dial(t, s.REST).Stats(t, "orders").Queue; n.Visible != 1 || n.InFlight != 0 {
		t.Errorf("left are %+v", n)
	}

	// An error has its name, which grpcurl reads out of the details.
	out, errs, code := run(t, grpcurl, "-plaintext", "-d", `{"queueId":"nowhere"}`, s.GRPC, "queue.v1.QueueService/GetMessages")
	if code == 0 || !strings.Contains(errs, "NotFound") || !strings.Contains(errs, "NotAuthorizedOrNotFound") {
		t.Errorf("an unknown queue: exit code %d\n%s%s", code, out, errs)
	}
}

// TestHealthProbe: the health of the server and of each service is there to
// ask, and one that is not served is unknown.
func TestHealthProbe(t *testing.T) {
	t.Parallel()
	probe := tool(t, "grpc-health-probe")
	s := server.Start(t)
	for service, want := range map[string]int{
		"": 0, "queue.v1.QueueService": 0, "queue.v1.QueueAdminService": 0,
		"queue.v1.Nothing": 3, // the probe's code for an RPC that failed
	} {
		if out, errs, code := run(t, probe, "-addr", s.GRPC, "-service", service); code != want {
			t.Errorf("the health of %q: exit code %d, want %d\n%s%s", service, code, want, out, errs)
		}
	}
	s.Stop()
	if _, errs, code := run(t, probe, "-addr", s.GRPC, "-connect-timeout", "500ms"); code == 0 {
		t.Errorf("a stopped server is healthy: %s", errs)
	}
}

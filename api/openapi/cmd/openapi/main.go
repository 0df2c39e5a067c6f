// Command openapi makes the OpenAPI document of the REST API from a descriptor
// set with comments (`buf build`) and from the HTTP rules of the gateway.
//
// It is our own because the REST API is not the protobuf spelling of the
// services: int64 is a number, content is text, headers are fields, answers
// have OCI's status codes. The one idea to hold: a comment in the proto files
// is both prose and schema, by a few fixed phrases (see phrases.go). What no
// comment can say stands in tables: forms of texts in forms.go, errors in
// failures.go, what follows on what in links.go, examples in examples.json.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

func main() {
	image := flag.String("image", "", "the descriptor set, with source info")
	rules := flag.String("rules", "", "the HTTP rules, gateway.yaml")
	out := flag.String("out", "", "where the document goes")
	flag.Parse()
	if err := run(*image, *rules, *out); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run(image, rules, out string) error {
	services, err := readServices(image)
	if err != nil {
		return err
	}
	http, err := readRules(rules)
	if err != nil {
		return err
	}
	doc, err := newDocument(services, http)
	if err != nil {
		return err
	}
	compact, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, compact, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	return os.WriteFile(out, b.Bytes(), 0o644)
}

// readServices returns the services of the package queue.v1 in the order of
// the descriptor set.
func readServices(image string) ([]protoreflect.ServiceDescriptor, error) {
	b, err := os.ReadFile(image)
	if err != nil {
		return nil, err
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(b, &set); err != nil {
		return nil, fmt.Errorf("%s: %w", image, err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", image, err)
	}
	var services []protoreflect.ServiceDescriptor
	for _, f := range set.File {
		fd, err := files.FindFileByPath(f.GetName())
		if err != nil {
			return nil, err
		}
		for i := range fd.Services().Len() {
			services = append(services, fd.Services().Get(i))
		}
	}
	return services, nil
}

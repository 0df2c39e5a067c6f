package main

import (
	"bytes"
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// rule is how one RPC is had over HTTP.
type rule struct {
	method       string // get, put, post or delete
	path         string // with {field} for path parameters
	body         string // the request field that is the body, "" for none
	responseBody string // the response field that is the body, "" for none
}

// readRules reads the HTTP rules of the gateway, by the full name of the RPC.
func readRules(file string) (map[protoreflect.FullName]rule, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var config struct {
		Type          string
		ConfigVersion int `yaml:"config_version"`
		HTTP          struct {
			Rules []struct {
				Selector               string
				Get, Put, Post, Delete string
				Body                   string
				ResponseBody           string `yaml:"response_body"`
			}
		}
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&config); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	rules := map[protoreflect.FullName]rule{}
	for _, r := range config.HTTP.Rules {
		one := rule{body: r.Body, responseBody: r.ResponseBody}
		switch {
		case r.Get != "":
			one.method, one.path = "get", r.Get
		case r.Put != "":
			one.method, one.path = "put", r.Put
		case r.Post != "":
			one.method, one.path = "post", r.Post
		case r.Delete != "":
			one.method, one.path = "delete", r.Delete
		default:
			return nil, fmt.Errorf("%s: %s has no path", file, r.Selector)
		}
		name := protoreflect.FullName(r.Selector)
		if _, ok := rules[name]; ok {
			return nil, fmt.Errorf("%s: %s has two rules", file, r.Selector)
		}
		rules[name] = one
	}
	return rules, nil
}

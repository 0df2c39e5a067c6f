// Package terraform walks the requests that Oracle's provider for Terraform
// makes for its resources oci_queue_queue and oci_queue_consumer_group and for
// their data sources, in the provider's order and with what it relies on (OCI
// reference, section 11), against the real server over plain HTTP. The provider
// itself is not run: it takes nothing but OCI's own hosts.
package terraform

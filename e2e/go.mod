module github.com/queued-mq/queued/e2e

go 1.26.0

require github.com/rogpeppe/go-internal v1.16.0

require (
	github.com/oracle/oci-go-sdk/v65 v65.130.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/tools v0.26.0 // indirect
)

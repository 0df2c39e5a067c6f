module github.com/queued-mq/queued/e2e

go 1.26.0

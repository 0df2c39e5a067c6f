# What docs/clients.md shows.
oci setup keys --passphrase anything
export OCI_CLI_KEY_FILE=~/.oci/oci_api_key.pem OCI_CLI_FINGERPRINT=00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00
export OCI_CLI_TENANCY=ocid1.tenancy.oc1..mine OCI_CLI_USER=ocid1.user.oc1..me OCI_CLI_REGION=eu-zurich-1
export OCI_CLI_PASSPHRASE=anything SUPPRESS_LABEL_WARNING=True

oci queue queue-admin queue create --display-name greetings --compartment-id mine --endpoint $QUEUED
oci queue messages put-messages --queue-id greetings --messages '[{"content":"hello"}]' --endpoint $QUEUED
oci queue messages get-messages --queue-id greetings --visibility-in-seconds 600 --endpoint $QUEUED

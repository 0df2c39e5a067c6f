"""The OCI Python SDK through everything that OCI Queue has."""

import os

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

import oci


def any_key():
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()


def connect(endpoint):
    config = {
        "tenancy": "ocid1.tenancy.oc1..mine", "user": "ocid1.user.oc1..me", "region": "eu-zurich-1",
        "fingerprint": ":".join(["00"] * 16), "key_content": any_key(),
    }
    admin = oci.queue.QueueAdminClient(config, service_endpoint=endpoint)
    messages = oci.queue.QueueClient(config, service_endpoint=endpoint)
    return admin, messages


def main():
    import sdk_channels
    import sdk_groups
    import sdk_messages
    import sdk_queues

    admin, messages = connect(os.environ["QUEUED"])
    sdk_queues.check(admin, messages)
    sdk_messages.check(admin, messages)
    sdk_channels.check(admin, messages)
    sdk_groups.check(admin, messages)


if __name__ == "__main__":
    main()

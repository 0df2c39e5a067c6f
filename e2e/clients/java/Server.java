import static java.nio.charset.StandardCharsets.US_ASCII;

import com.oracle.bmc.auth.AuthenticationDetailsProvider;
import com.oracle.bmc.auth.SimpleAuthenticationDetailsProvider;
import com.oracle.bmc.queue.QueueAdminClient;
import com.oracle.bmc.queue.QueueClient;
import com.oracle.bmc.queue.model.*;
import com.oracle.bmc.queue.requests.*;
import com.oracle.bmc.waiter.FixedTimeDelayStrategy;
import com.oracle.bmc.waiter.MaxTimeTerminationStrategy;
import java.io.ByteArrayInputStream;
import java.security.GeneralSecurityException;
import java.security.KeyPairGenerator;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;

/** The SDK's two clients, and what all checks do with them. */
final class Server implements AutoCloseable {
    static final String COMPARTMENT = "ocid1.compartment.oc1..java";

    final String address;
    final QueueAdminClient admin;
    final QueueClient client;

    private Server(String address, QueueAdminClient admin, QueueClient client) {
        this.address = address;
        this.admin = admin;
        this.client = client;
    }

    static Server connect(String address) throws GeneralSecurityException {
        AuthenticationDetailsProvider anybody = anybody();
        QueueAdminClient admin = QueueAdminClient.builder().endpoint(address).build(anybody);
        QueueClient client = QueueClient.builder().endpoint(address).build(anybody);
        return new Server(address, admin, client);
    }

    /** Signs with a key made just now, which a server without users takes. */
    private static AuthenticationDetailsProvider anybody() throws GeneralSecurityException {
        KeyPairGenerator rsa = KeyPairGenerator.getInstance("RSA");
        rsa.initialize(2048);
        byte[] key = rsa.generateKeyPair().getPrivate().getEncoded();
        String pem = "-----BEGIN PRIVATE KEY-----\n" + Base64.getMimeEncoder().encodeToString(key) + "\n-----END PRIVATE KEY-----\n";
        return SimpleAuthenticationDetailsProvider.builder()
                .tenantId("tenancy").userId("user").fingerprint("fingerprint")
                .privateKeySupplier(() -> new ByteArrayInputStream(pem.getBytes(US_ASCII)))
                .build();
    }

    @Override
    public void close() {
        admin.close();
        client.close();
    }

    WorkRequest workRequest(String id) {
        return admin.getWorkRequest(GetWorkRequestRequest.builder().workRequestId(id).build()).getWorkRequest();
    }

    /** Follows a work request to its end with the SDK's waiter, and gives its queue. */
    String finished(String id, OperationType operation, ActionType action) throws Exception {
        GetWorkRequestRequest request = GetWorkRequestRequest.builder().workRequestId(id).build();
        // The waiter's own pace is for work that takes minutes.
        WorkRequest w = admin.getWaiters()
                .forWorkRequest(request, MaxTimeTerminationStrategy.ofSeconds(60), new FixedTimeDelayStrategy(100))
                .execute().getWorkRequest();
        Checks.same(List.of(w.getOperationType(), w.getStatus(), w.getPercentComplete()),
                List.of(operation, OperationStatus.Succeeded, 100f), "work request");
        Checks.same(w.getTimeFinished().before(w.getTimeAccepted()), false, "times of a work request");
        WorkRequestResource queue = w.getResources().get(0);
        Checks.same(List.of(queue.getEntityType(), queue.getActionType()), List.of("queue", action), "what a work request did");
        return queue.getIdentifier();
    }

    /** Makes a queue and gives its OCID. */
    String create(CreateQueueDetails.Builder details) throws Exception {
        CreateQueueRequest request = CreateQueueRequest.builder()
                .createQueueDetails(details.compartmentId(COMPARTMENT).build()).build();
        return finished(admin.createQueue(request).getOpcWorkRequestId(), OperationType.CreateQueue, ActionType.Created);
    }

    static CreateQueueDetails.Builder named(String name) {
        return CreateQueueDetails.builder().displayName(name);
    }

    void remove(String queueId) throws Exception {
        String id = admin.deleteQueue(DeleteQueueRequest.builder().queueId(queueId).build()).getOpcWorkRequestId();
        finished(id, OperationType.DeleteQueue, ActionType.Deleted);
    }

    /** A message without channel and properties. */
    static PutMessagesDetailsEntry text(String content) {
        return PutMessagesDetailsEntry.builder().content(content).build();
    }

    static PutMessagesDetailsEntry message(String content, MessageMetadata.Builder metadata) {
        return PutMessagesDetailsEntry.builder().content(content).metadata(metadata.build()).build();
    }

    List<PutMessage> put(String queueId, PutMessagesDetailsEntry... messages) {
        PutMessagesDetails details = PutMessagesDetails.builder().messages(Arrays.asList(messages)).build();
        return client.putMessages(PutMessagesRequest.builder().queueId(queueId).putMessagesDetails(details).build())
                .getPutMessages().getMessages();
    }

    /** A get that does not wait, unless told otherwise. */
    static GetMessagesRequest.Builder from(String queueId) {
        return GetMessagesRequest.builder().queueId(queueId).timeoutInSeconds(0);
    }

    List<GetMessage> get(GetMessagesRequest.Builder request) {
        return client.getMessages(request.build()).getGetMessages().getMessages();
    }

    void delete(String queueId, String receipt) {
        client.deleteMessage(DeleteMessageRequest.builder().queueId(queueId).messageReceipt(receipt).build());
    }

    UpdatedMessage update(String queueId, String receipt, int visibility) {
        UpdateMessageDetails details = UpdateMessageDetails.builder().visibilityInSeconds(visibility).build();
        return client.updateMessage(UpdateMessageRequest.builder()
                .queueId(queueId).messageReceipt(receipt).updateMessageDetails(details).build()).getUpdatedMessage();
    }

    QueueStats stats(String queueId, String channelId) {
        return client.getStats(GetStatsRequest.builder().queueId(queueId).channelId(channelId).build()).getQueueStats();
    }
}

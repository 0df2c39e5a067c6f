import static java.util.stream.Collectors.toList;

import com.oracle.bmc.queue.model.*;
import com.oracle.bmc.queue.requests.*;
import com.oracle.bmc.queue.responses.*;
import com.oracle.bmc.waiter.FixedTimeDelayStrategy;
import com.oracle.bmc.waiter.MaxTimeTerminationStrategy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.StreamSupport;

/** The life of a queue and its work requests. */
final class Queues {
    private final Server server;

    Queues(Server server) {
        this.server = server;
    }

    void run() throws Exception {
        String orders = created();
        read(orders);
        listed(orders);
        changed(orders);
        purged(orders);
        workRequests(orders);
        deleted(orders);
    }

    private static CreateQueueDetails details(String name) {
        return Server.named(name)
                .compartmentId(Server.COMPARTMENT)
                .retentionInSeconds(3600)
                .visibilityInSeconds(20)
                .timeoutInSeconds(5)
                .channelConsumptionLimit(50)
                .deadLetterQueueDeliveryCount(3)
                .customEncryptionKeyId("ocid1.key.oc1..k")
                .freeformTags(Map.of("team", "Bücher 書"))
                .definedTags(Map.of("ops", Map.of("cost", 42)))
                .build();
    }

    private String created() throws Exception {
        CreateQueueRequest.Builder request = CreateQueueRequest.builder().opcRetryToken("java-1");
        String id = server.admin.createQueue(request.createQueueDetails(details("orders")).build()).getOpcWorkRequestId();
        WorkRequest w = server.workRequest(id);
        Checks.same(List.of(w.getId(), w.getCompartmentId(), w.getResources().size()), List.of(id, Server.COMPARTMENT, 1), "work request");
        Checks.ok("GetWorkRequest", "it is there as soon as its operation was answered");
        String queue = server.finished(id, OperationType.CreateQueue, ActionType.Created);
        Checks.ok("GetWorkRequest", "the SDK's waiter sees it succeed");
        Checks.ok("CreateQueue", "with every setting");

        Checks.same(server.admin.createQueue(request.build()).getOpcWorkRequestId(), id, "the work request of a retry");
        Checks.ok("CreateQueue", "a retry token makes one queue");
        Checks.refused(400, "InvalidParameter",
                () -> server.admin.createQueue(request.createQueueDetails(details("another")).build()));
        Checks.ok("CreateQueue", "a retry token belongs to one request");
        return queue;
    }

    private GetQueueResponse queue(String id) {
        return server.admin.getQueue(GetQueueRequest.builder().queueId(id).opcRequestId("mine").build());
    }

    private GetQueueResponse waited(String id, Queue.LifecycleState state) throws Exception {
        GetQueueRequest request = GetQueueRequest.builder().queueId(id).build();
        return server.admin.getWaiters()
                .forQueue(request, state, MaxTimeTerminationStrategy.ofSeconds(60), new FixedTimeDelayStrategy(100)).execute();
    }

    private void read(String id) throws Exception {
        GetQueueResponse got = queue(id);
        Queue q = got.getQueue();
        CreateQueueDetails settings = CreateQueueDetails.builder()
                .displayName(q.getDisplayName())
                .compartmentId(q.getCompartmentId())
                .retentionInSeconds(q.getRetentionInSeconds())
                .visibilityInSeconds(q.getVisibilityInSeconds())
                .timeoutInSeconds(q.getTimeoutInSeconds())
                .channelConsumptionLimit(q.getChannelConsumptionLimit())
                .deadLetterQueueDeliveryCount(q.getDeadLetterQueueDeliveryCount())
                .customEncryptionKeyId(q.getCustomEncryptionKeyId())
                .freeformTags(q.getFreeformTags())
                .definedTags(q.getDefinedTags())
                .build();
        Checks.same(settings, details("orders"), "settings");
        Checks.same(List.of(q.getId(), q.getLifecycleState(), q.getMessagesEndpoint(), q.getTimeUpdated()),
                List.of(id, Queue.LifecycleState.Active, server.address, q.getTimeCreated()), "queue");
        Checks.ok("GetQueue", "what was sent comes back, with state, times and endpoint");
        Checks.same(got.getOpcRequestId().split("/")[0], "mine", "request id");
        Checks.ok("GetQueue", "the caller's request id is in the answer");
        Checks.same(waited(id, Queue.LifecycleState.Active).getEtag(), got.getEtag(), "etag");
        Checks.ok("GetQueue", "the SDK's waiter sees it active");
        server.client.setEndpoint(q.getMessagesEndpoint()); // as OCI's manual says
    }

    private List<String> list(ListQueuesRequest.Builder request) {
        List<QueueSummary> items = server.admin.listQueues(request.build()).getQueueCollection().getItems();
        return items.stream().map(QueueSummary::getId).collect(toList());
    }

    private static ListQueuesRequest.Builder all() {
        return ListQueuesRequest.builder().compartmentId(Server.COMPARTMENT);
    }

    private void listed(String orders) throws Exception {
        String alpha = server.create(Server.named("alpha"));
        String beta = server.create(Server.named("beta"));
        Checks.same(list(all()), List.of(beta, alpha, orders), "queues of a compartment");
        Checks.ok("ListQueues", "those of a compartment, the newest first");
        Checks.same(list(all().sortBy(ListQueuesRequest.SortBy.DisplayName)), List.of(alpha, beta, orders), "by name");
        Checks.same(list(all().sortBy(ListQueuesRequest.SortBy.TimeCreated).sortOrder(SortOrder.Asc)), List.of(orders, alpha, beta), "by time");
        Checks.ok("ListQueues", "sorted by name and by time");
        Checks.same(list(ListQueuesRequest.builder().displayName("orders")), List.of(orders), "by display name");
        Checks.same(list(ListQueuesRequest.builder().id(alpha)), List.of(alpha), "by id");
        Checks.same(list(all().lifecycleState(Queue.LifecycleState.Failed)), List.of(), "by state");
        Checks.ok("ListQueues", "filtered by name, id and state");

        ListQueuesResponse first = server.admin.listQueues(all().limit(2).build());
        ListQueuesResponse second = server.admin.listQueues(all().limit(2).page(first.getOpcNextPage()).build());
        Checks.same(first.getQueueCollection().getItems().size(), 2, "first page");
        Checks.same(second.getQueueCollection().getItems().size(), 1, "second page");
        Checks.same(second.getOpcNextPage(), null, "page behind the last");
        Checks.ok("paging", "pages of ListQueues by hand");
        List<String> ids = new ArrayList<>();
        for (QueueSummary q : server.admin.getPaginators().listQueuesRecordIterator(all().limit(1).build())) {
            ids.add(q.getId());
        }
        Checks.same(ids, List.of(beta, alpha, orders), "all pages");
        Checks.ok("paging", "the SDK's paginator walks through ListQueues");
        server.remove(alpha);
        server.remove(beta);
        Checks.same(list(all()), List.of(orders), "without what was deleted");
        Checks.ok("ListQueues", "deleted ones are gone from it");
    }

    private void changed(String id) throws Exception {
        GetQueueResponse before = queue(id);
        UpdateQueueDetails details = UpdateQueueDetails.builder()
                .displayName("orders north").visibilityInSeconds(30).customEncryptionKeyId("").build();
        UpdateQueueRequest update = UpdateQueueRequest.builder().queueId(id).updateQueueDetails(details).ifMatch(before.getEtag()).build();
        server.finished(server.admin.updateQueue(update).getOpcWorkRequestId(), OperationType.UpdateQueue, ActionType.Updated);
        GetQueueResponse after = queue(id);
        Queue q = after.getQueue();
        Checks.same(Checks.list(q.getDisplayName(), q.getVisibilityInSeconds(), q.getTimeoutInSeconds(), q.getCustomEncryptionKeyId()),
                Checks.list("orders north", 30, 5, null), "changed");
        Checks.ok("UpdateQueue", "what is named changes, the rest stays");
        Checks.same(after.getEtag().equals(before.getEtag()), false, "the etag after a change");
        Checks.refused(412, "NoEtagMatch", () -> server.admin.updateQueue(update));
        Checks.ok("UpdateQueue", "only with the etag of now");

        ChangeQueueCompartmentRequest.Builder change = ChangeQueueCompartmentRequest.builder().queueId(id)
                .changeQueueCompartmentDetails(ChangeQueueCompartmentDetails.builder().compartmentId(Server.COMPARTMENT + "2").build());
        Checks.refused(412, "NoEtagMatch", () -> server.admin.changeQueueCompartment(change.ifMatch(before.getEtag()).build()));
        String moved = server.admin.changeQueueCompartment(change.ifMatch(after.getEtag()).build()).getOpcWorkRequestId();
        server.finished(moved, OperationType.MoveQueue, ActionType.Updated);
        Checks.same(queue(id).getQueue().getCompartmentId(), Server.COMPARTMENT + "2", "compartment");
        Checks.ok("ChangeQueueCompartment", "it is in the other compartment");
    }

    /** Purges, and tells how many messages are left. */
    private long purge(String id, PurgeQueueDetails.PurgeType type, List<String> channels) throws Exception {
        PurgeQueueDetails details = PurgeQueueDetails.builder().purgeType(type).channelIds(channels).build();
        PurgeQueueRequest request = PurgeQueueRequest.builder().queueId(id).purgeQueueDetails(details).build();
        server.finished(server.admin.purgeQueue(request).getOpcWorkRequestId(), OperationType.PurgeQueue, ActionType.Updated);
        return server.stats(id, null).getQueue().getVisibleMessages();
    }

    private void purged(String id) throws Exception {
        server.put(id, Server.text("a"), Server.message("b", MessageMetadata.builder().channelId("north")));
        Checks.same(purge(id, PurgeQueueDetails.PurgeType.Dlq, null), 2L, "left by a purge of dead letters");
        Checks.same(purge(id, PurgeQueueDetails.PurgeType.Normal, List.of("north")), 1L, "left by a purge of a channel");
        Checks.same(purge(id, PurgeQueueDetails.PurgeType.Both, null), 0L, "left by a purge of all");
        Checks.ok("PurgeQueue", "dead letters, a channel, all");
    }

    private void workRequests(String queueId) {
        ListWorkRequestsRequest.Builder all = ListWorkRequestsRequest.builder().compartmentId(Server.COMPARTMENT + "2");
        List<WorkRequestSummary> items = server.admin.listWorkRequests(all.build()).getWorkRequestSummaryCollection().getItems();
        Checks.same(items.stream().anyMatch(w -> w.getOperationType() == OperationType.PurgeQueue
                && w.getResources().get(0).getIdentifier().equals(queueId)), true, "work requests " + items);
        Checks.ok("ListWorkRequests", "those of a compartment");
        String id = items.get(0).getId();
        ListWorkRequestsRequest byId = ListWorkRequestsRequest.builder().workRequestId(id).build();
        Checks.same(server.admin.listWorkRequests(byId).getWorkRequestSummaryCollection().getItems(), items.subList(0, 1), "by its id");
        Checks.ok("ListWorkRequests", "one by its id");
        Iterable<WorkRequestSummary> pages = server.admin.getPaginators().listWorkRequestsRecordIterator(all.limit(1).build());
        Checks.same(StreamSupport.stream(pages.spliterator(), false).collect(toList()), items, "all pages");
        Checks.ok("paging", "the SDK's paginator walks through ListWorkRequests");

        ListWorkRequestErrorsRequest errors = ListWorkRequestErrorsRequest.builder().workRequestId(id).build();
        Checks.same(server.admin.listWorkRequestErrors(errors).getWorkRequestErrorCollection().getItems(), List.of(), "errors");
        Checks.ok("ListWorkRequestErrors", "none of what succeeded");
        ListWorkRequestLogsRequest logs = ListWorkRequestLogsRequest.builder().workRequestId(id).build();
        WorkRequestLogEntry l = server.admin.listWorkRequestLogs(logs).getWorkRequestLogEntryCollection().getItems().get(0);
        Checks.same(l.getMessage().isEmpty() || l.getTimestamp().before(items.get(0).getTimeAccepted()), false, "log " + l);
        Checks.ok("ListWorkRequestLogs", "entries with their time");
    }

    private void deleted(String id) throws Exception {
        DeleteQueueRequest.Builder delete = DeleteQueueRequest.builder().queueId(id);
        Checks.refused(412, "NoEtagMatch", () -> server.admin.deleteQueue(delete.ifMatch("stale").build()));
        String etag = queue(id).getEtag();
        server.finished(server.admin.deleteQueue(delete.ifMatch(etag).build()).getOpcWorkRequestId(), OperationType.DeleteQueue, ActionType.Deleted);
        Checks.same(waited(id, Queue.LifecycleState.Deleted).getQueue().getLifecycleState(), Queue.LifecycleState.Deleted, "state");
        Checks.ok("DeleteQueue", "the SDK's waiter sees it deleted");
        Checks.refused(404, "NotAuthorizedOrNotFound", () -> server.put(id, Server.text("late")));
        Checks.ok("DeleteQueue", "nothing can be put any more");
    }
}

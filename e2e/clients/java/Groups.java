import com.oracle.bmc.queue.model.*;
import com.oracle.bmc.queue.requests.*;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;

/** Consumer groups, which this version of the SDK does not know, must not trouble it. */
final class Groups {
    private final Server server;

    Groups(Server server) {
        this.server = server;
    }

    void run() throws Exception {
        for (String what : List.of("Create", "Get", "Update", "Delete")) {
            Checks.none(what + "ConsumerGroup", "this version has no consumer groups");
        }
        Checks.none("ListConsumerGroups", "this version has no consumer groups");

        String queueWork = post("queues", "{\"displayName\":\"fan\",\"compartmentId\":\"" + Server.COMPARTMENT
                + "\",\"visibilityInSeconds\":600,\"capabilities\":[{\"type\":\"CONSUMER_GROUPS\",\"isPrimaryConsumerGroupEnabled\":true}]}");
        String id = server.finished(queueWork, OperationType.CreateQueue, ActionType.Created);
        String groupWork = post("consumerGroups", "{\"displayName\":\"orders\",\"queueId\":\"" + id + "\",\"filter\":\":kind = \\\"order\\\"\"}");
        Queue q = server.admin.getQueue(GetQueueRequest.builder().queueId(id).build()).getQueue();
        Checks.same(List.of(q.getId(), q.getLifecycleState()), List.of(id, Queue.LifecycleState.Active), "queue");
        List<QueueSummary> listed = server.admin.listQueues(ListQueuesRequest.builder().id(id).build()).getQueueCollection().getItems();
        Checks.same(listed.get(0).getId(), id, "queue in a list");
        Checks.ok("groups", "a queue with groups can be read and listed");
        WorkRequest w = server.workRequest(groupWork);
        Checks.same(List.of(w.getOperationType(), w.getStatus()), List.of(OperationType.UnknownEnumValue, OperationStatus.Succeeded), "work request");
        Checks.ok("groups", "the work request of a group can be read");

        server.put(id, Server.message("o", MessageMetadata.builder().customProperties(Map.of("kind", "order"))), Server.text("x"));
        List<GetMessage> got = server.get(Server.from(id));
        Checks.same(got.size(), 2, "messages of the primary group");
        server.update(id, got.get(0).getReceipt(), 1200);
        for (GetMessage m : got) {
            server.delete(id, m.getReceipt());
        }
        Checks.same(server.stats(id, null).getQueue().getSizeInBytes(), 0L, "size of the primary group");
        Checks.ok("groups", "messages are those of the primary group");
        server.remove(id);
    }

    /** Does with HTTP what the SDK cannot, and gives the work request. */
    private String post(String path, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(server.address + "/20210201/" + path))
                .header("content-type", "application/json").POST(HttpRequest.BodyPublishers.ofString(body)).build();
        HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        Checks.same(answer.statusCode(), 202, answer.body());
        return answer.headers().firstValue("opc-work-request-id").orElseThrow();
    }
}

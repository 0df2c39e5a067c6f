import com.oracle.bmc.model.BmcException;
import com.oracle.bmc.queue.model.*;
import com.oracle.bmc.queue.requests.*;
import java.util.Map;

/** What the SDK makes of the server's refusals. */
final class Refusals {
    private final Server server;

    Refusals(Server server) {
        this.server = server;
    }

    void run() throws Exception {
        String id = server.create(Server.named("refusals").visibilityInSeconds(600));
        String nobody = "ocid1.queue.oc1.local.nobody";
        BmcException e = Checks.refused(404, "NotAuthorizedOrNotFound",
                () -> server.admin.getQueue(GetQueueRequest.builder().queueId(nobody).opcRequestId("mine").build()));
        Checks.same(e.getOpcRequestId().split("/")[0], "mine", "request id");
        Checks.refused(404, "NotAuthorizedOrNotFound", () -> server.get(Server.from(nobody)));
        Checks.ok("errors", "404 of a queue that is not there, with the caller's request id");

        e = Checks.refused(400, "InvalidParameter", () -> server.create(Server.named("short").retentionInSeconds(5)));
        Checks.same(e.getMessage().contains("retentionInSeconds"), true, e.getMessage());
        Checks.refused(400, "InvalidParameter", () -> server.get(Server.from(id).limit(21)));
        MessageMetadata.Builder illegal = MessageMetadata.builder().customProperties(Map.of("größe", "1"));
        Checks.refused(400, "InvalidParameter", () -> server.put(id, Server.message("x", illegal)));
        Checks.ok("errors", "400 of a value out of its range, which it names");
        String large = "x".repeat((256 << 10) + 1);
        Checks.refused(413, "PayloadTooLarge", () -> server.put(id, Server.text(large)));
        Checks.ok("errors", "413 of a message that is too large");
        Checks.refused(412, "NoEtagMatch",
                () -> server.admin.deleteQueue(DeleteQueueRequest.builder().queueId(id).ifMatch("stale").build()));
        Checks.ok("errors", "412 of an etag that is not that of now");

        server.put(id, Server.text("x"));
        GetMessage first = server.get(Server.from(id).visibilityInSeconds(0)).get(0);
        server.get(Server.from(id));
        Checks.refused(404, "NotAuthorizedOrNotFound", () -> {
            server.delete(id, first.getReceipt());
            return null;
        });
        Checks.refused(400, "InvalidParameter", () -> {
            server.delete(id, "no-receipt");
            return null;
        });
        Checks.ok("errors", "404 of a receipt whose message went to another, 400 of none");
        server.remove(id);
    }
}

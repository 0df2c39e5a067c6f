/**
 * Checks queued with the OCI SDK for Java: every operation of the Queue API that it has once at
 * least, as a program written for OCI calls it.
 */
final class Main {
    public static void main(String[] args) throws Exception {
        String address = System.getenv().getOrDefault("QUEUED", "http://127.0.0.1:8080");
        try (Server server = Server.connect(address)) {
            new Queues(server).run();
            new Messages(server).run();
            new Refusals(server).run();
            new Groups(server).run();
        }
    }
}

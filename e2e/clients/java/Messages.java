import static java.util.stream.Collectors.toList;

import com.oracle.bmc.queue.model.*;
import com.oracle.bmc.queue.requests.*;
import com.oracle.bmc.queue.responses.*;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Messages from end to end, channels, statistics and dead letters. */
final class Messages {
    private final Server server;

    Messages(Server server) {
        this.server = server;
    }

    void run() throws Exception {
        String id = server.create(Server.named("letters").visibilityInSeconds(600));
        there(id);
        longPoll(id);
        visibility(id);
        batches(id);
        channels(id);
        server.remove(id);
        names();
        deadLetters();
    }

    private static List<String> contents(List<GetMessage> messages) {
        return messages.stream().map(GetMessage::getContent).sorted().collect(toList());
    }

    private void there(String id) {
        String text = "Grüße, 世界 🎈 \u0000 \"quoted\"\n<tag>";
        Map<String, String> properties = Map.of("kind", "Größe 書");
        PutMessage sent = server.put(id, Server.message(text, MessageMetadata.builder().customProperties(properties))).get(0);
        Checks.same(sent.getExpireAfter().after(new Date()), true, "end of life");
        Checks.ok("PutMessages", "an id and an end of life");

        GetMessage m = server.get(Server.from(id).visibilityInSeconds(300)).get(0);
        Checks.same(List.of(m.getId(), m.getContent(), m.getDeliveryCount(), m.getExpireAfter()),
                List.of(sent.getId(), text, 1, sent.getExpireAfter()), "message");
        Checks.ok("GetMessages", "the same text comes back, of any script");
        Checks.same(m.getMetadata().getCustomProperties(), properties, "properties");
        Checks.ok("GetMessages", "custom properties come back");
        Checks.same(List.of(m.getCreatedAt().before(m.getVisibleAfter()), m.getVisibleAfter().before(m.getExpireAfter())),
                List.of(true, true), "times");
        Checks.same(server.get(Server.from(id)), List.of(), "a hidden message");
        Checks.ok("GetMessages", "a message that was given is hidden, and nothing is an empty list");

        server.delete(id, m.getReceipt());
        server.delete(id, m.getReceipt());
        Checks.ok("DeleteMessage", "once, and again as a retry");
        PutMessagesDetailsEntry[] many = IntStream.range(0, 20).mapToObj(i -> Server.text("" + i)).toArray(PutMessagesDetailsEntry[]::new);
        Checks.same(server.put(id, many).size(), 20, "answers");
        Checks.ok("PutMessages", "twenty at once");
        List<GetMessage> got = new ArrayList<>(server.get(Server.from(id).limit(5)));
        Checks.same(got.size(), 5, "at most five");
        got.addAll(server.get(Server.from(id)));
        Checks.same(contents(got), Stream.of(many).map(PutMessagesDetailsEntry::getContent).sorted().collect(toList()), "all of them");
        Checks.ok("GetMessages", "at most as many as asked for, each once");
    }

    private void longPoll(String id) {
        CompletableFuture<List<GetMessage>> poll = CompletableFuture.supplyAsync(() -> server.get(Server.from(id).timeoutInSeconds(20)));
        server.put(id, Server.text("at last"));
        GetMessage m = poll.join().get(0);
        Checks.same(m.getContent(), "at last", "what a long poll gives");
        Checks.ok("GetMessages", "a long poll ends with the first message");
        server.delete(id, m.getReceipt());
        Checks.same(server.get(Server.from(id).timeoutInSeconds(1)), List.of(), "a long poll of nothing");
        Checks.ok("GetMessages", "a long poll ends without one");
    }

    private void visibility(String id) {
        server.put(id, Server.text("mine"));
        GetMessage m = server.get(Server.from(id)).get(0);
        UpdatedMessage longer = server.update(id, m.getReceipt(), 3600);
        Checks.same(List.of(longer.getId(), longer.getVisibleAfter().after(m.getVisibleAfter())), List.of(m.getId(), true), "hidden for longer");
        Checks.ok("UpdateMessage", "hidden for longer");
        server.update(id, m.getReceipt(), 0);
        GetMessage again = server.get(Server.from(id)).get(0);
        Checks.same(List.of(again.getId(), again.getDeliveryCount()), List.of(m.getId(), 2), "given back");
        Checks.ok("UpdateMessage", "given back it comes again, counted");
        server.delete(id, again.getReceipt());
    }

    private void batches(String id) {
        server.put(id, Server.text("a"), Server.text("b"));
        List<GetMessage> got = server.get(Server.from(id));
        GetMessage a = got.get(0), b = got.get(1);
        List<String> receipts = List.of(a.getReceipt(), "no-receipt", b.getReceipt());
        UpdateMessagesDetails updates = UpdateMessagesDetails.builder().entries(receipts.stream()
                .map(r -> UpdateMessagesDetailsEntry.builder().receipt(r).visibilityInSeconds(1200).build()).collect(toList())).build();
        UpdateMessagesResult updated = server.client.updateMessages(UpdateMessagesRequest.builder()
                .queueId(id).updateMessagesDetails(updates).build()).getUpdateMessagesResult();
        Checks.same(List.of(updated.getClientFailures(), updated.getServerFailures()), List.of(1, 0), "counts");
        Checks.same(updated.getEntries().stream().map(UpdateMessagesResultEntry::getId).collect(toList()), Checks.list(a.getId(), null, b.getId()), "entries");
        Checks.same(updated.getEntries().stream().map(UpdateMessagesResultEntry::getErrorCode).collect(toList()), Checks.list(null, 400, null), "entries");
        Checks.same(updated.getEntries().get(0).getVisibleAfter().after(a.getVisibleAfter()), true, "hidden for longer");
        Checks.ok("UpdateMessages", "entry by entry, with one that fails");

        DeleteMessagesDetails deletes = DeleteMessagesDetails.builder().entries(receipts.stream()
                .map(r -> DeleteMessagesDetailsEntry.builder().receipt(r).build()).collect(toList())).build();
        DeleteMessagesResult deleted = server.client.deleteMessages(DeleteMessagesRequest.builder()
                .queueId(id).deleteMessagesDetails(deletes).build()).getDeleteMessagesResult();
        Checks.same(List.of(deleted.getClientFailures(), deleted.getServerFailures()), List.of(1, 0), "counts");
        Checks.same(deleted.getEntries().stream().map(DeleteMessagesResultEntry::getErrorCode).collect(toList()), Checks.list(null, 400, null), "entries");
        Checks.same(deleted.getEntries().get(1).getErrorMessage().isEmpty(), false, "why not");
        Checks.ok("DeleteMessages", "entry by entry, with one that fails");
    }

    private void channels(String id) {
        for (String channel : List.of("north", "north-west", "south")) {
            server.put(id, Server.message("to " + channel, MessageMetadata.builder().channelId(channel)));
        }
        GetMessage m = server.get(Server.from(id).channelFilter("south")).get(0);
        Checks.same(List.of(m.getContent(), m.getMetadata().getChannelId()), List.of("to south", "south"), "by channel");
        Checks.ok("channels", "a filter gives the messages of a channel");
        ListChannelsRequest.Builder all = ListChannelsRequest.builder().queueId(id);
        ListChannelsRequest.Builder some = ListChannelsRequest.builder().queueId(id).channelFilter("north*");
        Checks.same(list(all).stream().sorted().collect(toList()), List.of("north", "north-west", "south"), "channels");
        Checks.same(list(some).stream().sorted().collect(toList()), List.of("north", "north-west"), "channels by pattern");
        Checks.ok("ListChannels", "those that hold messages, by pattern too");
        List<String> pages = new ArrayList<>();
        String page = null;
        do {
            ListChannelsResponse r = server.client.listChannels(all.limit(1).page(page).build());
            pages.addAll(r.getChannelCollection().getItems());
            page = r.getOpcNextPage();
        } while (page != null);
        Checks.same(pages.stream().sorted().collect(toList()), List.of("north", "north-west", "south"), "all pages");
        Checks.ok("paging", "pages of ListChannels by hand");

        QueueStats stats = server.stats(id, "south");
        Checks.same(List.of(stats.getChannelId(), stats.getQueue().getVisibleMessages(), stats.getQueue().getInFlightMessages(),
                stats.getQueue().getSizeInBytes(), stats.getDlq().getSizeInBytes()), List.of("south", 0L, 1L, 8L, 0L), "of a channel");
        Checks.ok("GetStats", "of a channel");
        List<GetMessage> rest = new ArrayList<>(server.get(Server.from(id).channelFilter("north*")));
        rest.addAll(server.get(Server.from(id).channelFilter("north*")));
        Checks.same(contents(rest), List.of("to north", "to north-west"), "by pattern");
        Checks.ok("channels", "a pattern gives one channel after the other");
    }

    private List<String> list(ListChannelsRequest.Builder request) {
        return server.client.listChannels(request.build()).getChannelCollection().getItems();
    }

    /** What must be spelled otherwise in an address. */
    private void names() throws Exception {
        String name = "Größe 100% & mehr?";
        String id = server.create(Server.named(name));
        Checks.same(server.admin.getQueue(GetQueueRequest.builder().queueId(name).build()).getQueue().getId(), id, "queue by name");
        Checks.ok("GetQueue", "by a name that needs encoding");
        String channel = "a+b:c@d=e.f_g-h";
        server.put(name, Server.message("x", MessageMetadata.builder().channelId(channel)));
        Checks.same(server.stats(name, channel).getQueue().getVisibleMessages(), 1L, "messages of the channel");
        GetMessage m = server.get(Server.from(name).channelFilter(channel)).get(0);
        server.delete(name, m.getReceipt());
        Checks.same(m.getMetadata().getChannelId(), channel, "channel");
        Checks.ok("channels", "a channel whose name needs encoding");
        server.remove(id);
    }

    private void deadLetters() throws Exception {
        String id = server.create(Server.named("poison").visibilityInSeconds(600).deadLetterQueueDeliveryCount(1));
        String dlq = id + "_dlq";
        MessageMetadata.Builder metadata = MessageMetadata.builder().channelId("north").customProperties(Map.of("k", "v"));
        server.put(id, Server.message("bad", metadata));
        GetMessage m = server.get(Server.from(id).visibilityInSeconds(1)).get(0); // its only delivery, and nobody deletes it
        GetMessage dead = server.get(Server.from(dlq).timeoutInSeconds(20)).get(0);
        Checks.same(List.of(dead.getId(), dead.getContent(), dead.getDeliveryCount(), dead.getMetadata()),
                List.of(m.getId(), "bad", 2, metadata.build()), "dead letter");
        Checks.ok("dlq", "it is read as a queue whose id ends in _dlq");
        QueueStats stats = server.stats(id, null);
        Checks.same(List.of(stats.getQueue().getSizeInBytes(), stats.getDlq().getInFlightMessages(), stats.getDlq().getSizeInBytes()),
                List.of(0L, 1L, 5L), "statistics");
        Checks.ok("GetStats", "of a queue and its dead letters");
        server.update(dlq, dead.getReceipt(), 0);
        server.delete(dlq, server.get(Server.from(dlq)).get(0).getReceipt());
        Checks.same(server.stats(id, null).getDlq().getSizeInBytes(), 0L, "dead letters");
        Checks.ok("dlq", "dead letters are updated and deleted there");
        server.remove(id);
    }
}

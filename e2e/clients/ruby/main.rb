# Checks queued with stomp, a STOMP client for Ruby.
require "json"
require "net/http"
require "timeout"
require_relative "hello"

LETTERS = "letters" # the queue of all checks; each leaves it empty
WAIT = 30 # seconds that anything may take
OCTETS = (0..255).to_a.pack("C*")
TEXT = "a\nb: \\ é 😀 שלום"

def ok(topic, what)
  puts ["ok", topic, what].join("\t")
  $stdout.flush
end

def same(got, want, what)
  raise "#{what}: got #{got.inspect}, want #{want.inspect}" unless got == want
end

def stats
  queue = JSON.parse(Net::HTTP.get(URI("#{ENV.fetch("QUEUED")}/20210201/queues/#{LETTERS}/stats"))).fetch("queue")
  [queue["visibleMessages"], queue["inFlightMessages"]]
end

# So many messages must be there.
def left(visible, in_flight, what)
  same(stats, [visible, in_flight], what)
end

# What ack:auto has delivered is deleted soon behind.
def gone
  WAIT.times { break if stats == [0, 0]; sleep 1 }
  left(0, 0, "auto")
end

# The next frame, which must be such a one.
def frame(c, command, **headers)
  got = Timeout.timeout(WAIT) { c.receive }
  raise "the connection is cut" if got.nil?
  same(got.command, command, got.to_s)
  headers.each { |name, value| same(got.headers[name.to_s.tr("_", "-")], value, got.to_s) }
  got
end

def send_told(c, body, id, **headers)
  c.publish(LETTERS, body, { receipt: id, **headers })
  frame(c, "RECEIPT", receipt_id: id)
end

# What an ACK or NACK names, as the version has it.
def named(c, m)
  c.protocol == "1.2" ? m.headers["ack"] : m.headers["message-id"]
end

def settle(c, verb, m, receipt = nil, **headers)
  headers[:subscription] = m.headers["subscription"] if c.protocol == "1.1"
  headers[:receipt] = receipt if receipt
  c.send(verb, named(c, m), headers)
  frame(c, "RECEIPT", receipt_id: receipt) if receipt
end

def unsubscribe(c)
  c.unsubscribe(LETTERS, { receipt: "u" }, "s")
  frame(c, "RECEIPT", receipt_id: "u")
end

def disconnect(c)
  c.disconnect(receipt: "bye")
  same(c.disconnect_receipt.headers["receipt-id"], "bye", "receipt of DISCONNECT")
end

# A subscription; in 1.0 the id is left out and the destination stands for it.
def subscribe(c, ack = "client-individual", **headers)
  c.subscribe(LETTERS, { ack: ack, **headers }, "s")
end

def sessions(version)
  c = connect(version)
  same([c.protocol, c.connection_frame.headers["version"]], [version, version], "version")
  ok(version, "#{version}: opens a session")
  c.publish(LETTERS, "x")
  subscribe(c)
  settle(c, :ack, frame(c, "MESSAGE"))
  disconnect(c)
  left(0, 0, "behind a disconnect")
  ok("DISCONNECT", "#{version}: has its receipt, and all before it is done")
end

def bodies(version)
  c = connect(version)
  c.publish(LETTERS, TEXT)
  send_told(c, "told", "r")
  left(2, 0, "behind a receipt")
  ok("receipts", "#{version}: one says that a message is stored, and those before it too")
  c.publish(LETTERS, OCTETS, { "content-type": "application/octet-stream" })
  c.publish(LETTERS, "")
  c.publish(LETTERS, "to its NUL", { suppress_content_length: "true" })
  subscribe(c)
  all = [TEXT, "told", OCTETS, "", "to its NUL"]
  came = all.map { frame(c, "MESSAGE") }
  same(came.map { |m| m.body.b }, all.map(&:b), "bodies")
  came.each_with_index { |m, i| settle(c, :ack, m, "a-#{i}") }
  left(0, 0, "acknowledged")
  ok("receipts", "#{version}: one says that an ACK is done")
  ok("text", "#{version}: comes as it went, empty and without content-length too")
  ok("octets", "#{version}: all 256, NUL among them")
  ok("client-individual", "#{version}: each ACK deletes one message")
  disconnect(c)
end

def headers(version)
  # It takes a backslash before c, n or r for an escape.
  value = { "1.0" => "a:b é", "1.1" => "a:b\\ \nd é", "1.2" => "a:b\\ \nd\re é" }.fetch(version)
  c = connect(version)
  subscribe(c)
  c.publish(LETTERS, "x", { kind: value, "content-type": "text/x; charset=utf-8" })
  m = frame(c, "MESSAGE", content_type: "text/x; charset=utf-8")
  same(m.headers["kind"].b, value.b, "kind")
  settle(c, :ack, m)
  disconnect(c)
  ok("headers", "#{version}: of the caller's own come back: #{value.inspect}")
end

def modes(version)
  c = connect(version)
  subscribe(c, "auto")
  c.publish(LETTERS, "auto")
  same(frame(c, "MESSAGE").body, "auto", "body")
  unsubscribe(c)
  gone
  ok("auto", "#{version}: what was delivered is gone")
  send_told(c, "unseen", "r")
  left(1, 0, "behind an UNSUBSCRIBE")
  ok("UNSUBSCRIBE", "#{version}: nothing comes behind it")
  c.publish(LETTERS, "second")
  c.publish(LETTERS, "third")
  subscribe(c, "client")
  _, second, third = 3.times.map { frame(c, "MESSAGE") }
  settle(c, :ack, second, "a-2")
  left(0, 1, "client")
  ok("client", "#{version}: an ACK deletes what came before it too")
  unsubscribe(c)
  settle(c, :ack, third, "a-3")
  left(0, 0, "client")
  ok("UNSUBSCRIBE", "#{version}: what came before it can be acknowledged behind it")
  disconnect(c)
end

def back(version)
  c = connect(version)
  subscribe(c)
  c.publish(LETTERS, "x")
  settle(c, :nack, frame(c, "MESSAGE", delivery_count: "1", redelivered: "false"))
  settle(c, :ack, frame(c, "MESSAGE", delivery_count: "2", redelivered: "true"))
  disconnect(c)
  left(0, 0, "acknowledged at last")
  ok("NACK", "#{version}: the message comes again at once")
end

def refused(version)
  {
    ["an unknown queue", "NotAuthorizedOrNotFound"] => ->(c) { c.publish("nowhere", "x") },
    ["a topic", "InvalidParameter"] => ->(c) { c.publish("/topic/prices", "x") },
    ["a bad name of a property", "InvalidParameter"] => ->(c) { c.publish(LETTERS, "x", { "no blanks" => "y" }) },
  }.each do |(what, code), provoke|
    c = connect(version)
    provoke.call(c)
    frame(c, "ERROR", code: code)
    ok("ERROR", "#{version}: #{what}: #{code}")
  end
end

def beats(version)
  c = connect(version, "heart-beat": "1000,1000")
  subscribe(c)
  sleep 5 # the server cuts who is silent for three
  same([c.hb_sent, c.hb_received], [true, true], "heart-beats")
  c.publish(LETTERS, "still here")
  settle(c, :ack, frame(c, "MESSAGE"))
  disconnect(c)
  left(0, 0, "behind heart-beats")
  ok("heart-beats", "#{version}: keep a session that is silent otherwise, both ways")
end

def transactions(version)
  c = connect(version)
  c.begin("a")
  c.publish(LETTERS, "never", { transaction: "a" })
  c.abort("a")
  c.begin("b")
  c.publish(LETTERS, "two", { transaction: "b" })
  send_told(c, "three", "t-3", transaction: "b")
  send_told(c, "one", "t-1")
  left(1, 0, "before the COMMIT")
  c.commit("b")
  subscribe(c)
  three = 3.times.map { frame(c, "MESSAGE") }
  same(three.map(&:body), %w[one two three], "bodies")
  ok("transactions", "#{version}: a COMMIT publishes all, an ABORT nothing")
  c.begin("c")
  three.each_with_index { |m, i| settle(c, :ack, m, "a-#{i}", transaction: "c") }
  left(0, 3, "before the COMMIT")
  c.commit("c")
  disconnect(c)
  left(0, 0, "behind the COMMIT")
  ok("transactions", "#{version}: a COMMIT deletes what was acknowledged in it")
end

# A reliable connection opens itself and its subscriptions again.
def reconnects(version)
  c = connect(version, reliable: true)
  subscribe(c, visibility: "2")
  c.publish(LETTERS, "before")
  frame(c, "MESSAGE", delivery_count: "1")
  Net::HTTP.get(URI(ENV.fetch("RESTART")))
  m = frame(c, "MESSAGE", delivery_count: "2")
  same(m.body, "before", "body")
  settle(c, :ack, m)
  disconnect(c)
  left(0, 0, "behind a restart")
  ok("reconnect", "#{version}: connected and subscribed again by itself, it has what it had not acknowledged")
end

hello
left(0, 0, "behind what the page shows")
%w[1.0 1.1 1.2].each do |version|
  %i[sessions bodies headers modes refused transactions].each { |check| send(check, version) }
  if version != "1.0" # which has neither
    back(version)
    beats(version)
  end
end
reconnects("1.2")

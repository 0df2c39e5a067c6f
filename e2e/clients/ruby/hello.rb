# What docs/clients.md shows of Ruby's stomp.
require "stomp"

HOST, PORT = ENV.fetch("STOMP").split(":")

def connect(version, reliable: false, **headers)
  headers = { "accept-version": version, host: "queued", **headers } unless version == "1.0"
  Stomp::Connection.new(hosts: [{ host: HOST, port: PORT.to_i }], reliable: reliable, connect_headers: headers)
end

def hello
  c = connect("1.2")
  c.subscribe("letters", { ack: "client-individual" }, "1")
  c.publish("letters", "hello")
  message = c.receive
  raise message.headers["message"] if message.command == "ERROR"
  c.ack(message.headers["ack"])
  c.disconnect(receipt: "bye")
end

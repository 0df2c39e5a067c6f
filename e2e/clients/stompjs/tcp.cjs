// Checks queued with stompjs over TCP.
const { Client, Versions } = require("@stomp/stompjs");
const { TCPWrapper } = require("@stomp/tcp-wrapper");
const frame = require("./node.cjs");

const [host, port] = process.env.STOMP.split(":");

function open(version) {
  return new Client({
    webSocketFactory: () => new TCPWrapper(host, port),
    stompVersions: new Versions([version]),
    reconnectDelay: 1000,
  });
}

frame.run(async () => {
  const { checks } = await import("./checks.mjs");
  await checks({ ...frame, versions: ["1.0", "1.1", "1.2"], open });
});

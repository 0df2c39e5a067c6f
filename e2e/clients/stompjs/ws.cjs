// Checks queued with stompjs over WebSocket.
const { Client, Versions } = require("@stomp/stompjs");
const frame = require("./node.cjs");

// Node.js has no WebSocket of its own before 22.
Object.assign(globalThis, { WebSocket: require("ws") });
const brokerURL = process.env.QUEUED.replace("http:", "ws:") + "/stomp";

function open(version) {
  return new Client({ brokerURL, stompVersions: new Versions([version]), reconnectDelay: 1000 });
}

frame.run(async () => {
  const { checks } = await import("./checks.mjs");
  await checks({ ...frame, versions: ["1.0", "1.1", "1.2"], open });
});

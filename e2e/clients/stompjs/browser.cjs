// Checks queued with stompjs in headless Chromium: serves the page that does
// so, opens it, and says what it tells.
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const frame = require("./node.cjs");

const files = {
  "/page.html": ["text/html", "page.html"],
  "/checks.mjs": ["text/javascript", "checks.mjs"],
  "/hello.mjs": ["text/javascript", "hello.mjs"],
  "/stomp.umd.js": ["text/javascript", path.join(process.env.NODE_PATH, "@stomp/stompjs/bundles/stomp.umd.js")],
};

async function body(request) {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}

frame.run(() => new Promise((resolve, reject) => {
  const asked = {
    "/settings": () => ({ brokerURL: process.env.QUEUED.replace("http:", "ws:") + "/stomp" }),
    "/ok": async request => { frame.ok(...JSON.parse(await body(request))); },
    "/stats": frame.stats,
    "/restart": async () => { await frame.restart(); },
    "/end": async request => { end(await body(request)); },
  };
  const server = http.createServer(async (request, answer) => {
    if (files[request.url]) {
      const [type, file] = files[request.url];
      answer.setHeader("content-type", type);
      return answer.end(fs.readFileSync(file));
    }
    if (!asked[request.url]) return answer.writeHead(404).end();
    try {
      answer.end(JSON.stringify(await asked[request.url](request) ?? null));
    } catch (error) {
      answer.writeHead(500).end();
      end(error.stack);
    }
  });
  let browser, failure = "Chromium ended by itself";
  function end(error) {
    failure = error;
    browser.kill();
  }
  const [host, port] = process.env.PAGE.split(":");
  server.listen(port, host, () => {
    browser = spawn("chromium", [
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--disable-breakpad", "--disable-dev-shm-usage",
      // It calls home all the same, and finds nobody.
      "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
      `--user-data-dir=${process.env.TMPDIR}/chromium`, `http://${process.env.PAGE}/page.html`,
    ], { stdio: ["ignore", 2, 2] });
    browser.on("error", reject);
    browser.on("exit", () => (failure ? reject(new Error(failure)) : resolve()));
  });
}));

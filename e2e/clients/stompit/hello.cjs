// What docs/clients.md shows of stompit.
const stompit = require("stompit");

function connect(version = "1.2", more = {}) {
  const [host, port] = process.env.STOMP.split(":");
  return new Promise((resolve, reject) => {
    const connectHeaders = { "accept-version": version, ...more };
    stompit.connect({ host, port, connectHeaders }, (error, client) => {
      if (error) return reject(error);
      // Its own handler throws what nobody can catch, if an ERROR has a content-type of text/plain.
      client.setCommandHandler("ERROR", frame => client.destroy(client.createApplicationError(frame.headers.message)));
      resolve(client);
    });
  });
}

async function hello() {
  const client = await connect();
  const body = Buffer.from("hello");
  client.send({ destination: "letters", "content-length": body.length }).end(body);
  return new Promise((resolve, reject) => {
    client.subscribe({ destination: "letters", ack: "client-individual" }, (error, message) => {
      if (error) return reject(error);
      message.readString("utf-8", error => { // before the next one is read
        if (error) return reject(error);
        client.ack(message);
        client.disconnect(error => (error ? reject(error) : resolve()));
      });
    });
  });
}

module.exports = { connect, hello };

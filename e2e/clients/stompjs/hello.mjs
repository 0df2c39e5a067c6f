// What docs/clients.md shows of stompjs. client is one that is not active yet.
export function hello(client) {
  return new Promise((resolve, reject) => {
    client.onStompError = frame => reject(new Error(frame.headers.message));
    client.onConnect = () => {
      client.subscribe("letters", message => {
        message.ack({ receipt: "acknowledged" });
      }, { ack: "client-individual" });
      client.watchForReceipt("acknowledged", () => resolve(client.deactivate()));
      client.publish({ destination: "letters", body: "hello" });
    };
    client.activate();
  });
}

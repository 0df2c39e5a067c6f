// What the checks find in Node.js.
async function get(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  return answer;
}

module.exports = {
  ok: (topic, what) => console.log(["ok", topic, what].join("\t")),
  restart: () => get(process.env.RESTART),
  async stats() {
    const { queue } = await (await get(process.env.QUEUED + "/20210201/queues/letters/stats")).json();
    return [queue.visibleMessages, queue.inFlightMessages];
  },
  // run ends the program with what fails.
  run(main) {
    main().then(() => process.exit(0), error => {
      console.error(error);
      process.exit(1);
    });
  },
};

// Proves that commands which read a history wait for as long as --timeout says, by what they say of a broker that takes
// connections and never answers.
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { run } from "../../cli/spawn-command.ts";

/** The address of something that accepts connections and stays silent. */
async function silentBroker(): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  return `nats://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
}

test.each([
  ["log"],
  ["blame", "w[0]"],
  ["verify"],
  ["show", "0:1"],
  ["fork", "j", "--at", "now"],
  ["rewind", "--to", "now", "--yes"],
  ["backup", "never-made"],
  ["save", "never-made.safetensors", "--at", "now"],
])("%s %s", async (...args) => {
  const url = await silentBroker();
  const words = args.filter((word) => word !== undefined);
  const { code, stderr } = await run([...words, "--url", url, "--timeout", "321ms"]);
  expect(code).not.toBe(0);
  expect(stderr).toContain("NO_BROKER");
  expect(stderr).toContain("within 321 ms");
});

/**
 * A host as a process of its own that reads blocks of a model it saves only as far as a test lets it: its
 * arguments are the host's options as JSON and how many blocks it reads at once. A line on its input lets
 * it read on. It prints a line when it serves, and one for each block that it waits for; the end of its
 * input ends it.
 */
import { createInterface } from "node:readline";
import type { HostOptions } from "../../../src/actors/host/host.ts";
import { startHost } from "../../../src/actors/host/start-host.ts";
import { OwnersClient } from "../../../src/actors/job/owners-client.ts";

const [, , options = "{}", blocks = "0"] = process.argv;
let left = Number(blocks);
let open = (): void => undefined;
const opened = new Promise<void>((resolve) => {
  open = resolve;
});

const ask = OwnersClient.prototype.ask;
OwnersClient.prototype.ask = async function (this: OwnersClient, ...args: Parameters<typeof ask>) {
  if (args[1] === "pull" && left-- <= 0) {
    process.stdout.write("waiting\n");
    await opened;
  }
  return await ask.apply(this, args);
};

createInterface({ input: process.stdin })
  .on("line", () => open())
  .on("close", () => process.exit(0));
await startHost(JSON.parse(options) as HostOptions);
process.stdout.write("serving\n");

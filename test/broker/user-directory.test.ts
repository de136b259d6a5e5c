// Proves where a broker is put for a user, by the XDG specification.
import { homedir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { userBrokerDirectory } from "../../src/broker/find-broker.ts";

test.each([
  [{ XDG_DATA_HOME: "/data", HOME: "/users/a" }, "/data/nats-pserver/bin"],
  [{ XDG_DATA_HOME: "relative", HOME: "/users/a" }, "/users/a/.local/share/nats-pserver/bin"],
  [{ XDG_DATA_HOME: "", HOME: "/users/a" }, "/users/a/.local/share/nats-pserver/bin"],
  [{ HOME: "/users/a" }, "/users/a/.local/share/nats-pserver/bin"],
  [{}, join(homedir(), ".local/share/nats-pserver/bin")],
])("%j: %s", (environment, directory) => {
  expect(userBrokerDirectory(environment)).toBe(directory);
});

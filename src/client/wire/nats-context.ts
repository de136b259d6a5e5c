import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { defined } from "../../protocol/defined.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { BrokerSettings, Environment } from "./broker-settings.ts";

/** Name of the context selected with the `nats` command; undefined if there is none. */
export function selectedContext(env: Environment): string | undefined {
  try {
    const name = readFileSync(join(configDirectory(env), "context.txt"), "utf8").trim();
    return name === "" ? undefined : name;
  } catch {
    // Without the file no context is selected.
    return undefined;
  }
}

/**
 * Reads the settings of a context of the `nats` command; unknown entries are ignored.
 * @throws BAD_VALUE if there is no such context, it cannot be read, or it needs `nsc`.
 */
export function readContext(name: string, env: Environment): BrokerSettings {
  if (name.includes("..") || name.includes("/") || name === "") {
    throw badContext(name, "a name without .. and /");
  }
  const path = join(configDirectory(env), "context", `${name}.json`);
  const entries = readJson(name, path);
  const text = (key: string): string | undefined => {
    const value = entries[key];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  if (text("nsc") !== undefined) {
    throw badContext(name, "one with creds, because this client does not run nsc");
  }
  return defined({
    url: text("url"),
    user: text("user"),
    password: text("password"),
    token: text("token"),
    creds: expand(text("creds"), env),
    nkey: expand(text("nkey"), env),
    tlsCert: expand(text("cert"), env),
    tlsKey: expand(text("key"), env),
    tlsCa: expand(text("ca"), env),
  });
}

function configDirectory(env: Environment): string {
  const base = env["XDG_CONFIG_HOME"] || join(env["HOME"] || homedir(), ".config");
  return join(base, "nats");
}

function readJson(name: string, path: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch (cause) {
    throw new PserverError(
      "BAD_VALUE",
      `NATS context ${JSON.stringify(name)}: cannot read ${path}`,
      { context: name, path },
      { cause },
    );
  }
  throw badContext(name, "a JSON object");
}

function expand(path: string | undefined, env: Environment): string | undefined {
  return path?.startsWith("~/") ? join(env["HOME"] || homedir(), path.slice(2)) : path;
}

function badContext(name: string, expected: string): PserverError {
  return new PserverError(
    "BAD_VALUE",
    `NATS context ${JSON.stringify(name)}: expected ${expected}`,
    { context: name, expected },
  );
}

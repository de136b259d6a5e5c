import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { packageRoot } from "../../src/broker/broker-config.ts";

/** Reads a file of `deploy/`, or another one of the package by its path from there. */
export function readDeployed(...path: string[]): string {
  return readFileSync(join(packageRoot(), "deploy", ...path), "utf8");
}

/** Parses a YAML file of `deploy/`, with its anchors and `<<`. */
export function parseDeployed<T>(...path: string[]): T {
  return parse(readDeployed(...path), { merge: true }) as T;
}

/** The broker that set-up provides, such as `2.12.15`. */
export function pinnedBroker(): string {
  const text = readDeployed("..", "scripts", "provide-broker.sh");
  return /^readonly PINNED_BROKER=(\S+)$/m.exec(text)?.[1] ?? "none";
}

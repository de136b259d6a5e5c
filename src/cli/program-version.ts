import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../broker/broker-config.ts";

/** Returns the version in the package's manifest. */
export function packageVersion(): string {
  const text = readFileSync(join(packageRoot(), "package.json"), "utf8");
  const { version } = JSON.parse(text) as { readonly version: string };
  return version;
}

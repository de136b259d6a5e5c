// Writes src/protocol/config/paddle/descriptor.ts, a constant with the contents of the .proto files next
// to it, which the compiled package does not contain. Run it after a change of one of them:
// `node scripts/write-paddle-descriptor.mjs`. A test compares. Plain JavaScript, because Node 20 does
// not strip types; write-paddle-descriptor.d.mts types it for the test.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import protobuf from "protobufjs";

const ROOT = join(import.meta.dirname, "..");
const DIRECTORY = join(ROOT, "src/protocol/config/paddle");
const FILES = ["optimizer-config.proto", "parameter-config.proto"];

/** Returns the messages of the .proto files as protobufjs' `Root.fromJSON` takes them. */
export function paddleDescriptor() {
  const root = new protobuf.Root();
  for (const file of FILES) {
    protobuf.parse(readFileSync(join(DIRECTORY, file), "utf8"), root, { keepCase: true });
  }
  const descriptor = JSON.parse(JSON.stringify(root.resolveAll()));
  // proto2 allows text that is not UTF-8, but names must be: have readers refuse any other text.
  for (const message of Object.values(descriptor.nested.paddle.nested)) {
    message.options = { ...message.options, features: { utf8_validation: "VERIFY" } };
  }
  return descriptor;
}

if (import.meta.filename === process.argv[1]) {
  const target = join(DIRECTORY, "descriptor.ts");
  const lines = [
    "// Written by scripts/write-paddle-descriptor.mjs from the .proto files here. Do not edit.",
    'import type { INamespace } from "protobufjs/light.js";',
    "",
    "/** PaddlePaddle's configuration messages. */",
    `export const PADDLE_DESCRIPTOR: INamespace = ${JSON.stringify(paddleDescriptor())};`,
  ];
  writeFileSync(target, `${lines.join("\n")}\n`);
  execFileSync(join(ROOT, "node_modules/.bin/biome"), ["format", "--write", target], {
    cwd: ROOT,
    stdio: "ignore",
  });
  console.log(`wrote ${target}`);
}

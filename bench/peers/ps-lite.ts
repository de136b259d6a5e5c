import { execFile } from "node:child_process";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { buildCObjects, C_SOURCES } from "../c-programs.ts";
import type { PeerProgram } from "./peer-process.ts";

const run = promisify(execFile);

const SOURCE = join(packageRoot(), "bench", "peers", "ps-lite-peer.cc");
const PROGRAM = join(packageRoot(), "build", "bench-c", "ps-lite-peer");
const FLAGS = ["-std=c++17", "-O3", "-Wall", "-Wextra", "-Wpedantic", "-pthread"];

/**
 * Compiles the trainer on ps-lite against a checkout of it that has been built.
 * @throws an `Error` that says what is missing.
 */
export async function buildPsLitePeer(directory: string | undefined): Promise<PeerProgram> {
  if (directory === undefined) throw new Error("no built ps-lite is named (--ps-lite DIR)");
  const include = join(directory, "include");
  const library = join(directory, "build", "libps.a");
  for (const needed of [join(include, "ps", "ps.h"), library]) {
    await access(needed).catch(() => {
      throw new Error(`expected a ps-lite in which \`make ps\` has been run; ${needed} is missing`);
    });
  }
  const objects = await buildCObjects(["agent", "step-data"]);
  const dependencies = join(directory, "deps");
  const version = await commitOf(directory);
  await run(process.env["CXX"] ?? "c++", [
    ...[...FLAGS, `-DPS_LITE_VERSION="${version}"`, "-I", C_SOURCES],
    ...["-isystem", include, "-isystem", join(dependencies, "include")],
    ...[SOURCE, ...objects, library],
    ...["-L", join(dependencies, "lib"), `-Wl,-rpath,${join(dependencies, "lib")}`],
    ...["-lprotobuf-lite", "-lzmq", "-o", PROGRAM],
  ]);
  return { path: PROGRAM, args: [] };
}

/** Returns the commit of a checkout, because ps-lite does not number its versions; without blanks. */
async function commitOf(directory: string): Promise<string> {
  const git = ["--git-dir", join(directory, ".git"), "rev-parse", "--short", "HEAD"];
  const found = await run("git", git).catch(() => undefined);
  return found?.stdout.trim() ?? "of_an_unknown_commit";
}

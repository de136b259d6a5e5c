/** Inputs for the fuzz target replies.c to begin with. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { conversations, excesses } from "./conversations.ts";
import { ASYNC, event, type Fields, input, REPLY, SCRIPTED_JOIN } from "./events.ts";

const VECTORS = join(import.meta.dirname, "../../vectors");

/** The replies of the shared vectors, each as the answer to every kind of call. */
function vectors(): [string, Buffer][] {
  const seeds: [string, Buffer][] = [];
  for (const file of ["lifecycle", "answers"]) {
    const lists = JSON.parse(readFileSync(join(VECTORS, `${file}.json`), "utf8")) as Fields;
    const cases = Object.values(lists).filter(Array.isArray).flat() as {
      what: string;
      hex: string;
    }[];
    for (const { what, hex } of cases) {
      const bytes = event(REPLY, Buffer.from(hex, "hex"));
      const name = `${file}-${what.replaceAll(/\W+/g, "-")}`;
      const isJoin = what === "join";
      const calls = isJoin ? ["look" as const] : (["look", "get", "initialize", "create"] as const);
      for (const call of calls) {
        seeds.push([`${name}-${call}`, input(call, isJoin ? SCRIPTED_JOIN : ASYNC, bytes, bytes)]);
      }
    }
  }
  return seeds;
}

/** Seeds by name. */
export function fuzzSeeds(): ReadonlyMap<string, Buffer> {
  return new Map([...conversations(), ...excesses(), ...vectors()]);
}

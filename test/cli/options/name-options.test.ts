// Proves which tensors of a file --only and --rename give to a load, under which names, with what optimizers keep of
// them and the other names of tied weights; and what they refuse.
import { Command } from "commander";
import { describe, expect, test } from "vitest";
import {
  addNameOptions,
  chosenTensors,
  type NameFlags,
} from "../../../src/cli/options/name-options.ts";
import type { OpenModel, RestorableState, TensorSource } from "../../../src/model-files/index.ts";
import { toConfig } from "../../../src/protocol/config/index.ts";

function source(name: string): TensorSource {
  return { header: { name, dtype: "float32", shape: [1] }, async *chunks() {} };
}

function state(): RestorableState {
  return { config: toConfig(), updates: () => 0, slots: [] };
}

const NAMES = ["model.a.weight", "model.b.weight", "head", "a+b"];
const MODEL: OpenModel = {
  tensors: NAMES.map(source),
  skipped: [{ name: "model.f8", type: "F8_E4M3" }],
  metadata: { tied: "head", format: "pt" },
  optimizers: { rules: 1, states: new Map(NAMES.map((name) => [name, state()])) },
  close: async () => undefined,
};

function flagsOf(...args: readonly string[]): NameFlags {
  const command = addNameOptions(new Command().exitOverride());
  command.configureOutput({ writeErr: () => undefined });
  return command.parse(args, { from: "user" }).opts();
}

function chosen(...args: readonly string[]): string[] {
  const { tensors, skipped, optimizers } = chosenTensors(MODEL, flagsOf(...args));
  const names = tensors.map(({ header }) => header.name);
  expect([...(optimizers?.states.keys() ?? [])]).toEqual(names);
  return [...names, ...skipped.map(({ name }) => name)];
}

describe("a load", () => {
  test("takes everything without flags", () => {
    expect(chosen()).toEqual([...NAMES, "model.f8"]);
  });

  test("takes whole names that fit one of the patterns", () => {
    expect(chosen("--only", "model.?.weight")).toEqual(["model.a.weight", "model.b.weight"]);
    expect(chosen("--only", "a+b", "--only", "he*")).toEqual(["head", "a+b"]);
    expect(chosen("--only", "*")).toEqual([...NAMES, "model.f8"]);
  });

  test("gives the tensors other names, by the first rule that fits", () => {
    const rules = ["--rename", "model.a.*=first.*", "--rename", "model.*=*", "--rename", "head=$&"];
    expect(chosen(...rules)).toEqual(["first.weight", "b.weight", "$&", "a+b", "f8"]);
    const { metadata } = chosenTensors(MODEL, flagsOf("--rename", "head=tail"));
    expect(metadata).toEqual({ tied: "tail", format: "pt" });
  });

  test.each([
    [["--only", "none"], "BAD_VALUE"],
    [["--only", "model.*", "--rename", "head=x"], "BAD_VALUE"],
    [["--rename", "head=a+b"], "BAD_NAME"],
    [["--rename", "model.a.*=x", "--only", "head"], "commander.invalidArgument"],
    [["--rename", "head"], "commander.invalidArgument"],
    [["--rename", "=x"], "commander.invalidArgument"],
    [["--rename", "*.*=*.*"], "commander.invalidArgument"],
  ])("refuses %j with %s", (args, code) => {
    expect(() => chosen(...args)).toThrow(expect.objectContaining({ code }));
  });
});

// Proves which configuration each parameter of a load gets: the flags for all, then --config for all,
// then that for the one, entry by entry; and that a wrong one is refused, naming the parameter.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { expect, onTestFinished, test } from "vitest";
import {
  addConfigOptions,
  type ConfigFlags,
  hasConfig,
  toConfigs,
} from "../../../src/cli/options/config-options.ts";

function flagsOf(...args: string[]): ConfigFlags {
  const command = addConfigOptions(new Command())
    .exitOverride()
    .configureOutput({
      writeErr: () => undefined,
    });
  return command.parse(args, { from: "user" }).opts<ConfigFlags>();
}

test("the most specific entry wins, for each setting separately", () => {
  const flags = flagsOf(
    ...["--optimizer", "adam", "--learning-rate", "0.5", "--allow-non-finite"],
    ...["--config", '{"learningRate":0.25,"clipNorm":1}'],
    ...["--config", 'a=b={"optimizer":"adagrad"}', "--config", 'a=b={"clipNorm":2}'],
  );
  const configs = toConfigs(flags, ["w", "a=b"]);
  expect(configs.get("w")).toMatchObject({
    optimizer: { name: "adam" },
    learningRate: { rate: 0.25 },
    clipNorm: 1,
    allowNonFinite: true,
  });
  expect(configs.get("a=b")).toMatchObject({
    optimizer: { name: "adagrad" },
    learningRate: { rate: 0.25 },
    clipNorm: 2,
  });
  expect(hasConfig(flags)).toBe(true);
});

test("without flags every parameter has the defaults", () => {
  expect(toConfigs(flagsOf(), ["w"]).get("w")).toMatchObject({ optimizer: { name: "sgd" } });
  expect(hasConfig(flagsOf())).toBe(false);
});

test("a file holds JSON or YAML", async () => {
  const home = await mkdtemp(join(tmpdir(), "pserver-config-"));
  onTestFinished(() => rm(home, { recursive: true }));
  const file = join(home, "c.yaml");
  await writeFile(file, "optimizer: momentum\nlearningRate: {rate: 0.1}\n");
  const configs = toConfigs(flagsOf("--config", `w=@${file}`), ["w", "v"]);
  expect(configs.get("w")).toMatchObject({ optimizer: { name: "momentum", momentum: 0.9 } });
  expect(configs.get("v")).toMatchObject({ optimizer: { name: "sgd" } });
  await writeFile(file, "- a list\n");
  expect(() => toConfigs(flagsOf("--config", `@${file}`), ["w"])).toThrow("a map of settings");
});

test.each([
  [["--config", 'nope={"l1":1}'], "BAD_VALUE", /expected a parameter of the model.*"nope"/],
  [["--config", 'w={"momentum":1}'], "BAD_CONFIG", /^"w": .*momentum/],
  [["--config", "w={"], "BAD_CONFIG", /JSON or YAML/],
  [["--optimizer", "none", "--learning-rate", "1"], "BAD_CONFIG", /^"w": .*learningRate/],
  [["--config", "@/no/such/file"], "IO", /\/no\/such\/file/],
] as const)("%j is refused as %s", (args, code, message) => {
  expect(() => toConfigs(flagsOf(...args), ["w"])).toThrow(
    expect.objectContaining({ code, message: expect.stringMatching(message) }),
  );
});

test.each([
  [["--config", "adam"], 'expected [NAME=]{"entry":value,…} or [NAME=]@FILE; received "adam"'],
  [["--optimizer", "magic"], "Allowed choices are none, sgd"],
])("%j is a wrong command line", (args, text) => {
  expect(() => flagsOf(...args)).toThrow(text);
});

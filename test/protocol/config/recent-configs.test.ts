// Proves that configurations read from messages are what each is by itself, and one object if they are equal.
import fc from "fast-check";
import { expect, test } from "vitest";
import { toConfig, toSharedConfig } from "../../../src/protocol/index.ts";
import { codeOf } from "../refusal.ts";
import { anySettings } from "./arbitrary-settings.ts";
import { optimizerBytes } from "./paddle-bytes.ts";

test("any configurations in any order are read as each by itself", () => {
  fc.assert(
    fc.property(fc.array(anySettings, { maxLength: 12 }), fc.array(fc.nat(11)), (all, order) => {
      for (const place of order) {
        const input = all[place % Math.max(1, all.length)] ?? {};
        expect(toSharedConfig(structuredClone(input))).toEqual(toConfig(input));
      }
    }),
  );
});

test("equal configurations are one object, also with others in between", () => {
  const first = toSharedConfig({ learningRate: 0.125, l1: 0.5 });
  for (const l2 of [1, 2, 3]) toSharedConfig({ l2 });
  expect(toSharedConfig({ learningRate: 0.125, l1: 0.5 })).toBe(first);
});

test("what is refused is refused again, and nothing else for it", () => {
  toSharedConfig({ l1: 0 });
  expect(codeOf(() => toSharedConfig({ l1: Number.NaN }))).toBe("BAD_CONFIG");
  expect(codeOf(() => toSharedConfig({ l1: Number.NaN }))).toBe("BAD_CONFIG");
});

test("an input that its owner changes later does not change what others get", () => {
  const input = { l1: 0.25, optimizer: { name: "momentum", momentum: 0.5 } };
  toSharedConfig(input);
  input.optimizer.momentum = 0.75;
  expect(toSharedConfig(input)).toMatchObject({ optimizer: { momentum: 0.75 } });
  const same = { l1: 0.25, optimizer: { name: "momentum", momentum: 0.5 } };
  expect(toSharedConfig(same)).toMatchObject({ optimizer: { momentum: 0.5 } });
});

test("bytes that are written over are read anew", () => {
  const [half, quarter] = [0.5, 0.25].map((l2) => optimizerBytes({ sgd: { decay: l2 } }));
  const bytes = Uint8Array.from(half ?? []);
  expect(toSharedConfig({ optimizerConfig: bytes })).toMatchObject({ l2: 0.5 });
  bytes.set(quarter ?? []);
  expect(toSharedConfig({ optimizerConfig: bytes })).toMatchObject({ l2: 0.25 });
});

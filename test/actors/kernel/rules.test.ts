// Every rule's kernel, and the passes around a rule, give to the bit what the scalar reference gives,
// for the value and every slot: on sizes around the vector width, on a block of a million elements,
// on elements of ordinary size, and on denormals, infinities, signed zeros and NaNs of any bits.
// They write nothing else. fast-check varies elements and coefficients.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ShardMemory } from "../../../src/actors/kernel/shard-memory.ts";
import { bytesOf } from "../../../src/protocol/dtypes.ts";
import { runAllInMemory, trickyData, words } from "./operands.ts";
import * as reference from "./rule-reference.ts";
import { canonicalF32, canonicalF64 } from "./scalar-reference.ts";

type FloatDtype = "float32" | "float64";
type Floats = Float32Array | Float64Array;

const memory = ShardMemory.create();
const { kernels } = memory;
const SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 17, 4096 + 3, 2 ** 18 + 1];

/** A kernel, its reference, and the coefficients both take. */
interface Case {
  readonly name: string;
  /** Operands: value, gradient and slots. */
  readonly operands: number;
  readonly coefficients: fc.Arbitrary<number[]>;
  readonly usual: number[];
  readonly kernel: (dtype: FloatDtype) => (...numbers: number[]) => void;
  readonly step: (
    arithmetic: reference.Arithmetic,
    coefficients: readonly number[],
  ) => reference.ScalarStep;
}

const rate = fc.oneof(
  fc.constantFrom(0, 1e-3, 1, -0.1, 1e-40, 1e-30, 1e30, 2 ** -126, 1e-310),
  fc.double({ min: -10, max: 10, noNaN: true }),
);
const share = fc.oneof(
  fc.constantFrom(0, 0.9, 0.999, 0.5, 1e-30, 1e-40),
  fc.double({ min: 0, max: 0.9999, noNaN: true }),
);
const epsilon = fc.constantFrom(1e-8, 1e-5, 1, 1e-30, 1e-40);
const decay = fc.constantFrom(0, 1e-5, 0.1, 1e-40);
const positive = fc.constantFrom(1e-3, 0.5, 3, 1e-39);
const penalty = fc.constantFrom(0, 0.01, 1);

const CASES: readonly Case[] = [
  {
    name: "sgd",
    operands: 2,
    coefficients: fc.tuple(rate),
    usual: [0.01],
    kernel: (dtype) => kernels[dtype === "float32" ? "sgdF32" : "sgdF64"],
    step: (a, [lr = 0]) => reference.sgd(a, lr),
  },
  ...(["momentum", "nesterov"] as const).map(
    (name): Case => ({
      name,
      operands: 3,
      coefficients: fc.tuple(rate, share, decay),
      usual: [0.01, 0.9, 1e-5],
      kernel: (dtype) => kernels[`${name}${dtype === "float32" ? "F32" : "F64"}`],
      step: (a, [lr = 0, mu = 0, loss = 0]) =>
        reference.momentum(a, name === "nesterov", lr, mu, loss),
    }),
  ),
  {
    name: "adagrad",
    operands: 3,
    coefficients: fc.tuple(rate, epsilon, decay),
    usual: [0.01, 1e-5, 1e-5],
    kernel: (dtype) => kernels[dtype === "float32" ? "adagradF32" : "adagradF64"],
    step: (a, [lr = 0, eps = 0, loss = 0]) => reference.adagrad(a, lr, eps, loss),
  },
  {
    name: "rmsprop",
    operands: 3,
    coefficients: fc.tuple(rate, share, epsilon, decay),
    usual: [0.01, 0.9, 1e-8, 1e-5],
    kernel: (dtype) => kernels[dtype === "float32" ? "rmspropF32" : "rmspropF64"],
    step: (a, [lr = 0, rho = 0, eps = 0, loss = 0]) => reference.rmsprop(a, lr, rho, eps, loss),
  },
  {
    name: "adadelta",
    operands: 4,
    coefficients: fc.tuple(rate, share, epsilon, decay),
    usual: [1, 0.9, 1e-5, 1e-5],
    kernel: (dtype) => kernels[dtype === "float32" ? "adadeltaF32" : "adadeltaF64"],
    step: (a, [lr = 0, rho = 0, eps = 0, loss = 0]) => reference.adadelta(a, lr, rho, eps, loss),
  },
  ...(["adam", "adamw", "amsgrad"] as const).map(
    (name): Case => ({
      name,
      operands: name === "amsgrad" ? 5 : 4,
      coefficients: fc.tuple(share, share, rate, epsilon, decay),
      usual: [0.9, 0.999, 0.001, 1e-8, 1e-5],
      kernel: (dtype) => kernels[`${name}${dtype === "float32" ? "F32" : "F64"}`],
      step: (a, [beta1 = 0, beta2 = 0, lr = 0, eps = 0, loss = 0]) =>
        reference.adam(a, name === "adam", beta1, beta2, lr, eps, loss),
    }),
  ),
  {
    name: "ftrl",
    operands: 4,
    coefficients: fc.tuple(fc.constantFrom(0.1, 1e-3, -0.5, 5, 1e-37), penalty, penalty, penalty),
    usual: [0.1, 1, 0.01, 0.1],
    kernel: (dtype) => kernels[dtype === "float32" ? "ftrlF32" : "ftrlF64"],
    step: (a, [alpha = 1, beta = 0, l1 = 0, l2 = 0]) => reference.ftrl(a, alpha, beta, l1, l2),
  },
  {
    name: "add",
    operands: 2,
    coefficients: fc.constant([]),
    usual: [],
    kernel: (dtype) => kernels[dtype === "float32" ? "addF32" : "addF64"],
    step: (a) => reference.add(a),
  },
  {
    name: "addScaled",
    operands: 2,
    coefficients: fc.tuple(rate),
    usual: [0.3],
    kernel: (dtype) => kernels[dtype === "float32" ? "addScaledF32" : "addScaledF64"],
    step: (a, [by = 0]) => reference.addScaled(a, by),
  },
  {
    name: "scale",
    operands: 1,
    coefficients: fc.tuple(rate),
    usual: [0.3],
    kernel: (dtype) => kernels[dtype === "float32" ? "scaleF32" : "scaleF64"],
    step: (a, [by = 0]) => reference.scale(a, by),
  },
  {
    name: "clip",
    operands: 1,
    coefficients: fc.tuple(positive),
    usual: [0.3],
    kernel: (dtype) => kernels[dtype === "float32" ? "clipF32" : "clipF64"],
    step: (a, [bound = 0]) => reference.clip(a, bound),
  },
  {
    name: "proximal",
    operands: 1,
    coefficients: fc.tuple(positive),
    usual: [0.3],
    kernel: (dtype) => kernels[dtype === "float32" ? "proximalF32" : "proximalF64"],
    step: (a, [threshold = 0]) => reference.proximal(a, threshold),
  },
];

/** The most operands that a kernel takes. */
const OPERANDS_MAX = Math.max(...CASES.map(({ operands }) => operands));

/** Powers of ten, because a million of them are slow to compute anew. */
const SCALES = Array.from({ length: 9 }, (_, at) => 10 ** (at - 6));

/** Ordinary numbers, of both signs where `signed`, over some powers of ten. */
function ordinaryData(dtype: FloatDtype, n: number, signed: boolean, next: () => number): Floats {
  const data = dtype === "float32" ? new Float32Array(n) : new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const size = (1 + next() / 2 ** 32) * (SCALES[next() % SCALES.length] ?? 1);
    data[i] = signed && next() % 2 === 0 ? -size : size;
  }
  return data;
}

const operandsMade = new Map<string, readonly Floats[]>();

/** Operands of `n` ordinary elements, made once: every kernel is given the first ones that it takes. */
function ordinaryOperands(dtype: FloatDtype, n: number): readonly Floats[] {
  const key = `${dtype} ${n}`;
  const known = operandsMade.get(key);
  if (known !== undefined) return known;
  const next = words(n + 1);
  const made = Array.from({ length: OPERANDS_MAX }, (_, at) =>
    ordinaryData(dtype, n, at < 3, next),
  );
  operandsMade.set(key, made);
  return made;
}

/** What a kernel stores, and so what slots hold: canonical NaNs only. */
function canonical(dtype: FloatDtype, floats: Floats): Floats {
  return dtype === "float32" ? canonicalF32(floats) : canonicalF64(floats);
}

/** What the reference makes of the operands; the gradient, which it does not change, stays out. */
function stepAll(apply: reference.ScalarStep, data: readonly Floats[]): readonly Float64Array[] {
  const n = data[0]?.length ?? 0;
  const results = data.map(() => new Float64Array(n));
  const element = data.map(() => 0);
  // Plain loops: with an array or two more for each element a block of a million takes seconds.
  for (let i = 0; i < n; i++) {
    for (let at = 0; at < data.length; at++) element[at] = data[at]?.[i] ?? 0;
    const after = apply(element);
    for (let at = 0; at < after.length; at++) {
      const result = results[at === 0 ? 0 : at + 1];
      if (result !== undefined) result[i] = after[at] ?? Number.NaN;
    }
  }
  return results;
}

/** Where the kernel and the reference differ first, or undefined. */
function difference(
  { kernel, step }: Case,
  dtype: FloatDtype,
  data: readonly Floats[],
  coefficients: readonly number[],
): string | undefined {
  const n = data[0]?.length ?? 0;
  const actual = runAllInMemory(memory, data, (pointers) =>
    kernel(dtype)(...pointers, n, ...coefficients),
  );
  const results = stepAll(step(reference.ARITHMETIC[dtype], coefficients), data);
  for (const [at, result] of results.entries()) {
    const expected = at === 1 ? data[1] : canonical(dtype, result);
    const found = Buffer.from(actual[at] ?? []);
    if (expected === undefined || found.equals(bytesOf(expected))) continue;
    const Type = dtype === "float32" ? Float32Array : Float64Array;
    const values = new Type(Uint8Array.from(found).buffer);
    const i = values.findIndex((x, j) => !Object.is(x, expected[j]));
    const given = data.map((operand) => operand[i]).join(", ");
    return `operand ${at}, element ${i} of ${n}: expected ${expected[i]}; received ${values[i]}; from ${given}; coefficients ${coefficients}`;
  }
  return undefined;
}

const seed = fc.integer();
const length = fc.nat({ max: 70 });

describe.each(["float32", "float64"] as const)("%s", (dtype) => {
  describe.each(CASES)("$name", (rule) => {
    test.each(SIZES)("%i ordinary elements", (n) => {
      const data = ordinaryOperands(dtype, n).slice(0, rule.operands);
      expect(difference(rule, dtype, data, rule.usual)).toBeUndefined();
    });

    test("any elements and coefficients", () => {
      fc.assert(
        fc.property(seed, length, rule.coefficients, (from, n, coefficients) => {
          const next = words(from);
          const data = Array.from({ length: rule.operands }, (_, at) => {
            const operand = trickyData(dtype, n, next) as Floats;
            return at < 2 ? operand : canonical(dtype, operand);
          });
          expect(difference(rule, dtype, data, coefficients)).toBeUndefined();
        }),
        { numRuns: 300 },
      );
    });
  });
});

// The committed modules are what the committed sources compile to: they are built again here, in
// memory, and compared byte by byte. That of hosts exports what the interface names and nothing more.

import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { compileModule, KERNEL_MODULES, renderModule } from "../../../scripts/build-kernels.mjs";
import { ShardMemory } from "../../../src/actors/kernel/shard-memory.ts";

test.each(KERNEL_MODULES)("$target is what $assembly compiles to", async (module) => {
  const wasm = await compileModule(module);
  const file = new URL(`../../../${module.target}`, import.meta.url);
  expect(await readFile(file, "utf8")).toBe(renderModule(module, wasm));
});

test("the module exports the kernels and nothing else", () => {
  expect(Object.keys(ShardMemory.create().kernels).sort()).toEqual([
    "adadeltaF32",
    "adadeltaF64",
    "adagradF32",
    "adagradF64",
    "adamF32",
    "adamF64",
    "adamRowsF32",
    "adamRowsF64",
    "adamwF32",
    "adamwF64",
    "adamwRowsF32",
    "adamwRowsF64",
    "addF32",
    "addF64",
    "addI32",
    "addI64",
    "addScaledF32",
    "addScaledF64",
    "amsgradF32",
    "amsgradF64",
    "amsgradRowsF32",
    "amsgradRowsF64",
    "canonicalF32",
    "canonicalF64",
    "clearRows",
    "clipF32",
    "clipF64",
    "cosF64",
    "countAll",
    "countRows",
    "finiteBf16",
    "finiteF16",
    "finiteF32",
    "finiteF64",
    "ftrlF32",
    "ftrlF64",
    "gatherRows",
    "groupRows",
    "measureF32",
    "measureF64",
    "measureI32",
    "measureI64",
    "measureU32",
    "measureU64",
    "measured",
    "mixF32",
    "mixF64",
    "mixI32",
    "mixI64",
    "mixU32",
    "mixU64",
    "momentumF32",
    "momentumF64",
    "narrowBf16",
    "narrowF16",
    "nesterovF32",
    "nesterovF64",
    "numberRows",
    "powF64",
    "proximalF32",
    "proximalF64",
    "rmspropF32",
    "rmspropF64",
    "sameCounts",
    "scaleF32",
    "scaleF64",
    "scatterRows",
    "sgdF32",
    "sgdF64",
    "touchRows",
    "touchedRows",
    "widenBf16",
    "widenF16",
  ]);
});

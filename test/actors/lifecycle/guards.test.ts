// Proves that parameters get the guard of their job when they are declared, unless they name one or cannot have one, in
// whatever way and however often they are declared.
import { describe, expect, test } from "vitest";
import { toGuard } from "../../../src/protocol/config/index.ts";
import { Rig, refused, weights } from "./rig.ts";

const GUARD = toGuard({ factor: 3, action: "clip", history: "cohort" });
const OWN = toGuard({ deviations: 4 });

describe("a parameter of a job with a guard", () => {
  test("is declared with it, unless it names one or none", async () => {
    const rig = new Rig({ guard: GUARD });
    const session = await rig.join("a");
    await rig.begin("a", session);
    const declared = [
      weights("w"),
      weights("own", { config: { guard: OWN } }),
      weights("none", { config: { guard: "off" } }),
      weights("static", { config: { static: true } }),
      weights("any", { config: { allowNonFinite: true } }),
      weights("whole", { dtype: "int32" }),
    ];
    const infos = await rig.declare("a", session, 1, declared);
    expect(infos.map(({ config }) => config.guard)).toEqual([
      ...[GUARD, OWN, "off", undefined, undefined, undefined],
    ]);
    // Again, by another host.
    expect(await rig.declare("a", session, 1, declared, 1)).toEqual(infos);
  });

  test("is created with it, also by the next trainer", async () => {
    const rig = new Rig({ guard: GUARD });
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    const { info } = await rig.create("a", a, weights("w"));
    expect(info.config.guard).toEqual(GUARD);
    expect((await rig.create("a", a, weights("w"), 1)).info).toEqual(info);
    expect((await rig.create("b", b, weights("w"))).info.config.guard).toEqual(GUARD);
  });
});

test("a job without a guard gives none", async () => {
  const rig = new Rig();
  const session = await rig.join("a");
  expect((await rig.create("a", session, weights("w"))).info.config).not.toHaveProperty("guard");
});

test("a guard of elements that are no floats is refused", async () => {
  const rig = new Rig();
  const session = await rig.join("a");
  const parameter = weights("w", { dtype: "int64", config: { guard: OWN } });
  const text = '"w": config.guard: expected none for elements of int64';
  await refused("BAD_CONFIG", rig.create("a", session, parameter), text);
});

// Proves that a number names one block of a job for ever: whichever hosts declare, at whatever time, and though the
// entry of the last number given is lost or an older one, no number is given twice.
import { expect, test } from "vitest";
import { BLOCK_NUMBER_MAX, type ParameterInfo } from "../../../src/protocol/index.ts";
import { Rig, refused, weights } from "./rig.ts";

const COUNTER = "blocks";
const LARGE = { shape: [3, 1024, 1024] };

/** The numbers of all blocks of parameters, ascending. */
function numbersOf(infos: readonly ParameterInfo[]): number[] {
  return infos
    .flatMap(({ firstNumber, layout }) =>
      Array.from({ length: layout.blocks }, (_, index) => firstNumber + index),
    )
    .toSorted((a, b) => a - b);
}

function upTo(last: number): number[] {
  return Array.from({ length: last }, (_, i) => i + 1);
}

/** Takes the entry of the last number back to an older one, or away. */
async function fallBack(rig: Rig, last: number): Promise<void> {
  const stored = await rig.bucket.read(COUNTER);
  await rig.bucket.remove(COUNTER, stored?.revision ?? 0);
  if (last > 0) await rig.bucket.create(COUNTER, { format: 1, last });
}

async function selected(rig: Rig): Promise<number> {
  const session = await rig.join("a");
  await rig.begin("a", session);
  return session;
}

test("blocks that two hosts declare at one time have different numbers, without gaps", async () => {
  const rig = new Rig();
  const session = await selected(rig);
  const declared = await Promise.all([
    rig.declare("a", session, 1, [weights("large", LARGE), weights("v")]),
    rig.declare("a", session, 1, [weights("w"), weights("larger", LARGE)], 1),
  ]);
  expect(numbersOf(declared.flat())).toEqual(upTo(26));
});

test("what is declared again keeps its numbers", async () => {
  const rig = new Rig();
  const session = await selected(rig);
  const [first] = await rig.declare("a", session, 1, [weights("w")]);
  const [again] = await rig.declare("a", session, 1, [weights("w")], 1);
  expect(again).toEqual(first);
  expect((await rig.bucket.read(COUNTER))?.value).toMatchObject({ last: 1 });
});

test("an initialization anew has new numbers", async () => {
  const rig = new Rig();
  const session = await selected(rig);
  const before = await rig.declare("a", session, 1, [weights("v"), weights("w")]);
  await rig.ask("a", "abort", { session, epoch: 1 });
  const other = await rig.join("b");
  const { epoch } = await rig.begin("b", other);
  const after = await rig.declare("b", other, epoch, [weights("w"), weights("v", LARGE)]);
  expect(numbersOf(before)).toEqual([1, 2]);
  expect(numbersOf(after)).toEqual(upTo(15).slice(2));
});

test.each([0, 1, 5])(
  "with the last number back at %i, the numbers of known parameters are not given again",
  async (last) => {
    const rig = new Rig();
    const session = await selected(rig);
    const known = await rig.declare("a", session, 1, [weights("large", LARGE), weights("v")]);
    await fallBack(rig, last);
    const fresh = await rig.declare("a", session, 1, [weights("w")], 1);
    expect(numbersOf([...known, ...fresh])).toEqual(upTo(14));
    expect((await rig.bucket.read(COUNTER))?.value).toMatchObject({ last: 14 });
  },
);

test("there are no numbers beyond the last, and what asks for them declares nothing", async () => {
  const rig = new Rig();
  const session = await selected(rig);
  await fallBack(rig, BLOCK_NUMBER_MAX - 1);
  await refused(
    "TOO_LARGE",
    rig.declare("a", session, 1, [weights("large", LARGE)]),
    `at most ${BLOCK_NUMBER_MAX} blocks`,
  );
  const { parameters } = await rig.status({ names: ["large"] });
  expect(parameters).toEqual([null]);
  const [info] = await rig.declare("a", session, 1, [weights("w")]);
  expect(info?.firstNumber).toBe(BLOCK_NUMBER_MAX);
});

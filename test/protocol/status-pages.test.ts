// Proves that reading page after page gives every parameter once, the latest positions of all pages, and
// comes to an end, with requests that the test answers.
import { expect, test } from "vitest";
import { toConfig } from "../../src/protocol/config/index.ts";
import type { ParameterInfo, StatusReply, StatusRequest } from "../../src/protocol/index.ts";
import { readStatusPages } from "../../src/protocol/messages/lifecycle-messages.ts";

function info(name: string): ParameterInfo {
  return {
    name,
    dtype: "float32",
    shape: [1],
    config: toConfig(),
    epoch: 1,
    ready: true,
    layout: { elements: 1, blockElements: 1, blocks: 1, firstShard: 0, shards: 2 },
    firstNumber: 1,
  };
}

function page(names: readonly string[], more: boolean, seqs: readonly number[]): StatusReply {
  const at = seqs.map((seq) => ({ generation: 1, seq }));
  const parameters = names.map(info);
  return { state: "ready", epoch: 3, by: "t", shards: 2, parameters, more, at };
}

test("each page begins after the last name of the one before", async () => {
  const asked: StatusRequest[] = [];
  const pages = [page(["a", "b"], true, [5, 2]), page(["c"], true, []), page(["d"], false, [4, 9])];
  const { status, parameters } = await readStatusPages(async (request) => {
    asked.push(request);
    return pages[asked.length - 1] ?? page([], false, []);
  });
  expect(asked.map(({ after }) => after)).toEqual([undefined, "b", "c"]);
  expect(parameters.map(({ name }) => name)).toEqual(["a", "b", "c", "d"]);
  expect(status).toMatchObject({ state: "ready", epoch: 3, more: false });
  expect(status.at.map(({ seq }) => seq)).toEqual([5, 9]);
});

test("an empty page is the last, whatever it says", async () => {
  const { parameters } = await readStatusPages(async () => page([], true, []));
  expect(parameters).toEqual([]);
});

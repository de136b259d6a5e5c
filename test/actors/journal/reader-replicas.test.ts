// Proves what a reader does if several brokers have copies of a journal and these differ: it reads what one copy lacks
// or cannot deliver from another one, says which broker's copy is damaged, and hands on only what all copies lack.
// The broker is a connection that says on which brokers the consumers are, one after the other.
import { expect, test } from "vitest";
import { TestReader } from "./test-reader.ts";

const WINDOW = 10;

async function started(...brokers: string[]): Promise<TestReader> {
  const reader = new TestReader(WINDOW, true);
  reader.line.brokers.push(...brokers);
  await reader.start();
  return reader;
}

const settle = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
};

const seqs = ({ delivered }: TestReader): number[] => delivered.map(({ seq }) => seq);

test("records say from which broker's copy they are; without replicas they do not", async () => {
  const reader = await started("a");
  reader.records(5, 5);
  expect(reader.delivered).toMatchObject([{ seq: 5, broker: "a" }]);
  const single = new TestReader(WINDOW);
  single.line.brokers.push("a");
  await single.start();
  single.records(5, 5);
  expect(single.delivered).toMatchObject([{ seq: 5, broker: undefined }]);
});

test("a record that one copy lacks is read from another one, and the damaged one is told and not read again", async () => {
  const reader = await started("a", "a", "a", "b", "a", "b");
  reader.records(5, 5);
  reader.records(8, 8);
  await settle();
  // Consumers on a are made again until one is on b.
  expect(reader.line.consumers).toHaveLength(4);
  expect(reader.damaged).toEqual([]);
  reader.records(6, 8);
  expect([seqs(reader), reader.damaged]).toEqual([
    [5, 6, 7, 8],
    [{ broker: "a", from: 6, to: 7, isOther: false }],
  ]);
  await reader.reader.reset();
  expect(reader.line.consumers).toHaveLength(6);
});

test("a gap is handed on once every copy has it, and no copy counts as damaged", async () => {
  const reader = await started("a", "b", "c", "a");
  for (let copies = 1; copies <= 3; copies++) {
    reader.records(7, 7);
    await settle();
    expect(seqs(reader)).toEqual([]);
  }
  // There is no further copy: the last consumer is on a broker that has been asked.
  reader.records(7, 8);
  expect([seqs(reader), reader.damaged]).toEqual([[7, 8], []]);
  reader.line.brokers.splice(0, 1, "a");
  const made = reader.line.consumers.length;
  await reader.reader.reset();
  expect(reader.line.consumers).toHaveLength(made + 1);
});

test("after the connection was lost at a record, the copy of another broker is read", async () => {
  const reader = await started("a", "a", "b");
  await reader.reader.reconnected();
  expect(reader.line.consumers).toHaveLength(3);
  reader.records(5, 5);
  expect(reader.delivered).toMatchObject([{ broker: "b" }]);
});

test("a leader's record that cannot be delivered is read from another broker", async () => {
  const reader = await started("c", "a", "c", "b");
  reader.line.leader = "a";
  reader.line.stored.set(5, "ps.j.log.3.trainer.a.push w");
  await reader.reader.reconnected();
  expect([reader.failed, reader.damaged]).toEqual([
    [],
    [{ broker: "a", from: 5, to: 5, isOther: false }],
  ]);
  reader.records(5, 5);
  expect(reader.delivered).toMatchObject([{ broker: "b" }]);
});

test("without any other broker the copy that is there is read", async () => {
  const reader = await started("a");
  reader.reader.avoid("a");
  await reader.reader.reset();
  reader.records(5, 5);
  expect(reader.delivered).toMatchObject([{ broker: "a" }]);
});

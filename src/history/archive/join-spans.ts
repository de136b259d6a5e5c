import type { JournalSpan } from "../source.ts";

/** Spans without those that others continue or cover: by generation and record, ascending. */
export function joinSpans(spans: readonly JournalSpan[]): JournalSpan[] {
  const sorted = [...spans].sort((a, b) => a.generation - b.generation || a.firstSeq - b.firstSeq);
  const joined: JournalSpan[] = [];
  for (const { generation, firstSeq, lastSeq } of sorted) {
    const last = joined.at(-1);
    if (last?.generation === generation && firstSeq <= last.lastSeq + 1) {
      joined[joined.length - 1] = { ...last, lastSeq: Math.max(last.lastSeq, lastSeq) };
    } else {
      joined.push({ generation, firstSeq, lastSeq });
    }
  }
  return joined;
}

/** The records that spans lack between two that they have, and before the first of a first generation. */
export function gapsBetween(spans: readonly JournalSpan[]): JournalSpan[] {
  const gaps: JournalSpan[] = [];
  for (const [i, { generation, firstSeq }] of spans.entries()) {
    const before = spans[i - 1];
    const nextSeq = before?.generation === generation ? before.lastSeq + 1 : 1;
    if (firstSeq > nextSeq) gaps.push({ generation, firstSeq: nextSeq, lastSeq: firstSeq - 1 });
  }
  return gaps;
}

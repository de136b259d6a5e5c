import type { CommandUsage } from "./debugger.ts";
import type { FailoverTime } from "./failover.ts";
import type { HostMemory } from "./host-memory.ts";
import type { KernelResult } from "./kernels.ts";
import type { Latency } from "./ours.ts";
import type { SmallCalls } from "./python-client.ts";
import type { ReplaySpeed } from "./replay.ts";
import type { Throughput } from "./rounds.ts";
import type { RuleResult } from "./rules.ts";
import { type SlowSteps, slowStepRows, slowStepTargets } from "./slow-link-steps.ts";
import type { Spread } from "./statistics.ts";
import type { BackgroundSteps } from "./steps/background-steps.ts";
import type { InitializationTime } from "./steps/our-steps.ts";
import { initializationRows, stepRows } from "./steps/step-table.ts";
import type { StepTime } from "./steps/step-times.ts";
import { tableText } from "./table.ts";
import type { TapeCost } from "./tape-cost.ts";
import type { SparseTraffic } from "./traffic.ts";

/** All results of a run. */
export interface Findings {
  readonly machine: string;
  readonly throughput: readonly Throughput[];
  readonly latency: readonly Latency[];
  readonly calls: readonly SmallCalls[];
  readonly sparse: readonly SparseTraffic[];
  readonly slowSteps: readonly SlowSteps[];
  readonly steps: readonly StepTime[];
  readonly initializations: readonly InitializationTime[];
  readonly background: readonly BackgroundSteps[];
  readonly scale: readonly StepTime[];
  readonly replay: readonly ReplaySpeed[];
  readonly commands: readonly CommandUsage[];
  readonly tape: readonly TapeCost[];
  readonly failover: readonly FailoverTime[];
  readonly memory: readonly HostMemory[];
  readonly kernels: readonly KernelResult[];
  readonly rules: readonly RuleResult[];
}

/** A target, and the result. */
export interface Target {
  readonly name: string;
  readonly aim: string;
  readonly found: string;
  readonly met: boolean;
}

const SGD_RATIO = 3;

/** The target share of the speed of a copy for a rule on 1 MiB. */
const COPY_RATIOS: Readonly<Record<string, number>> = { sgd: 0.6, adam: 0.5 };

/** The share of a whole push's bytes that a push of a hundredth of the rows is to stay below. */
const SPARSE_SHARE = 0.03;

/** How many times longer denormals may make a rule. */
const DENORMAL_SLOWDOWN = 2;

/** Lists the targets for which a run has results. The median decides whether one is met. */
export function targetsOf(findings: Findings): Target[] {
  const ratios = findings.throughput.flatMap(({ name, baseline, ratio, target }) =>
    ratio === undefined || target === undefined
      ? []
      : [
          {
            name,
            aim: `≥ ${Number(target.toFixed(2))} of ${baseline?.split(", ").at(-1)}`,
            found: range(ratio, 2),
            met: ratio.median >= target,
          },
        ],
  );
  const memory = findings.memory.map(({ name, peakMb, targetMb }) => ({
    name,
    aim: `< ${targetMb.toFixed(0)} MB`,
    found: `${peakMb.toFixed(0)} MB`,
    met: peakMb < targetMb,
  }));
  const kernels = findings.kernels
    .filter(({ name }) => name === "sgdF32")
    .map(({ name, ratioToPlainJs }) => ({
      name: `kernels, ${name}`,
      aim: `≥ ${SGD_RATIO} times plain JS`,
      found: ratioToPlainJs.toFixed(1),
      met: ratioToPlainJs >= SGD_RATIO,
    }));
  const sparse = findings.sparse.map(({ name, fullBytes, sparseBytes }) => ({
    name,
    aim: `< ${100 * SPARSE_SHARE} % of a whole push's bytes`,
    found: `${((100 * sparseBytes) / fullBytes).toFixed(2)} %`,
    met: sparseBytes < SPARSE_SHARE * fullBytes,
  }));
  const replay = findings.replay.map(({ name, ratio, target }) => ({
    name,
    aim: `≥ ${target} of ordered consumers`,
    found: range(ratio, 2),
    met: ratio.median >= target,
  }));
  const { commands, tape, failover } = findings;
  const history = [...replay, ...commandTargets(commands), ...tapeTargets(tape)];
  const faults = failoverTargets(failover);
  const links = slowStepTargets(findings.slowSteps);
  const computing = [...memory, ...kernels, ...ruleTargets(findings.rules)];
  const steps = backgroundTargets(findings.background);
  return [...ratios, ...links, ...steps, ...sparse, ...history, ...faults, ...computing];
}

/** A snapshot that is due is put off by half of the interval at most, and then takes its time. */
const BEHIND_MAX = 2;

function backgroundTargets(found: readonly BackgroundSteps[]): Target[] {
  return found.flatMap(({ name, ratio, behind, target }) =>
    target === undefined
      ? []
      : [
          {
            name,
            aim: `slowest tenth ≤ ${target} times the median, snapshots < ${BEHIND_MAX} intervals behind`,
            found: `${range(ratio, 2)}, ${behind.toFixed(2)}`,
            met: ratio.median <= target && behind < BEHIND_MAX,
          },
        ],
  );
}

function commandTargets(commands: readonly CommandUsage[]): Target[] {
  return commands.flatMap(({ name, perSecond, target }) =>
    target === undefined
      ? []
      : [
          {
            name,
            aim: `≥ ${target} updates a second`,
            found: range(perSecond, 0),
            met: perSecond.median >= target,
          },
        ],
  );
}

function tapeTargets(tape: readonly TapeCost[]): Target[] {
  return tape.map(({ name, cost, target }) => ({
    name,
    aim: `< ${percent(target)} of the host's CPU time`,
    found: percent(cost),
    met: cost < target,
  }));
}

function failoverTargets(failover: readonly FailoverTime[]): Target[] {
  return failover.map(({ name, stallMs, targetMs, errors }) => ({
    name,
    aim: `< ${(targetMs / 1e3).toFixed(1)} s, and no push fails`,
    found: `${seconds(stallMs)} s, ${errors.length} failed`,
    met: stallMs.median < targetMs && errors.length === 0,
  }));
}

function ruleTargets(rules: readonly RuleResult[]): Target[] {
  const copies = rules.flatMap(({ name, bytes, ratioToCopy }) => {
    const aim = COPY_RATIOS[name];
    return aim === undefined || bytes > 1024 ** 2
      ? []
      : [
          {
            name: `rules, ${name}, ${mebibytes(bytes)}`,
            aim: `≥ ${aim} of a copy`,
            found: ratioToCopy.toFixed(2),
            met: ratioToCopy >= aim,
          },
        ];
  });
  if (rules.length === 0) return copies;
  const worst = Math.max(...rules.map(({ denormalSlowdown }) => denormalSlowdown));
  const denormals = {
    name: "rules, denormals, the worst rule",
    aim: `≤ ${DENORMAL_SLOWDOWN} times ordinary numbers`,
    found: worst.toFixed(2),
    met: worst <= DENORMAL_SLOWDOWN,
  };
  return [...copies, denormals];
}

/** Writes the results as tables, which are also valid Markdown. */
export function reportText(findings: Findings): string {
  const sections: [string, string[][]][] = [
    ["Throughput: median (min–max) of the rounds", throughputRows(findings.throughput)],
    ["Latency of one call at a time, ms", latencyRows(findings.latency)],
    ["Small calls one after the other: median (min–max) of the rounds", callRows(findings.calls)],
    ["Steps through a slow link", slowStepRows(findings.slowSteps)],
    [
      "Training steps of one trainer, both ways: median (min–max) of the rounds",
      stepRows(findings.steps),
    ],
    ["Steps while snapshots are made", backgroundRows(findings.background)],
    ["Initialization, from begin to finish", initializationRows(findings.initializations)],
    ["Scale: a step of growing size, on file", stepRows(findings.scale)],
    ["Bytes in the journals", sparseRows(findings.sparse)],
    ["Replay of journals: median (min–max) of the rounds", replayRows(findings.replay)],
    ["Commands of the debugger: median (min–max) of the rounds", commandRows(findings.commands)],
    ["The tape: CPU s of the host per GB of gradients", tapeRows(findings.tape)],
    ["Failover: the longest wait of a push, s", failoverRows(findings.failover)],
    ["Memory of a host, MB", memoryRows(findings.memory)],
    ["Kernels, float32, a block of 1 MiB in cache", kernelRows(findings.kernels)],
    ["Rules, float32: bytes read and written", ruleRows(findings.rules)],
    ["Targets", targetRows(targetsOf(findings))],
  ];
  const tables = sections
    .filter(([, rows]) => rows.length > 1)
    .map(([title, rows]) => `${title}\n\n${tableText(rows)}`);
  return `${findings.machine}\n\n${tables.join("\n\n")}`;
}

function backgroundRows(found: readonly BackgroundSteps[]): string[][] {
  return [
    ["measurement", "median ms", "slowest tenth from, ms", "ratio", "behind"],
    ...found.map(({ name, p50Ms, p90Ms, ratio, behind, target }) => [
      name,
      range(p50Ms, 1),
      range(p90Ms, 1),
      range(ratio, 2),
      target === undefined ? "" : behind.toFixed(2),
    ]),
  ];
}

function throughputRows(found: readonly Throughput[]): string[][] {
  const titles = ["measurement", "MB/s", "ratio to raw", "CPU to raw", "CPU s per GB", "peak MB"];
  return [
    titles,
    ...found.map(({ name, mbPerSecond, ratio, cpuRatio, cpuSecondsPerGb, peakMb }) => [
      name,
      range(mbPerSecond, 0),
      ratio === undefined ? "" : range(ratio, 2),
      cpuRatio?.toFixed(2) ?? "",
      roles(cpuSecondsPerGb, 2),
      roles(peakMb, 0),
    ]),
  ];
}

function latencyRows(found: readonly Latency[]): string[][] {
  return [
    ["measurement", "calls", "p50", "p95", "p99", "MB/s at p50"],
    ...found.map(({ name, calls, bytes, p50Ms, p95Ms, p99Ms }) => [
      name,
      String(calls),
      ...[p50Ms, p95Ms, p99Ms].map((ms) => ms.toFixed(2)),
      (bytes / p50Ms / 1e3).toFixed(0),
    ]),
  ];
}

function callRows(found: readonly SmallCalls[]): string[][] {
  return [
    ["measurement", "µs a call", "times as long as in C"],
    ...found.map(({ name, usEach, ratioToC }) => [
      name,
      range(usEach, 0),
      ratioToC === undefined ? "" : range(ratioToC, 2),
    ]),
  ];
}

function sparseRows(found: readonly SparseTraffic[]): string[][] {
  return [
    ["measurement", "whole push", "sparse push"],
    ...found.map(({ name, fullBytes, sparseBytes }) => [
      name,
      String(fullBytes),
      String(sparseBytes),
    ]),
  ];
}

function replayRows(found: readonly ReplaySpeed[]): string[][] {
  return [
    ["measurement", "journals MB", "raw MB/s", "replay MB/s", "ratio", "peak MB"],
    ...found.map(({ name, journalMb, rawMbPerSecond, replayMbPerSecond, ratio, peakMb }) => [
      name,
      journalMb.toFixed(0),
      range(rawMbPerSecond, 0),
      range(replayMbPerSecond, 0),
      range(ratio, 2),
      peakMb.toFixed(0),
    ]),
  ];
}

function commandRows(found: readonly CommandUsage[]): string[][] {
  return [
    ["measurement", "journals MB", "updates", "s", "updates/s", "updates/CPU s", "peak MB"],
    ...found.map(({ name, journalMb, updates, seconds, perSecond, perCpuSecond, peakMb }) => [
      name,
      journalMb.toFixed(0),
      updates.toFixed(0),
      range(seconds, 2),
      range(perSecond, 0),
      range(perCpuSecond, 0),
      peakMb.toFixed(0),
    ]),
  ];
}

function tapeRows(found: readonly TapeCost[]): string[][] {
  return [
    ["measurement", "without", "with", "cost"],
    ...found.map(({ name, withoutTape, withTape, cost }) => [
      name,
      range(withoutTape, 2),
      range(withTape, 2),
      percent(cost),
    ]),
  ];
}

function failoverRows(found: readonly FailoverTime[]): string[][] {
  return [
    ["measurement", "push", "plain message", "failed pushes"],
    ...found.map(({ name, stallMs, rawStallMs, errors }) => [
      name,
      seconds(stallMs),
      rawStallMs === undefined ? "" : seconds(rawStallMs),
      String(errors.length),
    ]),
  ];
}

function seconds({ median, min, max }: Spread): string {
  return range({ median: median / 1e3, min: min / 1e3, max: max / 1e3 }, 1);
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function memoryRows(found: readonly HostMemory[]): string[][] {
  return [
    ["measurement", "empty", "initialized", "peak", "target"],
    ...found.map(({ name, emptyMb, initializedMb, peakMb, targetMb }) => [
      name,
      ...[emptyMb, initializedMb, peakMb, targetMb].map((mb) => mb.toFixed(0)),
    ]),
  ];
}

function kernelRows(found: readonly KernelResult[]): string[][] {
  return [
    ["kernel", "GB/s", "times plain JS"],
    ...found.map(({ name, gbPerSecond, ratioToPlainJs }) => [
      name,
      gbPerSecond.toFixed(1),
      ratioToPlainJs.toFixed(1),
    ]),
  ];
}

function ruleRows(found: readonly RuleResult[]): string[][] {
  return [
    ["rule", "parameter", "GB/s", "ratio to a copy", "times longer with denormals"],
    ...found.map(({ name, bytes, gbPerSecond, ratioToCopy, denormalSlowdown }) => [
      name,
      mebibytes(bytes),
      gbPerSecond.toFixed(1),
      ratioToCopy.toFixed(2),
      denormalSlowdown.toFixed(2),
    ]),
  ];
}

function mebibytes(bytes: number): string {
  return `${bytes / 1024 ** 2} MiB`;
}

function targetRows(targets: readonly Target[]): string[][] {
  return [
    ["target", "aim", "found", "met"],
    ...targets.map(({ name, aim, found, met }) => [name, aim, found, met ? "yes" : "MISSED"]),
  ];
}

function range({ median, min, max }: Spread, digits: number): string {
  const text = median.toFixed(digits);
  return min === max ? text : `${text} (${min.toFixed(digits)}–${max.toFixed(digits)})`;
}

function roles(values: Readonly<Record<string, number>>, digits: number): string {
  return Object.entries(values)
    .map(([role, value]) => `${role} ${value.toFixed(digits)}`)
    .join(", ");
}

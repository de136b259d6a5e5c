import { relative } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { loadDigits } from "./dataset.ts";
import { DemoProcesses } from "./demo-processes.ts";
import { amount, Display, percent, seconds } from "./display.ts";
import { keepModel, nextSteps } from "./kept-model.ts";
import { Observer } from "./observer.ts";
import { Servers } from "./servers.ts";
import { Team } from "./team.ts";
import { Watch } from "./watch.ts";

// The demo: three to four trainer processes teach a network to read digits through a parameter
// server that loses a trainer and a host on the way. No acknowledged update may be lost or applied twice.

const JOB = "digits";

/**
 * Directory for the model and the data of the server, and number of updates after which training ends:
 * `node main.js DIRECTORY UPDATES`.
 */
const DIRECTORY = process.argv[2] ?? ".";
const UPDATES = Number(process.argv[3] ?? 2_000);
const ACCURACY_MIN = 0.93;

/** Numbers of updates at which something happens. */
const LATE_TRAINER_AT = 300;
const TRAINER_KILLED_AT = 600;
const HOST_KILLED_AT = 900;

/**
 * Limits on a slow machine: after so long, training ends with fewer updates, but with so many at
 * least.
 */
const UPDATES_MIN = 1_400;
const TRAINING_MS = 75_000;

const TIMEOUT_MS = 300_000;
const POLL_MS = 20;

// Placement gives a host of this name shards of the model whatever the name of the first host is,
// except in one run of ten thousand.
const DOOMED_HOST = "blue";
const SPARE_HOST = "red";

// The demo's own broker needs no credentials: settings for another broker must not be used.
for (const name of Object.keys(process.env)) if (name.startsWith("NATS_")) delete process.env[name];

const startedMs = performance.now();
const display = new Display(process.stdout);
const processes = new DemoProcesses(TIMEOUT_MS);
try {
  await Promise.race([run(), processes.failed]);
} catch (error) {
  display.finish();
  display.tell(`The demo failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
await processes.end();
process.exit();

async function run(): Promise<void> {
  display.tell("Starting a broker, two hosts and three trainers");
  const [servers, { test }] = await Promise.all([
    Servers.start(processes, JOB, DIRECTORY),
    loadDigits(),
  ]);
  const observer = await Observer.join(servers.url, JOB, test);
  const doomed = await servers.addHost(DOOMED_HOST);
  display.tell(`nats-server ${servers.brokerVersion} runs at ${servers.url}, and two hosts`);
  const team = new Team((name, args, onMessage) => {
    const all = ["--url", servers.url, "--job", JOB, ...args];
    return processes.start(name, "trainer", all, onMessage);
  });
  for (const seed of [1, 2, 3]) team.add(`trainer-${seed}`, seed);
  const watch = new Watch({ display, team, observer, processes, updatesWanted: UPDATES });

  await until(() => team.updates >= LATE_TRAINER_AT);
  display.tell("trainer-4 joins late");
  team.add("trainer-4", 4);

  await until(() => team.updates >= TRAINER_KILLED_AT);
  display.tell("trainer-2 gets SIGKILL; the others go on");
  await team.kill("trainer-2");

  await until(() => team.updates >= HOST_KILLED_AT);
  const recoveryMs = await killHost();
  await servers.addHost(SPARE_HOST);
  const moved = await servers.shardsOf(SPARE_HOST);
  display.tell(`host ${SPARE_HOST} has joined and taken over ${moved.length} shards in order`);

  await until(
    () =>
      team.updates >= UPDATES || (team.updates >= UPDATES_MIN && watch.elapsedMs >= TRAINING_MS),
  );
  await team.finish();
  const { evaluation, applied } = await observer.observe();
  watch.end(evaluation);

  const known = team.updates;
  const unanswered = team.unanswered;
  display.tell(`
updates   ${amount(known)} acknowledged, ${unanswered} under way when trainer-2 was killed
          ${range(applied)} applied to each parameter`);
  for (const count of applied) {
    check(
      known <= count && count <= known + unanswered,
      `expected ${known} to ${known + unanswered} applied updates; found ${applied}`,
    );
  }
  display.tell("          none lost, none doubled");
  display.tell(`accuracy  ${percent(evaluation)} of ${amount(observer.digits)} digits never seen`);
  check(evaluation.accuracy >= ACCURACY_MIN, `expected an accuracy of ${ACCURACY_MIN} or more`);
  const saved = await observer.saveAndScore("digits.safetensors");
  const same =
    saved.evaluation.loss === evaluation.loss && saved.evaluation.accuracy === evaluation.accuracy;
  check(same, `the saved model scores differently: ${JSON.stringify(saved.evaluation)}`);
  const kept = await keepModel(saved.file, DIRECTORY);
  display.tell(`model     ${relative(process.cwd(), kept)}, ${amount(saved.bytes)} bytes; read by a new process: the same loss
recovery  ${seconds(recoveryMs)} from the kill of the host until every trainer trained again
total     ${seconds(performance.now() - startedMs)}`);
  const { columns = 80, isTTY = false } = process.stdout;
  display.tell(`\n${await servers.lossChart(columns, isTTY)}`);
  display.tell(nextSteps(DIRECTORY, JOB, process.cwd()));
  await observer.close();

  /**
   * Kills a host; returns how long it takes until every trainer has done a round that began after
   * that.
   */
  async function killHost(): Promise<number> {
    const shards = await servers.shardsOf(DOOMED_HOST);
    const parameters = await observer.parametersIn(shards);
    check(parameters.length > 0, `no block of the model lies on host ${DOOMED_HOST}: try again`);
    const what = `${shards.length} shards with ${parameters.join(", ")}`;
    display.tell(`host ${DOOMED_HOST}, which owns ${what}, gets SIGKILL;
training waits until its lease of 5 s has run out and the other host has taken over`);
    const killedMs = Date.now();
    await doomed.kill();
    await until(() => team.allTrainedSince(killedMs));
    const tookMs = Date.now() - killedMs;
    display.tell(`recovered in ${seconds(tookMs)}: its shards have a new owner, all train again`);
    return tookMs;
  }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await delay(POLL_MS);
}

function range(counts: readonly number[]): string {
  const [lowest, highest] = [Math.min(...counts), Math.max(...counts)];
  return lowest === highest ? amount(lowest) : `${amount(lowest)} to ${amount(highest)}`;
}

function check(good: boolean, message: string): void {
  if (!good) throw new Error(message);
}

// Proves how the demo counts: what trainers say is known, what they began to send and never heard
// of is not, a killed trainer's updates still count, and "all have trained since" waits for
// everyone at work and for nobody else. Objects stand in for the processes.
import { expect, test } from "vitest";
import { type StartTrainer, Team } from "../../examples/digits/team.ts";

interface FakeTrainer {
  readonly args: readonly string[];
  readonly say: (message: Readonly<Record<string, unknown>>) => void;
  round(startedMs: number): void;
}

function startTeam(): { team: Team; trainers: Map<string, FakeTrainer>; ended: string[] } {
  const trainers = new Map<string, FakeTrainer>();
  const ended: string[] = [];
  const start: StartTrainer = (name, args, say) => {
    const round = (startedMs: number): void => {
      say({ event: "sending" });
      say({ event: "update", loss: 0.5, startedMs });
    };
    trainers.set(name, { args, say, round });
    let running = true;
    const end = (how: string) => async (): Promise<void> => {
      running = false;
      ended.push(`${name} ${how}`);
    };
    return {
      get running() {
        return running;
      },
      kill: end("killed"),
      stop: end("stopped"),
    };
  };
  return { team: new Team(start), trainers, ended };
}

test("updates are counted when they are acknowledged, the rest is without an answer", async () => {
  const { team, trainers, ended } = startTeam();
  team.add("a", 7);
  team.add("b", 8);
  const [a, b] = [...trainers.values()];
  expect(a?.args).toEqual(["--trainer", "a", "--seed", "7"]);
  expect(team.progress.map(({ state }) => state)).toEqual(["starting", "starting"]);
  a?.say({ event: "joined", selected: true });
  a?.round(1);
  a?.say({ event: "sending" });
  b?.round(2);
  b?.say({ event: "update", loss: "no number", startedMs: 3 });
  expect([team.updates, team.unanswered]).toEqual([2, 1]);
  await team.kill("a");
  expect([team.updates, team.unanswered]).toEqual([2, 1]);
  await team.finish();
  expect(ended).toEqual(["a killed", "b stopped"]);
  expect(team.progress).toEqual([
    { name: "a", state: "killed", updates: 1, loss: 0.5 },
    { name: "b", state: "finished", updates: 1, loss: 0.5 },
  ]);
});

test("all have trained since a moment when each one at work has finished a later round", async () => {
  const { team, trainers } = startTeam();
  for (const name of ["a", "b", "c"]) team.add(name, 1);
  const [a, b] = [...trainers.values()];
  for (const trainer of [a, b]) trainer?.say({ event: "joined" });
  a?.round(11);
  b?.round(10);
  expect(team.allTrainedSince(10)).toBe(false);
  b?.round(12);
  expect(team.allTrainedSince(10)).toBe(true);
  a?.round(30);
  expect(team.allTrainedSince(20)).toBe(false);
  await team.kill("b");
  expect(team.allTrainedSince(20)).toBe(true);
  await expect(team.kill("nobody")).rejects.toThrow("no trainer is named nobody");
});

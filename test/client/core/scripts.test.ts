// Proves that the trainer core still does what the recorded scripts of events and commands say, to which
// the core of the C library is held, too. Each script is played by chance, decided by its seed: the player
// raises any event that an I/O layer could raise at that time. After an intended change run
// `vitest run test/client/core/scripts.test.ts -u` and review every line that changed.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Random } from "../../simulation/random.ts";
import { OutboxMachine, OutboxPlayer } from "./outbox-script.ts";
import { type Machine, type Player, type Recorder, record, replay } from "./script.ts";
import { SessionMachine, SessionPlayer } from "./session-script.ts";
import { StepsMachine, StepsPlayer } from "./steps-script.ts";

const DIRECTORY = join(import.meta.dirname, "..", "..", "vectors", "core");

interface Kind {
  readonly scripts: number;
  readonly events: number;
  readonly play: (random: Random) => Player;
  readonly make: (settings: string, recorder: Recorder) => Machine;
}

const KINDS: Readonly<Record<string, Kind>> = {
  outbox: {
    scripts: 60,
    events: 120,
    play: (random) => new OutboxPlayer(random),
    make: (settings, recorder) => new OutboxMachine(settings, recorder),
  },
  session: {
    scripts: 60,
    events: 40,
    play: (random) => new SessionPlayer(random),
    make: (settings, recorder) => new SessionMachine(settings, recorder),
  },
  steps: {
    scripts: 60,
    events: 60,
    play: (random) => new StepsPlayer(random),
    make: (settings, recorder) => new StepsMachine(settings, recorder),
  },
};

function recordAll({ scripts, events, play, make }: Kind): string {
  const seeds = Array.from({ length: scripts }, (_, index) => index + 1);
  return `${seeds.map((seed) => record(play(new Random(seed)), make, events)).join("\n\n")}\n`;
}

describe.each(Object.entries(KINDS))("the scripts of the %s", (name, kind) => {
  const path = join(DIRECTORY, `${name}.txt`);

  test("are what the machine does when they are played", async () => {
    await expect(recordAll(kind)).toMatchFileSnapshot(path);
  });

  test("can be run from their events alone", () => {
    const scripts = readFileSync(path, "utf8").trimEnd().split("\n\n");
    expect(scripts.length).toBe(kind.scripts);
    for (const script of scripts) expect(replay(script, kind.make)).toBe(script);
  });
});

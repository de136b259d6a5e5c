import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { makeDirectory } from "../model-files/make-directory.ts";
import { PserverError } from "../protocol/errors.ts";
import { errnoCode, fileError } from "../system/file-errors.ts";
import { identifyProcess, isAlive, type ProcessIdentity } from "./process-identity.ts";

/** Exclusive use of a store directory. */
export interface StoreLock {
  readonly dir: string;
  /**
   * Makes the process `pid`, for instance a broker that was started, a holder too: the directory
   * stays locked while it lives, even when this process has died.
   */
  addHolder(pid: number): Promise<void>;
  /** Gives the directory up, for every holder. Further calls do nothing. */
  release(): Promise<void>;
}

/** A claim is an empty file whose name says whose it is, so it comes into being whole. */
const CLAIM = /^(\d+)\.([0-9a-z-]+)$/;

/** Two that claim at the same moment see each other and both withdraw; so each tries again. */
const ATTEMPTS = 5;
const BACKOFF_MS_MAX = 60;

/**
 * Takes a store directory for this process, making it if needed. Claims of processes that have
 * ended are taken over. It guards one machine: directories shared over a network are not covered.
 *
 * A contender first writes its own claim and then reads all others, so of two contenders at
 * least one sees the other, and never do both hold the directory.
 * @throws STORE_IN_USE naming pid and directory, if a live process holds it.
 * @throws IO or DISK_FULL if the directory cannot be written.
 */
export async function lockStore(dir: string): Promise<StoreLock> {
  const claims = join(dir, "lock");
  const self = identifyProcess(process.pid) ?? { pid: process.pid, birth: "unknown" };
  try {
    await makeDirectory(claims);
  } catch (cause) {
    throw fileError("make the store directory", claims, cause);
  }
  for (let attempt = 1; ; attempt++) {
    await claim(dir, claims, self);
    const other = await liveClaim(claims, self);
    if (other === undefined) return new HeldLock(dir, claims, self);
    await rm(claimPath(claims, self), { force: true });
    if (attempt === ATTEMPTS) throw storeInUse(dir, other.pid);
    await delay(Math.random() * BACKOFF_MS_MAX);
  }
}

class HeldLock implements StoreLock {
  readonly dir: string;
  readonly #claims: string;
  readonly #holders: ProcessIdentity[];

  constructor(dir: string, claims: string, self: ProcessIdentity) {
    this.dir = dir;
    this.#claims = claims;
    this.#holders = [self];
  }

  async addHolder(pid: number): Promise<void> {
    const holder = identifyProcess(pid);
    // A process that has ended needs no claim.
    if (holder === undefined) return;
    await claim(this.dir, this.#claims, holder);
    this.#holders.push(holder);
  }

  async release(): Promise<void> {
    for (const holder of this.#holders.splice(0).reverse()) {
      await rm(claimPath(this.#claims, holder), { force: true });
    }
  }
}

async function claim(dir: string, claims: string, holder: ProcessIdentity): Promise<void> {
  const path = claimPath(claims, holder);
  try {
    await writeFile(path, "", { flag: "wx" });
  } catch (cause) {
    // The same life of the same process: it holds the directory already.
    if (errnoCode(cause) === "EEXIST") throw storeInUse(dir, holder.pid);
    throw fileError("write", path, cause);
  }
}

/** Another live process that claims the directory; claims of dead ones are removed on the way. */
async function liveClaim(
  claims: string,
  self: ProcessIdentity,
): Promise<ProcessIdentity | undefined> {
  let live: ProcessIdentity | undefined;
  for (const name of await readdir(claims)) {
    const match = CLAIM.exec(name);
    if (match === null) continue;
    const holder = { pid: Number(match[1]), birth: match[2] ?? "" };
    if (holder.pid === self.pid && holder.birth === self.birth) continue;
    if (isAlive(holder)) live = holder;
    else await rm(join(claims, name), { force: true });
  }
  return live;
}

function claimPath(claims: string, holder: ProcessIdentity): string {
  return join(claims, `${holder.pid}.${holder.birth}`);
}

function storeInUse(dir: string, pid: number): PserverError {
  return new PserverError("STORE_IN_USE", `process ${pid} uses the store directory ${dir}`, {
    pid,
    dir,
  });
}

import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { makeDirectory } from "../model-files/atomic-write.js";
import { PserverError } from "../protocol/errors.js";
import { errnoCode, fileError } from "../system/file-errors.js";
import { identifyProcess, isAlive } from "../system/process-identity.js";
/** Name of a claim, an empty file. The owner is in the name, so that it is never incomplete. */
const CLAIM = /^(\d+)\.([0-9a-z-]+)$/;
/**
 * Attempts to claim: two processes that claim at the same time see each other, and both withdraw and retry.
 */
const ATTEMPTS = 5;
const BACKOFF_MS_MAX = 60;
/**
 * Locks a store directory for this process, creating it if needed. Claims of processes that have ended
 * are taken over. It works on one machine only, not for directories shared over a network.
 *
 * Invariant: two processes never both hold the directory. Each first writes its own claim and then
 * reads all others, so that at least one of the two sees the other.
 * @throws STORE_IN_USE naming pid and directory, if a live process holds it.
 * @throws IO or DISK_FULL if the directory cannot be written.
 */
export async function lockStore(dir) {
    const claims = join(dir, "lock");
    const self = identifyProcess(process.pid) ?? { pid: process.pid, birth: "unknown" };
    try {
        await makeDirectory(claims);
    }
    catch (cause) {
        throw fileError("make the directory", claims, cause);
    }
    for (let attempt = 1;; attempt++) {
        await claim(dir, claims, self);
        const other = await liveClaim(claims, self);
        if (other === undefined)
            return new HeldLock(dir, claims, self);
        await rm(claimPath(claims, self), { force: true });
        if (attempt === ATTEMPTS)
            throw storeInUse(dir, other.pid);
        await delay(Math.random() * BACKOFF_MS_MAX);
    }
}
class HeldLock {
    dir;
    #claims;
    #holders;
    constructor(dir, claims, self) {
        this.dir = dir;
        this.#claims = claims;
        this.#holders = [self];
    }
    async addHolder(pid) {
        const holder = identifyProcess(pid);
        // A process that has ended needs no claim.
        if (holder === undefined)
            return;
        await claim(this.dir, this.#claims, holder);
        this.#holders.push(holder);
    }
    async release() {
        for (const holder of this.#holders.splice(0).reverse()) {
            await rm(claimPath(this.#claims, holder), { force: true });
        }
    }
}
async function claim(dir, claims, holder) {
    const path = claimPath(claims, holder);
    try {
        await writeFile(path, "", { flag: "wx" });
    }
    catch (cause) {
        // This process already holds the directory.
        if (errnoCode(cause) === "EEXIST")
            throw storeInUse(dir, holder.pid);
        throw fileError("write", path, cause);
    }
}
/** Finds another live process that claims the directory; removes the claims of dead ones. */
async function liveClaim(claims, self) {
    let live;
    for (const name of await readdir(claims)) {
        const match = CLAIM.exec(name);
        if (match === null)
            continue;
        const holder = { pid: Number(match[1]), birth: match[2] ?? "" };
        if (holder.pid === self.pid && holder.birth === self.birth)
            continue;
        if (isAlive(holder))
            live = holder;
        else
            await rm(join(claims, name), { force: true });
    }
    return live;
}
function claimPath(claims, holder) {
    return join(claims, `${holder.pid}.${holder.birth}`);
}
function storeInUse(dir, pid) {
    return new PserverError("STORE_IN_USE", `process ${pid} uses the directory ${dir}`, {
        pid,
        dir,
    });
}
//# sourceMappingURL=store-lock.js.map
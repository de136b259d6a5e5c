import { createHash, randomBytes } from "node:crypto";
import { readlinkSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { errnoCode, fileError } from "../system/file-errors.ts";
import { identifyProcess, isAlive, type ProcessIdentity } from "../system/process-identity.ts";

/**
 * Matches names of temporary files: whose they are, that is the machine, pid and birth of the process that writes
 * them, and what tells its files apart.
 */
const TEMPORARY = /^\.pserver-save-([0-9a-f]{8})\.(\d+)\.([0-9a-z-]+)\.[0-9a-f]{16}\.tmp$/;

/** Makes a name in the same directory that nothing else has, and that names this process as its owner. */
export function temporaryNameBeside(file: string): string {
  const { pid, birth } = ownIdentity();
  const unique = randomBytes(8).toString("hex");
  return join(dirname(file), `.pserver-save-${machineToken()}.${pid}.${birth}.${unique}.tmp`);
}

/**
 * Returns whether a file name is one of {@link temporaryNameBeside}: a process that died may have left such a
 * file.
 */
export function isTemporaryName(name: string): boolean {
  return TEMPORARY.test(name);
}

/**
 * Removes the temporary files and directories that processes of this machine have left in a directory when they
 * died, with `below` also in the directories below it. An absent directory is passed over. Those of other machines, or of other containers, stay: whether their processes are alive cannot be known
 * here. So do those of other users that this one may not remove.
 * @throws IO if the directory cannot be listed, or a file cannot be removed for another reason.
 */
export async function removeLeftTemporaries(directory: string, below = false): Promise<void> {
  for (const name of await listNames(directory, below)) {
    const owner = ownerOf(basename(name));
    if (owner === undefined || isAlive(owner)) continue;
    const path = join(directory, name);
    try {
      await rm(path, { recursive: true, force: true });
    } catch (error) {
      if (!NOT_PERMITTED.includes(errnoCode(error))) throw fileError("remove", path, error);
    }
  }
}

const NOT_PERMITTED: readonly unknown[] = ["EACCES", "EPERM"];

async function listNames(directory: string, recursive: boolean): Promise<readonly string[]> {
  try {
    return await readdir(directory, { recursive });
  } catch (error) {
    if (errnoCode(error) === "ENOENT") return [];
    throw fileError("list", directory, error);
  }
}

/** Returns which process of this machine writes the file; undefined if none does, by its name. */
function ownerOf(name: string): ProcessIdentity | undefined {
  const [, machine, pid, birth] = TEMPORARY.exec(name) ?? [];
  if (birth === undefined || machine !== machineToken()) return undefined;
  return { pid: Number(pid), birth };
}

function ownIdentity(): ProcessIdentity {
  return identifyProcess(process.pid) ?? { pid: process.pid, birth: "unknown" };
}

/** Tells machines apart, and containers of one machine, which number their processes anew. */
function machineToken(): string {
  const hash = createHash("sha256").update(`${hostname()}\0${processNamespace()}`);
  return hash.digest("hex").slice(0, 8);
}

function processNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    // A system without them numbers all processes together.
    return "";
  }
}

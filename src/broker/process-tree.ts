import { readdir, readFile } from "node:fs/promises";

/** Indices of fields of `/proc/<pid>/stat` after the command's name. */
const PARENT_FIELD = 1;

/**
 * Sends a signal to a process and to all that have come from it, whatever process groups they have made; the
 * process itself comes first, so that it starts nothing instead. Without `/proc` only the process gets it.
 */
export async function signalTree(pid: number, signal: NodeJS.Signals): Promise<void> {
  for (const each of [pid, ...(await descendants(pid))]) {
    try {
      process.kill(each, signal);
    } catch {
      // It has ended meanwhile, or belongs to another user.
    }
  }
}

/** Processes that have come from another one, parents before their children. */
async function descendants(pid: number): Promise<number[]> {
  const children = new Map<number, number[]>();
  for (const each of await readdir("/proc").catch(() => [])) {
    const parent = /^\d+$/.test(each) ? await parentOf(each) : undefined;
    if (parent === undefined) continue;
    children.set(parent, [...(children.get(parent) ?? []), Number(each)]);
  }
  const found = [pid];
  for (const each of found) found.push(...(children.get(each) ?? []));
  return found.slice(1);
}

async function parentOf(pid: string): Promise<number | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  // The command's name may contain spaces and parentheses: fields are counted from the last parenthesis.
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields === undefined ? undefined : Number(fields[PARENT_FIELD]);
}

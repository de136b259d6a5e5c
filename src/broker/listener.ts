import { readdir, readFile, readlink } from "node:fs/promises";

/** A process that listens on a port of this machine. */
export interface Listener {
  readonly pid: number;
  /** Name of its program as in `/proc`: at most 15 bytes. */
  readonly name: string;
}

/** State of a listening socket, and indices of fields in a line of `/proc/net/tcp`. */
const LISTENING = "0A";
const [ADDRESS_FIELD, STATE_FIELD, INODE_FIELD] = [1, 3, 9];

/**
 * The process that listens on a TCP port; undefined if the system does not say: without `/proc`, or if
 * the process belongs to another user.
 */
export async function findListener(port: number): Promise<Listener | undefined> {
  const inodes = new Set<string>();
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    for (const inode of listeningInodes(await unlessHidden(readFile(table, "utf8"), ""), port)) {
      inodes.add(inode);
    }
  }
  if (inodes.size === 0) return undefined;
  for (const pid of await unlessHidden(readdir("/proc"), [])) {
    if (/^\d+$/.test(pid) && (await holdsOneOf(inodes, pid))) {
      const name = await unlessHidden(readFile(`/proc/${pid}/comm`, "utf8"), "");
      return { pid: Number(pid), name: name.trim() };
    }
  }
  return undefined;
}

/** Inodes of the sockets that listen on a port, from the text of `/proc/net/tcp`. */
function listeningInodes(table: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return table
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter((row) => row[STATE_FIELD] === LISTENING && row[ADDRESS_FIELD]?.endsWith(suffix))
    .flatMap((row) => row[INODE_FIELD] ?? []);
}

async function holdsOneOf(inodes: ReadonlySet<string>, pid: string): Promise<boolean> {
  for (const descriptor of await unlessHidden(readdir(`/proc/${pid}/fd`), [])) {
    const target = await unlessHidden(readlink(`/proc/${pid}/fd/${descriptor}`), "");
    const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
    if (inode !== undefined && inodes.has(inode)) return true;
  }
  return false;
}

/** Result of reading `/proc`, or `nothing`: a process may end meanwhile, or belong to another user. */
async function unlessHidden<T>(reading: Promise<T>, nothing: T): Promise<T> {
  try {
    return await reading;
  } catch {
    return nothing;
  }
}

import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { packageRoot } from "../../src/broker/broker-config.ts";

const run = promisify(execFile);

/** What `make install` puts below a directory of its own. */
export interface InstalledCommand {
  readonly prefix: string;
  /** The installed program, to be run by Node. */
  readonly main: string;
  /** The broker that was installed with it, if one was. */
  readonly broker: string;
  remove(): Promise<void>;
}

/** Installs what `make build` made, with the broker that set-up provided. */
export async function installCommand(): Promise<InstalledCommand> {
  const prefix = await mkdtemp(join(tmpdir(), "pserver-prefix-"));
  const script = join(packageRoot(), "scripts", "install.sh");
  await run(script, { env: { ...process.env, PREFIX: prefix, DESTDIR: "" } });
  const root = join(prefix, "lib", "node_modules", "nats-pserver");
  return {
    prefix,
    main: join(root, "dist", "pserver.js"),
    broker: join(root, ".tools", "bin", "nats-server"),
    remove: () => rm(prefix, { recursive: true, force: true }),
  };
}

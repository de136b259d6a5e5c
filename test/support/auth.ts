import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nkeys } from "@nats-io/transport-node";
import type { HostOptions } from "../../src/actors/host/host.ts";
import { AuthDirectory, type OtherUser } from "../../src/broker/auth/auth-directory.ts";
import type { ConnectOptions } from "../../src/client/index.ts";
import type { ConnectionSettings } from "../../src/transport/connection.ts";
import { HANG_MS } from "./limits.ts";

/** Length of a user's seed in its file, before the end of the line. */
const SEED_BYTES = 58;

/** Users, keys and certificates of one test's job, as `pserver auth init` makes them, in a temporary directory. */
export class TestAuth {
  readonly directory: AuthDirectory;
  readonly #home: string;

  private constructor(home: string, directory: AuthDirectory) {
    this.#home = home;
    this.directory = directory;
  }

  static async make(job: string, trainers: readonly string[]): Promise<TestAuth> {
    const home = await mkdtemp(join(tmpdir(), "pserver-auth-"));
    const settings = { job, trainers, names: [] };
    return new TestAuth(home, await AuthDirectory.make(join(home, "auth"), settings, false));
  }

  /** The file with the key of a user: one of the others, or a trainer. */
  keyFile(user: string): string {
    const { directory } = this;
    return directory.trainers.includes(user)
      ? directory.trainerKeyFile(user)
      : directory.keyFile(user as OtherUser);
  }

  /** How a user connects. */
  as(user: string, servers: readonly string[], timeoutMs: number = HANG_MS): ConnectionSettings {
    const tls = { caFile: this.directory.authorityFile };
    return { servers, timeoutMs, tls, nkeyFile: this.keyFile(user) };
  }

  /** Options of a host's two users. */
  host(
    servers: readonly string[],
    timeoutMs: number = HANG_MS,
  ): Pick<HostOptions, "connection" | "answerConnection" | "acrossAccounts"> {
    return {
      connection: this.as("host", servers, timeoutMs),
      answerConnection: this.as("answers", servers, timeoutMs),
      acrossAccounts: true,
    };
  }

  /** Options of a trainer's client. */
  trainer(user: string): Partial<ConnectOptions> {
    return { nkey: this.keyFile(user), tlsCa: this.directory.authorityFile };
  }

  /** Variables by which a command, or a program with the C library, connects. */
  variables(user: string): Record<string, string> {
    const file = this.keyFile(user);
    return {
      NATS_NKEY: file,
      NATS_NKEY_PUBLIC: nkeys.fromSeed(readFileSync(file).subarray(0, SEED_BYTES)).getPublicKey(),
      NATS_CA: this.directory.authorityFile,
    };
  }

  async remove(): Promise<void> {
    await rm(this.#home, { recursive: true, force: true });
  }
}

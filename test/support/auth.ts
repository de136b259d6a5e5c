import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HostOptions } from "../../src/actors/host/host.ts";
import { AuthDirectory, type OtherUser } from "../../src/broker/auth/auth-directory.ts";
import type { ConnectOptions } from "../../src/client/index.ts";
import type { ConnectionSettings } from "../../src/transport/connection.ts";
import { HANG_MS } from "./limits.ts";

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
  as(user: string, servers: readonly string[]): ConnectionSettings {
    const tls = { caFile: this.directory.authorityFile };
    return { servers, timeoutMs: HANG_MS, tls, nkeyFile: this.keyFile(user) };
  }

  /** Options of a host's two users. */
  host(
    servers: readonly string[],
  ): Pick<HostOptions, "connection" | "answerConnection" | "acrossAccounts"> {
    return {
      connection: this.as("host", servers),
      answerConnection: this.as("answers", servers),
      acrossAccounts: true,
    };
  }

  /** Options of a trainer's client. */
  trainer(user: string): Partial<ConnectOptions> {
    return { nkey: this.keyFile(user), tlsCa: this.directory.authorityFile };
  }

  /** Variables by which a command connects. */
  variables(user: string): Record<string, string> {
    return { NATS_NKEY: this.keyFile(user), NATS_CA: this.directory.authorityFile };
  }

  async remove(): Promise<void> {
    await rm(this.#home, { recursive: true, force: true });
  }
}

import { PserverError } from "../../protocol/errors.ts";
import {
  type Declaration,
  type ParameterInfo,
  parseParameters,
} from "../../protocol/lifecycle-messages.ts";
import { quoteName } from "../../protocol/names.ts";
import { parametersPerRequest } from "../../protocol/parameters-per-request.ts";
import type { Session } from "../shell/session.ts";
import { Deadline } from "../timing/deadline.ts";

interface Waiting {
  readonly declaration: Declaration;
  readonly epoch: number;
  readonly deadline: Deadline;
  readonly resolve: (info: ParameterInfo) => void;
  readonly reject: (error: unknown) => void;
}

/** Requests under way at a time: enough to keep a host busy, and few enough to be answered before they are repeated. */
const REQUESTS_MAX = 8;

/**
 * Declares parameters: calls of one turn of the event loop share requests, each of as many parameters as hosts
 * take and the broker's largest message holds.
 */
export class Declarations {
  readonly #session: Session;
  readonly #payloadBytesMax: () => number;
  #waiting: Waiting[] = [];
  #underWay = 0;

  /** `payloadBytesMax`: the largest message the broker takes. */
  constructor(session: Session, payloadBytesMax: () => number) {
    this.#session = session;
    this.#payloadBytesMax = payloadBytesMax;
  }

  /** The parameter with its layout and epoch. @throws the error in the reply to the request. */
  declare(declaration: Declaration, epoch: number, deadline: Deadline): Promise<ParameterInfo> {
    const declared = new Promise<ParameterInfo>((resolve, reject) => {
      if (this.#waiting.length === 0) setImmediate(() => this.#flush());
      this.#waiting.push({ declaration, epoch, deadline, resolve, reject });
    });
    return deadline.race(declared);
  }

  #flush(): void {
    while (this.#waiting.length > 0 && this.#underWay < REQUESTS_MAX) {
      const part = this.#waiting.splice(0, this.#nextLength());
      this.#underWay += 1;
      this.#declare(part)
        .catch((error: unknown) => {
          for (const { reject } of part) reject(error);
        })
        .finally(() => {
          this.#underWay -= 1;
          this.#flush();
        });
    }
  }

  /** How many of those waiting go into one request: all of them belong to one initialization. */
  #nextLength(): number {
    const epoch = this.#waiting[0]?.epoch;
    const most = this.#waiting.slice(0, parametersPerRequest(this.#payloadBytesMax()));
    const others = most.findIndex((waiting) => waiting.epoch !== epoch);
    return others < 0 ? most.length : others;
  }

  async #declare(part: readonly Waiting[]): Promise<void> {
    const epoch = part[0]?.epoch;
    // The request has the longest deadline of its calls; each call keeps to its own.
    const timeoutMs = Math.max(1, ...part.map(({ deadline }) => deadline.remainingMs));
    const deadline = Deadline.start("initParam", { timeoutMs });
    try {
      const fields = await this.#session.request(
        "declare",
        { epoch, parameters: part.map(({ declaration }) => declaration) },
        deadline,
      );
      const infos = parseParameters(fields);
      part.forEach(({ declaration: { name }, resolve, reject }, i) => {
        const info = infos[i];
        if (info?.name === name) resolve(info);
        else reject(notInReply(name));
      });
    } finally {
      deadline.dispose();
    }
  }
}

function notInReply(name: string): PserverError {
  return new PserverError(
    "BAD_MESSAGE",
    `declare: expected ${quoteName(name)} in the reply; received another parameter or none`,
    { parameter: name },
  );
}

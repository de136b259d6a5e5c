import { checksum } from "../../protocol/checksum/crc.ts";
import { bytesOf, type TensorData } from "../../protocol/dtypes.ts";
import type { ParameterInfo } from "../../protocol/lifecycle-messages.ts";

interface OpenInit {
  readonly epoch: number;
  /** Checksum of the values that were sent; undefined once there were several. */
  readonly crc: number | undefined;
}

/**
 * Remembers failed attempts to initialize parameters, some blocks of which may be stored. Under one epoch
 * only the selected session writes, so a block that is initialized already when the same values are sent
 * again is this client's own.
 */
export class OpenInits {
  /** By name, for each parameter whose last attempt failed. */
  readonly #open: Map<string, OpenInit> = new Map();

  /** Whether an attempt under this epoch has failed. */
  has({ name, epoch }: ParameterInfo): boolean {
    return this.#open.get(name)?.epoch === epoch;
  }

  /** Whether attempts under this epoch have failed and all of them sent these values. */
  isRepeat({ name, epoch }: ParameterInfo, data: TensorData): boolean {
    const open = this.#open.get(name);
    return open?.epoch === epoch && open.crc === checksum(bytesOf(data));
  }

  /** An attempt failed after it may have stored blocks. */
  failed({ name, epoch }: ParameterInfo, data: TensorData): void {
    const open = this.#open.get(name);
    const crc = checksum(bytesOf(data));
    const isOther = open?.epoch === epoch && open.crc !== crc;
    this.#open.set(name, { epoch, crc: isOther ? undefined : crc });
  }

  /** The parameter is initialized. */
  done({ name }: ParameterInfo): void {
    this.#open.delete(name);
  }
}

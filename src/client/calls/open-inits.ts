import { checksum } from "../../protocol/checksum/crc.ts";
import { bytesOf, type TensorData } from "../../protocol/dtypes.ts";
import type { ParameterInfo } from "../../protocol/lifecycle-messages.ts";

interface OpenInit {
  readonly epoch: number;
  /** Checksum of the values that were sent; undefined once there were several. */
  readonly crc: number | undefined;
}

/**
 * The initializations of parameters that this client has begun and not ended well: it may not know
 * which of their blocks are stored. Under one epoch only the session that is selected writes, so a
 * block that is initialized already in a repeat of the same values is this client's own.
 */
export class OpenInits {
  /** By name: one for each parameter whose last attempt failed. */
  readonly #open: Map<string, OpenInit> = new Map();

  /** Whether attempts under this epoch have failed, and all of them sent these values. */
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

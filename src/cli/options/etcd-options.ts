import type { Command } from "commander";
import type { EtcdSettings } from "../../actors/etcd/etcd-keys.ts";
import { defined } from "../../protocol/defined.ts";
import { mismatch } from "../../protocol/mismatch.ts";
import { parseAdvertised, parseEndpoints, parsePrefix } from "./parse-values.ts";

/** Flags of a host that keeps its leases in etcd; each is undefined unless given. */
export interface EtcdFlags {
  readonly etcd?: readonly string[];
  readonly etcdPrefix?: string;
  readonly advertise?: readonly string[];
}

/** Adds the flags for the address of etcd and what is published there. */
export function addEtcdOptions(command: Command): Command {
  return addEtcdPlaceOptions(command).option(
    "--advertise <urls>",
    "addresses of the broker for trainers, published in etcd (default: those of this host)",
    parseAdvertised,
  );
}

/** Adds the flags for the address of etcd. */
export function addEtcdPlaceOptions(command: Command): Command {
  return command
    .option(
      "--etcd <urls>",
      "keep the leases of the job in this etcd, http://host:2379,…, and publish its hosts there",
      parseEndpoints,
    )
    .option(
      "--etcd-prefix <prefix>",
      "prefix of all keys in etcd, a different one for each job (default: none)",
      parsePrefix,
    );
}

/** The flags as a host's setting; undefined without `--etcd`. @throws BAD_VALUE for the other flags without it. */
export function toEtcdSetting(flags: EtcdFlags): EtcdSettings | undefined {
  const { etcd, etcdPrefix, advertise } = flags;
  if (etcd !== undefined) {
    return { endpoints: etcd, ...defined({ prefix: etcdPrefix, advertise }) };
  }
  const name = etcdPrefix === undefined ? "--advertise" : "--etcd-prefix";
  if (etcdPrefix === undefined && advertise === undefined) return undefined;
  throw mismatch("BAD_VALUE", name, "--etcd with it", "none");
}

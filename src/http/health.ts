import type { HostReport } from "../actors/host/host-report.ts";
import { CONTENT_TYPES, chooseFormat, writeExposition } from "../metrics/exposition.ts";
import { type BuildInfo, hostMetrics } from "./host-metrics.ts";
import { jsonAnswer, type Route } from "./http-server.ts";
import type { WatchedHosts } from "./watched-hosts.ts";

/** How long a worker thread, or another process, may be silent; each tells its state twice a second. */
const SILENT_MS_MAX = 10_000;

/** Makes the route `/metrics`: what was last told, so that a scrape waits for nothing. */
export function metricsRoute(hosts: WatchedHosts, build: BuildInfo): Route {
  return {
    isProtected: true,
    answer: ({ accept }) => {
      const format = chooseFormat(accept);
      const body = writeExposition(hostMetrics(hosts, build), format);
      return { status: 200, contentType: CONTENT_TYPES[format], body };
    },
  };
}

/** Makes the route `/healthz`: 200 while the event loops of this process and of its hosts turn, else 503. */
export function healthRoute(hosts: WatchedHosts): Route {
  return {
    isProtected: false,
    answer: () => {
      const silent = hosts.reports().filter(({ silentMs }) => silentMs > SILENT_MS_MAX);
      const shown = silent.map(({ host, silentMs }) => ({ host, silentMs: Math.round(silentMs) }));
      if (shown.length === 0) return jsonAnswer({ healthy: true });
      return jsonAnswer({ healthy: false, silent: shown }, 503);
    },
  };
}

/** Makes the route `/readyz`: 200 while every shard that falls to the hosts is served by them, else 503. */
export function readyRoute(hosts: WatchedHosts): Route {
  return {
    isProtected: false,
    answer: () => {
      const reports = hosts.reports();
      const waiting = reports.flatMap(shardsNotServed);
      if (reports.length > 0 && waiting.length === 0) {
        return jsonAnswer({ ready: true, shards: reports.flatMap(({ share }) => share).length });
      }
      return jsonAnswer({ ready: false, hosts: reports.length, notServed: waiting }, 503);
    },
  };
}

/** Lists the shards that fall to a host and that it does not serve, with their states. */
function shardsNotServed({ share, shards }: HostReport): { shard: number; state: string }[] {
  return share.flatMap((shard) => {
    const state = shards.find((each) => each.shard === shard)?.state ?? "unowned";
    return state === "serving" ? [] : [{ shard, state }];
  });
}

/** Finds nats-server, checks its version, runs it on a locked store directory. */

export { packageRoot, readBrokerInfo } from "./broker-config.ts";
export { type FoundBroker, findBroker } from "./find-broker.ts";
export { setUpBroker } from "./set-up-broker.ts";
export type { BrokerExit } from "./start-broker.ts";
export { type Broker, type BrokerOptions, startBroker } from "./start-broker.ts";

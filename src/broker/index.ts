/** Finds nats-server, checks its version, runs it on a locked store directory. */
export type { BrokerSettings } from "./broker-config.ts";
export { type BrokerInfo, packageRoot, readBrokerInfo } from "./broker-config.ts";
export { type FoundBroker, findBroker } from "./find-broker.ts";
export { type SetUpOptions, setUpBroker } from "./set-up-broker.ts";
export type { BrokerExit } from "./start-broker.ts";
export { type Broker, type BrokerOptions, startBroker } from "./start-broker.ts";
export { lockStore, type StoreLock } from "./store-lock.ts";

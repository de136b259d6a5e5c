import type { LeaseView } from "../leases/lease-view.ts";
import type { Leases } from "../leases/leases.ts";
import type { DeclaredLedger } from "./declared-ledger.ts";
import type { MembersDeps } from "./members.ts";
import type { Owners } from "./owners.ts";
import type { SessionCounter } from "./session-numbers.ts";
import type { SmallParameters } from "./small-parameters.ts";

/** Dependencies of the lifecycle's verbs. */
export interface LifecycleDeps extends MembersDeps {
  readonly hostId: string;
  readonly maxPayloadBytes: number;
  readonly leases: Leases;
  /** Of the trainers' leases. */
  readonly view: LeaseView;
  readonly owners: Owners;
  readonly counter: SessionCounter;
  readonly ledger: DeclaredLedger;
  readonly smallParameters: SmallParameters;
}

/**
 * How long a test waits for something that must happen soon before it fails. Only a hang lasts so long:
 * on a machine with nothing else to do the same things take some milliseconds to some seconds.
 */
export const HANG_MS = 400_000;

/** How long one test may take in all: longer than what it waits for. */
export const TEST_MS = 3 * HANG_MS;

/**
 * A lease for jobs in which nobody dies: on a busy machine a trainer that keeps step must not lose its
 * membership because one of its renewals came late.
 */
export const LASTING_LEASE_MS = 60_000;

/**
 * A lease for jobs in which somebody dies whose lease is waited for, and others must not lose theirs
 * meanwhile, however busy the machine is.
 */
export const MORTAL_LEASE_MS = 6_000;

/** A lease for jobs whose hosts are killed, and whose trainers lose nothing with theirs: nobody waits long for it. */
export const QUICK_LEASE_MS = 1_000;
